"""Format 1, whose frames had no digest of the frames before them: it is read, never written.

    mark │ length u32 │ crc32 u32 │ first lsn u64 │ records u32 │ durable lsn u64 │ body

Its files have a checksum of their schema (the names of classes and fields), not the schema itself.
"""

from __future__ import annotations

import struct
import zlib

from roadstead.journal.fields import Fields
from roadstead.journal.frames import MAX_FRAME_BYTES, Frame, FrameKind

MARK = b"\xf1RJ\n"
# The layout above: mark, length and checksum, then what the checksum covers before the body.
_HEAD = struct.Struct("<4sII")
_CHECKED = struct.Struct("<QIQ")
HEAD_BYTES = _HEAD.size + _CHECKED.size


def frame_at(data: memoryview, offset: int) -> Frame | None:
    """Return the whole frame that begins at `offset`; None if there is none."""
    start = offset + HEAD_BYTES
    if start > len(data):
        return None
    mark, length, crc = _HEAD.unpack_from(data, offset)
    end = start + length
    if mark != MARK or length > MAX_FRAME_BYTES or end > len(data):
        return None
    if zlib.crc32(data[offset + _HEAD.size : end]) != crc:
        return None
    first_lsn, count, durable_lsn = _CHECKED.unpack_from(data, offset + _HEAD.size)
    return Frame(
        *(offset, end, FrameKind.RECORDS, first_lsn, count, data[start:end]),
        durable_lsn=durable_lsn,
    )


def fields_of(checksum: int) -> Fields | None:
    """Return the schema of a file of format 1; None if this release does not know its checksum."""
    return _FIELDS if checksum == _CHECKSUM else None


_CHECKSUM = 3723011536
"""The only checksum that is known: that of the fields below."""

_CLASSES = """
AttachmentFacts: name node_name attacher volume_name
BoundClaims: claims volumes removed
CapacityFacts: namespace name storage_class selector limit_bytes
ClaimFacts: namespace name uid storage_class volume_name has_bind_completed is_lost is_terminating
    access_modes requested_bytes volume_mode attributes_class selector selected_node owner_uid
ClaimReference: namespace name uid
ClusterFacts: namespaces selecting storage budgets pod_groups
CsiDriverFacts: name tracks_capacity
CsiNodeFacts: name drivers migrated
CsiSource: driver handle
DisruptionBudget: namespace name selector disruptions_allowed disrupted_pods
GroupMembership: name min_member timeout_s error
HostPort: ip protocol port
LabelSelector: requirements
NodeDriverFacts: name limit topology_keys
NodeFacts: name labels allocatable allocatable_pods taints unschedulable images avoids
NodeSelectorTerm: expressions fields error errors
Owner: kind name uid api_version
PodAffinityTerm: topology_key selector namespaces namespace_selector weight error
PodFacts: namespace labels scheduler_name priority preemption_policy node_name nominated_node_name
    is_terminating requests nonzero_cpu_milli nonzero_memory_bytes container_requests node_selector
    required_node_terms preferred_node_terms tolerations host_ports images container_count
    scheduling_gates pod_affinity pod_anti_affinity preferred_pod_affinity
    preferred_pod_anti_affinity spread_constraints volumes resource_claims owner pod_group
    is_preempted
PodGroup: namespace name min_member timeout_s running
PreferredNodeTerm: weight term
Requirement: key operator values
Rules: filters
RunMark: what digest
SelectsPods: kind namespace name selector
SpreadConstraint: topology_key max_skew when_unsatisfiable selector min_domains node_affinity_policy
    node_taints_policy match_label_keys error
StorageClassFacts: name provisioner binding_mode allowed_topologies
StorageFacts: volumes claims classes csi_nodes csi_drivers capacities attachments
Taint: key value effect
Toleration: key operator value effect
Volume: name kind source
VolumeFacts: name storage_class capacity_bytes access_modes volume_mode attributes_class phase
    is_terminating labels claim node_terms csi in_tree migrated migrated_terms migration_error
"""

_FIELDS = Fields(
    ("load", "bind", "evict", "delete", "add", "node", "node_gone", "cluster", "run", "storage"),
    ("PodFacts", "NodeFacts", "ClusterFacts", "Rules", "RunMark", "BoundClaims"),
    tuple(
        (name, tuple(names.split()))
        for name, _, names in (
            each.partition(": ") for each in _CLASSES.replace("\n    ", " ").split("\n")[1:-1]
        )
    ),
)
