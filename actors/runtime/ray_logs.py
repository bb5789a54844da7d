"""Logs of a run's processes on an existing Ray cluster: written on their nodes, copied at the end.

    process ──► its file in Ray's folder of logs, on its node ── parts, newest first ──► driver

The driver is Ray's: the process that started the run. The files of a node are read through a
process of the run that is still alive there; without one, through a Ray task. Besides logs there
may be transcripts: the last messages of an actor that failed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from roadstead.actors.logs import LOG_SUFFIX
from roadstead.actors.runtime.log_location import PART_BYTES, LogLocation, is_log, read_on_node
from roadstead.actors.runtime.ray_joining import first_line
from roadstead.actors.runtime.ray_placement import RayNode, role_of
from roadstead.actors.runtime.transcript import SUFFIX
from roadstead.protocol.plain_data import CodecError, DecodeLimits, unpack

MAX_FILE_BYTES = 8 * 1024 * 1024
"""At most this many bytes of one file are copied, from its end: its newest lines."""

NODES_AT_A_TIME = 8
"""Number of nodes whose files are copied in parallel."""

_LIMITS = DecodeLimits(max_bytes=2 * PART_BYTES)

LogRequest = Callable[[str, int, int], Awaitable[bytes]]
"""request(name, start, count): `count` bytes of a file from `start`; ("", 0, 0): all files."""


@dataclass(frozen=True, slots=True)
class NodeLogs:
    """The logs on one node.

    label: of the node, in the names of the copies. text: the node as written in messages. expected:
    names of the logs that should be there, without suffix. requests: ways to read the files, tried
    in this order.
    """

    label: str
    text: str
    expected: Sequence[str]
    requests: Sequence[LogRequest]


@dataclass(slots=True)
class RunLogs:
    """The processes of a run that write logs on nodes, replaced ones included.

    run: its unique name. into: the driver's folder. _nodes: by node id. _names: names of log files
    without suffix, by node id. _count: number of starts, by process.
    """

    run: str
    into: Path
    _nodes: dict[str, RayNode] = field(default_factory=dict)
    _names: dict[str, list[str]] = field(default_factory=dict)
    _count: Counter[str] = field(default_factory=Counter)

    def location_for(self, process: str, node: RayNode) -> LogLocation:
        """Return where a process that is about to start on a node writes its log."""
        self._count[process] += 1
        number = self._count[process]
        name = process if number == 1 else f"{process}.{number}"
        self._nodes[node.id] = node
        self._names.setdefault(node.id, []).append(name)
        return LogLocation(run=self.run, name=name)

    async def gather(
        self,
        handles: Mapping[str, ActorHandle],
        node_of: Mapping[str, str],
        lost: Collection[str],
        timeout_s: float,
    ) -> str:
        """Copy the logs of all nodes into the driver's folder. Return what is missing, or "".

        handles, node_of: actor and node id of each process that is alive. lost: ids of lost nodes.
        Never raises an error of Ray, and returns within about `timeout_s`.
        """
        lost_ids = [node_id for node_id in self._names if node_id in lost]
        labels = self._labels()
        readable = []
        for node_id in self._names.keys() - lost:
            # The control process (queue, cache and binder) first: a scheduler does not answer in
            # the middle of a batch.
            local = sorted(
                (name for name in handles if node_of.get(name) == node_id),
                key=lambda name: role_of(name) != "control",
            )
            requests: list[LogRequest] = [
                partial(_request_from_process, handles[name]) for name in local
            ]
            text = str(self._nodes[node_id])
            requests.append(partial(_request_by_task, self.run, node_id))
            readable.append(NodeLogs(labels[node_id], text, self._names[node_id], requests))
        missing = await gather(sorted(readable, key=lambda node: node.label), self.into, timeout_s)
        for node_id in lost_ids:
            names = ", ".join(self._names[node_id])
            missing.append(f"{names} on {self._nodes[node_id]} (the node is lost)")
        return f"Not all logs are in {self.into}: {'; '.join(missing)}." if missing else ""

    def _labels(self) -> dict[str, str]:
        """Return the label of each node: its name, with a part of its id if that is not unique."""
        times = Counter(node.name for node in self._nodes.values())
        return {
            node_id: re.sub(r"[^\w.-]", "_", node.name)
            + (f"-{node_id[:8]}" if times[node.name] > 1 else "")
            for node_id, node in self._nodes.items()
        }


async def _request_from_process(handle: ActorHandle, name: str, start: int, count: int) -> bytes:
    answer: bytes = await handle.log_part.remote(name, start, count)
    return answer


async def _request_by_task(run: str, node_id: str, name: str, start: int, count: int) -> bytes:
    """Read a file of a node on which no process of the run is alive, or none answers."""
    task = ray.remote(read_on_node).options(
        num_cpus=0,
        max_retries=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
    )
    answer: bytes = await task.remote(run, name, start, count)
    return answer


async def gather(nodes: Sequence[NodeLogs], into: Path, timeout_s: float) -> list[str]:
    """Copy the logs of nodes into a folder, within the time. Return what is missing, in words."""
    missing: list[str] = []
    slots = asyncio.Semaphore(NODES_AT_A_TIME)

    async def copy(node: NodeLogs) -> None:
        async with slots:
            await _copy_node(node, into, timeout_s, missing)

    copies = {asyncio.create_task(copy(node)): node for node in nodes}
    if copies:
        _, late = await asyncio.wait(copies, timeout=timeout_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        for task, node in copies.items():
            names = ", ".join(node.expected)
            if task.cancelled():
                missing.append(f"{names} on {node.text} (not received within {timeout_s:g} s)")
            elif failure := task.exception():
                missing.append(f"{names} on {node.text} ({first_line(failure)})")
    return missing


async def _copy_node(node: NodeLogs, into: Path, timeout_s: float, missing: list[str]) -> None:
    """Copy all files of one node. Raises the error of the last request if all of them fail."""
    failure: Exception = TimeoutError("no answer")
    for request in node.requests:
        try:
            # The first request may hang: half of the time is left for another one.
            async with asyncio.timeout(timeout_s / 2):
                folder, files = _decode_listing(await request("", 0, 0))
        except (RayError, TimeoutError, CodecError) as each:
            failure = each
            continue
        # Transcripts first: they are short, and needed most.
        for name, size_bytes in sorted(files, key=lambda file: not file[0].endswith(SUFFIX)):
            left_out = await _copy_file(request, (name, size_bytes), node.label, into)
            if left_out:
                whole = f"all of it is there in {folder}/{name}"
                missing.append(f"{left_out:,} bytes of {name} on {node.text} ({whole})")
        absent = set(node.expected) - {name.removesuffix(LOG_SUFFIX) for name, _ in files}
        if absent:
            missing.append(f"{', '.join(sorted(absent))} on {node.text} (no file in {folder})")
        return
    raise failure


def _decode_listing(answer: bytes) -> tuple[str, list[tuple[str, int]]]:
    """Return the folder of a node and the names and sizes of its files. CodecError if malformed."""
    listed = unpack(answer, _LIMITS)
    match listed:
        case [str(folder), [*files]]:
            pass
        case _:
            raise CodecError("not a list of files")
    names_and_sizes = []
    for file in files:
        match file:
            case [str(name), int(size_bytes)] if is_log(name):
                names_and_sizes.append((name, size_bytes))
            case _:
                raise CodecError("not a name and size of a file")
    return folder, names_and_sizes


async def _copy_file(request: LogRequest, file: tuple[str, int], label: str, into: Path) -> int:
    """Copy the end of a file; return how many bytes before it are left out.

    Parts are read from the end backwards, so that an interrupted copy still has the newest lines.
    """
    name, size_bytes = file
    stop, parts = max(0, size_bytes - MAX_FILE_BYTES), list[bytes]()
    at = size_bytes  # Start of the parts that are copied.
    try:
        while at > stop:
            count = min(PART_BYTES, at - stop)
            part = unpack(await request(name, at - count, count), _LIMITS)
            if not isinstance(part, bytes) or len(part) != count:
                raise CodecError(f"{name}: not {count} bytes")
            parts.append(part)
            at -= count
    finally:
        if parts or not size_bytes:
            _write(into, name, label, b"".join(reversed(parts)), left_out=at)
    return at


def _write(into: Path, name: str, label: str, data: bytes, left_out: int) -> None:
    """Write a copy as NAME@LABEL: append a log to what earlier runs left, replace a transcript.

    left_out: number of bytes of the file before `data`.
    """
    path = into / f"{Path(name).stem}@{label}{Path(name).suffix}"
    into.mkdir(parents=True, exist_ok=True)
    if name.endswith(SUFFIX):
        if left_out:
            # A transcript can only be decoded as a whole.
            return
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        return
    if left_out:
        cut = data.find(b"\n") + 1
        note = {"level": "info", "event": "older lines are left out", "bytes": left_out + cut}
        data = json.dumps(note).encode() + b"\n" + data[cut:]
    with open(path, "ab") as file:
        file.write(data)
