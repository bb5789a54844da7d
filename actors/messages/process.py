"""Messages to any actor, whatever it does: what its process and its dispatcher answer."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.seam import Nothing, method
from roadstead.bench.speedscope import Samples

INTERVAL_S = 0.004


@dataclass(frozen=True, slots=True)
class ProfileAsk:
    """Whoever measures → any actor: begin to sample its process, or end and tell. Coming twice,
    it begins anew, and tells nothing more."""

    begins: bool
    interval_s: float = INTERVAL_S


@dataclass(frozen=True, slots=True)
class Fences:
    """Supervisor → any actor: the epochs (sender, epoch) below which messages are refused."""

    epochs: tuple[tuple[str, int], ...]


PROFILE = method("profile", ProfileAsk, Samples)
WARM = method("warm", Nothing, Nothing)
"""Whoever measures → any actor: the kernel is loaded in its process when this is answered."""
PROCESS_CALLS = (PROFILE.name, WARM.name)
"""Asked of a process, whatever the actor."""
FENCE = method("fence", Fences, Nothing)
