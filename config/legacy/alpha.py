"""Algorithm providers, and the part of KubeSchedulerConfiguration v1alpha1 that names them.

DefaultProvider has the default predicates and priorities; ClusterAutoscalerProvider differs only in
MostRequestedPriority in place of LeastRequestedPriority.
Upstream: pkg/scheduler/algorithmprovider/{registry,defaults/defaults}.go of 1.16 to 1.22.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from roadstead.config.decode import KIND
from roadstead.config.errors import Problem, unsupported
from roadstead.config.go_struct import API_VERSION
from roadstead.config.legacy.beta_schema import AlphaConfiguration
from roadstead.config.legacy.notes import ADDRESSES, Notes
from roadstead.config.legacy.policy import translate_policy
from roadstead.config.legacy.policy_schema import Policy
from roadstead.config.legacy.registry import DEFAULT_PRIORITIES

ALPHA: Final = "kubescheduler.config.k8s.io/v1alpha1"
DEFAULT_PROVIDER: Final = "DefaultProvider"
AUTOSCALER_PROVIDER: Final = "ClusterAutoscalerProvider"
PROVIDERS: Final = (DEFAULT_PROVIDER, AUTOSCALER_PROVIDER)

# Fields that v1 has elsewhere, or no longer.
_MOVED: Final = frozenset(
    {"schedulerName", "algorithmSource", "hardPodAffinitySymmetricWeight"}
    | {"disablePreemption", "bindTimeoutSeconds", "leaderElection", *ADDRESSES}
)
# Names of fields of leaderElection in v1alpha1 → in v1.
_LOCK_NAMES: Final = {
    "lockObjectName": "resourceName",
    "lockObjectNamespace": "resourceNamespace",
}


def provider_text(name: str) -> str:
    """Return a v1alpha1 document that names a provider."""
    return f"apiVersion: {ALPHA}\nkind: {KIND}\nalgorithmSource:\n  provider: {name}\n"


def translate_alpha(
    document: dict[str, Any], config: AlphaConfiguration, notes: Notes, problems: list[Problem]
) -> dict[str, Any]:
    """Translate a v1alpha1 document to v1. config: the document, decoded."""
    notes.add("apiVersion", f"v1alpha1 → {API_VERSION}")
    source = config.algorithm_source
    if source.policy is not None:
        reason = "names a Policy kept elsewhere: give that file itself as the configuration"
        problems.append(Problem("algorithmSource.policy", reason))
    priorities = _provider_priorities(source.provider or DEFAULT_PROVIDER, notes, problems)
    policy = Policy(
        hard_pod_affinity_symmetric_weight=config.hard_pod_affinity_symmetric_weight or 0
    )
    result = translate_policy(policy, notes, problems, priorities)
    notes.drop_addresses(document)
    (profile,) = result["profiles"]
    _apply_profile_fields(profile, config, notes)
    unmoved = {key: value for key, value in document.items() if key not in _MOVED}
    election = _leader_election(document.get("leaderElection"), notes)
    return {**unmoved, **election, **result}


def _provider_priorities(name: str, notes: Notes, problems: list[Problem]) -> Mapping[str, int]:
    """Return the priorities of a provider; its predicates are the default ones."""
    where = "algorithmSource.provider"
    if name not in PROVIDERS:
        problems.append(unsupported(where, name, PROVIDERS))
    if name != AUTOSCALER_PROVIDER:
        notes.add(where, f"{DEFAULT_PROVIDER}: the default predicates and priorities")
        return DEFAULT_PRIORITIES
    notes.add(where, f"{name}: MostRequestedPriority in place of LeastRequestedPriority")
    return {
        priority.replace("LeastRequested", "MostRequested"): weight
        for priority, weight in DEFAULT_PRIORITIES.items()
    }


def _apply_profile_fields(
    profile: dict[str, Any], config: AlphaConfiguration, notes: Notes
) -> None:
    if config.scheduler_name is not None:
        profile["schedulerName"] = config.scheduler_name
        notes.add("schedulerName", "→ profiles[0].schedulerName")
    if config.disable_preemption:
        for point in ("preEnqueue", "postFilter"):
            enabled = profile["plugins"][point]["enabled"]
            enabled[:] = [each for each in enabled if each["name"] != "DefaultPreemption"]
        notes.add("disablePreemption", "→ DefaultPreemption is off")
    if config.bind_timeout_seconds is not None:
        args = {"bindTimeoutSeconds": config.bind_timeout_seconds}
        profile["pluginConfig"].append({"name": "VolumeBinding", "args": args})
        notes.add("bindTimeoutSeconds", "→ bindTimeoutSeconds of VolumeBinding")


def _leader_election(alpha_election: object, notes: Notes) -> dict[str, Any]:
    if not isinstance(alpha_election, dict):
        return {}
    election = {key: value for key, value in alpha_election.items() if key not in _LOCK_NAMES}
    for older_name, name in _LOCK_NAMES.items():
        if alpha_election.get(older_name) and not election.get(name):
            election[name] = alpha_election[older_name]
            notes.add(f"leaderElection.{older_name}", f"→ leaderElection.{name}")
    return {"leaderElection": election}
