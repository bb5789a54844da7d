"""Replaying recorded cases on one path: single decisions, and sequences of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.facts.pod import PodFacts
from roadstead.framework.post_filter import run_post_filter
from roadstead.framework.profile import Profile
from roadstead.parity.cases import Case, Json, compile_node_manifest
from roadstead.parity.compare import differences, waits_for_post_filter
from roadstead.parity.paths import DecisionPath, open_path
from roadstead.protocol.errors import UnsupportedError

SEQUENCE_BATCH = 256
NOMINATED = "filtering with nominated pods"


@dataclass(slots=True)
class Result:
    """What came of one case on one path.

    compared: decisions held against their recording. mismatches: "where: what". unsupported:
    decisions that need what is not there yet, by what they need; partly: decisions compared but
    for PostFilter. ours: our own answers, in the form of the recording.
    """

    compared: int = 0
    mismatches: list[str] = field(default_factory=list)
    unsupported: Counter[str] = field(default_factory=Counter)
    partly: Counter[str] = field(default_factory=Counter)
    ours: list[Json] = field(default_factory=list)


def replay(case: Case, path_name: str) -> Result:
    """A case of any of the decision suites."""
    path = open_path(path_name, case.profiles)
    path.add_nodes(case.nodes)
    for node_name, facts in case.bound:
        path.add_pod(node_name, facts)
    if "steps" in case.document:
        return _replay_sequence(case, path)
    return _replay_single(case, path)


def _replay_single(case: Case, path: DecisionPath) -> Result:
    """Each pending pod on its own against the same snapshot."""
    result = Result()
    expected = case.document["expected"]
    assert isinstance(expected, list)
    if case.document.get("nominated"):
        result.unsupported[NOMINATED] += len(expected)
        return result
    for (identity, facts), entry in zip(case.pending, expected, strict=True):
        pod = path.prepare(identity, facts)
        try:
            ours = path.explain(pod).as_expected()
            found = differences(ours, entry) + _decided_otherwise(path, pod, entry)
        except UnsupportedError as missing:
            result.unsupported[missing.plugin] += 1
            result.ours.append({"pod": pod.key, "unsupported": str(missing)})
            continue
        result.compared += 1
        result.ours.append(ours)
        result.mismatches += [f"{case.path.name} {pod.key}: {each}" for each in found]
        if waits_for_post_filter(ours):
            result.partly[waits_for_post_filter(ours).split(":")[0]] += 1
    return result


def _decided_otherwise(
    path: DecisionPath, pod: PodInCycle, entry: Mapping[str, object]
) -> list[str]:
    """Schedules the pod for real, compares the choice, and forgets it again."""
    decision = path.decide([pod])[0]
    best = entry["best"]
    assert isinstance(best, list)
    if decision.node_name is not None:
        path.remove_pod(decision.node_name, pod.info.facts)
    chosen = decision.node_name or ""
    if chosen != (best[0] if best else ""):
        return [f"decision: {chosen!r} is not the first of {best}"]
    if decision.node_name is None:
        return []
    ours = (decision.feasible, decision.total, decision.best_size)
    feasible = entry["feasible"]
    assert isinstance(feasible, list)
    theirs = (len(feasible), entry["bestTotal"], len(best))
    return [] if ours == theirs else [f"decision: {ours} is not {theirs}"]


def _replay_sequence(case: Case, path: DecisionPath) -> Result:
    """Pods one after another, in batches as long as no other operation comes between."""
    result = Result()
    where: dict[str, tuple[str, PodFacts]] = {}
    ops, steps = case.document["ops"], case.document["steps"]
    assert isinstance(ops, list)
    assert isinstance(steps, list)
    at = 0
    while at < len(ops):
        operation = ops[at]
        if operation["op"] == "delete":
            bound = where.pop(operation["key"], None)
            if bound is not None:
                path.remove_pod(*bound)
        elif operation["op"] == "addNode":
            path.add_nodes([compile_node_manifest(operation["node"], case.path.name)])
        else:
            pods = list(_next_pods(case, path, ops, at))
            try:
                decisions = path.decide(pods)
            except UnsupportedError as missing:
                # What follows builds on this decision: the rest cannot be compared.
                left = sum(1 for each in ops[at:] if each["op"] == "schedule")
                result.unsupported[missing.plugin] += left
                return result
            for decision, step in zip(decisions, steps[at:], strict=False):
                _compare_step(case, path, decision, step, result)
                if decision.node_name is not None:
                    where[decision.pod.key] = (decision.node_name, decision.pod.info.facts)
            at += len(decisions)
            continue
        result.ours.append({})
        at += 1
    return result


def _next_pods(
    case: Case, path: DecisionPath, ops: list[Mapping[str, object]], at: int
) -> Iterator[PodInCycle]:
    for operation in ops[at : at + SEQUENCE_BATCH]:
        if operation["op"] != "schedule":
            return
        index = operation["pod"]
        assert isinstance(index, int)
        yield path.prepare(*case.pending[index])


def _compare_step(
    case: Case, path: DecisionPath, decision: Decision, step: Json, result: Result
) -> None:
    ours = step_of(decision, path.profile(decision.pod.info.facts.scheduler_name))
    result.compared += 1
    result.ours.append(ours)
    result.mismatches += [
        f"{case.path.name} step {len(result.ours) - 1} {decision.pod.key}: {key}: "
        f"{ours.get(key)!r} is not {step.get(key)!r}"
        for key in sorted(ours.keys() | step.keys())
        if ours.get(key) != step.get(key)
    ]


def step_of(decision: Decision, profile: Profile) -> Json:
    """A decision in the form of a recorded step."""
    if decision.error:
        return {"error": decision.error}
    if decision.node_name is None:
        assert decision.diagnosis is not None
        status = run_post_filter(profile, decision.pod.info.facts, decision.diagnosis).status
        suffix = "" if status.is_success else status.message
        return {"feasible": 0, "bestSize": 0, "message": decision.diagnosis.message(suffix)}
    return {
        "feasible": decision.feasible,
        "bestSize": decision.best_size,
        "best": list(decision.best),
        "total": decision.total,
        "chosen": decision.node_name,
    }
