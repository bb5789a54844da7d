"""Numbers of pods that the kernel decided, and that the plugins decided, by reason.

In the names of counts, `reference` is the decision by the plugins alone, without the kernel.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class DecisionCounts:
    """Counts of decided pods, and of calls that ended early.

    by_kernel: pods. by_reference: pods by reason, such as the name of a plugin. stops: why calls
    ended before their last pod, though its class is covered.
    """

    by_kernel: int = 0
    by_reference: Counter[str] = field(default_factory=Counter)
    stops: Counter[str] = field(default_factory=Counter)

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return all counts by name; nothing if the kernel was never used."""
        kinds = (("by reference", self.by_reference), ("stopped", self.stops))
        causes = [
            (f"kernel: {kind}: {why}", count)
            for kind, counter in kinds
            for why, count in sorted(counter.items())
        ]
        return (("kernel: pods", self.by_kernel), *causes) if self.by_kernel or causes else ()
