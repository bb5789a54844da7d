"""Replaying a recorded sequence with claims of devices on one path (suite `dra-sequence`).

Pods may be held between Reserve and PreBind, and tried again; claims, slices, classes and nodes
change in between. Where our node differs, the recorded one and its allocations take its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from roadstead.cycle.batch import PodInCycle
from roadstead.devices.claims import PodClaimError, claims_of
from roadstead.devices.state import DeviceState, deallocated, without_consumers
from roadstead.facts.compile_devices import (
    compile_device_claim,
    compile_device_class,
    compile_slice,
)
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.pod import PodFacts
from roadstead.local.decision_paths import DecisionPath
from roadstead.protocol import objects
from roadstead.protocol.errors import UnsupportedError
from scripts.recordings.cases import Case, compile_node_manifest, mapping
from scripts.recordings.devices import (
    Allocated,
    as_error,
    expected_allocations,
)
from scripts.recordings.result import Json, RecordingResult, differing, differs, listed

STEPS = "steps"
_OF_REFUSAL = ("message", "deallocated", "deallocatable")
_OF_DECISION = ("feasible", "bestSize", "total", "chosen")
_ELSEWHERE = (
    'running PreBind plugin "DynamicResources": claim {} got allocated elsewhere in the meantime'
)

Operation = Mapping[str, object]
T = TypeVar("T", bound=objects.ApiObject)


class DeviceReplay:
    """The replay of one sequence.

    _held: pods between Reserve and PreBind, _bound: bound ones; by key: (node, pod).
    """

    def __init__(self, case: Case, path: DecisionPath) -> None:
        self._case, self._path = case, path
        self._ops: Sequence[Operation] = listed(case.document["ops"])
        self._steps: Sequence[Json] = listed(case.document[STEPS])
        self._held: dict[str, tuple[str, PodInCycle]] = {}
        self._bound: dict[str, tuple[str, PodInCycle]] = {}
        (name,) = {each.scheduler_name for each in case.config.profiles}
        self._profile = path.profile(name)
        self._nodes = {each.name for each in case.nodes}
        self.result = RecordingResult(decisions=sum(each["op"] == "schedule" for each in self._ops))

    @property
    def _devices(self) -> DeviceState:
        return self._profile.storage.devices

    def run(self) -> RecordingResult:
        for at, (operation, step) in enumerate(zip(self._ops, self._steps, strict=True)):
            kind = str(operation["op"])
            if kind != "schedule":
                found = self._change(kind, operation, step)
                where = f"{self._case.path.name} step {at} {kind}"
                self.result.mismatches += [f"{where}: {each}" for each in found]
                self.result.ours.setdefault(STEPS, []).append({})
                continue
            index = operation["pod"]
            assert isinstance(index, int)
            pod = self._path.prepare(*self._case.pending[index])
            where = f"{self._case.path.name} step {at} {pod.key}"
            try:
                found = self._schedule(pod, step, is_held=bool(operation.get("hold")))
            except UnsupportedError as missing:
                self.result.lack(missing.plugin, STEPS, missing.field)
                continue
            self.result.compare(where, STEPS, {}, found)
        return self.result

    # Operations on the cluster.

    def _change(self, kind: str, operation: Operation, step: Json) -> list[str]:
        changes: Mapping[str, Callable[[Operation, Json], list[str] | None]] = {
            "finish": self._finish,
            "fail": self._fail,
            "delete": self._delete,
            "deallocate": self._deallocate,
            "claim": self._put_claim,
            "slice": self._put_slice,
            "class": self._put_class,
            "node": self._put_node,
            "deleteClaim": self._delete_claim,
            "deleteSlice": lambda op, _: self._devices.remove_slice(str(op["key"])),
            "deleteClass": self._delete_class,
        }
        return changes[kind](operation, step) or []

    def _finish(self, operation: Operation, step: Json) -> list[str] | None:
        held = self._held.pop(str(operation["key"]), None)
        return None if held is None else self._bind(*held, step)

    def _fail(self, operation: Operation, step: Json) -> None:
        held = self._held.pop(str(operation["key"]), None)
        if held is not None:
            self._path.forget(held[1], held[0])

    def _delete(self, operation: Operation, step: Json) -> None:
        key = str(operation["key"])
        self._fail(operation, step)
        uid = next((i.uid for i, _ in self._case.pending if i.key == key), "")
        bound = self._bound.pop(key, None)
        if bound is not None:
            self._path.remove_pod(bound[0], bound[1].pod_class.facts)
        claims = tuple(self._devices.claims.values())
        freed = (without_consumers(each, frozenset({uid})) for each in claims)
        self._devices.apply([a for a, b in zip(freed, claims, strict=True) if a is not b])

    def _deallocate(self, operation: Operation, step: Json) -> list[str]:
        claim = self._devices.claims.get(str(operation["key"]))
        found = None if claim is None or claim.is_in_flight else deallocated(claim)
        is_done = found is not None and found is not claim
        if found is not None and is_done:
            self._devices.apply([found])
        return [] if is_done == bool(step.get("done")) else [differs("done", is_done, step)]

    def _put_claim(self, operation: Operation, step: Json) -> None:
        found = compile_device_claim(self._read(objects.ResourceClaim, operation))
        known = self._devices.claims.get(found.key)
        if known is not None and known.is_in_flight and found.allocation is None:
            found = replace(found, allocation=known.allocation, is_in_flight=True)
        self._devices.apply([found])

    def _delete_claim(self, operation: Operation, step: Json) -> None:
        if str(operation["key"]) in self._devices.claims:
            self._devices.apply((), [str(operation["key"])])

    def _put_slice(self, operation: Operation, step: Json) -> None:
        self._devices.put_slice(compile_slice(self._read(objects.ResourceSlice, operation)))

    def _put_class(self, operation: Operation, step: Json) -> None:
        found = compile_device_class(self._read(objects.DeviceClass, operation))
        self._devices.set_classes({**self._devices.classes, found.name: found}.values())

    def _delete_class(self, operation: Operation, step: Json) -> None:
        left = {k: v for k, v in self._devices.classes.items() if k != operation["key"]}
        self._devices.set_classes(left.values())

    def _put_node(self, operation: Operation, step: Json) -> None:
        node = compile_node_manifest(operation["object"], self._case.path.name)
        if node.name in self._nodes:
            self._path.update_node(node)
        else:
            self._path.add_nodes([node])
            self._nodes.add(node.name)

    def _read(self, kind: type[T], operation: Operation) -> T:
        source = self._case.path.name
        model = objects.validate(kind.__name__, operation["object"], source=source)
        assert isinstance(model, kind)
        return model

    # Decisions.

    def _schedule(self, pod: PodInCycle, step: Json, *, is_held: bool) -> list[str]:
        if pod.key in self._bound or pod.key in self._held:
            return differing({"already": True}, step)
        explained = self._path.explain(pod).as_recorded()
        found = _differences_of_nodes(explained, step)
        if step.get("panic"):
            return found
        decision = self._path.decide([pod])[0]
        errors = listed(step.get("cycleError") or [])
        if errors and decision.error not in errors:
            found.append(differs("cycleError", decision.error, errors))
        if decision.node_name is not None:
            fields = (decision.feasible, decision.best_size, decision.total, decision.node_name)
            ours: Json = dict(zip(_OF_DECISION, fields, strict=True))
        else:
            ours = {"feasible": decision.feasible}
        found += differing(ours, {key: step[key] for key in _OF_DECISION if key in step})
        if decision.diagnosis is not None:
            found += self._refusal_differences(explained, step)
        chosen = step.get("chosen")
        if decision.node_name != chosen:
            return found + self._bind_as_recorded(pod, decision.node_name, step)
        if chosen is None:
            return found
        found += self._allocated_differences(step)
        return found + self._hold_or_bind(pod, str(chosen), step, is_held=is_held)

    def _refusal_differences(self, explained: Json, step: Json) -> list[str]:
        answer = mapping(explained.get("postFilter"))
        ours: Json = {"message": explained.get("message")}
        ours |= {k: answer[k] for k in ("deallocated", "deallocatable") if k in answer}
        theirs: Json = {k: v for k, v in step.items() if k in _OF_REFUSAL}
        if "deallocated" in step:
            claim = self._devices.claims[str(step["deallocated"])]
            freed = replace(claim, allocation=None, reserved_for=(), statuses=())
            self._devices.apply([freed])
        return differing(ours, theirs)

    def _hold_or_bind(
        self, pod: PodInCycle, chosen: str, step: Json, *, is_held: bool
    ) -> list[str]:
        if is_held:
            self._held[pod.key] = chosen, pod
            return [] if step.get("held") else [differs("held", True, step.get("held"))]
        twice = self._named_twice(step)
        if twice is not None:
            return self._bind_twice(pod, chosen, twice, step)
        return self._bind(chosen, pod, step)

    def _bind(self, chosen: str, pod: PodInCycle, step: Json) -> list[str]:
        self._bound[pod.key] = chosen, pod
        self._path.confirm(pod)
        claims = dict.fromkeys(self._claims_of(pod.pod_class.facts))
        ours = [_status_of(each) for each in claims]
        theirs = [_recorded_status(each) for each in listed(step.get("claims") or [])]
        return [] if ours == theirs else [differs("claims", ours, theirs)]

    @staticmethod
    def _named_twice(step: Json) -> str | None:
        """Return the claim that was allocated twice to one pod."""
        counts = Counter(str(each["claim"]) for each in listed(step.get("allocated") or []))
        return next((key for key, count in counts.items() if count > 1), None)

    def _bind_twice(self, pod: PodInCycle, chosen: str, key: str, step: Json) -> list[str]:
        """Do as upstream for a pod that names a claim twice: its first allocation stays."""
        self._path.confirm(pod)
        self._path.forget(pod, chosen)
        claims = [self._devices.claims[each.key] for each in self._claims_of(pod.pod_class.facts)]
        self._devices.apply(
            [without_consumers(e, frozenset({pod.uid})) for e in dict.fromkeys(claims)]
        )
        ours: Json = {"code": "Error", "reasons": [_ELSEWHERE.format(key)]}
        return differing(ours, dict(mapping(step.get("bind"))))

    def _claims_of(self, facts: PodFacts) -> Sequence[DeviceClaimFacts]:
        try:
            return claims_of(self._devices.claims, facts)
        except PodClaimError:
            return ()

    def _allocated_differences(self, step: Json) -> list[str]:
        theirs: Allocated = expected_allocations(step.get("allocated") or [])
        first = dict(reversed(theirs))
        claims = self._devices.claims
        ours = {key: claims[key].allocation for key in first if claims[key].is_in_flight}
        return [] if ours == first else [differs("allocated", ours, first)]

    def _bind_as_recorded(self, pod: PodInCycle, ours: str | None, step: Json) -> list[str]:
        """Put the recorded decision in place of ours."""
        if ours is not None:
            self._path.forget(pod, ours)
        if "chosen" in step:
            self._path.add_pod(str(step["chosen"]), pod.pod_class.facts)
            allocated = dict(reversed(expected_allocations(step.get("allocated") or [])))
            claims = [replace(self._devices.claims[k], allocation=a) for k, a in allocated.items()]
            self._devices.apply(claims)
            self._bound[pod.key] = str(step["chosen"]), pod
        return []


def _differences_of_nodes(explained: Json, step: Json) -> list[str]:
    """Compare PreEnqueue, PreFilter, and how many nodes have which status."""
    ours: Json = {"preEnqueue": explained.get("preEnqueue")}
    before = mapping(mapping(explained["preFilter"])["status"])
    ours["preFilter"] = None if before["code"] == "Success" else before
    theirs: Json = {name: step.get(name) for name in ours}
    statuses = listed(explained.get("filterStatuses") or [])
    counts = Counter(code for code in listed(explained.get("filter") or []) if code > 0)
    mine = Counter({str(statuses[code - 1]): count for code, count in counts.items()})
    recorded: Counter[str] = Counter()
    for each in listed(step.get("filtered") or []):
        recorded[str(_ordered(as_error(each["status"])))] += each["nodes"]
    found = differing(ours, theirs)
    return found if mine == recorded else [*found, differs("filtered", dict(mine), dict(recorded))]


def _ordered(status: Json) -> Json:
    return {name: status[name] for name in ("code", "plugin", "reasons") if name in status}


def _status_of(claim: DeviceClaimFacts) -> object:
    uids = [each.uid for each in claim.reserved_for]
    return claim.key, claim.allocation, uids, list(claim.finalizers)


def _recorded_status(recorded: Json) -> object:
    key, allocation = expected_allocations([recorded])[0]
    # A pod that names an allocated claim twice is listed twice, which an API server would refuse.
    uids = list(dict.fromkeys(listed(recorded.get("reservedFor") or [])))
    return key, allocation, uids, recorded.get("finalizers") or []
