"""Rows of the tables of a simulated run, as the rules read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

DeviceId = tuple[str, str, str]
"""Driver, pool and device."""


@dataclass(frozen=True, slots=True)
class PodRow:
    """A row of `pods`; times in microseconds, None for what did not occur.

    number: in the order of creation. waited_us: from creation to bind. ending: done, failed,
    deleted, evicted, preempted or lost. owner: the workload entry of the scenario or the controller
    that created it; None for a pod of the inputs.
    """

    number: int
    uid: str
    pod_class: int
    created_us: int
    bound_us: int | None
    started_us: int | None
    ended_us: int | None
    ending: str | None
    node: str | None
    namespace: str = ""
    name: str = ""
    owner: str | None = None
    first_tried_us: int | None = None
    waited_us: int | None = None

    @property
    def is_on_node(self) -> bool:
        """Whether the pod was on a node for some time."""
        return self.bound_us is not None and self.bound_us != self.ended_us


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A row of `nodes`. pods: most pods that it may have. allocatable, zone: None if removed."""

    time_us: int
    node: str
    allocatable: Mapping[str, int] | None
    pods: int
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A row of `samples` with a number of pods: pending, running or ended ones (`metric`).

    zone: "" for the whole fleet.
    """

    time_us: int
    metric: str
    value: float
    zone: str = ""


@dataclass(frozen=True, slots=True)
class ClassSampleRow:
    """A row of `class_samples`: numbers of pods at a time. created: so far, then by their state.

    finished: done or failed. removed: deleted, evicted, preempted or lost. pod_class: None for the
    classes without rows of their own.
    """

    time_us: int
    pod_class: int | None
    created: int
    pending: int
    running: int
    finished: int
    removed: int


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A row of `devices`. Amounts are quantities.

    node: which reaches the device; None if several may. capacity: amount by capacity. consumes:
    amount by counter of the slice. counters: the slice's counters.
    """

    id: DeviceId
    slice: str
    node: str | None = None
    capacity: Mapping[str, str] = field(default_factory=dict)
    consumes: Mapping[str, str] = field(default_factory=dict)
    counters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AllocationRow:
    """A row of `allocations`.

    what: of a device of the claim, allocated or deallocated; of a pod, reserved or unreserved.
    share: of a device that several claims may use; None for all of it. consumed: quantities by
    capacity.
    """

    time_us: int
    what: str
    claim: str
    pod: int | None = None
    device: DeviceId | None = None
    request: str | None = None
    has_admin_access: bool = False
    share: str | None = None
    consumed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRows:
    """The tables of a run. requests: by class. bound_attempts: (time, pod, node) of each bind.

    first_attempts: time of the first attempt by number of the pod.
    from_devices: by class, extended resources that devices may serve on nodes that do not offer
    them. claims: by class, the names of a pod's claims, with a star in place of the pod's name.
    """

    pods: Sequence[PodRow]
    requests: Mapping[int, Mapping[str, int]]
    nodes: Sequence[NodeRow]
    bound_attempts: Sequence[tuple[int, int, str]]
    samples: Sequence[SampleRow]
    from_devices: Mapping[int, frozenset[str]] = field(default_factory=dict)
    claims: Mapping[int, Sequence[str]] = field(default_factory=dict)
    devices: Sequence[DeviceRow] = ()
    allocations: Sequence[AllocationRow] = ()
    first_attempts: Mapping[int, int] = field(default_factory=dict)
    class_samples: Sequence[ClassSampleRow] = ()


@dataclass(frozen=True, slots=True)
class RunViolation:
    """A violated rule. subject: the pod, node, sample, claim or device."""

    rule: str
    subject: str
    text: str
