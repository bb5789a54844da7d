"""A Ray cluster that a run joins: its nodes, checks of them, and the wait for free CPUs."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import ray
import ray.cloudpickle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from roadstead.actors.interface import ActorLostError, Announce, NoNodeError, clock_s
from roadstead.actors.logs import log
from roadstead.actors.names import BINDER, CONTROL, JOURNAL_COPY
from roadstead.actors.runtime import node_probe
from roadstead.actors.runtime.node_probe import probe
from roadstead.actors.runtime.ray_heartbeats import Address
from roadstead.actors.runtime.ray_placement import RayNode, Rules, Shortage, place
from roadstead.config.ray import RayOptions
from roadstead.package_files import package_digest
from roadstead.report.ray_nodes import CheckedNode
from roadstead.version import __version__

LOOK_S = 1.0
"""Interval between two looks at the free CPUs of a cluster that has too few."""

PROBE_S = 60.0
"""Deadline of the check of one node. A node that makes a runtime environment first needs longer
than one that only starts a process."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """Result of the check of a node. problem: why it cannot run Roadstead; "" if it can."""

    node: RayNode
    found: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def has_journal(self) -> bool:
        return bool(self.found.get("has_nonce"))

    def checked(self, *, has_folder: bool, now_s: float) -> CheckedNode:
        """Return the report for users. has_folder: whether a journal was looked for."""
        node, found = self.node, self.found
        return CheckedNode(
            node.name,
            node.address,
            node.cpus,
            node.free_cpus,
            dict(node.labels),
            python=found.get("python", ""),
            version=found.get("version", ""),
            kernel=found.get("kernel", ""),
            sees_journal=self.has_journal if has_folder and found else None,
            clock_s=float(found["clock"]) - now_s if found else 0.0,
            problem=self.problem,
        )


class RayCluster:
    """The nodes of the joined cluster, and where the processes of this run are.

    nodes: those alive at the last look, by id. node_of: process → id of its node. head: address of
    the head's server. _reports: of the nodes checked so far; each is checked once. _bad: id → why
    the node is left out, for the rest of the run. _used: nodes with a process of this run, now or
    before. _home, _copy_node: ids of the nodes whose disks have the journal and its copy, for a run
    with a copy; "" until there is one.
    """

    def __init__(
        self, options: RayOptions, journal: Path | None, *, has_copy: bool = False
    ) -> None:
        """options: for reserved CPUs and labels. journal: folder of the binder's journal. has_copy:
        another node has a copy of it.
        """
        self.options = options
        self._has_copy = has_copy
        self._home = self._copy_node = ""
        self._journal = journal
        self._reports: dict[str, NodeReport] = {}
        self._bad: dict[str, str] = {}
        self.nodes: dict[str, RayNode] = {}
        self.node_of: dict[str, str] = {}
        self._used: dict[str, RayNode] = {}
        self.head_text = ray.get_runtime_context().gcs_address
        host, _, port = self.head_text.rpartition(":")
        self.head: Address = (host, int(port))

    async def place(
        self,
        processes: Sequence[str],
        without: Collection[str],
        timeout_s: float,
        announce: Announce,
    ) -> dict[str, RayNode]:
        """Return the node of each process, once there are checked nodes with room for all.

        without: ids of nodes that are lost. announce: is called with what is waited for.
        NoNodeError with the reason if there is no room in time.
        """
        until_s = clock_s() + timeout_s
        announced = ""
        for name in processes:
            self.node_of.pop(name, None)
        while True:
            placed = await self._try(processes, without)
            if isinstance(placed, dict):
                self.node_of |= {name: node.id for name, node in placed.items()}
                self._note_disks()
                self._used |= {node.id: node for node in placed.values()}
                _request_cpus([])
                return placed
            if clock_s() >= until_s:
                _request_cpus([])
                raise NoNodeError(f"{placed.why}. Waited {timeout_s:g} s")
            if placed.why != announced:
                announced = placed.why
                announce(f"Waiting for the Ray cluster: {announced}.")
                _request_cpus([self.options.cpus_per_process] * len(processes))
            await asyncio.sleep(LOOK_S)

    async def _try(
        self, processes: Sequence[str], without: Collection[str]
    ) -> dict[str, RayNode] | Shortage:
        """Place the processes on checked nodes; nodes that fail their check are left out."""
        while True:
            found = await asyncio.to_thread(alive_nodes)
            self.nodes = {node.id: node for node in found}
            fit = [n for n in self.nodes.values() if n.id not in without and n.id not in self._bad]
            placed = place(processes, fit, self._rules(), self.node_of)
            if isinstance(placed, Shortage):
                return self._with_bad(placed)
            chosen = {node.id: node for node in placed.values()}
            new = [node for key, node in chosen.items() if key not in self._reports]
            if not new:
                return placed
            await self._check(new)

    def _with_bad(self, shortage: Shortage) -> Shortage:
        """Add the nodes that failed their check to the reason."""
        if not self._bad:
            return shortage
        return Shortage(f"{shortage.why}; left out: {'; '.join(self._bad.values())}")

    async def _check(self, nodes: Sequence[RayNode]) -> None:
        """Check nodes before anything starts there."""
        for report in await check_nodes(nodes, self._seen_journal()):
            self._reports[report.node.id] = report
            if report.problem:
                self._bad[report.node.id] = f"{report.node}: {report.problem}"
                log("ray", "node left out", node=report.node.name, why=report.problem)

    def _seen_journal(self) -> Path | None:
        """Return the journal's folder if the binder's node must see the driver's; else None.

        With a copy on another node, the journal of a new run may be on the disk of any node.
        """
        journal = self._journal
        if journal is None or (self._has_copy and not any(journal.glob("*.segment"))):
            return None
        return journal

    def _rules(self) -> Rules:
        """Return the rules of placement; only nodes that see the journal may run the binder.

        A node that is not checked yet counts as one that does; its check decides.
        """
        control_on = None
        if self._home:
            control_on = frozenset({self._home})
        elif self._seen_journal() is not None:
            blind = {key for key, report in self._reports.items() if not report.has_journal}
            control_on = frozenset(self.nodes.keys() - blind)
        options = self.options
        near = ray.get_runtime_context().get_node_id()
        return Rules(options.cpus_per_process, options.labels, control_on, near, self._copy_node)

    def _note_disks(self) -> None:
        """Note which nodes' disks have the journal and its copy."""
        if not self._has_copy:
            return
        self._copy_node = self.node_of.get(JOURNAL_COPY, self._copy_node)
        for name in (CONTROL, BINDER):
            self._home = self.node_of.get(name, self._home)

    def journal_loss(self, lost: Collection[str]) -> str:
        """Return how the node with the journal was lost; "" if it is not among the lost ones."""
        if self._home not in lost:
            return ""
        return f"its Ray node {self._used[self._home]} does not answer"

    def journal_node(self) -> str:
        """Return the node with the journal, if a copy makes several possible; else ""."""
        return str(self._used[self._home]) if self._home else ""

    def move_journal(self) -> None:
        """Note that the journal is from now on what the node of its copy has."""
        self._home, self._copy_node = self._copy_node, ""

    def loss_of(self, process: str, lost: Collection[str]) -> str:
        """Return how the node of a process was lost; "" if its node is not among the lost ones."""
        node_id = self.node_of.get(process)
        if node_id is None or node_id not in lost:
            return ""
        return f"its Ray node {self._used[node_id]} does not answer"

    def summary(self) -> str:
        """Return where the processes of this run are, one node after the other."""
        by_node: dict[str, list[str]] = {}
        for name, node_id in self.node_of.items():
            by_node.setdefault(node_id, []).append(name)
        parts = []
        for node_id, names in by_node.items():
            node = self._used[node_id]
            load = f"{node.free_cpus:g} of {node.cpus:g} CPUs free before"
            parts.append(f"{', '.join(names)} on {node.name} ({node.address}, {load})")
        return f"Ray at {self.head_text}: {'; '.join(parts)}"


def alive_nodes() -> list[RayNode]:
    """Return the nodes of the joined Ray that its head counts as alive, by name."""
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


async def check_nodes(nodes: Sequence[RayNode], journal: Path | None) -> list[NodeReport]:
    """Check in parallel whether nodes can run this release, and whether they see the journal."""
    with _nonce(journal) as path:
        return list(await asyncio.gather(*(_check_node(node, path) for node in nodes)))


async def _check_node(node: RayNode, nonce_path: str) -> NodeReport:
    ray.cloudpickle.register_pickle_by_value(node_probe)
    task = ray.remote(probe).options(
        num_cpus=0,
        max_retries=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
    )
    try:
        async with asyncio.timeout(PROBE_S):
            found = await task.remote(nonce_path)
    except TimeoutError:
        return NodeReport(node, {}, f"did not answer its check within {PROBE_S:g} s")
    except RayError as failure:
        lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
        return NodeReport(node, {}, f"could not be checked: {(lines or ['no reason given'])[-1]}")
    return NodeReport(node, found, problem_in(found))


def problem_in(found: Mapping[str, str]) -> str:
    """Return why a node cannot run this release, with the remedy; "" if it can."""
    if error := found["error"]:
        return (
            f"Roadstead cannot be imported there ({error}): install roadstead {__version__} for "
            f"Python {found['python']} on the node, or set ray.runtime_env to a file of "
            "`roadstead cluster pack`"
        )
    if found["version"] != __version__:
        return (
            f"has roadstead {found['version']}, and the run is of {__version__}: install the same "
            "version on all nodes"
        )
    if found["digest"] != package_digest():
        return (
            f"has other code of roadstead {__version__} in {found['folder']}: install the same "
            "build on all nodes"
        )
    return ""


@contextmanager
def _nonce(journal: Path | None) -> Iterator[str]:
    """Write a file with a random name into the journal's folder while nodes look for it."""
    if journal is None:
        yield ""
        return
    journal.mkdir(parents=True, exist_ok=True)
    path = journal / f".seen-{secrets.token_hex(8)}"
    try:
        path.touch()
    except OSError as failure:
        raise ActorLostError(f"{journal}: cannot be written: {failure.strerror}") from failure
    try:
        yield str(path)
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _request_cpus(cpus: Sequence[float]) -> None:
    """Ask the cluster's autoscaler for nodes with room for these bundles; [] withdraws it."""
    from ray.autoscaler.sdk import request_resources

    with contextlib.suppress(RayError, OSError, RuntimeError):
        request_resources(bundles=[{"CPU": each} for each in cpus if each])
