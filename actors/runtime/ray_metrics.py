"""Publication of the actors' metrics as metrics of a joined Ray cluster.

A task of each process reads the status of its actors every few seconds, as the supervisor does more
often: nothing is counted on the way of a pod. Ray exports the values from each node for Prometheus.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from ray.util.metrics import Counter, Gauge

from roadstead.actors.logs import ROOT
from roadstead.actors.messages import ActorStatus
from roadstead.actors.metrics import Metric, actor_type, samples

TAGS = ("run", "role", "name")
"""Of every metric: the run, the type of the actor, and its name."""

Look = Callable[[], Awaitable[ActorStatus]]
Record = Callable[[Metric, Mapping[str, str], float], None]
"""Receiver of one value: of a gauge its value, of a counter what was added."""


class MetricsPublisher:
    """The metrics of the actors of one process. _last: the last values of counters."""

    def __init__(self, run: str, looks: Mapping[str, Look], record: Record | None = None) -> None:
        """looks: return the status of each actor, by name. record: by default, to Ray."""
        self._run = run
        self._looks = looks
        self._record = record or RayMetrics().record
        self._last: dict[tuple[str, str, str], float] = {}

    async def publish(self) -> None:
        """Record the present values once."""
        for name, look in self._looks.items():
            actor = actor_type(name)
            tags = {"run": self._run, "role": actor, "name": name}
            for metric, label, value in samples(actor, await look()):
                added = value
                if metric.kind == "counter":
                    key = (name, metric.full_name, label)
                    added = value - self._last.get(key, 0.0)
                    self._last[key] = value
                    if added <= 0:
                        continue
                self._record(metric, tags | {metric.label: label} if label else tags, added)

    async def live(self, interval_s: float) -> None:
        """Publish until cancelled; a failure ends the publication and not the process."""
        try:
            while True:
                await self.publish()
                await asyncio.sleep(interval_s)
        except Exception:
            logger = logging.getLogger(f"{ROOT}.metrics")
            logger.warning("metrics are not published any more", exc_info=True)


class RayMetrics:
    """The metrics of this process at Ray, made when they get their first value."""

    def __init__(self) -> None:
        self._made: dict[str, Counter | Gauge] = {}

    def record(self, metric: Metric, tags: Mapping[str, str], value: float) -> None:
        """Record one value; a `Record`."""
        made = self._made.get(metric.full_name)
        if made is None:
            kind = Counter if metric.kind == "counter" else Gauge
            keys = (*TAGS, metric.label) if metric.label else TAGS
            made = kind(metric.full_name, f"{metric.description} ({metric.unit})", keys)
            self._made[metric.full_name] = made
        if isinstance(made, Counter):
            made.inc(value, dict(tags))
        else:
            made.set(value, dict(tags))
