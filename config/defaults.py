"""Fill in the fields that the document omits: the stage between decode and validate.

Upstream: pkg/scheduler/apis/config/v1/defaults.go, component-base/config/v1alpha1/defaults.go.
Two defaults depend on feature gates upstream. With the gates' own defaults in 1.34.1, `shape` of
VolumeBindingArgs stays unset, and `filterTimeout` of DynamicResourcesArgs is set.

`config.schema` has the document as written (its types are those with the prefix V1), `config.model`
the form that schedulers read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from roadstead.config.durations import Duration, parse_duration
from roadstead.config.go_struct import API_VERSION
from roadstead.config.merge import default_plugins, enabled_names, merge_plugins
from roadstead.config.model import DEFAULT_SCHEDULER_NAME
from roadstead.config.schema import (
    ClientConnection,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    PluginConfig,
)
from roadstead.config.schema_args import (
    ARGS_MODELS,
    Args,
    V1DefaultPreemptionArgs,
    V1DynamicResourcesArgs,
    V1InterPodAffinityArgs,
    V1NodeResourcesBalancedAllocationArgs,
    V1NodeResourcesFitArgs,
    V1PodTopologySpreadArgs,
    V1ResourceSpec,
    V1ScoringStrategy,
    V1VolumeBindingArgs,
)

T = TypeVar("T")
"""Any value that a document may omit."""

_DEFAULT_RESOURCES: Final = [V1ResourceSpec(name=name, weight=1) for name in ("cpu", "memory")]


def set_defaults(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Return the configuration with every default set; nothing is refused here."""
    profiles = list(config.profiles or ()) or [KubeSchedulerProfile()]
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        name = {"scheduler_name": DEFAULT_SCHEDULER_NAME}
        profiles = [profiles[0].model_copy(update=name)]
    profiling = _value_or(config.enable_profiling, True)
    return config.model_copy(
        update={
            "parallelism": _value_or(config.parallelism, 16),
            "profiles": [_with_profile_defaults(profile) for profile in profiles],
            "percentage_of_nodes_to_score": _value_or(config.percentage_of_nodes_to_score, 0),
            "leader_election": _with_election_defaults(config.leader_election),
            "client_connection": _with_connection_defaults(config.client_connection),
            "pod_initial_backoff_seconds": _value_or(config.pod_initial_backoff_seconds, 1),
            "pod_max_backoff_seconds": _value_or(config.pod_max_backoff_seconds, 10),
            "enable_profiling": profiling,
            "enable_contention_profiling": _value_or(config.enable_contention_profiling, profiling),
        }
    )


def _value_or(value: T | None, default: T) -> T:
    return default if value is None else value


def _with_profile_defaults(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    plugins = merge_plugins(default_plugins(), profile.plugins)
    configs = [_with_args_defaults(config) for config in profile.plugin_config or ()]
    configured = {config.name for config in configs}
    for name in enabled_names(plugins):
        if name in ARGS_MODELS and name not in configured:
            empty = ARGS_MODELS[name](api_version=API_VERSION, kind=f"{name}Args")
            configs.append(_with_args_defaults(PluginConfig(name=name, args=empty)))
    return profile.model_copy(update={"plugins": plugins, "plugin_config": configs})


def _with_args_defaults(config: PluginConfig) -> PluginConfig:
    if not isinstance(config.args, Args):
        return config
    return config.model_copy(update={"args": set_args_defaults(config.args)})


def set_args_defaults(args: Args) -> Args:
    """Return the arguments of an in-tree plugin with their defaults set."""
    defaults_for = _ARGS_DEFAULTS.get(type(args))
    return args if defaults_for is None else args.model_copy(update=defaults_for(args))


def _preemption_defaults(args: V1DefaultPreemptionArgs) -> dict[str, object]:
    return {
        "min_candidate_nodes_percentage": _value_or(args.min_candidate_nodes_percentage, 10),
        "min_candidate_nodes_absolute": _value_or(args.min_candidate_nodes_absolute, 100),
    }


def _fit_defaults(args: V1NodeResourcesFitArgs) -> dict[str, object]:
    strategy = _value_or(args.scoring_strategy, V1ScoringStrategy(type="LeastAllocated"))
    resources = _with_weights(strategy.resources)
    return {"scoring_strategy": strategy.model_copy(update={"resources": resources})}


def _with_weights(resources: list[V1ResourceSpec] | None) -> list[V1ResourceSpec]:
    return [r.model_copy(update={"weight": r.weight or 1}) for r in resources or _DEFAULT_RESOURCES]


# Model of arguments → function that returns the fields of the arguments that have defaults.
_ARGS_DEFAULTS: Final[dict[type[Args], Callable[..., dict[str, object]]]] = {
    V1DefaultPreemptionArgs: _preemption_defaults,
    V1DynamicResourcesArgs: lambda args: {
        "filter_timeout": _value_or(args.filter_timeout, parse_duration("10s"))
    },
    V1InterPodAffinityArgs: lambda args: {
        "hard_pod_affinity_weight": _value_or(args.hard_pod_affinity_weight, 1)
    },
    V1NodeResourcesBalancedAllocationArgs: lambda args: {
        "resources": _with_weights(args.resources)
    },
    V1NodeResourcesFitArgs: _fit_defaults,
    V1PodTopologySpreadArgs: lambda args: {"defaulting_type": args.defaulting_type or "System"},
    V1VolumeBindingArgs: lambda args: {
        "bind_timeout_seconds": _value_or(args.bind_timeout_seconds, 600)
    },
}


def _with_election_defaults(election: LeaderElection) -> LeaderElection:
    def or_default(duration: Duration, default: str) -> Duration:
        # 0 counts as unset, as upstream.
        return duration if duration.ns else parse_duration(default)

    return election.model_copy(
        update={
            "leader_elect": _value_or(election.leader_elect, True),
            "lease_duration": or_default(election.lease_duration, "15s"),
            "renew_deadline": or_default(election.renew_deadline, "10s"),
            "retry_period": or_default(election.retry_period, "2s"),
            "resource_lock": election.resource_lock or "leases",
            "resource_name": election.resource_name or "kube-scheduler",
            "resource_namespace": election.resource_namespace or "kube-system",
        }
    )


def _with_connection_defaults(connection: ClientConnection) -> ClientConnection:
    return connection.model_copy(
        update={
            "content_type": connection.content_type or "application/vnd.kubernetes.protobuf",
            "qps": connection.qps or 50.0,
            "burst": connection.burst or 100,
        }
    )
