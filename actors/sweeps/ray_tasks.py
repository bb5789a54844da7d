"""RayTasks: runs the tasks of a sweep as Ray tasks, on a Ray of its own or on all nodes of one.

A task is sent as packed plain data with the name of its function; no object of a user is pickled.
Ray repeats nothing (`max_retries=0`), since the core of the sweep starts a lost task again, and
counts the starts. On a joined Ray,
each task reserves a CPU of a node that is checked before, and nodes are watched: Ray itself notices
a lost one after 16 s (docs/decisions/0047 and 0048).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from roadstead.actors.interface import (
    ERROR,
    REPLY,
    Announce,
    Failure,
    NoNodeError,
    RunFailedError,
    decode_failure,
    encode_failure,
)
from roadstead.actors.runtime.ray_heartbeats import Heartbeats, address_of
from roadstead.actors.runtime.ray_joining import first_line
from roadstead.actors.runtime.ray_placement import RayNode
from roadstead.actors.runtime.ray_session import RaySession, initialized_address, open_session
from roadstead.actors.runtime.ray_target import target_of
from roadstead.actors.sweeps.node_watch import NodeWatch
from roadstead.actors.sweeps.task_nodes import CPUS_PER_TASK, TaskNodes
from roadstead.config.settings import Settings
from roadstead.protocol.codec import Envelope, from_wire, to_wire
from roadstead.protocol.plain_data import pack
from roadstead.sweeps.drivers import Ended, Failed, Finished, Lost
from roadstead.sweeps.functions import LIMITS, run_task
from roadstead.sweeps.tasks import Start, Work

WAIT_S = 0.2
"""Longest wait for a result: a signal, a lost node and new nodes are noticed after it."""

LOCAL_NODE = "local"
"""Id of the one node of a Ray of the sweep's own."""

SHARED_FILE = "sweep"
"""Name of the file with the shared input of all tasks, on a Ray of the sweep's own."""

NO_FREE_CPU = "no node that passed its check has a free CPU"


def run_remotely(function: str, shared: bytes, task: bytes) -> bytes:
    """Run a task in a process of Ray; return the envelope of its result or of its error."""
    try:
        return Envelope(REPLY, 0, 0, "", run_task(function, shared, task)).encode()
    except Exception as failure:
        return Envelope(ERROR, 0, 0, "", to_wire(encode_failure(failure))).encode()


def run_with_file(function: str, path: str, task: bytes) -> bytes:
    """Run a task like `run_remotely`, with its shared input from a file of this machine."""
    return run_remotely(function, Path(path).read_bytes(), task)


@contextlib.contextmanager
def ray_failures() -> Iterator[None]:
    """Raise an error of Ray inside the block as a RunFailedError."""
    try:
        yield
    except RayError as failure:
        raise RunFailedError(f"Ray failed: {first_line(failure)}") from failure


class RayTasks:
    """Driver of a sweep (`TaskDriver`) on Ray: starts its tasks, and returns how they ended.

    A task may be finished, failed (which ends the sweep), or lost with its process or node.

    _running: reference of the reply → the start of a task (`Start`: its index, and how often it was
    started), and the id of its node. _problems: of nodes that did not pass their check.
    _are_all_checked: whether all nodes were checked once.
    _is_waiting: whether no task may run, since `_idle_since_s`. _is_announced: whether the user
    knows that.
    """

    def __init__(
        self, work: Work, settings: Settings, jobs: int | None, announce: Announce
    ) -> None:
        """jobs: tasks at a time; None for as many as the joined Ray has free CPUs.

        Errors as for `open_session`, and RunFailedError if the shared input cannot be stored.
        """
        self._work, self._jobs, self._announce = work, jobs, announce
        self._start_s = settings.deadlines.start_s
        RaySession.await_end(self._start_s)
        initialized = initialized_address()
        target = target_of(settings.ray, initialized=initialized, environ=os.environ)
        namespace = f"roadstead-{secrets.token_hex(6)}"
        processes = jobs or os.cpu_count() or 1
        self._ray = open_session(target, settings.ray, self._start_s, namespace, processes)
        self._running: dict[ray.ObjectRef, tuple[Start, str]] = {}
        self._nodes = TaskNodes(jobs)
        self._watch: NodeWatch | None = None
        self._heartbeats: Heartbeats | None = None
        self._problems: tuple[str, ...] = ()
        self._is_stopped = False
        self._idle_since_s = time.monotonic()
        self._is_waiting = self._are_all_checked = self._is_announced = False
        self._shared: object
        try:
            if isinstance(self._ray, RaySession) and target.is_local:
                self._use_local(Path(self._ray.folder), processes)
            else:
                self._use_joined()
        except RunFailedError:
            self._ray.leave()
            raise

    def _use_local(self, folder: Path, processes: int) -> None:
        # Not an object of Ray: if a signal to the whole process group ends the raylet, Ray fails to
        # recover its objects, and ends this process without a message.
        path = folder / SHARED_FILE
        try:
            path.write_bytes(pack(self._work.shared))
        except OSError as failure:
            raise RunFailedError(f"{path}: cannot be written: {failure.strerror}") from failure
        self._function, self._shared = ray.remote(run_with_file), str(path)
        node = RayNode(
            LOCAL_NODE, LOCAL_NODE, "127.0.0.1", port=0, cpus=processes, free_cpus=processes
        )
        self._nodes.use([node], {})

    def _use_joined(self) -> None:
        self._function = ray.remote(run_remotely)
        with ray_failures():
            self._shared = ray.put(pack(self._work.shared))
        self._heartbeats = Heartbeats(address_of(ray.get_runtime_context().gcs_address))
        self._heartbeats.start()
        self._watch = NodeWatch(lambda: self._nodes.running)

    def max_running(self) -> int:
        """See `TaskDriver`."""
        return self._nodes.capacity

    def start(self, start: Start) -> None:
        """See `TaskDriver`."""
        node = self._nodes.begin()
        options: dict[str, object] = {"num_cpus": CPUS_PER_TASK, "max_retries": 0}
        if self._heartbeats is not None:
            self._heartbeats.watch({node.id: (node.address, node.port)})
            strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
            options["scheduling_strategy"] = strategy
        task = pack(self._work.tasks[start.task])
        with ray_failures():
            remote = self._function.options(**options)
            reply = remote.remote(self._work.function, self._shared, task)
        self._running[reply] = start, node.id

    def wait(self) -> Sequence[Ended]:
        """See `TaskDriver`. RunFailedError if Ray itself is lost, NoNodeError without a node."""
        self._check_ray()
        ended: list[Ended] = self._lose_nodes()
        self._use_listed_nodes()
        if not self._running:
            if not ended:
                self._await_free_cpu()
            return ended
        with ray_failures():
            timeout_s = 0 if ended else WAIT_S
            done, _ = ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        self._end_wait()
        return [*ended, *map(self._outcome, done)]

    def _outcome(self, reply: ray.ObjectRef) -> Ended:
        start, node_id = self._running.pop(reply)
        self._nodes.end(node_id)
        try:
            data = ray.get(reply)
        except RayTaskError as failure:
            # Ray could not begin the task: its own errors would be in the reply (`run_remotely`).
            return Failed(start, RunFailedError(f"run {start.task + 1}: {first_line(failure)}"))
        except RayError as failure:
            return Lost(start, first_line(failure))
        envelope = Envelope.decode(data, LIMITS)
        if envelope.kind == REPLY:
            assert isinstance(envelope.body, bytes), "a packed result"
            return Finished(start, envelope.body)
        failed = from_wire(Failure, envelope.body)
        return Failed(start, decode_failure(f"run {start.task + 1}", failed))

    def _check_ray(self) -> None:
        if why := self._ray.lost():
            raise RunFailedError(why)
        if self._heartbeats is not None and self._heartbeats.is_head_lost:
            raise RunFailedError("Ray's head does not answer any more")

    def _lose_nodes(self) -> list[Ended]:
        """Stop using nodes that do not answer any more; return their tasks as lost."""
        lost = self._heartbeats.lost if self._heartbeats is not None else frozenset()
        self._nodes.lose(lost)
        ended: list[Ended] = []
        for reply, (start, node_id) in tuple(self._running.items()):
            if node_id in lost:
                del self._running[reply]
                self._nodes.end(node_id)
                ended.append(Lost(start, "its Ray node does not answer"))
        return ended

    def _use_listed_nodes(self) -> None:
        """Use the nodes that the watch has listed."""
        if self._watch is None:
            return
        for note in self._watch.notes():
            self._announce(note)
        listing = self._watch.collect()
        if listing is not None:
            self._problems, self._are_all_checked = (
                listing.problems,
                self._are_all_checked or listing.are_all_checked,
            )
            self._nodes.use(listing.nodes, listing.running)
            if self._heartbeats is not None:
                self._nodes.lose(self._heartbeats.lost)

    def _await_free_cpu(self) -> None:
        """Wait for a free CPU; announce it once. NoNodeError if there was none for `_start_s`."""
        now_s = time.monotonic()
        if self._nodes.capacity:
            self._end_wait()
            return
        if not self._is_waiting:
            self._is_waiting, self._idle_since_s = True, now_s
            if self._watch is not None:
                self._watch.request([CPUS_PER_TASK] * (self._jobs or 1))
        if self._are_all_checked and not self._is_announced:
            self._is_announced = True
            self._announce(f"Waiting for the Ray cluster: {NO_FREE_CPU}.")
        if now_s - self._idle_since_s > self._start_s:
            left_out = f"; left out: {'; '.join(self._problems)}" if self._problems else ""
            raise NoNodeError(f"{NO_FREE_CPU}{left_out}. Waited {self._start_s:g} s")
        time.sleep(WAIT_S)

    def _end_wait(self) -> None:
        """Stop repeating the request for CPUs; Ray serves the last one until the sweep ends."""
        if self._is_waiting and self._watch is not None:
            self._watch.request([])
        self._is_waiting = False

    def stop(self) -> None:
        """See `TaskDriver`. Ray is shut down in the background."""
        if self._is_stopped:
            return
        self._is_stopped = True
        for watcher in (self._watch, self._heartbeats):
            if watcher is not None:
                watcher.stop()
        if self._watch is None:
            self._ray.leave(by_force=bool(self._running))
            return
        for reply in self._running:
            with contextlib.suppress(RayError):
                ray.cancel(reply, force=True)
        self._ray.leave()
