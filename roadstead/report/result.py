"""What a run leaves behind: the one thing that every report is made from."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roadstead.config.legacy.notes import Note
from roadstead.protocol.errors import InputError
from roadstead.report.concurrency import Concurrency
from roadstead.report.json_value import Json as Json
from roadstead.version import __version__

REPORTED_PACKAGES = ("ray", "numpy", "arro3-io", "pydantic", "msgpack")


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod (`namespace/name`) and the node it was bound to.

    score: the node's, in all; None where no other node was feasible, so that nothing was compared,
    or where it is not known: the scheduler that placed the pod has ended.
    """

    pod: str
    uid: str
    node: str
    score: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that found no node.

    message: the FailedScheduling text. reasons: (reason, number of nodes that gave it).
    plugins: the plugins that refused.
    """

    pod: str
    uid: str
    message: str
    reasons: tuple[tuple[str, int], ...] = ()
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotCreated:
    """An object that admission refuses: it is neither placed nor pending.

    name: `namespace/name`. workload: what makes it, or "". source: the file of it or its workload.
    reason: in upstream's words where it has some.
    """

    kind: str
    name: str
    workload: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class PreemptedPod:
    """A pod that had to go from a node (or was to come to it) for the sake of another pod."""

    pod: str
    uid: str
    node: str
    preemptor: str


@dataclass(frozen=True, slots=True, eq=False)
class NodeUse:
    """Per node and resource: what there is, and what pods ask of it before and after the run.

    zones: per node, "" where it has none. resources: cpu in milli-CPU, memory in bytes, "pods" a
    count. allocatable, before, after: int64[nodes, resources].
    """

    nodes: tuple[str, ...]
    zones: tuple[str, ...]
    resources: tuple[str, ...]
    allocatable: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InputDigest:
    """An input by what the user called it, and the sha256 of its content in hexadecimal."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """All of a run.

    scheduling_s: from the first pod submitted to the last one decided; elapsed_s: the command.
    timings_s: where the time went, by phase, in order.
    preempted: pods that had to go, and are neither placed nor pending.
    not_created: objects of the manifests that admission refuses. notes: what a person was told of
    the inputs.
    concurrency: what the schedulers did side by side, where that is known.
    settings: our own settings; config: the effective KubeSchedulerConfiguration, with notes of what
    became of each part of an older one.
    """

    source: str
    placements: tuple[Placement, ...]
    pending: tuple[PendingPod, ...]
    node_use: NodeUse
    scheduling_s: float
    elapsed_s: float
    timings_s: Mapping[str, float]
    seed: int
    command: tuple[str, ...] = ()
    inputs: tuple[InputDigest, ...] = ()
    settings: Mapping[str, Json] = field(default_factory=dict)
    config: Mapping[str, Json] = field(default_factory=dict)
    config_notes: tuple[Note, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    preempted: tuple[PreemptedPod, ...] = ()
    concurrency: Concurrency | None = None
    not_created: tuple[NotCreated, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def pods_per_s(self) -> float:
        """Pods decided, placed or not, for each second of scheduling."""
        decided = len(self.placements) + len(self.pending)
        return decided / self.scheduling_s if self.scheduling_s > 0 else 0.0


def installed_versions() -> dict[str, str]:
    """Versions of what a run's result may depend on; a package that is missing is left out."""
    found = {"roadstead": __version__, "python": platform.python_version()}
    found["platform"] = platform.platform(terse=True)
    for package in REPORTED_PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def digest_of_file(path: Path) -> InputDigest:
    """The digest of a file's bytes; raises InputError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return InputDigest(str(path), hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path)) from error
