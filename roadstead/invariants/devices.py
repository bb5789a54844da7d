"""Claims of devices: allocated once, to devices that exist, with their pods.

    I1    no device is in two claims; claims use no more of a counter, or of a device's capacity,
          than there is
    I2    the claims of a bound pod are allocated, and reserved for the pod (and in all for 256 pods
          at the most); the pod's node reaches their devices, and no driver reported a failure of
          one; the devices are those that the claims request (`device_requests`)
    I5    a claim that was made for a pod ends with it, and no claim names a pod that ended

Devices under admin access, and those that several may use, may be in several claims.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.devices import (
    AllocatedDevice,
    DeviceClaimFacts,
    DeviceClassFacts,
    DeviceRequest,
    DevicesFacts,
)
from roadstead.facts.filter_rules import Rules
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.invariants.amounts import amount_of
from roadstead.invariants.device_inventory import (
    BINDING_CONDITIONS,
    DeviceId,
    Inventory,
    Pool,
    newest_of_pools,
)
from roadstead.invariants.device_requests import allocation_errors
from roadstead.invariants.world import matches_terms
from roadstead.protocol.claim_bounds import CLAIM_MAX_CONSUMERS

_IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Prefix of the extended resource that a class always serves; the name of the class follows."""


@dataclass(slots=True)
class Devices:
    """Claims by `namespace/name`.

    makes_claims: the gate DRAExtendedResource is on: the scheduler creates a claim for a pod's
    extended resources that device classes serve. _served: resource → class. _counters: amounts of
    shared counters, by pool, counter set and counter.
    _in_pool: claims with devices of a pool, by their keys. _keys_of_pod: by UID, keys of the claims
    that a pod consumes or that were made for it.
    """

    inventory: Inventory = field(default_factory=Inventory)
    makes_claims: bool = False
    claims: dict[str, DeviceClaimFacts] = field(default_factory=dict)
    _served: dict[str, str] = field(default_factory=dict)
    _counters: dict[Pool, dict[tuple[str, str], Fraction]] = field(default_factory=dict)
    _in_pool: dict[Pool, dict[str, DeviceClaimFacts]] = field(default_factory=dict)
    _keys_of_pod: dict[str, set[str]] = field(default_factory=dict)

    def begin_rules(self, rules: Rules) -> None:
        """Set the gates."""
        self.makes_claims = rules.extended_resource
        gates = rules.device_gates
        self.inventory.gates = None if gates is None else frozenset(gates)

    def begin(self, facts: DevicesFacts) -> None:
        """Set the devices of the cluster."""
        self.inventory.begin(facts)
        self.claims, self._in_pool, self._keys_of_pod = {}, {}, {}
        for claim in facts.claims:
            self._put(claim)
        self._served = served_by_classes(facts.classes)
        self._counters = {}
        for each in newest_of_pools(facts.slices):
            of_pool = self._counters.setdefault((each.driver, each.pool), {})
            for shared in each.shared_counters:
                for name, amount in shared.counters:
                    of_pool[shared.name, name] = amount_of(amount)

    def change(self, change: BoundClaims) -> Iterator[str]:
        """Apply a record's claims; yield why new allocations overlap others or exceed a pool."""
        for key in change.removed_claims:
            self._drop(key)
        new = []
        for claim in change.device_claims:
            before = self.claims.get(claim.key)
            if claim.allocation is not None and (before is None or before.allocation is None):
                new.append(claim)
            self._put(claim)
        for claim in new:
            yield from self._misallocated(claim)

    def claim_errors(
        self,
        before: DeviceClaimFacts | None,
        claim: DeviceClaimFacts,
        nodes: Mapping[str, NodeFacts],
    ) -> Iterator[str]:
        """Yield why a commit must not change a claim like this.

        nodes: of the pods that the commit binds, by the keys of their claims, and by UID.
        """
        consumers = len(claim.reserved_for)
        # The input may have claims with more consumers than the API allows; no commit may add one.
        if consumers > max(CLAIM_MAX_CONSUMERS, len(before.reserved_for) if before else 0):
            rule = f"at most {CLAIM_MAX_CONSUMERS} may use it"
            yield f"claim {claim.key} names {consumers} pods; {rule}"
        if before is None and not claim.is_for_extended_resources:
            yield f"claim {claim.key} did not exist before"
        elif before is not None and _request_of(before) != _request_of(claim):
            yield f"claim {claim.key} is not as it was before, but for its devices and pods"
        allocation_before = None if before is None else before.allocation
        # An allocation is checked once, when it is made: slices may change while it is in use.
        if claim.allocation is None or claim.allocation == allocation_before:
            return
        if allocation_before is not None:
            yield f"claim {claim.key} has other devices than before"
        node = nodes.get(claim.owner_uid if claim.is_for_extended_resources else claim.key)
        if node is None:
            yield f"claim {claim.key} is allocated, and no pod of the commit uses it"
            return
        for text in allocation_errors(claim, node, self.inventory):
            yield f"claim {claim.key} {text}"

    def _put(self, claim: DeviceClaimFacts) -> None:
        self._drop(claim.key)
        self.claims[claim.key] = claim
        for pool in _pools(claim):
            self._in_pool.setdefault(pool, {})[claim.key] = claim
        for uid in _pods(claim):
            self._keys_of_pod.setdefault(uid, set()).add(claim.key)

    def _drop(self, key: str) -> None:
        claim = self.claims.pop(key, None)
        if claim is None:
            return
        for pool in _pools(claim):
            del self._in_pool[pool][key]
        for uid in _pods(claim):
            self._keys_of_pod[uid].discard(key)

    def claims_left_by(self, uid: str) -> Iterator[str]:
        """Yield the claims that still exist for a pod, or name it, although it ended."""
        for key in sorted(self._keys_of_pod.get(uid, ())):
            claim = self.claims[key]
            if claim.owner_kind == "Pod" and claim.owner_uid == uid:
                yield f"claim {key} was made for the pod, and does not end with it"
            else:
                yield f"claim {key} names the pod after its end"

    def pod_errors(self, pod: PodFacts, uid: str, node: NodeFacts) -> Iterator[str]:
        """Yield why a pod's claims do not let it run on a node."""
        for each in pod.device_claims:
            # The claim that the scheduler creates for extended resources is found by the pod's UID:
            # the facts of the pod do not have its name.
            if each.extended:
                yield from self._extended_errors(pod, uid, node)
                continue
            # generated: "" if the template makes no claim for this pod, None if it was not made
            # yet.
            name = each.claim_name or each.generated
            if not name:
                if each.generated is None:
                    yield f"claim {each.name} was not made"
                continue
            claim = self.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                yield f"claim {name} is not there"
            else:
                yield from _claim_errors(claim, uid, node)
                if self.inventory.is_on(BINDING_CONDITIONS):
                    yield from _failures(claim)

    def _extended_errors(self, pod: PodFacts, uid: str, node: NodeFacts) -> Iterator[str]:
        """Yield why the claim for a pod's extended resources does not let it run on a node."""
        if not self.makes_claims:
            return
        offered = {name for name, _ in node.allocatable}
        requests = [
            each for each in pod.device_claims[-1].extended if each.resource in self._served
        ]
        not_offered = [each.resource for each in requests if each.resource not in offered]
        if not not_offered:
            return
        claims = [
            each
            for each in map(self.claims.__getitem__, self._keys_of_pod.get(uid, ()))
            if each.is_for_extended_resources and each.owner_uid == uid
        ]
        if len(claims) != 1:
            yield f"{len(claims)} claims were made for {', '.join(dict.fromkeys(not_offered))}"
            return
        yield from _claim_errors(claims[0], uid, node)
        needed = {DeviceRequest(e.name, self._served[e.resource], count=e.count) for e in requests}
        if set(claims[0].spec.requests) != needed:
            yield f"claim {claims[0].key} does not request what the containers request"
        count_by_request = Counter(result.request for result in _results(claims))
        if count_by_request != Counter({each.name: each.count for each in requests}):
            yield f"claim {claims[0].key} does not have the devices that the containers request"

    def _misallocated(self, claim: DeviceClaimFacts) -> Iterator[str]:
        """Yield why a new allocation overlaps that of another claim or exceeds a pool."""
        for result in _results([claim]):
            if result.id not in self.inventory.devices:
                yield f"claim {claim.key} has device {_text(result)}, which is not there"
        exclusive = {each.id for each in _results([claim]) if _is_exclusive(each)}
        in_pools = [other for pool in _pools(claim) for other in self._in_pool[pool].values()]
        for other in {each.key: each for each in in_pools}.values():
            if other.key == claim.key or not exclusive:
                continue
            for each in _results([other]):
                if _is_exclusive(each) and each.id in exclusive:
                    yield f"device {_text(each)} is in claims {other.key} and {claim.key}"
        for pool in _pools(claim):
            yield from self._overdrawn(pool, claim)

    def _overdrawn(self, pool: Pool, claim: DeviceClaimFacts) -> Iterator[str]:
        """Yield the counters and capacities of which a claim uses more than the pool has left."""
        of_pool = self._counters.get(pool, {})
        drawn, own = (
            self._drawn_from(pool, each) for each in (self._in_pool[pool].values(), [claim])
        )
        for counter in own:
            if drawn[counter] > of_pool.get(counter, Fraction(0)):
                yield f"counter {'/'.join(counter)} of pool {'/'.join(pool)} is overdrawn"
        consumed, own_share = (
            self._consumed_of(pool, each) for each in (self._in_pool[pool].values(), [claim])
        )
        for device_id, name in own_share:
            device = self.inventory.devices[device_id][1]
            capacity = {each.name: each.amount for each in device.capacity}
            if name not in capacity or consumed[device_id, name] > amount_of(capacity[name]):
                yield f"capacity {name} of device {'/'.join(device_id)} is overdrawn"

    def _used(self, pool: Pool, claims: Iterable[DeviceClaimFacts]) -> list[AllocatedDevice]:
        """Return the devices of a pool that claims use; under admin access they consume nothing."""
        return [
            each
            for each in _results(claims)
            if each.id[:2] == pool
            and not each.has_admin_access
            and each.id in self.inventory.devices
        ]

    def _drawn_from(
        self, pool: Pool, claims: Iterable[DeviceClaimFacts]
    ) -> dict[tuple[str, str], Fraction]:
        """Return what the devices of claims consume of the counters of a pool."""
        drawn: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)
        for device_id in {each.id for each in self._used(pool, claims)}:
            for consumed in self.inventory.devices[device_id][1].consumes:
                for name, amount in consumed.counters:
                    drawn[consumed.name, name] += amount_of(amount)
        return drawn

    def _consumed_of(
        self, pool: Pool, claims: Iterable[DeviceClaimFacts]
    ) -> dict[tuple[DeviceId, str], Fraction]:
        """Return what claims consume of the capacities of a pool's devices."""
        consumed: defaultdict[tuple[DeviceId, str], Fraction] = defaultdict(Fraction)
        for each in self._used(pool, claims):
            for name, text in each.consumed or ():
                consumed[each.id, name] += amount_of(text)
        return consumed


def served_by_classes(classes: Iterable[DeviceClassFacts]) -> dict[str, str]:
    """Return the class that serves each extended resource; of several, the last one listed."""
    served: dict[str, str] = {}
    for each in classes:
        if each.extended_resource:
            served[each.extended_resource] = each.name
        served[f"{_IMPLICIT}{each.name}"] = each.name
    return served


def _claim_errors(claim: DeviceClaimFacts, uid: str, node: NodeFacts) -> Iterator[str]:
    if claim.allocation is None:
        yield f"claim {claim.key} is not allocated"
    elif uid not in [consumer.uid for consumer in claim.reserved_for]:
        yield f"claim {claim.key} does not name the pod"
    elif not reaches(claim, node):
        yield f"the node does not reach the devices of claim {claim.key}"


def _failures(claim: DeviceClaimFacts) -> Iterator[str]:
    """Yield the failure of the first of a claim's devices for which the driver reported one.

    As upstream, devices after one that still waits for its binding conditions are not looked at.
    """
    for result in _results([claim]):
        wanted = result.binding_conditions
        reports = (e for e in claim.statuses if (e.driver, e.pool, e.device) == result.id)
        report = next((e for e in reports if e.share_id == result.share_id), None)
        true = {name for name, value in report.conditions if value == "True"} if report else set()
        failed = true.intersection(result.binding_failure_conditions)
        if wanted and failed:
            name = min(failed)
            yield f"claim {claim.key} has device {_text(result)}, which reports {name}"
            return
        if not true.issuperset(wanted):
            return


def _request_of(claim: DeviceClaimFacts) -> tuple[object, ...]:
    """Return the parts of a claim that never change."""
    owner = claim.owner_uid, claim.owner_kind
    return claim.uid, claim.spec, owner, claim.is_for_extended_resources


def _results(claims: Iterable[DeviceClaimFacts]) -> Iterator[AllocatedDevice]:
    for claim in claims:
        if claim.allocation is not None:
            yield from claim.allocation.results


def _pools(claim: DeviceClaimFacts) -> set[Pool]:
    return {(each.driver, each.pool) for each in _results([claim])}


def _pods(claim: DeviceClaimFacts) -> set[str]:
    """Return the UIDs of the pods that consume a claim, and of the one for which it was made."""
    owner = {claim.owner_uid} if claim.owner_kind == "Pod" else set()
    return owner | {each.uid for each in claim.reserved_for}


def _is_exclusive(device: AllocatedDevice) -> bool:
    return not device.has_admin_access and device.share_id is None


def reaches(claim: DeviceClaimFacts, node: NodeFacts) -> bool:
    """Whether a node reaches the devices of an allocated claim."""
    assert claim.allocation is not None
    terms = claim.allocation.node_terms
    return terms is None or matches_terms(terms, node)


def _text(device: AllocatedDevice) -> str:
    return "/".join(device.id)


def is_of_devices(change: BoundClaims) -> bool:
    """Whether a record has claims of devices and none of volumes."""
    return bool(change.device_claims or change.removed_claims) and not change.claims
