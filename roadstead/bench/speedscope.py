"""A profile in the format of speedscope (https://www.speedscope.app/file-format-schema.json).

One file contains one profile for each process of a run; the page that shows it also works offline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A function."""

    name: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Samples:
    """Stacks of one process: (indices into frames, outermost first; number of samples)."""

    frames: tuple[StackFrame, ...]
    stacks: tuple[tuple[tuple[int, ...], int], ...]
    interval_s: float


def speedscope_document(
    name: str, samples: Mapping[str, Sequence[Samples]], version: str
) -> dict[str, object]:
    """Return the document. samples: by process; a process may have several parts."""
    frames: dict[StackFrame, int] = {}
    profiles = [_profile(process, parts, frames) for process, parts in samples.items()]
    return {
        "$schema": SCHEMA,
        "name": name,
        "exporter": f"roadstead {version}",
        "activeProfileIndex": 0,
        "shared": {
            "frames": [{"name": each.name, "file": each.file, "line": each.line} for each in frames]
        },
        "profiles": profiles,
    }


def _profile(
    process: str, parts: Sequence[Samples], frames: dict[StackFrame, int]
) -> dict[str, object]:
    stacks: list[list[int]] = []
    weights: list[float] = []
    for part in parts:
        indices = [frames.setdefault(frame, len(frames)) for frame in part.frames]
        for stack, count in part.stacks:
            stacks.append([indices[frame] for frame in stack])
            weights.append(count * part.interval_s)
    return {
        "type": "sampled",
        "name": process,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": stacks,
        "weights": weights,
    }
