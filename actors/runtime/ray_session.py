"""Sessions of Ray in this process: a Ray of its own, or one that it joins."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import threading
from concurrent.futures import Future
from subprocess import Popen
from typing import ClassVar

import ray
from ray._private.services import canonicalize_bootstrap_address

from roadstead.actors.interface import ActorLostError, deadline_error
from roadstead.actors.runtime.ray_folder import make_folder, remove_folder
from roadstead.actors.runtime.ray_heartbeats import address_of, connected
from roadstead.actors.runtime.ray_joining import (
    NO_NODE_HERE,
    is_on_a_node,
    join_problem,
)
from roadstead.actors.runtime.ray_node import (
    OwnPaths,
    end_by_force,
    ignore_dropped_references,
    lean_node,
    quiet_driver,
    servers,
)
from roadstead.actors.runtime.ray_target import RayTarget, own_environment
from roadstead.config.files import MAX_TEXT_BYTES, read_bytes
from roadstead.config.ray import RayOptions
from roadstead.protocol.errors import InputError

CONNECT_S = 5.0
"""Deadline for a first connection to the head of a cluster."""

LEAVE_S = 30.0
"""Deadline for the shutdown of Ray at the end of the process."""

OBJECT_STORE_BYTES = 128 * 1024 * 1024
"""Size of a local Ray's object store. Only messages above `max_direct_call_object_size` use it."""

SYSTEM_CONFIG = {
    # Nothing reads the task events of our local Ray. Every call would be reported to its servers,
    # and a shutdown waits for the reports: 15 s if the servers have ended.
    "task_events_report_interval_ms": 0,
    "enable_metrics_collection": False,
    # Otherwise `ray.init` holds the GIL until the first processes have registered: forever if one
    # of them ends or hangs while it starts, and then no deadline in this process could fire.
    "prestart_worker_first_driver": False,
    # After this time Ray ends a process that has not registered and starts another. It must be much
    # shorter than the deadline of the start: else one process that crashes while it starts would
    # end the run.
    "worker_register_timeout_seconds": 30,
    # Ray's workers run at niceness 15 by default: on a busy machine a run then takes twenty times
    # as long.
    "worker_niceness": 0,
    # A batch of 2,048 pods exceeds the 100 kB that Ray sends inside a call by default. Longer
    # messages use the object store, which doubles the time of the call on both sides.
    "max_direct_call_object_size": 4 * 1024 * 1024,
}
"""Ray's own settings for a local Ray (docs/decisions/0009)."""

_token: list[str] = []
"""At most one: the token of the local Rays of this process, which Ray reads once for all."""


class RaySession:
    """One connection to Ray: a thread starts or joins it, waits, and shuts it down.

    One thread does both because Ray's processes die with the thread that started them. The shutdown
    runs in the background, so that the result of a run is not delayed by it. The end of the process
    and the next session wait for it.

    _last, _ending: threads of the last session, and of the last whose shutdown has begun. _folders:
    of local Rays that are not shut down yet. _leave: set when the shutdown shall begin.
    """

    _last: ClassVar[threading.Thread | None] = None
    _ending: ClassVar[threading.Thread | None] = None
    _folders: ClassVar[set[str]] = set()

    def __init__(self, target: RayTarget, timeout_s: float, **options: object) -> None:
        """Return when Ray has started or is joined. options: of `ray.init`.

        DeadlineError if that takes longer than `timeout_s`, ActorLostError if Ray cannot start.
        """
        if RaySession._last is not None:
            RaySession._last.join(timeout_s)
        self._target = target
        self._options = options
        self._joined: Future[None] = Future()
        self._leave = threading.Event()
        self._by_force = False
        self._folder = ""
        self._servers: dict[str, Popen[bytes]] = {}
        atexit.register(self._end)
        RaySession._last = threading.Thread(target=self._run, name="ray-session", daemon=True)
        RaySession._last.start()
        what = "Ray" if target.is_local else f"Ray at {target.address} ({target.why})"
        try:
            self._joined.result(timeout_s)
        except TimeoutError:
            self.leave()
            raise deadline_error(what, "its start", timeout_s) from None
        except Exception as failure:
            did = "did not start" if target.is_local else "cannot be joined"
            raise ActorLostError(f"{what} {did}: {join_problem(failure)}") from failure

    def _run(self) -> None:
        try:
            if self._target.is_local:
                with own_environment():
                    self._serve()
            else:
                self._serve()
        finally:
            # A registered callback would keep the ended session, and the frames of its failure.
            atexit.unregister(self._end)

    def _serve(self) -> None:
        # No usage statistics are sent.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        logging.getLogger("ray").setLevel(logging.ERROR)
        try:
            self._start() if self._target.is_local else self._join()
        except BaseException as failure:
            self._joined.set_exception(failure)
            return
        self._servers = servers()
        self._joined.set_result(None)
        self._leave.wait()
        if self._by_force:
            end_by_force()
        ignore_dropped_references()
        ray.shutdown()
        if self._folder and not self._by_force:
            remove_folder(self._folder)
        self._folders.discard(self._folder)

    def _start(self) -> None:
        """Start a Ray of this process's own."""
        # The token is in no file: only child processes of this one get it.
        if not _token:
            _token.append(os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32))
        os.environ["RAY_AUTH_TOKEN"] = _token[0]
        self._folder = make_folder()
        self._folders.add(self._folder)
        with lean_node(self._folder):
            # A subfolder, because Ray makes the folder that it is given accessible to every user.
            self._init(_temp_dir=f"{self._folder}/ray")

    def _join(self) -> None:
        """Join a Ray that runs already, by its own rules: its tokens, its logs, its isolation."""
        # For `auto` Ray looks for one on this machine; it may find the address of an ended one.
        address = canonicalize_bootstrap_address(self._target.address) or ""
        # Otherwise Ray tries for two minutes, and writes its attempts on standard error.
        if not connected({"": address_of(address)}, CONNECT_S):
            where = "there" if address == self._target.address else f"at {address}"
            raise ConnectionError(f"nothing accepts connections {where} ({CONNECT_S:g} s)")
        # Ray would look for the node of this machine for a minute.
        if not is_on_a_node(CONNECT_S):
            raise ConnectionError(NO_NODE_HERE)
        with quiet_driver():
            self._init()

    def _init(self, **options: object) -> None:
        ray.init(
            address=self._target.address,
            logging_level=logging.ERROR,
            log_to_driver=False,
            configure_logging=False,
            job_config=OwnPaths(),
            **self._options,
            **options,
        )

    @property
    def folder(self) -> str:
        """The private folder of a local Ray, removed at its shutdown; "" for a joined one."""
        return self._folder

    def leave(self, *, by_force: bool = False) -> None:
        """Begin to shut Ray down; returns at once. by_force: kill its processes first."""
        self._by_force = by_force
        RaySession._ending = RaySession._last
        self._leave.set()

    @classmethod
    def await_end(cls, timeout_s: float) -> None:
        """Wait for the shutdown of an earlier session: until then, Ray counts as initialized."""
        if cls._ending is not None:
            cls._ending.join(timeout_s)

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


class BorrowedRay:
    """The Ray that this process has initialized before the run, which is not shut down after it."""

    def leave(self, *, by_force: bool = False) -> None:
        """Leave Ray as it is."""

    def lost(self) -> str:
        """Return "": the servers of such a Ray are watched by heartbeats alone."""
        return ""


def initialized_address() -> str | None:
    """Return the address of the head of the Ray that this process has initialized, if any."""
    return str(ray.get_runtime_context().gcs_address) if ray.is_initialized() else None


def open_session(
    target: RayTarget, options: RayOptions, timeout_s: float, namespace: str, processes: int = 1
) -> RaySession | BorrowedRay:
    """Start or join the Ray of a target.

    processes: how many a local Ray may start at a time. Errors as for `RaySession`, and InputError
    for a runtime environment that cannot be read, or that an initialized Ray cannot have.
    """
    # The address is "" for a Ray that this process has initialized before the run.
    if not target.address:
        if options.runtime_env is not None:
            raise InputError(
                "has no effect on a Ray that this process has initialized: pass its content to "
                "ray.init(runtime_env=...), or call ray.shutdown() first and set ray.address",
                source="ray.runtime_env",
                value=str(options.runtime_env),
            )
        return BorrowedRay()
    if target.is_local:
        local: dict[str, object] = {
            "num_cpus": max(1, processes),
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
            "_system_config": SYSTEM_CONFIG,
        }
        return RaySession(target, timeout_s, namespace=namespace, **local)
    environment = runtime_env_in(options)
    return RaySession(target, timeout_s, namespace=namespace, runtime_env=environment)


def runtime_env_in(options: RayOptions) -> dict[str, object] | None:
    """Return the runtime environment that the options name; InputError if it cannot be read."""
    path = options.runtime_env
    if path is None:
        return None
    # Few runs have such a file, and YAML takes time to import.
    from roadstead.config.reader import read_document

    document = read_document(read_bytes(path, MAX_TEXT_BYTES), source=str(path))
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise InputError("must be a mapping, Ray's runtime environment", source=str(path))
    return document
