"""Tuning of Python's garbage collector for many objects that stay and form no cycles.

Python searches for unreachable cycles whenever 700 objects are new, and searches those that survive
in later collections again. Pods, nodes and what is computed of them stay; with Python's own
thresholds a fifth of a simulated run and a third of the time from submit to bind were spent on
searching them.

In a block of `gc_tuned` an object is searched once or twice, then frozen (`gc.freeze`): reference
counts still free it, but no later collection searches it. A cycle that is frozen is freed only
after the block. In a process that lives long such cycles would add up, so it has higher thresholds
and freezes nothing (`raise_gc_thresholds`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

Thresholds = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class GcTuning:
    """Times of collections, and those after which objects are frozen.

    thresholds: those of `gc.set_threshold`. frozen_after: the survivors are frozen after each
    collection of this generation or a higher one.
    """

    thresholds: Thresholds
    frozen_after: int


LONG_PAUSES: Final = GcTuning((50_000, 100, 100), 0)
"""Freeze after every collection, which takes 12 to 28 ms if all new objects survive."""

SHORT_PAUSES: Final = GcTuning((2_500, 1, 120_000), 1)
"""Pauses of up to 2 ms; every second one, of up to 3 ms, freezes the survivors.

With so frequent collections many survivors are soon unreachable, so they are frozen only after the
second collection that they survive.
"""

SHORT_BATCH_PODS: Final = 16
"""Size of batches up to which pauses are short. Larger ones are decided in longer steps anyway."""

NEVER: Final = 3
"""A generation that does not exist, so nothing is frozen."""

_active: list[GcTuning] = []
"""Tunings of the `gc_tuned` blocks that are entered, the latest last.

The first entry has the thresholds outside of all blocks. A process has one collector, so the blocks
of all its threads are in this list.
"""


def tuning_of(batch: int) -> GcTuning:
    """Return the tuning for a run whose schedulers decide batches of at most so many pods."""
    return SHORT_PAUSES if batch <= SHORT_BATCH_PODS else LONG_PAUSES


def raise_gc_thresholds() -> None:
    """Let the collector run rarely for the rest of the process; nothing freezes."""
    gc.set_threshold(*LONG_PAUSES.thresholds)


@contextmanager
def gc_tuned(tuning: GcTuning = LONG_PAUSES) -> Iterator[None]:
    """Tune the collector inside the block; restore its thresholds after the last block."""
    if not _active:
        _active.append(GcTuning(gc.get_threshold(), NEVER))
        gc.callbacks.append(_freeze_survivors)
    _active.append(tuning)
    gc.set_threshold(*tuning.thresholds)
    try:
        yield
    finally:
        _active.remove(tuning)
        gc.set_threshold(*_active[-1].thresholds)
        if len(_active) == 1:
            gc.callbacks.remove(_freeze_survivors)
            _active.clear()
            gc.unfreeze()


@contextmanager
def gc_paused(*, freezes: bool = False) -> Iterator[None]:
    """Disable the collector while many objects are created that stay: 4 us each, not 14.

    freezes: freeze all objects at the end of the block, unless it raises.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        if freezes:
            gc.freeze()
    finally:
        if was_enabled:
            gc.enable()


def _freeze_survivors(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] >= _active[-1].frozen_after:
        gc.freeze()
