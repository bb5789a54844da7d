"""Options on single and concurrent schedulers, for the commands that run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import click

AUTO = "auto"
"""Value of --workers: the number is chosen when nodes and pods are known."""

Callback = Callable[..., None]
SimulatedTimes = tuple[float, float]
"""Simulated decision time: seconds for each job, and for each of its pods."""


class SchedulersType(click.ParamType[int | dict[str, int]]):
    """Number of schedulers: `4`, or by profile `default-scheduler=2,batch=1`."""

    name = "N|PROFILE=N,…"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | dict[str, int]:
        text = str(value)
        if "=" not in text:
            return self._number(text, param, ctx)
        counts: dict[str, int] = {}
        for part in text.split(","):
            profile, _, number = part.rpartition("=")
            if not profile or profile in counts:
                self.fail(f"{part!r} is not PROFILE=N, each profile once", param, ctx)
            counts[profile] = self._number(number, param, ctx)
        return counts

    def _number(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(text)
        except ValueError:
            self.fail(f"{text!r} is neither a number nor PROFILE=N,PROFILE=N", param, ctx)


class WorkersType(click.ParamType[int | str]):
    """Number of workers: `4`, or `auto`."""

    name = "N|auto"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        text = str(value)
        if text == AUTO:
            return text
        try:
            return int(text)
        except ValueError:
            self.fail(f"{text!r} is neither a number nor {AUTO}", param, ctx)


class DecisionTimeType(click.ParamType[tuple[str, SimulatedTimes]]):
    """`batch=0.1,0.005`: type of job, seconds per job, seconds per pod."""

    name = "KIND=JOB_S,TASK_S"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, SimulatedTimes]:
        kind, _, times = str(value).partition("=")
        try:
            job_s, task_s = (float(each) for each in times.split(","))
        except ValueError:
            self.fail(
                f"{value!r} is not KIND=JOB_S,TASK_S (for example batch=0.1,0.005)", param, ctx
            )
        if kind not in ("batch", "service"):
            self.fail(f"{kind!r} is neither batch nor service", param, ctx)
        return kind, (job_s, task_s)


@dataclass(frozen=True, slots=True)
class ConcurrencyOptions:
    """Settings of single and concurrent schedulers; None means the value of the settings file."""

    workers: int | str | None = None
    partitions: int | None = None
    kernel: str | None = None
    mode: str | None = None
    conflicts: str | None = None
    transaction: str | None = None
    staleness: float | None = None
    decision_time: tuple[tuple[str, SimulatedTimes], ...] = ()
    partition_policy: str | None = None
    partition_refresh: float | None = None

    @property
    def chooses_workers(self) -> bool:
        """Whether the number of workers is chosen once nodes and pods are known."""
        return self.workers == AUTO

    def overrides(self) -> dict[str, object]:
        """Return the settings that flags override, by dotted name; None for a missing flag."""
        times: dict[str, object] = {
            f"decision_time.{kind}": {"job_s": job_s, "task_s": task_s}
            for kind, (job_s, task_s) in self.decision_time
        }
        return times | {
            "workers": None if self.chooses_workers else self.workers,
            "partitions": self.partitions,
            "kernel": None if self.kernel is None else self.kernel == "on",
            "mode": self.mode,
            "conflicts": self.conflicts,
            "transaction": self.transaction,
            "staleness_s": self.staleness,
            "partition_policy": self.partition_policy,
            "partition_refresh_s": self.partition_refresh,
        }


concurrency_parameters: tuple[Callable[[Callback], Callback], ...] = (
    click.option(
        "--workers",
        type=WorkersType(),
        metavar="N|auto",
        help="Number of worker processes that evaluate new pod shapes, each on a part of the nodes "
        "[default: 0]: they call your plugins, or list the best nodes of a cluster of 20,000 nodes "
        "or more. Any number gives the same decisions. Workers save time if a plugin is slow, or "
        "if nearly every pod has a shape of its own. auto: as many as save time, estimated from "
        "the number of nodes and pod shapes, the run time of your plugins and the free cores.",
    ),
    click.option(
        "--partitions",
        type=int,
        metavar="N",
        help="With --mode partitioned: number of partitions of the nodes, by zone [default: one "
        "for each scheduler, at least 2].",
    ),
    click.option(
        "--kernel",
        type=click.Choice(["on", "off"]),
        help="Whether compiled code decides the pods of large batches that it supports; the result "
        "is the same [default: on].",
    ),
    click.option(
        "--mode",
        type=click.Choice(["exact", "shared", "partitioned"]),
        help="exact: one logical scheduler (the default with one). shared: several, each on all "
        "nodes (the default with several). partitioned: several, each on its own nodes first.",
    ),
    click.option(
        "--conflicts",
        type=click.Choice(["fit", "version"]),
        help="Binds that the binder refuses. fit: those that violate a hard constraint at the "
        "commit (the default). version: also those to a node that another scheduler changed after "
        "the node was read.",
    ),
    click.option(
        "--transaction",
        type=click.Choice(["incremental", "all-or-nothing"]),
        help="How the pods of a job that are decided in one batch are bound. incremental: each by "
        "itself (the default). all-or-nothing: all of them or none.",
    ),
    click.option(
        "--staleness",
        type=float,
        metavar="SECONDS",
        help="Maximum age of the cluster state used for a decision [default: read for each batch].",
    ),
    click.option(
        "--decision-time",
        type=DecisionTimeType(),
        multiple=True,
        help="Simulated decision time for each job of KIND batch or service: JOB_S + TASK_S × "
        "pods, in seconds; may be given twice.",
    ),
    click.option(
        "--partition-policy",
        type=click.Choice(["latency-first", "quality-first", "adaptive"]),
        help="Nodes that a scheduler in mode partitioned uses. latency-first: its own, others if "
        "none of them is feasible (the default). quality-first: the best of all. adaptive: "
        "latency-first while the queue is long, else quality-first.",
    ),
    click.option(
        "--partition-refresh",
        type=float,
        metavar="SECONDS",
        help="Interval at which each partition moves to the next scheduler [default: 0, never].",
    ),
)
