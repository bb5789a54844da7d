"""The Ray runtime: every actor is one Ray actor, in a process of its own.

A local Ray is started, if none is given, on loopback and without what only watches it, and stopped
again. Everything that Ray could wait for without end has a deadline here.
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
from roadstead.actors.runtime.garbage import collect_seldom
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
from roadstead.protocol.codec import Limits
from roadstead.protocol.errors import InputError

T = TypeVar("T")

START_S, LEAVE_S = 120.0, 30.0
"""How long Ray may take to start, and the end of the process may wait for it to be left."""

LOCAL = "local"
"""The address of a Ray of our own, also beside one that runs on this machine already."""

OBJECT_STORE_BYTES = 128 * 1024 * 1024
_MAX_PENDING_CALLS = 10_000

SYSTEM = {
    # Nobody asks a local Ray of ours what it does. Every call would be reported to its servers, and
    # who leaves waits until it has been: in vain for 15 s, where they are gone.
    "task_events_report_interval_ms": 0,
    "enable_metrics_collection": False,
    # Otherwise `ray.init` waits, with the GIL, until the first processes have registered: for ever
    # if one of them ends or hangs while it starts, and no deadline of ours could end that.
    "prestart_worker_first_driver": False,
    # Ray ends a process that has not registered by then, and starts another. As long as START_S, a
    # single process that crashes while it starts would end the run.
    "worker_register_timeout_seconds": 30,
    # Ray's workers run at niceness 15: on a machine that is busy with anything else, a run takes
    # twenty times as long. Somebody waits for this one.
    "worker_niceness": 0,
    # A batch of 2,048 pods is more than the 100 kB that Ray sends along with a call; what is longer
    # goes by the object store, which takes as long as the call once more, on both sides.
    "max_direct_call_object_size": 4 * 1024 * 1024,
}
"""Ray's own settings for a local Ray (docs/decisions/0009)."""

NAME_S = 0.05


class RayHost:
    """What Ray runs: a process with one actor, or with a few that share it."""

    def __init__(
        self,
        process: str,
        builds: Mapping[str, Factory],
        directory: Directory,
        limits: Limits,
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
            # Ray would bury it in a text of its own: a plugin that only the driver can import.
            self._failure = failure_out(failure.at(source=f"in the process {process} on Ray"))

    async def receive(self, name: str, data: bytes) -> bytes:
        """One envelope for one actor in, one envelope out."""
        return await self._dispatchers[name].receive(data)

    async def ready(self) -> int | Failure:
        """The process id: the actors are built and answer; or what is wrong with their input."""
        return self._failure or os.getpid()


@dataclass(frozen=True, slots=True)
class RayRef:
    """A Ref to an actor in a Ray process."""

    name: str
    handle: ActorHandle
    limits: Limits
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
    """Finds the actors of one run by name; travels to every actor of it.

    hosts: actor → the process that holds it, where that bears another name.
    """

    namespace: str
    limits: Limits
    hosts: Mapping[str, str]

    def find(self, name: str, stamp: Stamp = NOBODY) -> Ref:
        """A way to a running actor. ActorLostError if there is none of this name."""
        try:
            handle = ray.get_actor(self.hosts.get(name, name), namespace=self.namespace)
        except ValueError:
            raise ActorLostError(f"there is no actor {name}") from None
        return RayRef(name, handle, self.limits, stamp)


class RaySession:
    """Ray, joined or started, and left again by one thread that lives in between.

    Ray's processes die with the thread that started them. Leaving happens beside what follows: the
    result of a run is there, and nobody should wait for processes to go before seeing it. The
    process waits for it before it ends, and so does the next session.
    """

    _last: ClassVar[threading.Thread | None] = None
    _folders: ClassVar[set[str]] = set()

    def __init__(self, timeout_s: float, **options: object) -> None:
        """options: of `ray.init`. Returns when Ray is there.

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
            # A session that is over would be kept, with what stands in the frames of its failure.
            atexit.unregister(self._end)

    def _stay(self) -> None:
        # Nothing of a run is told to anybody outside.
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
            # No file has the token: who knows it has it from this process.
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
            self._folder = make_folder()
            self._folders.add(self._folder)
            # One deeper: the folder that it is given, Ray opens to every user.
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
        """Begins to leave Ray; returns at once. by_force: where it cannot be asked to end."""
        self._by_force = by_force
        self._leave.set()

    @classmethod
    def abandon(cls) -> None:
        """Ends all of Ray that this process started, and removes its folders: the process ends."""
        end_by_force()
        for folder in tuple(cls._folders):
            remove_folder(folder)

    def lost(self) -> str:
        """Which of the processes of a Ray that was started here ended, and how; "" if none did."""
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
    """Starts, finds and ends actors on a local or a given Ray."""

    def __init__(
        self,
        *,
        processes: int,
        limits: Limits,
        log_dir: str = "",
        address: str | None = None,
        start_s: float = START_S,
    ) -> None:
        """processes: how many will be started, so that Ray brings them up side by side."""
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
        """New actors by name, in one process per group, once all answer.

        DeadlineError if one is late, ActorLostError if one fails, InputError if it cannot be built
        from what it was given.
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
        """A way to a running actor."""
        return RayDirectory(self._namespace, self._limits, self._hosts).find(name, stamp)

    async def kill(self, name: str) -> None:
        """Ends an actor's process at once; until Ray has done so it may still answer."""
        ray.kill(self._handles[self._hosts.get(name, name)], no_restart=True)

    def lost(self) -> str:
        """Which part of Ray itself is gone, and how it ended; "" while all is there."""
        return self._ray.lost()

    async def stop(self) -> None:
        """Ends all actors of the run, and leaves Ray (a local one ends) beside what follows."""
        if self.lost():
            # What is left of it would wait for what is gone.
            self._handles.clear()
            self._ray.leave(by_force=True)
            return
        for handle in self._handles.values():
            with contextlib.suppress(RayError):
                ray.kill(handle, no_restart=True)
        self._handles.clear()
        self._ray.leave()


async def _told(call: Callable[[], Awaitable[T]]) -> T:
    """The reply to a call, which Ray may lose: it is made again, and may come twice."""
    while True:
        try:
            return await call()
        except ActorUnavailableError:
            await asyncio.sleep(NAME_S)


async def _once_free(host: str, begin: Callable[[], ActorHandle], timeout_s: float) -> ActorHandle:
    """Starts an actor; one of the same name that was ended may take a moment to be forgotten."""
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
