"""A Ray cluster that a run joins: its nodes, and the wait for free CPUs on them.

Processes start only on checked nodes: those that `ray_checks` has found able to run Roadstead.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import ray
from ray.exceptions import RayError

from roadstead.actors.interface import ActorLostError, Announce, NoNodeError, clock_s
from roadstead.actors.names import BINDER, CONTROL, JOURNAL_COPY
from roadstead.actors.runtime.ray_checks import FIRST_CHECK_S, NodeChecks, check_nodes
from roadstead.actors.runtime.ray_heartbeats import address_of
from roadstead.actors.runtime.ray_placement import (
    PlacementConstraints,
    RayNode,
    Unplaceable,
    place,
    role_of,
    room_for,
)
from roadstead.config.ray import RayOptions, Role
from roadstead.report.ray_nodes import RayNodeUse

POLL_S = 1.0
"""Interval between two reads of the free CPUs of a cluster that has too few."""


class RayCluster:
    """The nodes of the joined cluster, and where the processes of this run are.

    run: name of the run on the cluster. nodes: those alive at the last read, by id. node_of:
    process → id of its node. head: address of the head's server (GCS); head_endpoint: the same as
    HOST:PORT. _used: nodes with a process of this run, now or before, by id. _journal_node_id,
    _copy_node_id: ids of the nodes whose disks have the journal and its copy, in a run with a copy;
    "" until a node is chosen.
    """

    def __init__(
        self, run: str, options: RayOptions, journal: Path | None, *, has_copy: bool = False
    ) -> None:
        """options: for reserved CPUs and labels. journal: folder of the binder's journal. has_copy:
        whether the run keeps a copy of the journal on another node.
        """
        self.run = run
        self.options = options
        self._has_copy = has_copy
        self._journal_node_id = self._copy_node_id = ""
        self._journal = journal
        self._checks = NodeChecks()
        self.nodes: dict[str, RayNode] = {}
        self.node_of: dict[str, str] = {}
        self._used: dict[str, RayNode] = {}
        self.head_endpoint = ray.get_runtime_context().gcs_address
        self.head = address_of(self.head_endpoint)

    async def place(
        self,
        processes: Sequence[str],
        without: Collection[str],
        timeout_s: float,
        announce: Announce,
    ) -> dict[str, RayNode]:
        """Return the node of each process, once there are checked nodes with room for all.

        without: ids of lost nodes. announce: receives the reason of a wait, as text for the user.
        NoNodeError with the reason if there is no room in time. ActorLostError if the binder's
        process is to be placed and the node with its journal is lost: `move_journal` comes first.
        """
        for name in processes:
            self.node_of.pop(name, None)
        with CpuRequest() as request:
            placed = await self._await_room(processes, without, timeout_s, announce, request)
        self.node_of |= {name: node.id for name, node in placed.items()}
        self._record_journal_nodes()
        self._used |= {node.id: node for node in placed.values()}
        return placed

    async def _await_room(
        self,
        processes: Sequence[str],
        without: Collection[str],
        timeout_s: float,
        announce: Announce,
        request: CpuRequest,
    ) -> dict[str, RayNode]:
        until_s = clock_s() + timeout_s
        announced = ""
        while True:
            placed = await self._try_place(processes, without, until_s)
            if isinstance(placed, dict):
                return placed
            if clock_s() >= until_s:
                raise NoNodeError(f"{placed.reason}. Waited {timeout_s:g} s")
            if placed.reason != announced:
                announced = placed.reason
                announce(f"Waiting for the Ray cluster: {announced}.")
            wanted = [self.options.cpus_per_process] * len(processes)
            await asyncio.to_thread(request.send, wanted, self.nodes.values())
            await asyncio.sleep(POLL_S)

    async def _try_place(
        self, processes: Sequence[str], without: Collection[str], until_s: float
    ) -> dict[str, RayNode] | Unplaceable:
        """Place the processes on checked nodes, without nodes that failed their check.

        If these have no room, nodes whose check was late are checked again.
        """
        checks = self._checks
        while True:
            # Nodes may join or leave while others are checked, so all is placed again after each
            # check.
            listed = await asyncio.to_thread(alive_nodes)
            self.nodes = {node.id: node for node in listed}
            lost = self.journal_loss(without)
            # The role "control" is queue, cache and binder; the binder opens the journal.
            if lost and any(role_of(name) == "control" for name in processes):
                raise ActorLostError(f"the journal cannot be opened: {lost}")
            excluded = {*without, *checks.left_out}
            allowed = [node for node in self.nodes.values() if node.id not in excluded]
            placed = place(processes, allowed, self._constraints(), self.node_of)
            if isinstance(placed, Unplaceable):
                alive = self.nodes.keys() - without
                if clock_s() < until_s and checks.readmit_late(alive, clock_s()):
                    continue
                return Unplaceable(placed.reason + checks.format_left_out())
            chosen = {node.id: node for node in placed.values()}
            new = [node for key, node in chosen.items() if key not in checks.reports]
            if not new:
                return placed
            deadlines_s = {node.id: checks.deadline_s(node.id, until_s - clock_s()) for node in new}
            for report in await check_nodes(new, self._shared_journal(), deadlines_s):
                checks.record(report, clock_s())

    def _shared_journal(self) -> Path | None:
        """Return the journal's folder if the binder's node must share it with the driver.

        None without a journal, and for a new run that keeps a copy: it may create its journal on
        the disk of any node.
        """
        journal = self._journal
        if journal is None or (self._has_copy and not any(journal.glob("*.segment"))):
            return None
        return journal

    def _constraints(self) -> PlacementConstraints:
        """Return what placement must respect; only nodes that see the journal may run the binder.

        A node that is not checked yet counts as seeing it, until its check shows the opposite.
        """
        journal_node_ids = None
        if self._journal_node_id:
            journal_node_ids = frozenset({self._journal_node_id})
        elif self._shared_journal() is not None:
            journal_node_ids = frozenset(self.nodes.keys() - self._checks.without_journal())
        options = self.options
        return PlacementConstraints(
            cpus=options.cpus_per_process,
            labels=options.labels,
            journal_node_ids=journal_node_ids,
            driver_node_id=_driver_node_id(),
            last_copy_node_id=self._copy_node_id,
        )

    def _record_journal_nodes(self) -> None:
        """Record which nodes' disks have the journal and its copy."""
        if not self._has_copy:
            return
        self._copy_node_id = self.node_of.get(JOURNAL_COPY, self._copy_node_id)
        # The binder is in the process CONTROL, or has its own.
        for name in (CONTROL, BINDER):
            self._journal_node_id = self.node_of.get(name, self._journal_node_id)

    def journal_loss(self, lost: Collection[str]) -> str:
        """Return how the node with the journal was lost; "" while it is there.

        lost: ids of nodes that do not answer. A node that was shut down normally is not among them
        at first, but Ray no longer lists it.
        """
        if not self._journal_node_id or (
            self._journal_node_id in self.nodes and self._journal_node_id not in lost
        ):
            return ""
        return f"its Ray node {self._used[self._journal_node_id]} does not answer"

    def journal_node(self) -> str:
        """Return the node with the journal in a run with a copy; else ""."""
        return str(self._used[self._journal_node_id]) if self._journal_node_id else ""

    async def room_for(self, role: Role, others: Sequence[str], without: Collection[str]) -> int:
        """Return how many processes of a role (`role_of`) fit on checked nodes.

        Checks all nodes with room that are not checked yet. others: names of other new processes,
        which must fit, too. without: ids of lost nodes.
        """
        checks, cpus = self._checks, self.options.cpus_per_process
        listed = await asyncio.to_thread(alive_nodes)
        self.nodes = {node.id: node for node in listed}
        alive = [node for node in listed if node.id not in without]
        new = [each for each in alive if each.id not in checks.reports and each.free_cpus >= cpus]
        if new:
            deadlines_s = {node.id: checks.deadline_s(node.id, FIRST_CHECK_S) for node in new}
            for report in await check_nodes(new, self._shared_journal(), deadlines_s):
                checks.record(report, clock_s())
        usable = [node for node in alive if node.id not in checks.left_out]
        return room_for(role, others, usable, self._constraints(), self.node_of)

    def move_journal(self) -> None:
        """Make the copy the journal, on the copy's node; no node is chosen for a new copy yet."""
        self._journal_node_id, self._copy_node_id = self._copy_node_id, ""

    def driver_address(self) -> tuple[str, int] | None:
        """Return the address of the raylet on the driver's node; None if the node is not listed."""
        node = self.nodes.get(_driver_node_id())
        return None if node is None else (node.address, node.port)

    def node_of_process(self, process: str) -> RayNode | None:
        """Return the node of a process; None while no node is chosen, as in a replacement."""
        node_id = self.node_of.get(process)
        return None if node_id is None else self._used[node_id]

    def loss_of(self, process: str, lost: Collection[str]) -> str:
        """Return how the node of a process was lost; "" if its node is not among the lost ones."""
        node_id = self.node_of.get(process)
        if node_id is None or node_id not in lost:
            return ""
        return f"its Ray node {self._used[node_id]} does not answer"

    def node_uses(self) -> tuple[RayNodeUse, ...]:
        """Return the processes of this run by node."""
        by_node: dict[str, list[str]] = {}  # By node id: names of its processes.
        for name, node_id in self.node_of.items():
            by_node.setdefault(node_id, []).append(name)
        uses = []
        for node_id, names in by_node.items():
            node, report = self._used[node_id], self._checks.reports.get(node_id)
            load = "" if report is None else report.found.get("load", "")
            uses.append(
                RayNodeUse(
                    node.name,
                    node.address,
                    cpus=node.cpus,
                    free_cpus=node.free_cpus,
                    load=float(load) if load else None,
                    processes=tuple(names),
                )
            )
        return tuple(uses)

    def summary(self) -> str:
        """Return a line for the user that lists the processes of this run by node."""
        return f"Ray at {self.head_endpoint}, {self.run}: {'; '.join(map(str, self.node_uses()))}"


def _driver_node_id() -> str:
    return str(ray.get_runtime_context().get_node_id())


def alive_nodes() -> list[RayNode]:
    """Return the nodes of the joined cluster that its head counts as alive, sorted by name."""
    from ray._private.state import available_resources_per_node

    free = available_resources_per_node()
    nodes = [
        RayNode(
            id=each["NodeID"],
            name=each["NodeManagerHostname"],
            address=each["NodeManagerAddress"],
            port=each["NodeManagerPort"],
            cpus=each["Resources"].get("CPU", 0.0),
            free_cpus=free.get(each["NodeID"], {}).get("CPU", 0.0),
            labels=dict(each.get("Labels", {})),
        )
        for each in ray.nodes()
        if each["Alive"]
    ]
    return sorted(nodes, key=lambda node: (node.name, node.id))


class CpuRequest:
    """The request for CPUs to the cluster's autoscaler, withdrawn at the end of the block.

    A cluster has one such request, which all its runs share: the last one replaces those of other
    runs. So a run repeats its request, which another run may have replaced or withdrawn, and a run
    that has sent none withdraws none.
    """

    def __init__(self) -> None:
        self._is_sent = False

    def __enter__(self) -> CpuRequest:
        return self

    def send(self, cpus: Sequence[float], nodes: Iterable[RayNode]) -> None:
        """Request room for these bundles of CPUs, besides what is in use on the nodes."""
        # Ray counts a request as the size of the whole cluster, used and free.
        in_use = [each.cpus - each.free_cpus for each in nodes]
        self._send([*cpus, *in_use])

    def _send(self, cpus: Sequence[float]) -> None:
        from ray.autoscaler.sdk import request_resources

        self._is_sent = True
        with contextlib.suppress(RayError, OSError, RuntimeError):
            request_resources(bundles=[{"CPU": each} for each in cpus if each > 0])

    def withdraw(self) -> None:
        """Withdraw the request; without effect if none was sent."""
        if self._is_sent:
            self._send([])

    def __exit__(self, *_: object) -> None:
        self.withdraw()
