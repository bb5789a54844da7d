"""The metrics of actors that Ray exports for Prometheus: names, units and descriptions.

The one place where a metric is declared. The values are entries of `ActorStatus`. Names of
kube-scheduler's metrics are not used, since these metrics count other things.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from roadstead.actors.messages import ActorStatus

PREFIX = "roadstead"

TIME = "time "
"""Prefix of the keys of an actor's timings, before the phase."""

Kind = Literal["gauge", "counter"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one type of actor.

    key: name of the value in the status (`values_of`). label: name of a Prometheus label, or "".
    With a label, `key` is a prefix: each value whose name begins with it is one series, and the
    rest of that name is the label's value.
    """

    actor: str
    key: str
    name: str
    kind: Kind
    unit: str
    description: str
    label: str = ""

    @property
    def full_name(self) -> str:
        """The exported name."""
        return f"{PREFIX}_{self.actor}_{self.name}"


METRICS = (
    Metric("queue", "active", "active_pods", "gauge", "pods", "Pods in activeQ"),
    Metric("queue", "backoff", "backoff_pods", "gauge", "pods", "Pods in backoffQ"),
    Metric(
        *("queue", "unschedulable", "unschedulable_pods", "gauge", "pods"),
        "Pods that wait for an event that may help them",
    ),
    Metric("queue", "gated", "gated_pods", "gauge", "pods", "Pods that PreEnqueue keeps apart"),
    Metric("queue", "in_flight", "in_flight_pods", "gauge", "pods", "Pods that schedulers lease"),
    Metric("queue", "leases", "leases", "gauge", "leases", "Leases that have not ended"),
    Metric(
        *("queue", "done", "done_pods", "counter", "pods"),
        "Pods removed because they were bound or deleted",
    ),
    Metric("cache", "nodes", "nodes", "gauge", "nodes", "Nodes of the cluster"),
    Metric(
        *("cache", "assumed", "assumed_pods", "gauge", "pods"),
        "Pods on nodes without a confirmed bind",
    ),
    Metric(
        *("cache", "added", "added_pods", "gauge", "pods"),
        "Pods on nodes with a confirmed bind, or running from the start",
    ),
    Metric("cache", "changes", "changes", "counter", "changes", "Numbered changes of the cluster"),
    Metric(
        *("cache", "unfilled", "unfilled_followers", "gauge", "actors"),
        "Schedulers and workers that wait for the whole state",
    ),
    Metric(
        *("binder", "bound", "bound_pods", "gauge", "pods"),
        "Binds committed in this run, also before a replacement or resumption",
    ),
    Metric(
        *("binder", "batches", "batches", "counter", "batches"),
        "Batches of binds that were verified",
    ),
    Metric(
        *("binder", "time bind", "bind_seconds", "counter", "s"),
        "Time spent to verify and commit binds",
    ),
    Metric(
        *("binder", "journal_bytes", "journal_bytes", "counter", "bytes"),
        "Bytes written to the journal",
    ),
    Metric(
        *("binder", "journal_syncs", "journal_syncs", "counter", "calls"),
        "Calls of fsync for the journal's records",
    ),
    Metric("scheduler", "batches", "batches", "counter", "batches", "Batches decided"),
    Metric(
        *("scheduler", "busy_s", "busy_seconds", "counter", "s"),
        "Time from reading the state to the decision",
    ),
    Metric(
        *("scheduler", TIME, "phase_seconds", "counter", "s"),
        "Time spent, by phase of a batch",
        label="phase",
    ),
    Metric("scheduler", "reads", "reads", "counter", "reads", "Reads of the cluster's state"),
    Metric("scheduler", "decided", "decided_pods", "counter", "pods", "Pods decided"),
    Metric(
        *("scheduler", "kernel: pods", "kernel_pods", "counter", "pods"),
        "Pods decided by compiled code",
    ),
    Metric(
        *("scheduler", "under_way", "under_way_pods", "gauge", "pods"),
        "Pods leased whose attempts have not ended",
    ),
    Metric(
        *("scheduler", "asked", "asked_binds", "counter", "binds"),
        "Binds that the binder answered",
    ),
    Metric(
        *("scheduler", "bound", "bound_pods", "counter", "pods"),
        "Binds that the binder committed",
    ),
    Metric(
        *("scheduler", "refused ", "refused_binds", "counter", "binds"),
        "Binds that the binder refused, by cause",
        label="cause",
    ),
    Metric(
        *("scheduler", "attempt ", "failed_attempts", "counter", "attempts"),
        "Attempts that ended without a bind, by outcome",
        label="outcome",
    ),
    # A transaction: the binds of one job (a gang, or the pods of an owner) in one answer.
    Metric(
        *("scheduler", "transactions", "transactions", "counter", "jobs"),
        "Jobs with binds in an answer of the binder",
    ),
    Metric(
        *("scheduler", "conflicted", "conflicted_transactions", "counter", "jobs"),
        "Jobs of which a bind was refused",
    ),
    Metric("scheduler", "retries", "retried_pods", "counter", "pods", "Pods leased again"),
    Metric(
        *("scheduler", "passed_on", "passed_on_pods", "counter", "pods"),
        "Pods without a feasible node in the scheduler's own partitions",
    ),
    Metric(
        *("scheduler", "memory_bytes", "peak_memory_bytes", "gauge", "bytes"),
        "Peak memory of the process",
    ),
    Metric("worker", "nodes", "nodes", "gauge", "nodes", "Nodes in the worker's table"),
    Metric(
        *("worker", "changes", "changes", "counter", "changes"),
        "Changes of the cluster that were applied",
    ),
    Metric(
        *("worker", "classes scored", "scored_classes", "counter", "classes"),
        "Classes of pods that users' plugins evaluated",
    ),
    Metric(
        *("worker", "classes ranked", "ranked_classes", "counter", "classes"),
        "Classes of pods with a list of the best nodes",
    ),
    Metric(
        *("worker", "time score", "score_seconds", "counter", "s"),
        "Time spent to evaluate classes",
    ),
    Metric(
        *("worker", "time rank", "rank_seconds", "counter", "s"),
        "Time spent to list the best nodes",
    ),
)
"""All metrics, actor by actor."""


def actor_type(name: str) -> str:
    """Return the type in an actor's name, such as `scheduler` for `scheduler-0`."""
    return name.partition("-")[0]


def values_of(status: ActorStatus) -> dict[str, float]:
    """Return the counts, timings (with the prefix `TIME`) and metrics of a status by name."""
    timings = {TIME + phase: spent_s for phase, spent_s in status.timings_s}
    return {**dict(status.counts), **timings, **dict(status.metrics)}


def samples(actor: str, status: ActorStatus) -> Iterator[tuple[Metric, str, float]]:
    """Yield (metric, value of its label or "", value) for each metric that a status has.

    actor: type of the actor.
    """
    values = values_of(status)
    for metric in METRICS:
        if metric.actor != actor:
            continue
        if not metric.label:
            if metric.key in values:
                yield metric, "", float(values[metric.key])
            continue
        for name, value in values.items():
            if name.startswith(metric.key):
                yield metric, name.removeprefix(metric.key), float(value)
