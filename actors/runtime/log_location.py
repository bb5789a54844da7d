"""Location of the log of a process on Ray, and parts of the logs of its node.

Every process of a run imports this; the driver's copies of logs of a cluster are in `ray_logs.py`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import ray

from roadstead.actors.logs import LOG_SUFFIX, open_log
from roadstead.actors.runtime.transcript import SUFFIX
from roadstead.protocol.plain_data import pack

PART_BYTES = 64 * 1024
"""Size of the part in one reply: Ray sends replies below 100 kB without its object store."""

MAX_FILES = 1_000
"""Greatest number of files listed for a node; their names fit in one reply."""


@dataclass(frozen=True, slots=True)
class LogLocation:
    """Place of the log of a process.

    folder: on the machine of the process; "" for no log. run: the unique name of a run; if set, its
    folder on the node of the process is used instead. name: of the file; "" for the name of the
    process.
    """

    folder: str = ""
    run: str = ""
    name: str = ""

    def open(self, process: str) -> None:
        """Open the log of this process."""
        folder = self.folder
        if self.run:
            path = folder_on_node(self.run)
            with contextlib.suppress(OSError):
                # Only the owner may read the names of pods in logs; Ray's folder is open to all.
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = str(path)
        open_log(folder, self.name or process)


def folder_on_node(run: str) -> Path:
    """Return the folder of a run on this node, inside Ray's folder of logs.

    Several Ray nodes of one machine may share that folder, hence the id of the node.
    """
    node = ray._private.worker._global_node
    return Path(node.get_logs_dir_path(), run, ray.get_runtime_context().get_node_id())


def read_on_node(run: str, name: str, start: int, count: int) -> bytes:
    """Answer a request for logs of this node, as msgpack: bytes, or [folder, [[name, size], …]]."""
    folder = folder_on_node(run)
    if not name:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        files: list[list[object]] = []
        for path in paths:
            # Neither other files nor one that was just removed keep the others from the driver.
            with contextlib.suppress(FileNotFoundError):
                if is_log(path.name):
                    files.append([path.name, path.stat().st_size])
        return pack([str(folder), files[:MAX_FILES]])
    if not is_log(name):
        raise ValueError(f"not a name of a file: {name[:64]!r}")
    with open(folder / name, "rb") as file:
        file.seek(start)
        return pack(file.read(min(count, PART_BYTES)))


def is_log(name: str) -> bool:
    """Whether this is the name of a log or transcript, without a folder."""
    return Path(name).name == name and name.endswith((LOG_SUFFIX, SUFFIX))
