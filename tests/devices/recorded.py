"""Recorded allocations of the real kube-scheduler, replayed by the allocator alone."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from roadstead.devices import AllocationError, Allocator, DeviceGates, Selector
from roadstead.devices.device_taints import tainted
from roadstead.devices.extended_claims import (
    classes_by_resource,
    extended_need,
    is_served_by_class,
)
from roadstead.devices.plans import Plan
from roadstead.devices.quick import Verdict
from roadstead.facts.compile import compile_node, compile_pod
from roadstead.facts.compile_devices import (
    compile_allocation,
    compile_device_claim,
    compile_device_class,
    compile_slice,
    compile_taint_rule,
)
from roadstead.facts.devices import Allocation, ClaimSpec, DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import UNWRITTEN_CLAIM_NAME, PodFacts
from roadstead.protocol.objects import validate
from roadstead.protocol.objects.devices import ClaimAllocation

GATES = {
    "DRADeviceBindingConditions": "binding_conditions",
    "DRAConsumableCapacity": "consumable_capacity",
    "DRAExtendedResource": "extended_resource",
    "DRAPartitionableDevices": "partitionable",
    "DRADeviceTaints": "taints",
}
PLUGIN = "DynamicResources"
ERROR = f'running "{PLUGIN}" filter plugin: '
FITS = "fits"

Compile = Callable[[str], Selector]
Result = tuple[Allocation, ...] | str
"""Allocations, or the reason why there are none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The recorded result for a pod on a node, and the allocator's answer."""

    pod: str
    node: str
    recorded: Result
    found: Result

    @property
    def agrees(self) -> bool:
        """Whether both are the same; allocations are not recorded for every node."""
        return self.recorded == self.found or (
            self.recorded == FITS and not isinstance(self.found, str)
        )


def read_case(path: Path) -> dict:
    return json.loads(gzip.decompress(path.read_bytes()))


class RecordedCase:
    """A case with an allocator of its objects."""

    def __init__(self, case: dict, compile_selector: Compile) -> None:
        self.case = case
        objects = case["objects"]
        gates = {GATES[name]: value for name, value in (case.get("gates") or {}).items()}
        self.gates = DeviceGates(**gates)
        self.allocator = Allocator(self.gates, compile_selector)
        self.classes = [
            compile_device_class(validate("DeviceClass", each, source="case"))
            for each in objects.get("deviceClasses", ())
        ]
        self.allocator.set_classes(self.classes)
        self._add_slices(objects)
        claims = [
            compile_device_claim(validate("ResourceClaim", each, source="case"))
            for each in objects.get("resourceClaims", ())
        ]
        self.claims = {claim.key: claim for claim in claims}
        for claim in claims:
            if claim.allocation is not None:
                self.allocator.in_use.add(claim.allocation)
        for each in case.get("inFlight", ()):
            self.allocator.in_use.add(allocation(each["allocation"]))
        self.nodes = {
            each["metadata"]["name"]: compile_node(validate("Node", each, source="case"))
            for each in objects["nodes"]
        }

    def _add_slices(self, objects: dict) -> None:
        slices = [
            compile_slice(validate("ResourceSlice", each, source="case"))
            for each in objects.get("resourceSlices", ())
        ]
        if self.gates.taints:
            rules = [
                compile_taint_rule(validate("DeviceTaintRule", each, source="case"))
                for each in objects.get("deviceTaintRules", ())
            ]
            classes = {each.name: each for each in self.classes}
            patched = [tainted(each, rules, classes, self.allocator.selectors) for each in slices]
            slices = [each for each in patched if each is not None]
        self.allocator.pools.replace(slices)

    def answers(self) -> Iterator[Answer]:
        """Yield an answer for every pod and node that the plugin filtered."""
        for pod, expected in zip(self.case["pending"], self.case["expected"], strict=True):
            if PLUGIN in expected["preFilter"].get("skipped", ()) or "filter" not in expected:
                continue
            for name, code in zip(self.case["nodes"], expected["filter"], strict=True):
                status = expected["filterStatuses"][code - 1] if code else {}
                if status.get("plugin", PLUGIN) != PLUGIN:
                    continue
                recorded = self._recorded(expected, name, status)
                found = self.allocate(pod, self.nodes[name])
                yield Answer(expected["pod"], name, recorded, found)

    def _recorded(self, expected: dict, node: str, status: dict) -> Result:
        if not status and node in expected.get("allocations", {}):
            return tuple(allocation(each["allocation"]) for each in expected["allocations"][node])
        # This reason is given only after an allocation that succeeded.
        if not status or status["reasons"] == ["resourceclaim not available on the node"]:
            return FITS
        return status["reasons"][0]

    def allocate(self, pod: dict, node: NodeFacts) -> Result:
        """Return the allocations for a pod on a node as the plugin would record them."""
        facts, claims = self._claims_of(pod)
        wanted = [claim for claim in claims if claim.allocation is None]
        if self.gates.extended_resource:
            reason, own = self._own_claim(facts, node, bool(claims))
            if reason:
                return reason
            wanted += [own] if own is not None else []
        if not wanted:
            return ()
        plan = self.allocator.plan(tuple(wanted))
        try:
            found = self.allocator.allocate(plan, node.name, node.labels)
        except AllocationError as error:
            text = str(error)
            return text if text.startswith("runtime error") else ERROR + text
        return "cannot allocate all claims" if found is None else found

    def plan(self, pod: dict) -> Plan | None:
        """Return the plan for a pod's claims; None if it has none, or they depend on the node."""
        try:
            _, claims = self._claims_of(pod)
        except KeyError:
            return None
        wanted = tuple(claim for claim in claims if claim.allocation is None)
        if not wanted or self.gates.extended_resource:
            return None
        return self.allocator.plan(wanted)

    def screen(self, plan: Plan) -> dict[str, bool | None]:
        """Return for each node whether it has devices; None if only the search finds out."""
        numbers = {
            name: self.allocator.nodes.put(name, node.labels) for name, node in self.nodes.items()
        }
        verdicts = self.allocator.screen(plan, np.array([*numbers.values()]))
        if verdicts is None:
            return {}
        known = {Verdict.YES.value: True, Verdict.NO.value: False}
        found = map(known.get, verdicts.tolist())
        return dict(zip(numbers, found, strict=True))

    def _claims_of(self, pod: dict) -> tuple[PodFacts, list[DeviceClaimFacts]]:
        """Return the facts of a pod and its claims; KeyError if one does not exist."""
        served = {each.extended_resource for each in self.classes} - {""}
        _, facts = compile_pod(validate("Pod", pod, source="case"), served)
        names = [each.claim_name or each.generated for each in facts.device_claims]
        return facts, [self.claims[f"{facts.namespace}/{name}"] for name in names if name]

    def _own_claim(
        self, facts: PodFacts, node: NodeFacts, has_claims: bool
    ) -> tuple[str, DeviceClaimFacts | None]:
        mapping = classes_by_resource(self.classes)
        totals = dict(facts.requests)
        if not is_served_by_class(totals, mapping):
            return "", None
        if any(
            each.is_for_extended_resources and each.owner_uid == facts.claims_as.uid
            for each in self.claims.values()
        ):
            return "cannot schedule extended resource claim", None
        allocatable = {name for name, _ in node.allocatable}
        need = extended_need(
            totals, facts.extended_requests, mapping, allocatable, has_claims=has_claims
        )
        if need.missing:
            return "cannot fit resource", None
        if need.requests is None:
            return "", None
        claim = DeviceClaimFacts(
            facts.namespace, UNWRITTEN_CLAIM_NAME, spec=ClaimSpec(need.requests)
        )
        return "", claim


def allocation(manifest: dict) -> Allocation:
    return replace(compile_allocation(ClaimAllocation.read(manifest)), allocated_ms=None)
