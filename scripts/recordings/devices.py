"""Recorded decisions on claims of devices: the suite `dra`, and what it shares with `dra-sequence`.

Entries have the fields of the suite `static`, and more. A pod's own claim is the one that upstream
makes for its extended resources that devices serve. If Filter fails on several nodes, upstream
ends the cycle with the error of a random one; where it would crash ("Panic"), ours must fail on the
same nodes with the same text.
"""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.cycle.batch import PodInCycle
from roadstead.devices.claims import claims_of
from roadstead.devices.errors import AllocationError
from roadstead.devices.own_claims import allocatable_names, own_claim_on
from roadstead.devices.state import DeviceState
from roadstead.facts.compile_devices import compile_allocation, compile_claim_spec
from roadstead.facts.devices import Allocation, DeviceRequest
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import UNWRITTEN_CLAIM_NAME, PodFacts
from roadstead.local.decision_paths import DecisionPath
from roadstead.protocol.objects.devices import ClaimAllocation, ResourceClaimSpec
from scripts.recordings.cases import mapping
from scripts.recordings.compare import differences
from scripts.recordings.result import Json, differing, listed

PANIC = "Panic"
ERRORS_OF = 'running "DynamicResources" filter plugin: '
_OF_DEVICES = ("allocations", "alternatives", "reserve")


def entry_differences(ours: Json, entry: Json) -> list[str]:
    """Return how our explanation of a pod differs from its entry, apart from allocations."""
    if has_panic(entry):
        return differing(_verdicts(ours), _verdicts(entry))
    return differences(_ours(ours, entry), theirs_of(ours, entry))


def has_panic(entry: Json) -> bool:
    """Whether the real scheduler would crash on some node."""
    return any(each["code"] == PANIC for each in listed(entry.get("filterStatuses") or []))


def _verdicts(entry: Json) -> Json:
    """Return which nodes have which status, a crash as the error that it is here."""
    statuses = [as_error(each) for each in listed(entry.get("filterStatuses") or [])]
    codes = listed(entry.get("filter") or [])
    return {"filter": [statuses[code - 1] if code > 0 else code for code in codes]}


def as_error(status: Json) -> Json:
    """Return a status with a crash as the error that it is here."""
    if status["code"] != PANIC:
        return status
    reasons = [f"{ERRORS_OF}{each}" for each in listed(status["reasons"])]
    return {**status, "code": "Error", "reasons": reasons}


def _ours(ours: Json, entry: Json) -> Json:
    found = {**ours, "preFilter": _without_none(mapping(ours.get("preFilter")))}
    found.pop("preScoreSkipped", None)
    if "cycleError" in entry:
        found = {key: value for key, value in found.items() if key not in ("best", "message")}
    if "best" not in entry and not found.get("best"):
        found.pop("best", None)
    answer = {**mapping(found.get("postFilter"))}
    answer.pop("exhaustive", None)
    return {**found, "postFilter": answer} if answer else found


def theirs_of(ours: Json, entry: Json) -> Json:
    """Return an entry in the form of the suite `static`.

    Of several recorded errors, one of which upstream returns at random, it has the one of `ours`.
    """
    found = {key: value for key, value in entry.items() if key not in _OF_DEVICES}
    found["preFilter"] = _without_none(mapping(found.get("preFilter")))
    found.setdefault("feasible", [])
    errors = listed(found.get("cycleError") or [])
    if errors:
        found["cycleError"] = ours.get("cycleError") if ours.get("cycleError") in errors else errors
    answer = {**mapping(found.get("postFilter"))}
    status = mapping(answer.get("status"))
    if "reasons" in status:
        answer["status"] = {**status, "reasons": [", ".join(listed(status["reasons"]))]}
    return {**found, "postFilter": answer} if answer else found


def _without_none(fields: Mapping[str, object]) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


def allocation_differences(path: DecisionPath, pod: PodInCycle, entry: Json) -> list[str]:
    """Return how our allocations on the recorded nodes differ from the recorded ones."""
    facts = pod.pod_class.facts
    devices = path.profile(facts.scheduler_name).storage.devices
    found = []
    for name, recorded in mapping(entry.get("allocations")).items():
        ours = allocations_on(devices, facts, path.node(name))
        theirs = expected_allocations(recorded)
        if ours != theirs:
            found.append(f"allocations.{name}: {ours} is not {theirs}")
        own_claims = [each for each in listed(recorded) if "requests" in each]
        recorded_requests = [_requests_of(each) for each in own_claims]
        our_requests = _own_requests(devices, facts, path.node(name))
        if own_claims and our_requests != recorded_requests:
            found.append(f"requests.{name}: {our_requests} is not {recorded_requests}")
    return found


def _requests_of(recorded: Json) -> tuple[DeviceRequest, ...]:
    """Return the requests of a claim that was made for a pod's extended resources."""
    spec = ResourceClaimSpec.read({"devices": {"requests": recorded["requests"]}})
    return compile_claim_spec(spec).requests


def _own_requests(
    devices: DeviceState, facts: PodFacts, node: NodeFacts
) -> list[tuple[DeviceRequest, ...]]:
    claims = claims_of(devices.claims, facts)
    own = own_claim_on(devices, facts, allocatable_names(node), has_claims=bool(claims))
    return [] if own is None else [own.spec.requests]


def in_flight_differences(
    path: DecisionPath, pod: PodInCycle, node_name: str, entry: Json
) -> list[str]:
    """Return how the claims in flight for a pod that was placed differ from the recorded ones."""
    recorded = mapping(entry.get("allocations")).get(node_name)
    claims = path.profile(pod.pod_class.facts.scheduler_name).storage.devices.claims
    theirs: dict[str, Allocation] = {}
    for key, allocation in expected_allocations(recorded or []):
        theirs.setdefault(key, allocation)
    # The pod's own claim has a name from its assumption on.
    in_flight = [each for each in claims.values() if each.is_in_flight]
    names = {
        each.key: f"{each.namespace}/{UNWRITTEN_CLAIM_NAME}"
        for each in in_flight
        if each.is_for_extended_resources and each.owner_uid == pod.uid
    }
    named = {names.get(each.key, each.key): each.allocation for each in in_flight}
    ours = {key: named[key] for key in theirs if key in named}
    return [] if ours == theirs else [f"in flight: {ours} is not {theirs}"]


Allocated = list[tuple[str, Allocation]]
"""Claims (`namespace/name`) with their allocations, in the pod's order."""


def allocations_on(devices: DeviceState, facts: PodFacts, node: NodeFacts) -> Allocated | str:
    """Return what a pod's unallocated claims get on a node; the error's text if there is one."""
    claims = claims_of(devices.claims, facts)
    own = own_claim_on(devices, facts, allocatable_names(node), has_claims=bool(claims))
    waiting = tuple(e for e in claims if e.allocation is None)
    waiting += () if own is None else (own,)
    allocator = devices.allocator
    try:
        found = allocator.allocate(allocator.plan(waiting), node.name, node.labels)
    except AllocationError as error:
        return str(error)
    if found is None:
        return "cannot allocate"
    return [(claim.key, each) for claim, each in zip(waiting, found, strict=True)]


def expected_allocations(recorded: object) -> Allocated:
    """Return recorded allocations as facts."""
    return [
        (str(each["claim"]), compile_allocation(ClaimAllocation.read(each["allocation"])))
        for each in listed(recorded)
    ]
