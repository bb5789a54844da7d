"""Messages that the process or the dispatcher of any actor answers, not its handlers."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.interface import Nothing, method
from roadstead.bench.process_usage import ProcessUsage
from roadstead.bench.speedscope import Samples

INTERVAL_S = 0.004
"""Default interval between two samples of a process: stacks of the thread of its event loop."""


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """Client → any actor: begin to sample its process, or end and return the samples.

    A second copy restarts the sampling, or returns no samples.
    """

    begins: bool
    interval_s: float = INTERVAL_S


@dataclass(frozen=True, slots=True)
class Fences:
    """Supervisor → any actor: per sender, the epoch below which its messages are refused."""

    epochs: tuple[tuple[str, int], ...]


PROFILE = method("profile", ProfileRequest, Samples)
LOAD_KERNEL = method("load_kernel", Nothing, Nothing)
"""Client → any actor: load the kernel in its process; the answer is sent when it is loaded."""
USAGE = method("usage", Nothing, ProcessUsage)
"""Client → any actor: processor time and memory that its process has used."""
PROCESS_CALLS = (PROFILE.name, LOAD_KERNEL.name, USAGE.name)
"""Methods that a process answers, for any of its actors."""
FENCE = method("fence", Fences, Nothing)
