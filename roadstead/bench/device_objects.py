"""The devices of a benchmark: slices of a driver, classes, and claims, also those of templates.

Upstream: scheduler_perf's createResourceDriver and allocResourceClaims, and the claim controller,
which makes the claims of templates. Here all claims exist from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from roadstead.bench.series import PodSeries
from roadstead.devices.errors import AllocationError
from roadstead.devices.state import DeviceState
from roadstead.facts.compile_devices import (
    compile_claim_spec,
    compile_device_claim,
    compile_device_class,
    compile_slice,
    compile_taint_rule,
)
from roadstead.facts.devices import (
    Allocation,
    ClaimSpec,
    DeviceClaimFacts,
    DeviceClassFacts,
    DeviceFacts,
    DevicesFacts,
    DeviceTaintRule,
    Placement,
    SliceFacts,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodClaim, PodFacts, PodReference
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import (
    ApiObject,
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from roadstead.protocol.objects import (
    DeviceTaintRule as TaintRuleObject,
)

DEVICE_KINDS: dict[str, type[ApiObject]] = {
    each.__name__: each
    for each in (DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice, TaintRuleObject)
}


def slice_of_node(driver: str, node_name: str, devices: tuple[DeviceFacts, ...]) -> SliceFacts:
    """Return the only slice of a node's pool."""
    return SliceFacts(
        f"{node_name}-slice",
        driver,
        pool=node_name,
        generation=1,
        slices_in_pool=1,
        placement=Placement(node_name=node_name),
        devices=devices,
    )


@dataclass(slots=True)
class DeviceObjects:
    """Collect device objects. specs: (namespace, name) of a claim template → its spec."""

    classes: list[DeviceClassFacts] = field(default_factory=list)
    slices: list[SliceFacts] = field(default_factory=list)
    claims: list[DeviceClaimFacts] = field(default_factory=list)
    taint_rules: list[DeviceTaintRule] = field(default_factory=list)
    specs: dict[tuple[str, str], ClaimSpec] = field(default_factory=dict)

    def add(self, found: ApiObject) -> None:
        """Add an object of one of DEVICE_KINDS."""
        if isinstance(found, DeviceClass):
            self.classes.append(compile_device_class(found))
        elif isinstance(found, ResourceSlice):
            self.slices.append(compile_slice(found))
        elif isinstance(found, ResourceClaim):
            self.claims.append(compile_device_claim(found))
        elif isinstance(found, ResourceClaimTemplate):
            key = found.metadata.namespace, found.metadata.name
            self.specs[key] = compile_claim_spec(found.spec.spec)
        else:
            assert isinstance(found, TaintRuleObject), f"no device object: {found.kind}"
            self.taint_rules.append(compile_taint_rule(found))

    def add_driver(self, driver: str, node_names: Iterable[str], devices: int) -> None:
        """Add one slice for each node, with so many devices."""
        instances = tuple(DeviceFacts(f"instance-{number}") for number in range(devices))
        self.slices += [slice_of_node(driver, name, instances) for name in node_names]

    def with_claims(self, series: PodSeries) -> PodSeries:
        """Create the claims of a series' pods from templates; return the pods with these claims."""
        if not any(facts.device_claims for facts in series.classes):
            return series
        uids = series.part(0, series.count).uids
        for index, uid in enumerate(uids):
            facts = series.classes[index % len(series.classes)]
            self.claims += [self._created_claim(facts, each, uid) for each in _templated(facts)]
        facts_of = partial(with_own_claims, series.classes)
        return replace(series, make_class=_bind_uids(facts_of, uids))

    def _created_claim(self, facts: PodFacts, claim: PodClaim, uid: str) -> DeviceClaimFacts:
        spec = self.specs.get((facts.namespace, claim.template_name or ""))
        if spec is None:
            problem = (
                f"names no ResourceClaimTemplate that was created before: {claim.template_name}"
            )
            raise InputError(problem, field="spec.resourceClaims")
        return claim_of_pod(facts.namespace, uid, claim.name, spec)

    def allocate(self, namespace: str, nodes: Sequence[NodeFacts]) -> None:
        """Allocate the claims of a namespace, to the nodes in turn. Raises InputError."""
        state, turn = DeviceState(self.facts()), 0
        for index, claim in enumerate(self.claims):
            if claim.namespace != namespace or claim.allocation is not None:
                continue
            found, turn = _allocated(state, claim, nodes, turn)
            if found is None:
                raise InputError("has no devices left", field=f"ResourceClaim {claim.key}")
            self.claims[index] = replace(claim, allocation=found)
            state.apply((self.claims[index],))

    def facts(self) -> DevicesFacts:
        """Return all objects."""
        return DevicesFacts(
            tuple(self.slices), tuple(self.classes), tuple(self.claims), tuple(self.taint_rules)
        )


def claim_of_pod(namespace: str, uid: str, name: str, spec: ClaimSpec) -> DeviceClaimFacts:
    """Return the claim that is created from a template for a pod."""
    claim_name = _claim_name(uid, name)
    return DeviceClaimFacts(
        namespace, claim_name, f"{namespace}/{claim_name}", spec, owner_uid=uid, owner_kind="Pod"
    )


def with_own_claims(classes: Sequence[PodFacts], index: int, uid: str) -> PodFacts:
    """Return the pod of an index, with the names of the claims that were created for it."""
    facts = classes[index % len(classes)]
    claims = tuple(
        each if each.template_name is None else replace(each, generated=_claim_name(uid, each.name))
        for each in facts.device_claims
    )
    name = uid.rpartition("/")[2]
    return replace(facts, device_claims=claims, claims_as=PodReference(uid, name))


def _bind_uids(
    facts_of: Callable[[int, str], PodFacts], uids: Sequence[str]
) -> Callable[[int], PodFacts]:
    """Return a function of a pod's index that calls `facts_of` with the index and its UID."""
    return lambda index: facts_of(index, uids[index])


def _claim_name(uid: str, name: str) -> str:
    return f"{uid.rpartition('/')[2]}-{name}"


def _templated(facts: PodFacts) -> list[PodClaim]:
    return [each for each in facts.device_claims if each.template_name is not None]


def _allocated(
    state: DeviceState, claim: DeviceClaimFacts, nodes: Sequence[NodeFacts], turn: int
) -> tuple[Allocation | None, int]:
    """Return a claim's allocation on the first node from `turn` on, and the next turn.

    turn: number of the node that is tried first, modulo the number of nodes.
    """
    try:
        plan = state.allocator.plan((claim,))
        for offset in range(len(nodes)):
            node = nodes[(turn + offset) % len(nodes)]
            allocations = state.allocator.allocate(plan, node.name, node.labels)
            if allocations is not None:
                (allocation,) = allocations
                return allocation, turn + offset + 1
    except AllocationError as error:
        # Such as a class that no op creates, or a selector that is not valid.
        raise InputError(str(error), field=f"ResourceClaim {claim.key}") from error
    return None, turn
