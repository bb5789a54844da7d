"""Ray's private parts: a lean local Ray of this user alone, and one that may be left at any time.

`ray.init` starts an autoscaler monitor, a log monitor and an API server beside the processes that
run actors, and waits for the last of them; it has no option that leaves them out. A run that starts
its own Ray scales nothing, writes its own logs and shows no dashboard: without the three, Ray is
there 2.3 s earlier on two cores and takes 3.6 s less of their time (docs/decisions/0009).

Nor has it options for what its processes can reach and who can reach them (docs/decisions/0028):
they listen on loopback, work in a folder of the session, and import nothing from the user's one.
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


class LeanNode(Node):  # type: ignore[misc]
    """Ray's node, without what only watches it.

    These are Ray's private names: where a release has others, it starts all its processes, which
    takes longer and does no harm.
    """

    def __init__(self, ray_params: RayParams, *args: object, **options: object) -> None:
        ray_params.update_if_absent(worker_path=CHILD)
        super().__init__(ray_params, *args, **options)

    def start_monitor(self) -> None:
        """The autoscaler's monitor: a fleet of one node does not scale."""

    def start_log_monitor(self) -> None:
        """Sends the actors' output to the driver, which asks for none."""

    def start_api_server(self, **_: object) -> None:
        """Serves the dashboard and jobs that are submitted over HTTP."""


class OwnPaths(JobConfig):  # type: ignore[misc]
    """A job that does not add the driver's working directory to the path of its workers."""

    def _runtime_env_has_working_dir(self) -> bool:
        return True


@contextmanager
def lean_node(folder: str) -> Iterator[None]:
    """While it lasts, a Ray that this process starts has no more than it needs.

    folder: where its processes work. Nor does it print on standard output, among results, that a
    process died: the supervisor says what comes of it.
    """
    begin = partial(_begin, services.ConsolePopen, folder)
    with ExitStack() as stack:
        for module, name, value in (
            (ray._private.node, "Node", LeanNode),
            (worker, "listen_error_messages", _listen_to_nothing),
            (services, "ConsolePopen", begin),
            (services, "_build_python_executable_command_memory_profileable", _agent_command),
            # Ray has 127.0.0.1 stand for an address that other machines reach, unless this is off.
            (ray_constants, "ENABLE_RAY_CLUSTER", False),
            # SIGTERM would have a native stack on standard error.
            (ray_constants, "RAY_DISABLE_FAILURE_SIGNAL_HANDLER", True),
            # Under `uv run` Ray would copy the working directory to its workers.
            (ray_constants, "RAY_ENABLE_UV_RUN_RUNTIME_ENV", False),
        ):
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        yield


def _agent_command(*_: object) -> list[str]:
    return [sys.executable, "-u", CHILD]


def _begin(
    popen: type[Popen[bytes]],
    folder: str,
    command: list[str],
    *,
    env: dict[str, str],
    **options: object,
) -> Popen[bytes]:
    """A process of Ray: see `lean_node`."""
    options |= {"env": env | child_environment(), "cwd": folder, "umask": OWNER_ONLY}
    return popen(command, **options)  # type: ignore[call-overload, no-any-return]


def _listen_to_nothing(*_: object) -> None:
    """What Ray's thread does that otherwise prints what its servers tell of errors."""


def servers() -> dict[str, Popen[bytes]]:
    """The processes without which a Ray that this process started can do nothing, by name.

    Of a Ray that was joined there are none.
    """
    node = worker._global_node
    kinds = {} if node is None else node.all_processes
    return {kind: kinds[kind][0].process for kind in ("gcs_server", "raylet") if kind in kinds}


def end_by_force() -> None:
    """Ends all processes of a Ray that this process started; actors end with their raylet."""
    node = worker._global_node
    if node is not None:
        node.kill_all_processes(check_alive=False, allow_graceful=False)


class _Leaving:
    """Ray's core worker, deaf to those who let go of an object."""

    def __init__(self, core: object) -> None:
        self._core = core

    def __getattr__(self, name: str) -> object:
        return getattr(self._core, name)

    def remove_object_ref_reference(self, _: object) -> None:
        """What is counted here ends with the core worker."""


def let_go() -> None:
    """To be called before `ray.shutdown`: what lets go of an object meanwhile is not heard.

    Ray ends the whole process, with status 1, if a reference to an object is dropped while its core
    worker goes: by the garbage collector, say, of the thread that writes a run's results.
    """
    core = getattr(worker.global_worker, "core_worker", None)
    if core is not None:
        worker.global_worker.core_worker = _Leaving(core)
