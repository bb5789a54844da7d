"""Replaying recorded decisions on one path: each pod on its own, against one snapshot.

Sequences, where each decision builds on those before it, are in `sequence`.
"""

from __future__ import annotations

from roadstead.cycle.batch import MAX_NAMED_BEST, Decision, PodInCycle
from roadstead.cycle.explain import post_filter_fields
from roadstead.cycle.node_search import NodeSearch
from roadstead.framework.profile import Profile
from roadstead.local.decision_paths import DecisionPath, open_path
from roadstead.protocol.errors import UnsupportedError
from scripts.recordings.cases import Case
from scripts.recordings.compare import differences, refusal_differences, waits_for_post_filter
from scripts.recordings.device_sequence import DeviceReplay
from scripts.recordings.devices import (
    allocation_differences,
    entry_differences,
    has_panic,
    in_flight_differences,
    theirs_of,
)
from scripts.recordings.result import Json, RecordingResult, differing, differs, listed
from scripts.recordings.sampling import SampledReplay, watched_search
from scripts.recordings.sequence import STEPS, Replay

EXPECTED = "expected"
DEVICES, DEVICE_SEQUENCE = "dra", "dra-sequence"
_COMPARED_SEPARATELY = ("message", "postFilter")
_OF_DECISION = ("node", "feasible", "bestSize", "bestTotal", "message")


def replay(case: Case, path_name: str, *, explains: bool = True) -> RecordingResult:
    """Replay a case of any decision suite; a decision that raises counts as a difference.

    explains: also compares the results of all nodes, for pods that are decided on their own. All
    paths explain a pod with the same code, on a table of all nodes.
    """
    node_search = watched_search(case)
    path = fleet_of(case, path_name, node_search)
    if STEPS not in case.document:
        return _replay_each(case, path, explains=explains)
    if case.document["suite"] == DEVICE_SEQUENCE:
        return DeviceReplay(case, path).run()
    if node_search is not None:
        return SampledReplay(case, path, node_search).run()
    return Replay(case, path).run()


def fleet_of(case: Case, path_name: str, node_search: NodeSearch | None = None) -> DecisionPath:
    """Open a path with a case's nodes, running pods and nominated pods."""
    path = open_path(path_name, case.profiles, node_search)
    path.add_nodes(case.nodes)
    for node_name, (identity, facts) in case.bound:
        path.add_pod(node_name, facts, identity)
    for _, facts in case.nominated:
        path.nominate(facts.nominated_node_name, facts)
    return path


def _replay_each(case: Case, path: DecisionPath, *, explains: bool) -> RecordingResult:
    expected = case.document[EXPECTED]
    assert isinstance(expected, list)
    result = RecordingResult(decisions=len(expected))
    for (identity, facts), entry in zip(case.pending, expected, strict=True):
        if facts.nominated_node_name:
            # The queue also has the pod's own nomination, which is ignored for the pod itself.
            path.nominate(facts.nominated_node_name, facts)
        where = f"{case.path.name} {identity.key}"
        replay_one = _replay_explained if explains else _replay_decided
        if case.document["suite"] == DEVICES:
            replay_one = _replay_claims
        try:
            replay_one(path, path.prepare(identity, facts), entry, where, result)
        except Exception as failure:
            result.compare(where, EXPECTED, {"pod": identity.key}, [failed(failure)])
        if facts.nominated_node_name:
            path.withdraw(facts.nominated_node_name, facts)
    return result


def _replay_decided(
    path: DecisionPath, pod: PodInCycle, entry: Json, where: str, result: RecordingResult
) -> None:
    try:
        found = _decided_otherwise(path, pod, entry)
    except UnsupportedError as missing:
        result.lack(missing.plugin, EXPECTED, missing.field, pod=pod.key)
        return
    result.compare(where, EXPECTED, {"pod": pod.key}, found)


def _replay_explained(
    path: DecisionPath, pod: PodInCycle, entry: Json, where: str, result: RecordingResult
) -> None:
    try:
        ours = path.explain(pod).as_recorded()
        found = differences(ours, entry)
        if not waits_for_post_filter(ours):
            found += _decided_otherwise(path, pod, entry)
    except UnsupportedError as missing:
        result.lack(missing.plugin, EXPECTED, missing.field, pod=pod.key)
        return
    result.compare(where, EXPECTED, ours, found)
    if waits_for_post_filter(ours):
        result.partly[waits_for_post_filter(ours).split(":")[0]] += 1


def _replay_claims(
    path: DecisionPath, pod: PodInCycle, entry: Json, where: str, result: RecordingResult
) -> None:
    """Replay a pod of the suite `dra`: explain it, allocate on nodes, and schedule it."""
    try:
        ours = path.explain(pod).as_recorded()
        found = entry_differences(ours, entry)
        if not has_panic(entry):
            found += [*allocation_differences(path, pod, entry), *_decided_claims(path, pod, entry)]
    except UnsupportedError as missing:
        result.lack(missing.plugin, EXPECTED, missing.field, pod=pod.key)
        return
    result.compare(where, EXPECTED, ours, found)


def _decided_claims(path: DecisionPath, pod: PodInCycle, entry: Json) -> list[str]:
    """Schedule the pod, compare the decision and the claims in flight, and forget it again."""
    decision = path.decide([pod])[0]
    errors = listed(entry.get("cycleError") or [])
    if errors:
        ours, feasible = decision.error, decision.feasible
        found = [] if ours in errors else [differs("cycleError", ours, errors)]
        if feasible != len(listed(entry.get("feasible") or [])):
            found.append(differs("feasible", feasible, entry["feasible"]))
        return [f"decision: {each}" for each in found]
    profile = path.profile(pod.pod_class.facts.scheduler_name)
    theirs = _to_be_decided({"feasible": [], "best": [], **theirs_of({}, entry)})
    found = differing(
        *(
            {key: value for key, value in each.items() if key in _OF_DECISION}
            for each in (_fields_of(decision, profile), theirs)
        )
    )
    if decision.node_name is not None:
        found += in_flight_differences(path, pod, decision.node_name, entry)
        path.forget(pod, decision.node_name)
    return [f"decision: {each}" for each in found]


def _decided_otherwise(path: DecisionPath, pod: PodInCycle, entry: Json) -> list[str]:
    """Schedule the pod, compare the decision, and forget it again."""
    decision = path.decide([pod])[0]
    if decision.node_name is not None:
        path.forget(pod, decision.node_name)
        if pod.pod_class.facts.nominated_node_name:
            path.nominate(pod.pod_class.facts.nominated_node_name, pod.pod_class.facts)
    profile = path.profile(pod.pod_class.facts.scheduler_name)
    ours, theirs = _fields_of(decision, profile), _to_be_decided(entry)
    separate = _COMPARED_SEPARATELY if path.names_best else (*_COMPARED_SEPARATELY, "best")
    found = differing(*({k: v for k, v in e.items() if k not in separate} for e in (ours, theirs)))
    return [f"decision: {each}" for each in (*found, *refusal_differences(ours, theirs))]


def _fields_of(decision: Decision, profile: Profile) -> Json:
    """Return a decision in the fields of a recorded entry."""
    if decision.error:
        return {"cycleError": decision.error, "feasible": decision.feasible}
    if decision.diagnosis is None:
        return {
            "node": decision.node_name,
            "feasible": decision.feasible,
            "best": list(decision.best),
            "bestSize": decision.best_size,
            "bestTotal": decision.total,
        }
    answer = decision.post_filter
    suffix = "" if answer is None or answer.status.is_success else answer.status.message
    fields: Json = {"feasible": 0, "message": decision.diagnosis.message(suffix)}
    if answer is None or not (profile.post_filter and decision.diagnosis.node_count):
        return fields
    return fields | {"postFilter": post_filter_fields(answer)}


def _to_be_decided(entry: Json) -> Json:
    """Return the expected decision for a pod from the recorded results of its nodes.

    The recordings score a pod even if only one node is feasible, and record an error if that fails;
    upstream chooses the node before it scores. They list all feasible nodes even if the nominated
    one is chosen; upstream evaluates no other one, and scores none.
    """
    feasible, best = listed(entry["feasible"]), listed(entry["best"])
    if entry.get("nominatedFits"):
        return {"node": best[0], "feasible": 1, "best": best, "bestSize": 1, "bestTotal": 0}
    if len(feasible) == 1 and "cycleError" in entry:
        best = feasible
    elif "cycleError" in entry:
        return {"cycleError": entry["cycleError"], "feasible": len(feasible)}
    if best:
        return {
            "node": best[0],
            "feasible": len(feasible),
            "best": best[:MAX_NAMED_BEST],
            "bestSize": len(best),
            "bestTotal": entry.get("bestTotal", 0),
        }
    return {"feasible": 0, **{name: entry[name] for name in _COMPARED_SEPARATELY if name in entry}}


def failed(failure: Exception) -> str:
    """Return the text for a decision that raised."""
    return f"failed: {type(failure).__name__}: {failure}"
