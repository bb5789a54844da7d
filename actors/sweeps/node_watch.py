"""NodeWatch: a thread that lists the nodes of a joined cluster for a sweep, and checks new ones.

Both wait for the head and for nodes, up to a minute; the sweep itself waits for neither, so that it
collects results and ends on a signal meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ray.exceptions import RayError

from roadstead.actors.interface import Announce
from roadstead.actors.runtime.ray_cluster import alive_nodes, check_nodes
from roadstead.actors.runtime.ray_placement import RayNode
from roadstead.actors.runtime.ray_session import first_line
from roadstead.protocol.errors import RoadsteadError

LOOK_S = 2.0
"""Pause between two looks at the nodes and their free CPUs."""


@dataclass(frozen=True, slots=True)
class Look:
    """The nodes that passed their check. running: the tasks on each when they were listed.

    bad: reasons of the nodes that did not pass.
    """

    nodes: tuple[RayNode, ...]
    running: Mapping[str, int]
    bad: tuple[str, ...]


class NodeWatch:
    """Publishes looks at the nodes. running: returns the number of tasks on each node."""

    def __init__(self, running: Callable[[], Mapping[str, int]], announce: Announce) -> None:
        self._running, self._announce = running, announce
        self._fit: dict[str, bool] = {}
        self._bad: list[str] = []
        self._latest: Look | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._live, name="sweep-nodes", daemon=True)
        self._thread.start()

    def collect(self) -> Look | None:
        """Return the latest look, once; None if there is no new one."""
        found, self._latest = self._latest, None
        return found

    def stop(self) -> None:
        """Let the thread end after its present look, without waiting for it."""
        self._ends.set()

    def _live(self) -> None:
        while not self._ends.is_set():
            try:
                self._look()
            except (RayError, RoadsteadError, ConnectionError, RuntimeError) as failure:
                # The head may be away for a moment; the sweep ends if it stays so.
                self._announce(f"The nodes of Ray cannot be listed: {first_line(failure)}")
            self._ends.wait(LOOK_S)

    def _look(self) -> None:
        running = self._running()
        nodes = alive_nodes()
        new = [node for node in nodes if node.id not in self._fit and node.cpus >= 1]
        # A node that was checked already need not wait for the check of another.
        self._publish(nodes, running)
        if not new:
            return
        for report in asyncio.run(check_nodes(new, None)):
            self._fit[report.node.id] = not report.problem
            if report.problem:
                self._bad.append(f"{report.node}: {report.problem}")
                self._announce(f"Left out: {report.node}: {report.problem}")
        self._publish(nodes, running)

    def _publish(self, nodes: list[RayNode], running: Mapping[str, int]) -> None:
        fit = tuple(node for node in nodes if self._fit.get(node.id))
        self._latest = Look(fit, running, tuple(self._bad))
