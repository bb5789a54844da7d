"""Checks of the nodes of a Ray cluster, before a process of a run starts there.

unchecked ── check ──► good
   ▲           └─────► left out ── its check was late, and the run needs room ──┐
   └────────────────────────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import ray
import ray.cloudpickle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from roadstead.actors.interface import ActorLostError
from roadstead.actors.logs import log
from roadstead.actors.runtime import node_probe
from roadstead.actors.runtime.node_probe import probe
from roadstead.actors.runtime.ray_placement import RayNode
from roadstead.package_files import package_digest
from roadstead.report.ray_nodes import CheckedNode
from roadstead.version import __version__

FIRST_CHECK_S = 60.0
"""Deadline of the first check of one node: the node may have to make Ray's runtime environment."""

REPEATED_CHECK_S = 15.0
"""Deadline of a repeated check. The run waits for it, and the node has its environment by now."""

RECHECK_PAUSE_S = 30.0
"""Pause from a late check of a node to its next check."""

MAX_CHECKS = 3
"""Maximum number of checks of one node in a run; after them a late node stays left out."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """Result of the check of a node.

    found: what its `probe` returned (`node_probe.FIELDS`). problem: why it cannot run Roadstead; ""
    if it can. is_late: it did not answer in time. clock_s: the node's clock minus this one's (see
    `clock_difference_s`).
    """

    node: RayNode
    found: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    is_late: bool = False
    clock_s: float = 0.0

    @property
    def has_journal(self) -> bool:
        """Whether the node sees the driver's folder of the journal."""
        return bool(self.found.get("has_nonce"))

    def checked(self, *, has_folder: bool) -> CheckedNode:
        """Return the result for users.

        has_folder: whether the node had to look for a journal's folder.
        """
        node, found = self.node, self.found
        return CheckedNode(
            node.name,
            node.address,
            cpus=node.cpus,
            free_cpus=node.free_cpus,
            labels=dict(node.labels),
            python=found.get("python", ""),
            version=found.get("version", ""),
            kernel=found.get("kernel", ""),
            sees_journal=self.has_journal if has_folder and found else None,
            clock_s=self.clock_s,
            problem=self.problem,
        )


class NodeChecks:
    """The checks of the nodes of one run.

    reports: by node id, of the nodes checked so far. left_out: id → why the node is not used. A
    node that is late is left out until the run needs its room; any other problem lasts for the rest
    of the run. _times, _last_s: by id, the number of checks and the time of the last.
    """

    def __init__(self) -> None:
        self.reports: dict[str, NodeReport] = {}
        self.left_out: dict[str, str] = {}
        self._times: Counter[str] = Counter()
        self._last_s: dict[str, float] = {}

    def record(self, report: NodeReport, now_s: float) -> None:
        """Record the result of a check."""
        key = report.node.id
        self.reports[key] = report
        self._times[key] += 1
        self._last_s[key] = now_s
        if report.problem:
            self.left_out[key] = f"{report.node}: {report.problem}"
            log("ray", "node left out", node=report.node.name, why=report.problem)

    def readmit_late(self, nodes: Set[str], now_s: float) -> bool:
        """Make late nodes unchecked again; return whether there are any that may be rechecked.

        nodes: ids of the nodes to consider.
        """
        again = [
            key
            for key in nodes & self.left_out.keys()
            if self.reports[key].is_late
            and self._times[key] < MAX_CHECKS
            and now_s >= self._last_s[key] + RECHECK_PAUSE_S
        ]
        for key in again:
            del self.left_out[key], self.reports[key]
        return bool(again)

    def deadline_s(self, node_id: str, left_s: float) -> float:
        """Return the deadline of a node's next check.

        left_s: seconds until the wait for room ends.
        """
        return max(1.0, min(REPEATED_CHECK_S, left_s)) if self._times[node_id] else FIRST_CHECK_S

    def without_journal(self) -> set[str]:
        """Return the ids of checked nodes that do not see the journal's folder."""
        return {key for key, report in self.reports.items() if not report.has_journal}

    def format_left_out(self) -> str:
        """Return which nodes are left out and why, as the end of a sentence; "" for none."""
        return f"; left out: {'; '.join(self.left_out.values())}" if self.left_out else ""


async def check_nodes(
    nodes: Sequence[RayNode],
    journal: Path | None,
    deadlines_s: Mapping[str, float] = MappingProxyType({}),
) -> list[NodeReport]:
    """Check in parallel whether nodes can run this release, and whether they see the journal.

    journal: its folder; None if nodes need not see it. deadlines_s: by node id; `FIRST_CHECK_S`
    for a node without an entry.
    """
    with _nonce(journal) as path:
        checks = (
            _check_node(node, path, deadlines_s.get(node.id, FIRST_CHECK_S)) for node in nodes
        )
        return list(await asyncio.gather(*checks))


async def _check_node(node: RayNode, nonce_path: str, timeout_s: float) -> NodeReport:
    # Send the function's code, not its name: a node without Roadstead must answer, too.
    ray.cloudpickle.register_pickle_by_value(node_probe)
    task = ray.remote(probe).options(
        num_cpus=0,
        max_retries=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
    )
    began_s = time.time()
    try:
        async with asyncio.timeout(timeout_s):
            found = await task.remote(nonce_path)
    except TimeoutError:
        problem = f"did not answer its check within {timeout_s:.3g} s"
        return NodeReport(node, {}, problem, is_late=True)
    except RayError as failure:
        lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
        # The last line of a remote traceback names the exception.
        return NodeReport(node, {}, f"could not be checked: {(lines or ['no reason given'])[-1]}")
    clock_s = clock_difference_s(float(found["clock"]), began_s, time.time())
    return NodeReport(node, found, problem_in(found), clock_s=clock_s)


def clock_difference_s(node_s: float, began_s: float, ended_s: float) -> float:
    """Return how far a node's clock is ahead of this one, at least; negative if it is behind.

    node_s: its Unix time, read at some moment of the check, which may last a minute. began_s,
    ended_s: start and end of the check, in Unix time here.
    """
    return max(0.0, node_s - ended_s) + min(0.0, node_s - began_s)


def problem_in(found: Mapping[str, str]) -> str:
    """Return why a node cannot run this release, with the remedy; "" if it can.

    found: see `probe`; `error` is that of the import of Roadstead on the node, `digest` that of the
    package's files.
    """
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
    """Keep a file with a random name in the journal's folder inside the block; yield its path.

    A node that finds the file sees the same folder. "" without a journal.
    """
    if journal is None:
        yield ""
        return
    path = journal / f".seen-{secrets.token_hex(8)}"
    try:
        journal.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as failure:
        raise ActorLostError(f"{journal}: cannot be written: {failure.strerror}") from failure
    try:
        yield str(path)
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
