"""Facts of devices: slices, classes and claims of resource.k8s.io, as DynamicResources reads them.

Every value is immutable and consists of str, int, bool and tuples, like all facts. Names of
attributes and capacities are as in the manifest, with or without a domain. Amounts are quantities
in canonical form; parameters of drivers are JSON texts. Built by `roadstead.facts.compile_devices`.
`fast_init` makes the objects faster to create. Fields without an explanation are upstream's.

Upstream: staging/src/k8s.io/api/resource/v1/types.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from roadstead.facts.selectors import NodeSelectorTerm
from roadstead.facts.taints import Taint, Toleration
from roadstead.protocol.fast_init import fast_init

# Allocation modes of requests.
EXACT_COUNT: Final = "ExactCount"
ALL_DEVICES: Final = "All"

# Sources of configurations.
FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"

NodeTerms = tuple[NodeSelectorTerm, ...]
Amounts = tuple[tuple[str, str], ...]
"""Names with their quantities, sorted by name."""


@dataclass(frozen=True, slots=True)
class AttributeFacts:
    """An attribute of a device. kind: "int", "bool", "string", "version", or "" without a value."""

    name: str
    kind: str
    value: int | bool | str


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """The amounts of a capacity that requests may consume.

    default: of a request without an amount. valid_amounts: the only amounts allowed, if there are
    any (validValues). minimum, maximum, step: of an allowed range (validRange.min, max and step);
    minimum is None without a range.
    """

    default: str | None = None
    valid_amounts: tuple[str, ...] = ()
    minimum: str | None = None
    maximum: str | None = None
    step: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceCapacity:
    """A capacity of a device. policy: None if requests consume the amounts that they request."""

    name: str
    amount: str
    policy: RequestPolicy | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The nodes that reach a slice or device (in other modules: the node of a pod).

    terms: of a node selector.
    """

    node_name: str | None = None
    all_nodes: bool = False
    terms: NodeTerms | None = None


@dataclass(frozen=True, slots=True)
class CounterSetFacts:
    """Counters of a pool that devices share, or what a device consumes of them."""

    name: str
    counters: Amounts


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device.

    placement: of its own, if its slice has a placement per device. consumes: what it consumes of
    the counters of its pool. allows_several: several claims may share it
    (allowMultipleAllocations).
    """

    name: str
    attributes: tuple[AttributeFacts, ...] = ()
    capacity: tuple[DeviceCapacity, ...] = ()
    consumes: tuple[CounterSetFacts, ...] = ()
    placement: Placement = Placement()
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allows_several: bool = False


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """A ResourceSlice. placed_per_device: None if perDeviceNodeSelection is not set."""

    name: str
    driver: str
    pool: str
    generation: int
    slices_in_pool: int
    placement: Placement = Placement()
    placed_per_device: bool | None = None
    devices: tuple[DeviceFacts, ...] = ()
    shared_counters: tuple[CounterSetFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class DriverConfig:
    """A configuration for a driver. requests: names of the requests that it is for; all if empty.

    source: FROM_CLASS or FROM_CLAIM in an allocation; "" elsewhere.
    """

    driver: str
    parameters: str
    requests: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class DeviceClassFacts:
    """A DeviceClass. selectors: CEL expressions, all of which must hold."""

    name: str
    selectors: tuple[str, ...] = ()
    configs: tuple[DriverConfig, ...] = ()
    extended_resource: str = ""


@dataclass(frozen=True, slots=True)
class ExactRequest:
    """The devices that a request, or one of its alternatives, requests."""

    name: str
    device_class: str = ""
    selectors: tuple[str, ...] = ()
    mode: str = EXACT_COUNT
    count: int = 1
    has_admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: Amounts | None = None


@dataclass(frozen=True, slots=True)
class DeviceRequest(ExactRequest):
    """One request of a claim.

    alternatives: `firstAvailable`; if there are any, only `name` and they are read.
    """

    alternatives: tuple[ExactRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    """A constraint on the devices of some requests, or of all if `requests` is empty.

    match_attribute: their values of it must be equal; distinct_attribute: must differ.
    """

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """The spec of a claim."""

    # Many messages contain equal values of such classes: the codec caches their encodings
    # (`roadstead.protocol.codec_memo`).
    repeats_on_wire: ClassVar[bool] = True

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    configs: tuple[DriverConfig, ...] = ()


@fast_init
@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """One device of an allocation. request: its name; with an alternative, `name/alternative`.

    share_id, consumed: of a device that several claims may share; else None.
    """

    request: str
    driver: str
    pool: str
    device: str
    has_admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = None
    consumed: Amounts | None = None

    @property
    def id(self) -> tuple[str, str, str]:
        """Driver, pool and device."""
        return self.driver, self.pool, self.device


@fast_init
@dataclass(frozen=True, slots=True)
class Allocation:
    """Devices allocated to a claim. node_terms: None if every node reaches all of them.

    allocated_ms: time since 1970; None if it is not known.
    """

    repeats_on_wire: ClassVar[bool] = True

    results: tuple[AllocatedDevice, ...] = ()
    configs: tuple[DriverConfig, ...] = ()
    node_terms: NodeTerms | None = None
    allocated_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """A driver's report on an allocated device. conditions: (type, status)."""

    driver: str
    pool: str
    device: str
    share_id: str | None = None
    conditions: tuple[tuple[str, str], ...] = ()


@fast_init
@dataclass(frozen=True, slots=True)
class Consumer:
    """An object for which a claim is reserved."""

    resource: str
    name: str
    uid: str
    api_group: str = ""


@fast_init
@dataclass(frozen=True, slots=True)
class DeviceClaimFacts:
    """A ResourceClaim.

    owner_uid, owner_kind: of its controller. is_for_extended_resources: the scheduler
    created it for a pod. is_in_flight: its allocation is assumed by a pod that is not bound yet.
    """

    repeats_on_wire: ClassVar[bool] = True

    namespace: str
    name: str
    uid: str = ""
    spec: ClaimSpec = ClaimSpec()
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    statuses: tuple[DeviceStatus, ...] = ()
    is_terminating: bool = False
    owner_uid: str = ""
    owner_kind: str = ""
    finalizers: tuple[str, ...] = ()
    is_for_extended_resources: bool = False
    is_in_flight: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def with_use(
        self,
        allocation: Allocation | None,
        reserved_for: tuple[Consumer, ...],
        finalizers: tuple[str, ...],
        *,
        is_in_flight: bool,
    ) -> DeviceClaimFacts:
        """Return the claim with another allocation and other consumers."""
        # Not by `replace`, which takes three times as long: this runs several times for each pod.
        return DeviceClaimFacts(
            self.namespace,
            self.name,
            self.uid,
            self.spec,
            allocation,
            reserved_for,
            self.statuses,
            self.is_terminating,
            self.owner_uid,
            self.owner_kind,
            finalizers,
            self.is_for_extended_resources,
            is_in_flight,
        )

    def assumed_with(self, allocation: Allocation) -> DeviceClaimFacts:
        """Return the claim with an allocation that is assumed by a pod that is not bound yet."""
        return self.with_use(allocation, self.reserved_for, self.finalizers, is_in_flight=True)


@dataclass(frozen=True, slots=True)
class DeviceTaintRule:
    """A taint of all devices that match every criterion; None is no criterion."""

    name: str
    taint: Taint
    device_class: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    selectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DevicesFacts:
    """All device objects of a cluster, in the order of their listing.

    templates: specs of claim templates, by `namespace/name`; only for runs in which pods arrive and
    claims are made for them (`roadstead.devices.claim_maker`), as the claim controller does.
    """

    slices: tuple[SliceFacts, ...] = ()
    classes: tuple[DeviceClassFacts, ...] = ()
    claims: tuple[DeviceClaimFacts, ...] = ()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    templates: tuple[tuple[str, ClaimSpec], ...] = ()
