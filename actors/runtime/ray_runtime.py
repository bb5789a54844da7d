"""The Ray runtime: each process with its actors is one Ray actor, their host.

By default a local Ray is started on loopback, without its monitors and dashboard, and shut down
after the run. On a Ray that is joined, each process reserves CPUs on a node that is chosen and
checked before (`ray_cluster.py`), and nodes are watched. Every call in which Ray could wait forever
has a deadline here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from roadstead.actors.interface import (
    UNFENCED,
    ActorLostError,
    Announce,
    DeadlineError,
    Factory,
    Failure,
    Ref,
    Stamp,
    deadline_error,
    decode_failure,
    ignore_message,
)
from roadstead.actors.runtime.log_location import LogLocation
from roadstead.actors.runtime.ray_host import HostSetup, RayHost
from roadstead.actors.runtime.ray_joining import first_line
from roadstead.actors.runtime.ray_refs import (
    PART_BYTES,
    RayDirectory,
    call_until_available,
    ray_name,
    reply_unless_lost,
)
from roadstead.actors.runtime.ray_session import RaySession, initialized_address, open_session
from roadstead.actors.runtime.ray_target import target_of
from roadstead.config.ray import RayOptions
from roadstead.protocol.plain_data import DecodeLimits
from roadstead.report.ray_nodes import RayNodeUse

if TYPE_CHECKING:
    from roadstead.actors.runtime.ray_cluster import RayCluster
    from roadstead.actors.runtime.ray_heartbeats import Heartbeats
    from roadstead.actors.runtime.ray_logs import RunLogs

T = TypeVar("T")

_MAX_PENDING_CALLS = 10_000
"""Unanswered calls of one caller to one process; Ray refuses further ones."""

START_S = 120.0
"""Deadline for the start of Ray."""

REPLACE_S = 30.0
"""How long actors of a lost node wait for room on another node."""

REBUILD_S = 3.0
"""Deadline for the rebuild of actors in their process. A process that does not answer until then,
because it still computes, is replaced like a lost one."""

END_S = 1.0
"""Deadline for the processes' replies to the request to end."""

NAME_PAUSE_S = 0.05
"""Pause before a start under a name that Ray has not released yet is repeated."""


class RayRuntime:
    """Runtime of actors on a Ray of its own, or on one that it joins.

    pids, _handles: by host. _hosts: actor → its host. _retired: hosts whose actors ended and are
    rebuilt at the next start. _cluster, _heartbeats, _logs: None for a Ray of its own; _logs also
    without a folder for logs.
    """

    def __init__(
        self,
        *,
        processes: int,
        limits: DecodeLimits,
        log_dir: str = "",
        options: RayOptions | None = None,
        journal: Path | None = None,
        has_copy: bool = False,
        start_s: float = START_S,
    ) -> None:
        """processes: how many a local Ray starts in parallel.
        journal: folder of the binder's journal, which its node must see. has_copy: whether another
        node has a copy of the journal. start_s: deadline for the start of Ray, or for joining one.
        """
        self._log_dir = log_dir
        self._limits = limits
        self._run = f"roadstead-{secrets.token_hex(6)}"
        self._hosts: dict[str, str] = {}
        self._handles: dict[str, ActorHandle] = {}
        self._retired: set[str] = set()
        self._cluster: RayCluster | None = None
        self._heartbeats: Heartbeats | None = None
        self._logs: RunLogs | None = None
        self._announce: Announce = ignore_message
        self.pids: dict[str, int] = {}
        options = options or RayOptions()
        self._namespace = options.namespace or self._run
        RaySession.await_end(start_s)
        target = target_of(options, initialized=initialized_address(), environ=os.environ)
        self._ray = open_session(target, options, start_s, self._namespace, processes)
        if not target.is_local:
            self._open_cluster(options, journal, has_copy=has_copy)

    def _open_cluster(self, options: RayOptions, journal: Path | None, *, has_copy: bool) -> None:
        """Prepare what only a run on a joined cluster needs, and imports."""
        from roadstead.actors.runtime.ray_cluster import RayCluster
        from roadstead.actors.runtime.ray_heartbeats import Heartbeats
        from roadstead.actors.runtime.ray_logs import RunLogs

        if self._log_dir:
            self._logs = RunLogs(self._run, Path(self._log_dir))
        self._cluster = RayCluster(self._run, options, journal, has_copy=has_copy)
        self._heartbeats = Heartbeats(self._cluster.head)

    def report_to(self, announce: Announce) -> None:
        """Send messages for the user, as on what a start waits for, to this function."""
        self._announce = announce

    async def start(
        self, groups: Mapping[str, Mapping[str, Factory]], *, timeout_s: float
    ) -> dict[str, Ref]:
        """Start actors by name, in one process per group; return once all answer.

        DeadlineError if one is late, ActorLostError if one fails, InputError if its input is wrong,
        NoNodeError if the cluster that is joined has no room for them.
        """
        for host, builds in groups.items():
            self._hosts |= dict.fromkeys(builds, host)
        directory = self._directory()
        # Groups whose processes have been kept: only their actors were ended.
        retired = {host: groups[host] for host in groups.keys() & self._retired}
        new = {host: groups[host] for host in groups if host not in retired}
        self._retired.clear()
        _, late = await asyncio.gather(
            self._begin(new, directory, timeout_s), self._rebuild(retired, directory)
        )
        await self._begin({host: retired[host] for host in late}, directory, timeout_s)
        return {name: self.find(name) for builds in groups.values() for name in builds}

    async def _begin(
        self,
        groups: Mapping[str, Mapping[str, Factory]],
        directory: RayDirectory,
        timeout_s: float,
    ) -> None:
        """Start a new process for each group. Errors as for `start`."""
        if not groups:
            return
        placed = await self._place(list(groups), timeout_s)
        remote = ray.remote(RayHost)
        for host, builds in groups.items():
            # No restarts or retries by Ray: the supervisor replaces actors, and callers resend.
            options = {
                "name": ray_name(self._run, host),
                "namespace": self._namespace,
                "max_restarts": 0,
                "max_task_retries": 0,
                "max_pending_calls": _MAX_PENDING_CALLS,
                **placed[host],
            }
            begin = partial(
                remote.options(**options).remote,
                *(host, dict(builds), directory, self._limits, self._setup_of(host)),
            )
            self._handles[host] = await _start_when_name_is_free(host, begin, timeout_s)
        await asyncio.gather(*(self._await_ready(host, timeout_s) for host in groups))

    async def _rebuild(
        self, groups: Mapping[str, Mapping[str, Factory]], directory: RayDirectory
    ) -> list[str]:
        """Rebuild actors in their processes, which saves the start of new ones.

        Returns the processes that did not answer in time, which are killed.
        """

        async def rebuild_or_kill(host: str) -> bool:
            call = partial(self._handles[host].rebuild.remote, dict(groups[host]), directory)
            with contextlib.suppress(ActorLostError, DeadlineError):
                await self._await_answer(host, call, REBUILD_S)
                return True
            ray.kill(self._handles[host], no_restart=True)
            return False

        hosts = sorted(groups)
        done = await asyncio.gather(*map(rebuild_or_kill, hosts))
        return [host for host, is_done in zip(hosts, done, strict=True) if not is_done]

    async def _place(self, processes: list[str], timeout_s: float) -> dict[str, dict[str, object]]:
        """Return, for each process, the options of its Ray actor that put it on its node."""
        if self._cluster is None or self._heartbeats is None:
            return {host: {"num_cpus": 0} for host in processes}
        # The whole run waits for a replacement; at the start, an autoscaler may need minutes.
        wait_s = min(timeout_s, REPLACE_S) if self._handles else timeout_s
        nodes = await self._cluster.place(processes, self._heartbeats.lost, wait_s, self._announce)
        self._heartbeats.watch({node.id: (node.address, node.port) for node in nodes.values()})
        self._heartbeats.start()
        self._announce(self._cluster.summary())
        return {
            host: {
                "num_cpus": self._cluster.options.cpus_per_process,
                "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False),
            }
            for host, node in nodes.items()
        }

    def _setup_of(self, host: str) -> HostSetup:
        """Return the setup of a process that is about to start."""
        if self._cluster is None:
            # A Ray of the run's own collects no metrics.
            return HostSetup(logs=LogLocation(self._log_dir))
        logs, node = LogLocation(), self._cluster.node_of_process(host)
        assert node is not None, f"{host} is placed"
        if self._logs is not None:
            logs = self._logs.location_for(host, node)
        interval_s = self._cluster.options.metrics_interval_s
        driver, own = self._cluster.driver_address(), (node.address, node.port)
        return HostSetup(self._run, logs, interval_s, driver, own)

    async def gather_logs(self, *, timeout_s: float) -> None:
        """Copy the logs from the nodes of a joined cluster; a message reports missing ones."""
        if self._cluster is None or self._heartbeats is None or self._logs is None:
            return
        node_of, lost = self._cluster.node_of, self._heartbeats.lost
        if missing := await self._logs.gather(self._handles, node_of, lost, timeout_s):
            self._announce(missing)

    def _host_lost(self, host: str) -> str:
        """Return how the node of a process was lost; "" while it answers."""
        if self._cluster is None or self._heartbeats is None:
            return ""
        return self._cluster.loss_of(host, self._heartbeats.lost)

    async def _await_ready(self, host: str, timeout_s: float) -> None:
        await self._await_answer(host, self._handles[host].ready.remote, timeout_s)

    async def _await_answer(
        self, host: str, call: Callable[[], Awaitable[int | Failure]], timeout_s: float
    ) -> None:
        """Wait until the actors of a process are built, and record its process id.

        call: `ready` or `rebuild` of the process. Raises the error of a build.
        """
        try:
            async with asyncio.timeout(timeout_s):
                ready = call_until_available(call)
                answer = await reply_unless_lost(partial(self._host_lost, host), host, ready)
        except TimeoutError:
            raise deadline_error(host, "its start", timeout_s) from None
        except RayError as failure:
            raise ActorLostError(f"{host} did not start: {first_line(failure)}") from None
        if isinstance(answer, Failure):
            raise decode_failure(host, answer)
        self.pids[host] = answer

    def find(self, name: str, stamp: Stamp = UNFENCED) -> Ref:
        """Return a Ref to a running actor."""
        ref = self._directory().find(name, stamp)
        if self._cluster is None:
            return ref
        return replace(ref, host_lost=partial(self._host_lost, self._hosts.get(name, name)))

    def _directory(self) -> RayDirectory:
        """Return the directory of the processes that are started so far."""
        # A Ray of the run's own has another limit of arguments (`SYSTEM_CONFIG`).
        part_bytes = 0 if self._cluster is None else PART_BYTES
        hosts = dict(self._hosts)
        return RayDirectory(self._run, self._namespace, self._limits, hosts, part_bytes)

    async def kill(self, name: str) -> None:
        """Kill an actor's process. Ray does not wait for its end: it may answer for a moment."""
        host = self._hosts.get(name, name)
        self._retired.discard(host)
        # A process that found no room has no handle.
        if (handle := self._handles.get(host)) is not None:
            ray.kill(handle, no_restart=True)

    async def retire(self, name: str) -> None:
        """End an actor that answers, with all others of its process, which is kept."""
        host = self._hosts.get(name, name)
        if host not in self._retired:
            self._retired.add(host)
            # The reply is not awaited: the process may compute for long, or have ended.
            with contextlib.suppress(RayError):
                self._handles[host].retire.remote()

    def lost(self) -> str:
        """Return which part of Ray itself ended, and how; "" while all runs."""
        if self._heartbeats is not None and self._cluster is not None:
            if self._heartbeats.is_head_lost:
                return f"Ray's head at {self._cluster.head_endpoint} does not answer any more"
            return ""
        return self._ray.lost()

    def journal_lost(self) -> str:
        """Return how the node with the journal was lost; "" while it answers."""
        if self._cluster is None or self._heartbeats is None:
            return ""
        return self._cluster.journal_loss(self._heartbeats.lost)

    def journal_node(self) -> str:
        """Return the node with the journal, on a cluster that the run joined."""
        return "" if self._cluster is None else self._cluster.journal_node()

    def node_of(self, name: str) -> str:
        """Return the node of an actor, on a cluster that the run joined."""
        if self._cluster is None:
            return ""
        node = self._cluster.node_of_process(self._hosts.get(name, name))
        return "" if node is None else str(node)

    def ray_nodes(self) -> tuple[RayNodeUse, ...]:
        """Return which processes are on which node of a joined cluster; () on a Ray of its own."""
        return () if self._cluster is None else self._cluster.node_uses()

    async def room_for_workers(self, others: Sequence[str] = ()) -> int | None:
        """Return how many workers fit in addition to other new processes; None on an own Ray."""
        if self._cluster is None or self._heartbeats is None:
            return None
        return await self._cluster.room_for("worker", others, self._heartbeats.lost)

    def move_journal(self) -> None:
        """Make the journal's copy, on its node, the journal."""
        if self._cluster is not None:
            self._cluster.move_journal()

    async def _end_processes(self) -> None:
        """Ask each process to end: the head, through which Ray kills actors, does not answer."""
        handles = (handle for host, handle in self._handles.items() if not self._host_lost(host))
        with contextlib.suppress(TimeoutError, RayError):
            ends = [handle.end.remote() for handle in handles]
            async with asyncio.timeout(END_S):
                await asyncio.gather(*ends, return_exceptions=True)

    async def stop(self) -> None:
        """End all actors of the run, and shut Ray down in the background."""
        if self._heartbeats is not None:
            self._heartbeats.stop()
            if self._heartbeats.is_head_silent:
                await self._end_processes()
        if self.lost():
            # An ordered shutdown would wait for the server that ended.
            self._handles.clear()
            self._ray.leave(by_force=True)
            return
        for handle in self._handles.values():
            with contextlib.suppress(RayError):
                ray.kill(handle, no_restart=True)
        self._handles.clear()
        self._ray.leave()


async def _start_when_name_is_free(
    host: str, begin: Callable[[], ActorHandle], timeout_s: float
) -> ActorHandle:
    """Start a Ray actor; retries while the name of an ended one is not released yet."""
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    return begin()
                except ValueError:
                    await asyncio.sleep(NAME_PAUSE_S)
    except TimeoutError:
        raise deadline_error(host, "its start", timeout_s) from None
