"""The result of a run, from which all reports are made."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roadstead.config.legacy.notes import TranslationNote
from roadstead.protocol.errors import InputError
from roadstead.report.concurrency import Concurrency
from roadstead.report.json_value import Json as Json
from roadstead.report.ray_nodes import RayNodeUse
from roadstead.version import __version__

REPORTED_PACKAGES = ("ray", "numpy", "arro3-io", "pydantic", "msgpack")


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod (`namespace/name`) and the node to which it was bound.

    score: the node's total. None if no other node was feasible, so that nothing was scored, or if
    the scheduler that placed the pod has ended.
    """

    pod: str
    uid: str
    node: str
    score: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that was not placed.

    message: the FailedScheduling text. reasons: (reason, number of nodes with it).
    plugins: the plugins that rejected the pod.
    """

    pod: str
    uid: str
    message: str
    reasons: tuple[tuple[str, int], ...] = ()
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotCreated:
    """An object that admission refuses: it is neither placed nor pending.

    name: `namespace/name`. workload: its owner, or "". source: the file of the object or its owner.
    reason: upstream's text, if there is one.
    """

    kind: str
    name: str
    workload: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class PreemptedPod:
    """A pod that made room for another: evicted from a node, or rejected before it was bound."""

    pod: str
    uid: str
    node: str
    preemptor: str


@dataclass(frozen=True, slots=True, eq=False)
class NodeUse:
    """Capacity and requests per node and resource, before and after the run.

    zones: per node, "" if it has none. resources: cpu in milli-CPU, memory in bytes, "pods" a
    count. allocatable, before, after: int64[nodes, resources].
    """

    nodes: tuple[str, ...]
    zones: tuple[str, ...]
    resources: tuple[str, ...]
    allocatable: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClaimedDevice:
    """A device that is allocated to a claim when the run ends. claim, pods: `namespace/name`."""

    claim: str
    request: str
    driver: str
    pool: str
    device: str
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InputDigest:
    """The name of an input as the user gave it, and the hexadecimal sha256 of its content."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """The complete result of a run.

    scheduling_s: from the first submitted pod to the last decision; elapsed_s: the whole command.
    timings_s: durations by phase, in order.
    preempted: evicted pods; they are neither placed nor pending. devices: of all claims.
    not_created: objects of the manifests that admission refuses. notes: on the inputs.
    concurrency: figures of the schedulers, if known. ray_nodes: of a Ray cluster that was joined.
    settings: Roadstead's settings; config: the effective KubeSchedulerConfiguration; config_notes:
    how each part of an older document was translated.
    """

    source: str
    placements: tuple[PlacedPod, ...]
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
    config_notes: tuple[TranslationNote, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    preempted: tuple[PreemptedPod, ...] = ()
    devices: tuple[ClaimedDevice, ...] = ()
    concurrency: Concurrency | None = None
    not_created: tuple[NotCreated, ...] = ()
    notes: tuple[str, ...] = ()
    ray_nodes: tuple[RayNodeUse, ...] = ()

    @property
    def pods_per_s(self) -> float:
        """Decided pods, placed or not, per second of scheduling."""
        decided = len(self.placements) + len(self.pending)
        return decided / self.scheduling_s if self.scheduling_s > 0 else 0.0


def installed_versions() -> dict[str, str]:
    """Versions of the packages that may affect a run; missing packages are left out."""
    found = {"roadstead": __version__, "python": platform.python_version()}
    found["platform"] = platform.platform(terse=True)
    for package in REPORTED_PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def digest_of_file(path: Path) -> InputDigest:
    """Return the digest of a file's bytes. Raises InputError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return InputDigest(str(path), hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path)) from error
