"""PodClass: the set of pods with equal facts, compiled with the codes of one process.

`PodFacts` are values that are sent between processes; a `PodClass` is their single instance in this
process, so that it compares and hashes by identity and can hold compiled data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from roadstead.facts.pod import PodClaim, PodFacts
from roadstead.facts.pod_amounts import amounts_of, other_fields_of
from roadstead.facts.resources import STANDARD_RESOURCES, is_counted_resource
from roadstead.nodes.interning import CodeInterner

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
"""Codes of the resources that every process interns first (`STANDARD_RESOURCES`)."""

LARGE_REQUEST = 1 << 50
"""Up to this amount, the sum over 8,000 pods on a node fits an int64; above, it may wrap around."""

_CodeOf = Callable[[str], int]
"""Returns the code of a resource name."""


class _SharedData:
    """The data that classes share if they differ only in the device claims that they name.

    index: number of this object in its `PodClasses`, in order of first use. The other attributes
    are explained in `PodClass`, below.
    """

    __slots__ = (
        "coded_requests",
        "effect_shape",
        "index",
        "is_large",
        "labels",
        "nonzero",
        "request_of",
        "scoring_requests",
    )  # fmt: skip

    def __init__(
        self, facts: PodFacts, index: int, shapes: CodeInterner[Hashable], code: _CodeOf
    ) -> None:
        self.index = index
        self.effect_shape = shapes.code(_effect_shape_of(facts))
        self.labels = dict(facts.labels)
        self.request_of = {k: v for k, v in facts.requests if is_counted_resource(k)}
        self.coded_requests = tuple([(code(name), n) for name, n in self.request_of.items() if n])
        self.nonzero = facts.nonzero_cpu_milli, facts.nonzero_memory_bytes
        # container_requests is set only for pods with pod-level requests; it has these defaults.
        self.scoring_requests: dict[str, int] = (
            self.request_of | dict(zip(("cpu", "memory"), self.nonzero, strict=True))
            if facts.container_requests is None
            else dict(facts.container_requests)
        )
        amounts = (*self.request_of.values(), *self.nonzero, *self.scoring_requests.values())
        self.is_large = max(amounts) > LARGE_REQUEST


class PodClass:
    """The pods with equal facts.

    index: number of the class in its `PodClasses`, in order of first use.
    facts: those of the pods. A class with device claims has one pod: facts.claims_as is its UID and
        name, by which the claims name their owner and consumer.
    shape: code of the facts; of a requested amount, the code depends only on whether it is 0.
    effect_shape: the same code without the device claims: it depends only on whether there are any.
        When pods of one effect shape are placed, the same other pods' results may change
        (`Profile.effect_key`).
    request_of: requested amount by resource, of the resources that nodes count.
    coded_requests: (code of a resource, amount) for each of `request_of`, without zero amounts.
    nonzero: cpu in milli-CPU and memory in bytes as scoring counts a pod on a node (upstream's
        NonZeroRequested).
    scoring_requests: resource → amount as NodeResourcesFit scores the pod itself, cpu and memory
        with their defaults.
    labels: the pod's labels as a mapping.
    is_large: whether one of these amounts is above LARGE_REQUEST.
    """

    __slots__ = (
        "_only_class",
        "coded_requests",
        "effect_shape",
        "facts",
        "index",
        "is_large",
        "labels",
        "nonzero",
        "request_of",
        "scoring_requests",
        "shape",
    )  # fmt: skip

    def __init__(
        self, facts: PodFacts, index: int, shapes: CodeInterner[Hashable], shared: _SharedData
    ) -> None:
        self.facts = facts
        self.index = index
        self.effect_shape = self.shape = shared.effect_shape
        if facts.device_claims:
            self.shape = shapes.code((self.effect_shape, facts.device_claims, facts.claims_as))
        self._only_class: dict[int, dict[PodClass, int]] = {}
        self.labels = shared.labels
        self.request_of = shared.request_of
        self.coded_requests = shared.coded_requests
        self.nonzero = shared.nonzero
        self.scoring_requests = shared.scoring_requests
        self.is_large = shared.is_large

    def only_class(self, count: int) -> dict[PodClass, int]:
        """Return the mapping {self: count}, for a node that has pods of this class only.

        All callers share the mapping; it must not be modified.
        """
        found = self._only_class.get(count)
        if found is None:
            found = self._only_class[count] = {self: count}
        return found

    def __repr__(self) -> str:
        return f"PodClass({self.index}, {self.facts.namespace}, {self.facts.requests})"


class PodClasses:
    """The pod classes of this process: facts → PodClass, and the resource codes they share.

    pod_classes: by index. _shapes: the codes of shapes. _with_claims: results of `with_claims`.
    """

    __slots__ = (
        "_by_id",
        "_index_of",
        "_last_shared",
        "_shapes",
        "_shared_data",
        "_with_claims",
        "pod_classes",
        "resources",
    )  # fmt: skip

    def __init__(self) -> None:
        self.resources: CodeInterner[str] = CodeInterner(STANDARD_RESOURCES)
        self.pod_classes: list[PodClass] = []
        # By index of the shared data, device_claims and claims_as. The key has the index in place
        # of the shared facts, which would be hashed again for each pod with claims.
        self._index_of: dict[Hashable, int] = {}
        self._shared_data: dict[Hashable, _SharedData] = {}
        # The key and the data of the last facts.
        self._last_shared: tuple[Hashable, _SharedData | None] = (), None
        # By `id` of the facts that a class keeps: no other object gets this id.
        self._by_id: dict[int, PodClass] = {}
        self._shapes: CodeInterner[Hashable] = CodeInterner()
        self._with_claims: dict[Hashable, PodClass] = {}

    def pod_class(self, facts: PodFacts) -> PodClass:
        """Return the one PodClass of these facts.

        The lookup is by identity for the object from which the class was made. Another, equal
        object is compared with the facts of the last call, or else hashed.
        """
        known = self._by_id.get(id(facts))
        if known is not None and known.facts is facts:
            return known
        shared = self._shared_data_of(facts)
        key = shared.index, facts.device_claims, facts.claims_as
        index = self._index_of.setdefault(key, len(self.pod_classes))
        if index == len(self.pod_classes):
            pod_class = PodClass(facts, index, self._shapes, shared)
            self.pod_classes.append(pod_class)
            self._by_id[id(facts)] = pod_class
        return self.pod_classes[index]

    def _shared_data_of(self, facts: PodFacts) -> _SharedData:
        # `other_fields_of` returns all fields but the amounts and the device claims.
        key = other_fields_of(facts), amounts_of(facts), bool(facts.device_claims)
        last, found = self._last_shared
        # Successive pods often share the objects in their fields: comparing an object with itself
        # is faster than hashing it.
        if found is not None and key == last:
            return found
        found = self._shared_data.get(key)
        if found is None:
            found = _SharedData(facts, len(self._shared_data), self._shapes, self.resources.code)
            self._shared_data[key] = found
        self._last_shared = key, found
        return found

    def with_claims(self, pod: PodClass, claims: tuple[PodClaim, ...]) -> PodClass:
        """Return the class with these device claims and `claims_as` None, else as `pod`."""
        # The shape and the amounts are all facts of `pod` but its device claims and `claims_as`.
        key = pod.effect_shape, amounts_of(pod.facts), claims
        found = self._with_claims.get(key)
        if found is None:
            facts = replace(pod.facts, device_claims=claims, claims_as=None)
            found = self._with_claims[key] = self.pod_class(facts)
        return found

    def pod_classes_of(self, pods: Sequence[PodFacts]) -> list[PodClass]:
        """Return `pod_class` of each; facts that are one object are looked up once."""
        ids = list(map(id, pods))
        found = {
            key: self.pod_class(facts) for key, facts in dict(zip(ids, pods, strict=True)).items()
        }
        return [found[key] for key in ids]


def _effect_shape_of(facts: PodFacts) -> Hashable:
    """Return all facts but amounts and device claims, and which amounts are above 0."""
    container_requests = facts.container_requests
    return (
        other_fields_of(facts),
        bool(facts.device_claims),
        tuple([(name, amount > 0) for name, amount in facts.requests]),
        None
        if container_requests is None
        else tuple([(name, amount > 0) for name, amount in container_requests]),
    )
