"""Merge of a cluster's manifests with those to be scheduled on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from roadstead.facts.compile import name_in_errors
from roadstead.manifests import Manifests
from roadstead.manifests.collection import ObjectKey
from roadstead.manifests.templates import controller_key, kind_and_name, namespaced_name
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import ApiObject

T = TypeVar("T", bound=ApiObject)
"""A type of API objects."""

# A workload states which pods shall exist: that of `wanted` replaces that of `existing`.
_WORKLOADS = (
    *("replication_controllers", "replica_sets", "stateful_sets", "deployments"),
    *("daemon_sets", "jobs", "cron_jobs"),
)
_OTHER_OBJECTS = (
    *(
        "nodes",
        "pods",
        "finished_pods",
        "namespaces",
        "persistent_volumes",
        "persistent_volume_claims",
    ),
    *("storage_classes", "csi_nodes", "csi_drivers", "csi_storage_capacities"),
    *("volume_attachments", "pod_disruption_budgets", "pod_groups", "services", "priority_classes"),
    *("limit_ranges", "resource_quotas", "runtime_classes"),
    *("resource_slices", "device_classes", "resource_claims", "resource_claim_templates"),
    "device_taint_rules",
)


def merged(existing: Manifests, wanted: Manifests) -> Manifests:
    """Merge the objects of a cluster (`existing`) and those to be scheduled on it (`wanted`).

    A workload that is in both is that of `wanted`.

    Raises:
        InputError: another object is in both, with different content.
    """
    # By field of `Manifests`.
    changes: dict[str, Any] = {}
    for fields, combine in (
        (_WORKLOADS, _union_second_wins),
        (_OTHER_OBJECTS, _union_without_conflict),
    ):
        for field in fields:
            changes[field] = combine(getattr(existing, field), getattr(wanted, field))
    return replace(existing, **changes, sources=_sources(existing, wanted))


def _sources(existing: Manifests, wanted: Manifests) -> Mapping[ObjectKey, str]:
    """Return the file of each object: of one in both, the file of the object that is used."""
    workloads = chain.from_iterable(getattr(wanted, field) for field in _WORKLOADS)
    keys = [key for key in map(kind_and_name, workloads) if key in wanted.sources]
    of_workloads = {key: wanted.sources[key] for key in keys}
    return {**wanted.sources, **existing.sources, **of_workloads}


def workloads_to_expand(existing: Manifests, wanted: Manifests, everything: Manifests) -> Manifests:
    """Return the workloads from whose templates `expand_workloads` creates pods: those of `wanted`.

    everything: both, merged; the result has its pods, so that replicas that exist, and pods of jobs
    that have ended, are counted. Replica sets and jobs of the cluster that belong to a workload of
    `wanted` are expanded with it.
    """
    deployments = {kind_and_name(each) for each in wanted.deployments}
    cron_jobs = {kind_and_name(each) for each in wanted.cron_jobs}
    return replace(
        wanted,
        pods=everything.pods,
        finished_pods=everything.finished_pods,
        persistent_volume_claims=everything.persistent_volume_claims,
        priority_classes=everything.priority_classes,
        replica_sets=_union_second_wins(
            _owned_by(existing.replica_sets, deployments), wanted.replica_sets
        ),
        jobs=_union_second_wins(_owned_by(existing.jobs, cron_jobs), wanted.jobs),
    )


def _owned_by(objects: Sequence[T], owners: set[tuple[str, str, str]]) -> tuple[T, ...]:
    return tuple(each for each in objects if controller_key(each) in owners)


def _union_second_wins(existing: Sequence[T], wanted: Sequence[T]) -> tuple[T, ...]:
    both = {namespaced_name(each): each for each in (*existing, *wanted)}
    return tuple(both.values())


def _union_without_conflict(existing: Sequence[T], wanted: Sequence[T]) -> tuple[T, ...]:
    if not existing or not wanted:
        return (*existing, *wanted)
    both = {namespaced_name(each): each for each in existing}
    for each in wanted:
        if both.setdefault(namespaced_name(each), each) != each:
            message = "is in --cluster and in --pods, with different content: keep one of them"
            raise InputError(message, obj=name_in_errors(each))
    return tuple(both.values())
