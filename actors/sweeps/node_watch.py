"""NodeWatch: a thread that lists the nodes of a joined cluster for a sweep, and checks new ones.

A listing waits for the head, and a check for its node, up to a minute. The sweep waits for neither:
meanwhile it collects results, or ends on a signal.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from roadstead.actors.runtime.ray_checks import NodeChecks, check_nodes
from roadstead.actors.runtime.ray_cluster import CpuRequest, alive_nodes
from roadstead.actors.runtime.ray_joining import first_line
from roadstead.actors.runtime.ray_placement import RayNode
from roadstead.actors.sweeps.task_nodes import CPUS_PER_TASK

LIST_EVERY_S = 2.0
"""Pause between two listings of the nodes and their free CPUs."""

NOTES_MAX = 1000
"""Number of notes for the user that wait; the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class NodeListing:
    """The nodes that passed their check. running: the tasks on each when they were listed.

    problems: of the nodes that did not pass. are_all_checked: whether each node has been checked.
    """

    nodes: tuple[RayNode, ...]
    running: Mapping[str, int]
    problems: tuple[str, ...]
    are_all_checked: bool


class NodeWatch:
    """Publish lists of the nodes, and notes for the user; repeat the request for CPUs.

    running: returns the number of tasks on each node. _wanted: CPUs of the bundles to request.
    _requesting: held while the request is sent or withdrawn.
    """

    def __init__(self, running: Callable[[], Mapping[str, int]]) -> None:
        self._running = running
        self._notes: deque[str] = deque(maxlen=NOTES_MAX)
        self._checks = NodeChecks()
        self._wanted: tuple[float, ...] = ()
        self._request = CpuRequest()
        self._requesting = threading.Lock()
        self._latest: NodeListing | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweep-nodes", daemon=True)
        self._thread.start()

    def collect(self) -> NodeListing | None:
        """Return the latest listing, once; None if there is no new one."""
        listing, self._latest = self._latest, None
        return listing

    def notes(self) -> Iterator[str]:
        """Yield each new note for the user, once."""
        while self._notes:
            yield self._notes.popleft()

    def request(self, cpus: Sequence[float]) -> None:
        """Request nodes with room for these bundles at every listing; [] sends no more requests."""
        self._wanted = tuple(cpus)

    def stop(self) -> None:
        """Let the thread end after its present listing, without waiting for it."""
        self._is_over.set()
        # Under the lock, so that the thread sends no request after the withdrawal.
        with self._requesting:
            self._wanted = ()
            self._request.withdraw()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._list_nodes()
            except Exception as failure:
                # Any error: without this thread the sweep would see no further node. The
                # head may be restarting; the sweep ends if it does not come back.
                self._notes.append(f"The nodes of Ray cannot be listed: {first_line(failure)}")
            self._is_over.wait(LIST_EVERY_S)

    def _list_nodes(self) -> None:
        running = self._running()
        nodes = alive_nodes()
        with self._requesting:
            if self._wanted:
                self._request.send(self._wanted, nodes)
        checks = self._checks
        # Nodes that did not answer their check in time are checked again after a pause.
        checks.readmit_late({node.id for node in nodes}, time.monotonic())
        new = [
            node for node in nodes if node.id not in checks.reports and node.cpus >= CPUS_PER_TASK
        ]
        self._publish(nodes, running, are_all_checked=not new)
        if new:
            asyncio.run(self._check(new, lambda: self._publish(nodes, running)))
            self._publish(nodes, running, are_all_checked=True)

    async def _check(self, nodes: Sequence[RayNode], publish: Callable[[], None]) -> None:
        """Check nodes in parallel; each can be used as soon as its own check ends."""

        async def check(node: RayNode) -> None:
            deadline_s = self._checks.deadline_s(node.id, math.inf)
            for report in await check_nodes([node], None, {node.id: deadline_s}):
                self._checks.record(report, time.monotonic())
                if report.problem:
                    self._notes.append(f"Left out: {self._checks.left_out[node.id]}")
                publish()

        await asyncio.gather(*map(check, nodes))

    def _publish(
        self, nodes: Sequence[RayNode], running: Mapping[str, int], *, are_all_checked: bool = False
    ) -> None:
        checks = self._checks
        passed = tuple(
            node for node in nodes if node.id in checks.reports and node.id not in checks.left_out
        )
        problems = tuple(checks.left_out.values())
        self._latest = NodeListing(passed, running, problems, are_all_checked)
