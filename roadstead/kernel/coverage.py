"""How many pods the kernel decided, and why the reference decided the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Coverage:
    """by_kernel: pods. by_reference: pods by reason: a plugin's name, or what stood in the way.

    stops: why runs of pods of covered classes came to an end before their last pod.
    """

    by_kernel: int = 0
    by_reference: Counter[str] = field(default_factory=Counter)
    stops: Counter[str] = field(default_factory=Counter)
