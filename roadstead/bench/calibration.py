"""The speed of the machine now: how long a loop of additions takes."""

from __future__ import annotations

import time
from dataclasses import dataclass

ADDITIONS = 20_000_000
CALIBRATED_S = 1.05
"""Seconds of the additions on the machine for which `scaled` returns times."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The present duration of a loop of additions, as a unit for times on this machine.

    A shared machine may be half as fast as an hour ago; figures of two commits, or a figure and a
    bound, are compared in units of this loop.
    """

    additions: int
    seconds: float
    processor_s: float

    def scaled(self, processor_s: float) -> float:
        """Return the processor time for a machine on which the loop takes `CALIBRATED_S`."""
        return processor_s * CALIBRATED_S / self.processor_s


def calibrate(additions: int = ADDITIONS) -> Calibration:
    """Time the loop now."""
    clock_s, processor_s = time.perf_counter(), time.process_time()
    total = 0
    for number in range(additions):
        total += number
    assert total == additions * (additions - 1) // 2, "additions that do not add"
    clock_s, processor_s = time.perf_counter() - clock_s, time.process_time() - processor_s
    return Calibration(additions, clock_s, processor_s)
