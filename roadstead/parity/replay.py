"""Replaying recorded decisions on one path: each pod on its own, against one snapshot.

Sequences, where each decision builds on those before it, are in `sequence`.
"""

from __future__ import annotations

from roadstead.cycle.batch import PodInCycle
from roadstead.parity.cases import Case
from roadstead.parity.compare import differences, waits_for_post_filter
from roadstead.parity.paths import DecisionPath, open_path
from roadstead.parity.result import Json, Result
from roadstead.parity.sampling import SampledReplay, watched_narrower
from roadstead.parity.sequence import STEPS, Replay
from roadstead.protocol.errors import UnsupportedError

EXPECTED = "expected"


def replay(case: Case, path_name: str) -> Result:
    """A case of any of the decision suites; a decision that raises is one that differs."""
    narrower = watched_narrower(case)
    path = open_path(path_name, case.profiles, narrower)
    path.add_nodes(case.nodes)
    for node_name, (identity, facts) in case.bound:
        path.add_pod(node_name, facts, identity)
    for _, facts in case.nominated:
        path.nominate(facts.nominated_node_name, facts)
    if STEPS not in case.document:
        return _replay_each(case, path)
    if narrower is not None:
        return SampledReplay(case, path, narrower).run()
    return Replay(case, path).run()


def _replay_each(case: Case, path: DecisionPath) -> Result:
    expected = case.document[EXPECTED]
    assert isinstance(expected, list)
    result = Result(decisions=len(expected))
    for (identity, facts), entry in zip(case.pending, expected, strict=True):
        if facts.nominated_node_name:
            # The queue knows of its own nomination, too, which does not count for the pod itself.
            path.nominate(facts.nominated_node_name, facts)
        where = f"{case.path.name} {identity.key}"
        try:
            _replay_one(path, path.prepare(identity, facts), entry, where, result)
        except Exception as failure:
            result.compare(where, EXPECTED, {"pod": identity.key}, [failed(failure)])
        if facts.nominated_node_name:
            path.withdraw(facts.nominated_node_name, facts)
    return result


def _replay_one(
    path: DecisionPath, pod: PodInCycle, entry: Json, where: str, result: Result
) -> None:
    try:
        ours = path.explain(pod).as_expected()
        found = differences(ours, entry) + _decided_otherwise(path, pod, entry)
    except UnsupportedError as missing:
        result.lack(missing.plugin, EXPECTED, missing.field, pod=pod.key)
        return
    result.compare(where, EXPECTED, ours, found)
    if waits_for_post_filter(ours):
        result.partly[waits_for_post_filter(ours).split(":")[0]] += 1


def _decided_otherwise(path: DecisionPath, pod: PodInCycle, entry: Json) -> list[str]:
    """Schedules the pod for real, compares the choice, and forgets it again."""
    decision = path.decide([pod])[0]
    best, feasible = entry["best"], entry["feasible"]
    assert isinstance(best, list)
    assert isinstance(feasible, list)
    if decision.node_name is not None:
        path.forget(pod, decision.node_name)
        if pod.info.facts.nominated_node_name:
            path.nominate(pod.info.facts.nominated_node_name, pod.info.facts)
    chosen = decision.node_name or ""
    if chosen != (best[0] if best else ""):
        return [f"decision: {chosen!r} is not the first of {best}"]
    if decision.node_name is None:
        return []
    ours = (decision.feasible, decision.total, decision.best_size)
    theirs = (len(feasible), entry["bestTotal"], len(best))
    return [] if ours == theirs else [f"decision: {ours} is not {theirs}"]


def failed(failure: Exception) -> str:
    """What a decision that raised is told as."""
    return f"failed: {type(failure).__name__}: {failure}"
