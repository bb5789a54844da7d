"""Builders of the parts of a run from its plan: queue, cache state, binder.

Each actor calls one of them in its process, and `LocalRun` all of them in one.
"""

from __future__ import annotations

from roadstead.binder import BinderSettings
from roadstead.binder.binder import Binder
from roadstead.binder.binder_journal import RunDescription
from roadstead.cache import CacheSettings, ClusterState
from roadstead.framework.members import GroupMembers
from roadstead.journal import Journal
from roadstead.nodes.pod_class import PodClasses
from roadstead.placements import TableStore
from roadstead.queue import QueueSettings
from roadstead.queue.scheduling_queue import SchedulingQueue
from roadstead.run import RunPlan, build_profiles


def build_queue(plan: RunPlan) -> SchedulingQueue:
    """Return the empty queue of a run."""
    settings, config, members = plan.settings, plan.config(), GroupMembers(counts_pods=True)
    return SchedulingQueue(
        build_profiles(plan, PodClasses(), members=members),
        members,
        plan.cluster,
        QueueSettings(
            max_pods=settings.bounds.queue_max_pods,
            lease_s=settings.deadlines.lease_s,
            backoff_initial_s=config.pod_initial_backoff_s,
            backoff_max_s=config.pod_max_backoff_s,
            # "": each scheduler serves all profiles.
            by_profile=settings.scheduler_profiles[0] != "",
        ),
    )


def build_cluster_state(plan: RunPlan, *, is_new: bool = False) -> ClusterState:
    """Return the cluster state of a run's cache, without nodes.

    is_new: the cache replaces another one, whose committed binds it will receive from the binder.
    """
    return ClusterState.empty(
        plan.storage_state(),
        plan.binding_profiles(),
        # How long an assumed pod waits for its bind.
        CacheSettings(bind_s=plan.settings.deadlines.assume_s),
        partitions=plan.settings.partition_count,
        awaits_commits=is_new,
    )


def build_binder(plan: RunPlan, journal: Journal) -> Binder:
    """Return the binder of a run, recovered from its journal if that has records."""
    store = TableStore()
    return Binder(
        store,
        build_profiles(plan, store.table.classes),
        journal,
        RunDescription(plan.cluster, plan.config().profiles, plan.digest),
        BinderSettings(checks_versions=plan.settings.conflicts == "version"),
    )
