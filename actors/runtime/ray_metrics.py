"""Publication of the actors' figures as metrics of a joined Ray cluster.

A task of each process reads the status of its actors every few seconds, as the supervisor does more
often: nothing is counted on the way of a pod. Ray exports the values from each node for Prometheus.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from ray.util.metrics import Counter, Gauge

from roadstead.actors.figures import Figure, actor_type, samples
from roadstead.actors.logs import ROOT
from roadstead.actors.messages import ActorStatus

TAGS = ("run", "role", "name")
"""Of every metric: the run, the type of the actor, and its name."""

Look = Callable[[], Awaitable[ActorStatus]]
Record = Callable[[Figure, Mapping[str, str], float], None]
"""Receiver of one value: of a gauge its value, of a counter what was added."""


class FigurePublisher:
    """The figures of the actors of one process. _last: the last values of counters."""

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
            for figure, label, value in samples(actor, await look()):
                added = value
                if figure.kind == "counter":
                    key = (name, figure.metric, label)
                    added = value - self._last.get(key, 0.0)
                    self._last[key] = value
                    if added <= 0:
                        continue
                self._record(figure, tags | {figure.label: label} if label else tags, added)

    async def live(self, interval_s: float) -> None:
        """Publish until cancelled; a failure ends the publication and not the process."""
        try:
            while True:
                await self.publish()
                await asyncio.sleep(interval_s)
        except Exception:
            logger = logging.getLogger(f"{ROOT}.metrics")
            logger.warning("figures are not published any more", exc_info=True)


class RayMetrics:
    """The metrics of this process at Ray, made when they get their first value."""

    def __init__(self) -> None:
        self._made: dict[str, Counter | Gauge] = {}

    def record(self, figure: Figure, tags: Mapping[str, str], value: float) -> None:
        """Record one value; a `Record`."""
        made = self._made.get(figure.metric)
        if made is None:
            kind = Counter if figure.kind == "counter" else Gauge
            keys = (*TAGS, figure.label) if figure.label else TAGS
            made = kind(figure.metric, f"{figure.text} ({figure.unit})", keys)
            self._made[figure.metric] = made
        if isinstance(made, Counter):
            made.inc(value, dict(tags))
        else:
            made.set(value, dict(tags))
