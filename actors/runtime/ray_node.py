"""Patches of Ray's private parts: a lean, isolated local Ray, and its safe shutdown.

`ray.init` starts an autoscaler monitor, a log monitor, an API server and two agents besides the
processes that run actors, and waits for most of them; no option turns them off. A run that starts
its own Ray does not scale, writes its own logs, shows no dashboard and has no runtime environment:
without them Ray starts earlier and takes less processor time (docs/decisions/0009).

Ray also has no options that isolate its processes (docs/decisions/0028): here they listen on
loopback, work in a folder of the session, and import nothing from the user's working directory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from subprocess import Popen

import ray._private.node
from ray._private import ray_constants, services, worker
from ray._private.node import Node
from ray._private.parameter import RayParams
from ray.job_config import JobConfig

from roadstead.actors.runtime import ray_child
from roadstead.isolation import child_environment

CHILD = os.path.abspath(ray_child.__file__)
"""The program with which the raylet starts Python."""

OWNER_ONLY = 0o077
"""The umask of Ray's processes."""

AGENTS = (
    ray_constants.PROCESS_TYPE_DASHBOARD_AGENT,
    ray_constants.PROCESS_TYPE_RUNTIME_ENV_AGENT,
)
"""Agents that a local Ray does not need. The raylet starts a process for each, and ends if that
process ends; so each is replaced by one that waits (`ray_child.IDLE`)."""

AGENT_PORTS = (
    "metrics_agent_port",
    "metrics_export_port",
    "dashboard_agent_listen_port",
    "runtime_env_agent_port",
)
"""Ray's names of the ports on which its agents listen."""

NO_PORT = -1
"""Ray's value for an agent that listens on no port."""

JOIN_TRIES = 5
"""How often Ray asks the head of a cluster that is joined, a second after each refusal."""


class LeanNode(Node):  # type: ignore[misc]
    """Ray's node without its monitors, dashboard and agents.

    The overridden names are private to Ray: a release that renames them starts all its processes,
    which is slower and changes nothing else.
    """

    def __init__(self, ray_params: RayParams, *args: object, **options: object) -> None:
        ray_params.update_if_absent(worker_path=CHILD)
        super().__init__(ray_params, *args, **options)

    def start_monitor(self) -> None:
        """Skip the autoscaler's monitor: a cluster of one Ray node does not scale."""

    def start_log_monitor(self) -> None:
        """Skip the log monitor, which sends the actors' output to the driver."""

    def start_api_server(self, **_: object) -> None:
        """Skip the API server, which serves the dashboard and jobs over HTTP."""

    def start_raylet(self, *args: object, **options: object) -> None:
        """Start the raylet, which reads the ports of its agents from files before it continues."""
        for name in AGENT_PORTS:
            ray._raylet.persist_port(self._session_dir, self._node_id, name, NO_PORT)
        super().start_raylet(*args, **options)


class OwnPaths(JobConfig):  # type: ignore[misc]
    """A job that does not add the driver's working directory to the path of its workers."""

    def _runtime_env_has_working_dir(self) -> bool:
        # Ray adds the driver's directory unless the job says that it has one of its own.
        return True


@contextmanager
def quiet_driver() -> Iterator[None]:
    """Keep a Ray that is initialized inside the block from printing on this process's output.

    It would print a native stack on SIGTERM, and, among the results on standard output, errors of a
    node that ended, which the supervisor reports anyway. A head that refuses its token would be
    asked twenty times, once a second, with a printed line for each.
    """
    with ExitStack() as stack:
        for module, name, value in (
            (ray_constants, "RAY_DISABLE_FAILURE_SIGNAL_HANDLER", True),
            (worker, "listen_error_messages", _listen_to_nothing),
            (ray_constants, "NUM_REDIS_GET_RETRIES", JOIN_TRIES),
        ):
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        yield


@contextmanager
def lean_node(folder: str) -> Iterator[None]:
    """Apply the patches to a Ray that is started inside the block.

    folder: working directory of its processes.
    """
    begin = partial(_start_process, services.ConsolePopen, folder)
    with quiet_driver(), ExitStack() as stack:
        for module, name, value in (
            (ray._private.node, "Node", LeanNode),
            (services, "ConsolePopen", begin),
            (services, "_build_python_executable_command_memory_profileable", _agent_command),
            # Unless this is off, Ray replaces 127.0.0.1 by an address that other machines reach.
            (ray_constants, "ENABLE_RAY_CLUSTER", False),
            # Under `uv run` Ray would copy the working directory to its workers.
            (ray_constants, "RAY_ENABLE_UV_RUN_RUNTIME_ENV", False),
        ):
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        yield


def _agent_command(component: str, *_: object, **options: object) -> list[str]:
    """Return the beginning of a command, to which Ray appends the path of its Python program.

    component: Ray's type of the process that the command starts.
    """
    if component in AGENTS:
        return [sys.executable, "-I", "-S", CHILD, ray_child.IDLE]
    return [sys.executable, "-u", CHILD]


def _start_process(
    popen: type[Popen[bytes]],
    folder: str,
    command: list[str],
    *,
    env: dict[str, str],
    **options: object,
) -> Popen[bytes]:
    """Start a process of Ray; see `lean_node`."""
    options |= {"env": env | child_environment(), "cwd": folder, "umask": OWNER_ONLY}
    return popen(command, **options)  # type: ignore[call-overload, no-any-return]


def _listen_to_nothing(*_: object) -> None:
    """Replacement of the thread in which Ray prints error messages of its servers."""


def servers() -> dict[str, Popen[bytes]]:
    """Return the servers of a Ray that this process started, by name; {} if it joined a Ray."""
    node = worker._global_node
    processes = {} if node is None else node.all_processes
    return {
        name: processes[name][0].process for name in ("gcs_server", "raylet") if name in processes
    }


def end_by_force() -> None:
    """Kill all processes of a Ray that this process started; actors end with their raylet."""
    node = worker._global_node
    if node is not None:
        node.kill_all_processes(check_alive=False, allow_graceful=False)


class _ClosingCoreWorker:
    """Ray's core worker, which ignores dropped object references."""

    def __init__(self, core: object) -> None:
        self._core = core

    def __getattr__(self, name: str) -> object:
        return getattr(self._core, name)

    def remove_object_ref_reference(self, _: object) -> None:
        """Ignore it: the count ends with the core worker."""


def ignore_dropped_references() -> None:
    """Ignore dropped object references from now on; call it before `ray.shutdown`.

    Ray ends the whole process with status 1 if an object reference is dropped while its core worker
    shuts down, for example by the garbage collector in the thread that writes a run's results.
    """
    core = getattr(worker.global_worker, "core_worker", None)
    if core is not None:
        worker.global_worker.core_worker = _ClosingCoreWorker(core)
