"""Facts of storage: volumes, claims, classes and drivers, as the volume plugins look them up.

Every value is immutable and consists of str, int, bool and tuples, like all facts. Built by
`roadstead.facts.compile_storage`; sizes are in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.pod import Labels
from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm

NodeTerms = tuple[NodeSelectorTerm, ...] | None
"""Required node selector terms of a volume; None if every node can reach the volume."""

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """A volume's reference to its claim; an empty UID matches any claim of that name."""

    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class CsiSource:
    """A volume by its CSI driver and handle."""

    driver: str
    handle: str


@dataclass(frozen=True, slots=True)
class VolumeFacts:
    """A persistent volume.

    csi: the CSI source in its spec, or None. in_tree: the in-tree plugin in its spec, if a CSI
    driver replaced that plugin; else "". On nodes that use the driver, `migrated` and
    `migrated_terms` are its source and node terms instead (None if the volume cannot be translated:
    then `migration_error` has the reason).
    """

    name: str
    storage_class: str = ""
    capacity_bytes: int = 0
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    phase: str = ""
    is_terminating: bool = False
    labels: Labels = ()
    claim: ClaimReference | None = None
    node_terms: NodeTerms = None
    csi: CsiSource | None = None
    in_tree: str = ""
    migrated: CsiSource | None = None
    migrated_terms: NodeTerms = None
    migration_error: str = ""


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """A persistent volume claim.

    requested_bytes: None if it requests no size. selected_node: of the annotation
    `volume.kubernetes.io/selected-node`; None without it.
    is_bound: it names a volume and its binding is complete. owner_uid: UID of its controller.
    """

    namespace: str
    name: str
    uid: str = ""
    storage_class: str = ""
    volume_name: str = ""
    has_bind_completed: bool = False
    is_lost: bool = False
    is_terminating: bool = False
    access_modes: tuple[str, ...] = ()
    requested_bytes: int | None = None
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    selector: LabelSelector | None = None
    selected_node: str | None = None
    owner_uid: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_bound(self) -> bool:
        return bool(self.volume_name) and self.has_bind_completed


@dataclass(frozen=True, slots=True)
class StorageClassFacts:
    """A storage class. allowed_topologies: ORed terms of ANDed (label key, values)."""

    name: str
    provisioner: str = ""
    binding_mode: str = ""
    allowed_topologies: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = ()

    @property
    def waits(self) -> bool:
        """Whether claims are bound only when a pod needs them (WaitForFirstConsumer)."""
        return self.binding_mode == WAIT_FOR_FIRST_CONSUMER


@dataclass(frozen=True, slots=True)
class NodeDriverFacts:
    """A CSI driver on one node. limit: how many of its volumes fit; None for no limit."""

    name: str
    limit: int | None = None
    topology_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CsiNodeFacts:
    """The CSI drivers of a node. migrated: in-tree plugins that CSI drivers replace on it."""

    name: str
    drivers: tuple[NodeDriverFacts, ...] = ()
    migrated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CsiDriverFacts:
    """A CSI driver. tracks_capacity: its free capacity is published and checked."""

    name: str
    tracks_capacity: bool = False


@dataclass(frozen=True, slots=True)
class CapacityFacts:
    """Free storage of a class on nodes that `selector` matches; None matches none.

    limit_bytes: size of the largest volume that fits; None if it is not known.
    """

    namespace: str
    name: str
    storage_class: str
    selector: LabelSelector | None
    limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class AttachmentFacts:
    """A volume attached to a node. attacher: the CSI driver.

    volume_name: "" if it is not a persistent volume.
    """

    name: str
    node_name: str
    attacher: str
    volume_name: str


@dataclass(frozen=True, slots=True)
class StorageFacts:
    """All storage objects of a cluster, in the order of their listing."""

    volumes: tuple[VolumeFacts, ...] = ()
    claims: tuple[ClaimFacts, ...] = ()
    classes: tuple[StorageClassFacts, ...] = ()
    csi_nodes: tuple[CsiNodeFacts, ...] = ()
    csi_drivers: tuple[CsiDriverFacts, ...] = ()
    capacities: tuple[CapacityFacts, ...] = ()
    attachments: tuple[AttachmentFacts, ...] = ()
