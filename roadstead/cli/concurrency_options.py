"""Options of how schedulers work, alone and side by side, for the commands that run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import click

AUTO = "auto"

Callback = Callable[..., None]
Seconds = tuple[float, float]


class SchedulersType(click.ParamType[int | dict[str, int]]):
    """`4`, or `default-scheduler=2,batch=1`."""

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
    """`4`, or `auto`."""

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


class DecisionTimeType(click.ParamType[tuple[str, Seconds]]):
    """`batch=0.1,0.005`: kind, seconds per job, seconds per pod."""

    name = "KIND=JOB_S,TASK_S"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Seconds]:
        kind, _, times = str(value).partition("=")
        try:
            job_s, task_s = (float(each) for each in times.split(","))
        except ValueError:
            self.fail(f"{value!r} is not like batch=0.1,0.005", param, ctx)
        if kind not in ("batch", "service"):
            self.fail(f"{kind!r} is neither batch nor service", param, ctx)
        return kind, (job_s, task_s)


@dataclass(frozen=True, slots=True)
class ConcurrencyOptions:
    """How schedulers work, alone and side by side; None: as the settings file has it."""

    workers: int | str | None = None
    partitions: int | None = None
    kernel: str | None = None
    mode: str | None = None
    conflicts: str | None = None
    transaction: str | None = None
    staleness: float | None = None
    decision_time: tuple[tuple[str, Seconds], ...] = ()
    partition_policy: str | None = None
    partition_refresh: float | None = None

    @property
    def chooses_workers(self) -> bool:
        """Whether the number of workers is chosen once nodes and pods are known."""
        return self.workers == AUTO

    def overrides(self) -> dict[str, object]:
        """Settings given as flags; None where one was not given."""
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
        help="Have N processes look at new kinds of pods, each on its part of the nodes [default: "
        "0]: they ask your plugins, or list the best of 20,000 nodes and more. It pays where a "
        "plugin is slow, or hardly two pods are alike; decisions stay the same. auto: as many as "
        "pay, by nodes, kinds of pods, what your plugins take and free cores.",
    ),
    click.option(
        "--partitions",
        type=int,
        metavar="N",
        help="With --mode partitioned: parts of the nodes, by zone, that schedulers own [default: "
        "one for each, at least 2].",
    ),
    click.option(
        "--kernel",
        type=click.Choice(["on", "off"]),
        help="Whether compiled code decides large batches where it covers their pods, to the same "
        "result [default: on].",
    ),
    click.option(
        "--mode",
        type=click.Choice(["exact", "shared", "partitioned"]),
        help="exact: one logical scheduler (the default with one). shared: several on all nodes "
        "(the default with several). partitioned: several, each on nodes of its own first.",
    ),
    click.option(
        "--conflicts",
        type=click.Choice(["fit", "version"]),
        help="What the binder refuses: what does not fit any more (the default), or also any pod "
        "whose node another scheduler changed since it was read.",
    ),
    click.option(
        "--transaction",
        type=click.Choice(["incremental", "all-or-nothing"]),
        help="Of a job's pods that were decided together, each is bound by itself (the default), "
        "or all or none are.",
    ),
    click.option(
        "--staleness",
        type=float,
        metavar="SECONDS",
        help="How old the state may be on which is decided [default: read for each batch].",
    ),
    click.option(
        "--decision-time",
        type=DecisionTimeType(),
        multiple=True,
        help="Simulated thinking about each job of kind batch or service; may be given twice.",
    ),
    click.option(
        "--partition-policy",
        type=click.Choice(["latency-first", "quality-first", "adaptive"]),
        help="Of a partitioned scheduler: its own nodes first (the default), the best of all, or "
        "as the queue is long or short.",
    ),
    click.option(
        "--partition-refresh",
        type=float,
        metavar="SECONDS",
        help="How often partitions change hands [default: 0, never].",
    ),
)
