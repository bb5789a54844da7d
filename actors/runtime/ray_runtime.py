"""The Ray runtime: each process with its actors is one Ray actor.

Unless an address is given, a local Ray is started on loopback, without its monitors and dashboard,
and shut down after the run. Every call in which Ray could wait forever has a deadline here.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from subprocess import Popen
from typing import ClassVar, TypeVar

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError, RayActorError, RayError

from roadstead.actors.logs import open_log
from roadstead.actors.runtime.dispatch import Dispatcher
from roadstead.actors.runtime.gc_tuning import collect_seldom
from roadstead.actors.runtime.ray_folder import make_folder, remove_folder
from roadstead.actors.runtime.ray_node import OwnPaths, end_by_force, lean_node, let_go, servers
from roadstead.actors.seam import (
    NOBODY,
    A,
    ActorLostError,
    Directory,
    Factory,
    Failure,
    Method,
    Q,
    Ref,
    Stamp,
    failure_in,
    failure_out,
    late,
    open_reply,
)
from roadstead.protocol.codec import DecodeLimits
from roadstead.protocol.errors import InputError

T = TypeVar("T")

START_S, LEAVE_S = 120.0, 30.0
"""Deadlines for the start of Ray, and for its shutdown at the end of the process."""

LOCAL = "local"
"""The address that makes `ray.init` start a new Ray, even if one runs on this machine already."""

OBJECT_STORE_BYTES = 128 * 1024 * 1024
_MAX_PENDING_CALLS = 10_000

SYSTEM = {
    # Nothing reads the task events of our local Ray. Every call would be reported to its servers,
    # and a shutdown waits for the reports: 15 s if the servers have ended.
    "task_events_report_interval_ms": 0,
    "enable_metrics_collection": False,
    # Otherwise `ray.init` holds the GIL until the first processes have registered: forever if one
    # of them ends or hangs while it starts, and then no deadline in this process could fire.
    "prestart_worker_first_driver": False,
    # After this time Ray ends a process that has not registered and starts another. With START_S
    # here, one process that crashes while it starts would end the run.
    "worker_register_timeout_seconds": 30,
    # Ray's workers run at niceness 15 by default: on a busy machine a run then takes twenty times
    # as long.
    "worker_niceness": 0,
    # A batch of 2,048 pods exceeds the 100 kB that Ray sends inside a call by default. Longer
    # messages use the object store, which doubles the time of the call on both sides.
    "max_direct_call_object_size": 4 * 1024 * 1024,
}
"""Ray's own settings for a local Ray (docs/decisions/0009)."""

NAME_S = 0.05


class RayHost:
    """The Ray actor: a process with one of our actors, or several that share it."""

    def __init__(
        self,
        process: str,
        builds: Mapping[str, Factory],
        directory: Directory,
        limits: DecodeLimits,
        log_dir: str,
    ) -> None:
        open_log(log_dir, process)
        collect_seldom()
        self._dispatchers: dict[str, Dispatcher] = {}
        self._failure: Failure | None = None
        try:
            for name, build in builds.items():
                self._dispatchers[name] = Dispatcher(name, build(directory), limits)
        except InputError as failure:
            # For example a plugin that only the driver can import. Ray would wrap an exception in a
            # text of its own.
            self._failure = failure_out(failure.at(source=f"in the process {process} on Ray"))

    async def receive(self, name: str, data: bytes) -> bytes:
        """Dispatch one envelope to one actor and return the envelope of the reply."""
        return await self._dispatchers[name].receive(data)

    async def ready(self) -> int | Failure:
        """Return the process id once the actors are built, or the error in their input."""
        return self._failure or os.getpid()


@dataclass(frozen=True, slots=True)
class RayRef:
    """A Ref to an actor in a Ray process."""

    name: str
    handle: ActorHandle
    limits: DecodeLimits
    stamp: Stamp = NOBODY

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        data = self.stamp.envelope(method.name, message)
        try:
            async with asyncio.timeout(timeout_s):
                reply = await _told(partial(self.handle.receive.remote, self.name, data))
        except TimeoutError:
            raise late(self.name, method.name, timeout_s) from None
        except RayActorError as lost:
            raise ActorLostError(f"{self.name} is gone: {_first_line(lost)}") from None
        except RayError as failure:
            raise ActorLostError(f"{self.name} cannot be reached: {_first_line(failure)}") from None
        return open_reply(self.name, method, reply, self.limits)


@dataclass(frozen=True, slots=True)
class RayDirectory:
    """Lookup of the actors of one run by name; sent to each of its actors.

    hosts: actor → name of its process.
    """

    namespace: str
    limits: DecodeLimits
    hosts: Mapping[str, str]

    def find(self, name: str, stamp: Stamp = NOBODY) -> Ref:
        """Return a Ref to a running actor. ActorLostError if there is none of this name."""
        try:
            handle = ray.get_actor(self.hosts.get(name, name), namespace=self.namespace)
        except ValueError:
            raise ActorLostError(f"there is no actor {name}") from None
        return RayRef(name, handle, self.limits, stamp)


class RaySession:
    """One connection to Ray: a thread starts or joins it, waits, and shuts it down.

    One thread does both because Ray's processes die with the thread that started them. The shutdown
    runs in the background, so that the result of a run is not delayed by it. The end of the process
    and the next session wait for it.
    """

    _last: ClassVar[threading.Thread | None] = None
    _folders: ClassVar[set[str]] = set()

    def __init__(self, timeout_s: float, **options: object) -> None:
        """Return when Ray has started. options: of `ray.init`.

        DeadlineError if that takes longer than `timeout_s`, ActorLostError if Ray cannot start.
        """
        if RaySession._last is not None:
            RaySession._last.join(timeout_s)
        self._options = {"address": LOCAL} | options
        self._joined: Future[None] = Future()
        self._leave = threading.Event()
        self._by_force = False
        self._folder = ""
        self._servers: dict[str, Popen[bytes]] = {}
        atexit.register(self._end)
        RaySession._last = threading.Thread(target=self._live, name="ray-session", daemon=True)
        RaySession._last.start()
        try:
            self._joined.result(timeout_s)
        except TimeoutError:
            self.leave()
            raise late("Ray", "its start", timeout_s) from None
        except Exception as failure:
            raise ActorLostError(f"Ray did not start: {_first_line(failure)}") from failure

    def _live(self) -> None:
        try:
            self._stay()
        finally:
            # A registered callback would keep the ended session, and the frames of its failure.
            atexit.unregister(self._end)

    def _stay(self) -> None:
        # No usage statistics are sent.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        logging.getLogger("ray").setLevel(logging.ERROR)
        try:
            self._init()
        except BaseException as failure:
            self._joined.set_exception(failure)
            return
        self._servers = servers()
        self._joined.set_result(None)
        self._leave.wait()
        if self._by_force:
            end_by_force()
        let_go()
        ray.shutdown()
        if self._folder and not self._by_force:
            remove_folder(self._folder)
        self._folders.discard(self._folder)

    def _init(self) -> None:
        options = self._options
        if options["address"] == LOCAL:
            # The token is in no file: only child processes of this one get it.
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
            self._folder = make_folder()
            self._folders.add(self._folder)
            # A subfolder, because Ray makes the folder that it is given accessible to every user.
            options = options | {"_temp_dir": f"{self._folder}/ray"}
        with lean_node(self._folder):
            ray.init(
                logging_level=logging.ERROR,
                log_to_driver=False,
                configure_logging=False,
                job_config=OwnPaths(),
                **options,
            )

    def leave(self, *, by_force: bool = False) -> None:
        """Begin to shut Ray down; returns at once. by_force: kill its processes first."""
        self._by_force = by_force
        self._leave.set()

    @classmethod
    def abandon(cls) -> None:
        """Kill the Ray that this process started and remove its folders; the process ends next."""
        end_by_force()
        for folder in tuple(cls._folders):
            remove_folder(folder)

    def lost(self) -> str:
        """Return which server of a Ray that was started here ended, and how; "" if none did."""
        for kind, process in self._servers.items():
            if (status := process.poll()) is not None:
                how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
                return f"Ray's {kind} (process {process.pid}) ended: {how}"
        return ""

    def _end(self) -> None:
        self.leave()
        if RaySession._last is not None:
            RaySession._last.join(LEAVE_S)


class RayRuntime:
    """Runtime of actors on a local or a given Ray."""

    def __init__(
        self,
        *,
        processes: int,
        limits: DecodeLimits,
        log_dir: str = "",
        address: str | None = None,
        start_s: float = START_S,
    ) -> None:
        """processes: how many will be started, so that Ray starts them in parallel."""
        self._log_dir = log_dir
        self._limits = limits
        self._namespace = f"roadstead-{secrets.token_hex(6)}"
        self._hosts: dict[str, str] = {}
        self._handles: dict[str, ActorHandle] = {}
        self.pids: dict[str, int] = {}
        local: dict[str, object] = {
            "num_cpus": max(1, processes),
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
            "_system_config": SYSTEM,
        }
        self._ray = RaySession(
            start_s,
            address=address or LOCAL,
            namespace=self._namespace,
            **(local if address is None else {}),
        )

    async def start(
        self, groups: Mapping[str, Mapping[str, Factory]], *, timeout_s: float
    ) -> dict[str, Ref]:
        """Start actors by name, in one process per group; return once all answer.

        DeadlineError if one is late, ActorLostError if one fails, InputError if its input is wrong.
        """
        for host, builds in groups.items():
            self._hosts |= dict.fromkeys(builds, host)
        directory = RayDirectory(self._namespace, self._limits, dict(self._hosts))
        remote = ray.remote(RayHost)
        for host, builds in groups.items():
            options = {
                "name": host,
                "namespace": self._namespace,
                "num_cpus": 0,
                "max_restarts": 0,
                "max_task_retries": 0,
                "max_pending_calls": _MAX_PENDING_CALLS,
            }
            begin = partial(
                remote.options(**options).remote,
                *(host, dict(builds), directory, self._limits, self._log_dir),
            )
            self._handles[host] = await _once_free(host, begin, timeout_s)
        await asyncio.gather(*(self._await_ready(host, timeout_s) for host in groups))
        return {name: directory.find(name) for builds in groups.values() for name in builds}

    async def _await_ready(self, host: str, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                answer = await _told(self._handles[host].ready.remote)
        except TimeoutError:
            raise late(host, "its start", timeout_s) from None
        except RayError as failure:
            raise ActorLostError(f"{host} did not start: {_first_line(failure)}") from None
        if isinstance(answer, Failure):
            raise failure_in(host, answer)
        self.pids[host] = answer

    def find(self, name: str, stamp: Stamp = NOBODY) -> Ref:
        """Return a Ref to a running actor."""
        return RayDirectory(self._namespace, self._limits, self._hosts).find(name, stamp)

    async def kill(self, name: str) -> None:
        """Kill an actor's process; it may still answer until Ray has done so."""
        ray.kill(self._handles[self._hosts.get(name, name)], no_restart=True)

    def lost(self) -> str:
        """Return which part of Ray itself ended, and how; "" while all runs."""
        return self._ray.lost()

    async def stop(self) -> None:
        """End all actors of the run, and shut Ray down in the background."""
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


async def _told(call: Callable[[], Awaitable[T]]) -> T:
    """Return the reply to a call; repeated if Ray loses it, so it may be received twice."""
    while True:
        try:
            return await call()
        except ActorUnavailableError:
            await asyncio.sleep(NAME_S)


async def _once_free(host: str, begin: Callable[[], ActorHandle], timeout_s: float) -> ActorHandle:
    """Start an actor; retries while Ray still knows an ended one of the same name."""
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    return begin()
                except ValueError:
                    await asyncio.sleep(NAME_S)
    except TimeoutError:
        raise late(host, "its start", timeout_s) from None


def _first_line(failure: BaseException) -> str:
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__
