"""Lookup of a pod by a name on the command line: its own name or that of its workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NoReturn

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.pods import workload_of
from roadstead.run import RunInputs

NAMES_MAX = 5
"""Maximum number of names in an error."""

HINT_MAX_NAMES = 20_000
"""Maximum number of names that are compared for a hint, which bounds its time."""

KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("replicationcontroller", "rc"), "ReplicationController"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "CronJob"),
}
"""Kinds of workloads by the names that kubectl accepts.

kubectl prints some names with the API group as a suffix (`deployment.apps`); `kind_of` ignores it.
"""

POD_KINDS: Final = ("pod", "pods", "po")


@dataclass(frozen=True, slots=True)
class InputPod:
    """A pod of the inputs. node_name: where it runs; "" for a pending one."""

    identity: PodIdentity
    facts: PodFacts
    node_name: str

    @property
    def workload(self) -> str:
        return workload_of(self.facts)


@dataclass(frozen=True, slots=True)
class FoundPod:
    """The pod found. note: message for the user on how it was chosen; "" for nothing."""

    pod: InputPod
    note: str = ""


def find_pod(inputs: RunInputs, name: str) -> FoundPod:
    """Find a pod by its name, by its workload's name (the first pod), or by a prefix of its name.

    name: a pod's or a workload's, with its namespace or without: `web`, `shop/web`; or with a kind
    as kubectl accepts it: `deploy/web`, `sts/shop/db`.

    Raises:
        InputError: there is none, or it is not clear which one.
    """
    kind, name_or_key = kind_of(name)
    pods = list(_pods(inputs))
    # A pod's full name precedes workloads and prefixes, so that each pod can be chosen by its name.
    if not kind or kind == "Pod":
        exact = [each for each in pods if name_or_key in (each.identity.key, each.identity.name)]
        if len(exact) == 1:
            return FoundPod(exact[0], _note_of_pod(exact[0]))
        if exact:
            _refuse_several(name, "pods", [each.identity.key for each in exact])
    if kind != "Pod" and (
        owned := [each for each in pods if _is_named(each.workload, kind, name_or_key)]
    ):
        return _first_of(name, owned)
    if not kind or kind == "Pod":
        prefixed = [each for each in pods if _has_prefix(each, name_or_key)]
        if len(prefixed) == 1:
            return FoundPod(prefixed[0], _note_of_pod(prefixed[0]))
        if prefixed:
            return _first_of(name, prefixed)
    raise InputError(
        f"is no pod or workload of the inputs{_hint(pods, name_or_key)}",
        field="POD",
        value=cut_short(name),
    )


def _pods(inputs: RunInputs) -> Iterator[InputPod]:
    for identity, facts in inputs.pending:
        yield InputPod(identity, facts, "")
    for running in inputs.running:
        yield InputPod(*running)


def kind_of(name: str) -> tuple[str, str]:
    """Split a name into (kind, name or namespace/name); the kind is "" if none is named."""
    kind_name, _, name_or_key = name.replace(" ", "/", 1).partition("/")
    if kind_name.lower() in POD_KINDS and name_or_key:
        return "Pod", name_or_key
    kind = KINDS.get(kind_name.lower().partition(".")[0], "") if name_or_key else ""
    return (kind, name_or_key) if kind else ("", name)


def _is_named(workload: str, kind: str, name: str) -> bool:
    """Whether a workload, "KIND NAMESPACE/NAME", has this kind and name. kind: "" for any."""
    found_kind, _, key = workload.partition(" ")
    if kind == "CronJob":
        # The pods of a cron job belong to its jobs, whose names are its name with a suffix.
        kind, key = "Job", key.rpartition("-")[0]
    return bool(key) and kind in ("", found_kind) and name in (key, key.partition("/")[2])


def _has_prefix(pod: InputPod, name: str) -> bool:
    return pod.identity.key.startswith(name) or pod.identity.name.startswith(name)


def _first_of(name: str, pods: Sequence[InputPod]) -> FoundPod:
    """Return the first pending pod of these, or else the first running one.

    InputError if they are of several workloads.
    """
    workloads = sorted({each.workload or f"Pod {each.identity.key}" for each in pods})
    if len(workloads) > 1:
        _refuse_several(name, "workloads", workloads)
    pending = [each for each in pods if not each.node_name]
    first = (pending or pods)[0]
    count = f"{len(pods):,} pod{'s' * (len(pods) > 1)}"
    what = f"{workloads[0]}: {count}, {len(pending):,} of them pending"
    return FoundPod(first, f"{what}; the first of them is explained, {first.identity.key}.")


def _note_of_pod(pod: InputPod) -> str:
    if not pod.node_name:
        return ""
    return f"{pod.identity.key} runs on {pod.node_name}; it is explained as if it were pending."


def _refuse_several(name: str, what: str, matches: Sequence[str]) -> NoReturn:
    some = ", ".join(sorted(matches)[:NAMES_MAX])
    more = ", …" if len(matches) > NAMES_MAX else ""
    raise InputError(
        f"matches {len(matches)} {what}: use one of {some}{more}",
        field="POD",
        value=cut_short(name),
    )


def _hint(pods: Sequence[InputPod], name: str) -> str:
    """Return a hint with the most similar names, or else the first ones."""
    keys = dict.fromkeys(each.identity.key for each in pods)
    keys |= dict.fromkeys(each.workload.partition(" ")[2] for each in pods if each.workload)
    known = list(keys if "/" in name else dict.fromkeys(key.partition("/")[2] for key in keys))
    if not known:
        return " (they have none)"
    close = get_close_matches(name, known[:HINT_MAX_NAMES], n=NAMES_MAX, cutoff=0.6)
    if close:
        return f" (did you mean {', '.join(close)}?)"
    if name.endswith((".yaml", ".yml", ".json")):
        return " (--pods reads a file; name a pod or workload in it)"
    more = ", …" if len(known) > NAMES_MAX else ""
    return f" (they have {', '.join(known[:NAMES_MAX])}{more})"
