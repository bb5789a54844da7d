"""Publication of the actors' metrics as metrics of a joined Ray cluster.

A task of each process reads the status of its actors every few seconds, so that scheduling a pod
takes no longer. Ray exports the values of each node for Prometheus.
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
"""Tags of every metric: the run, the type of the actor, and its name."""

StatusReader = Callable[[], Awaitable[ActorStatus]]
Record = Callable[[Metric, Mapping[str, str], float], None]
"""Receiver of a metric, its tags, and the value of a gauge or the increase of a counter."""


class MetricsPublisher:
    """The metrics of the actors of one process.

    _counted: last value of each counter, by actor, metric and label.
    """

    def __init__(
        self, run: str, readers: Mapping[str, StatusReader], record: Record | None = None
    ) -> None:
        """readers: by actor name. record: by default, a record in Ray's metrics."""
        self._run = run
        self._readers = readers
        self._record = record or RayMetrics().record
        self._counted: dict[tuple[str, str, str], float] = {}

    async def publish(self) -> None:
        """Record the present values once."""
        for name, read_status in self._readers.items():
            actor = actor_type(name)
            tags = {"run": self._run, "role": actor, "name": name}
            for metric, label, value in samples(actor, await read_status()):
                number = value
                if metric.kind == "counter":
                    key = (name, metric.full_name, label)
                    number = value - self._counted.get(key, 0.0)
                    self._counted[key] = value
                    if number <= 0:
                        continue
                self._record(metric, tags | {metric.label: label} if label else tags, number)

    async def run(self, interval_s: float) -> None:
        """Publish until cancelled; a failure ends the publication and not the process."""
        try:
            while True:
                await self.publish()
                await asyncio.sleep(interval_s)
        except Exception:
            logger = logging.getLogger(f"{ROOT}.metrics")
            logger.warning("metrics are not published any more", exc_info=True)


class RayMetrics:
    """The metrics of this process at Ray, each created with its first value."""

    def __init__(self) -> None:
        self._metrics: dict[str, Counter | Gauge] = {}

    def record(self, metric: Metric, tags: Mapping[str, str], value: float) -> None:
        """Record one value; a `Record`."""
        exported = self._metrics.get(metric.full_name)
        if exported is None:
            kind = Counter if metric.kind == "counter" else Gauge
            keys = (*TAGS, metric.label) if metric.label else TAGS
            exported = kind(metric.full_name, f"{metric.description} ({metric.unit})", keys)
            self._metrics[metric.full_name] = exported
        if isinstance(exported, Counter):
            exported.inc(value, dict(tags))
        else:
            exported.set(value, dict(tags))
