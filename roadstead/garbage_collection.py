"""Tuning of Python's garbage collector for many objects that stay and form no cycles.

Python searches new objects for unreachable cycles at every 700 of them, and those that survived
again and again. Pods, nodes and what is computed of them stay; with Python's own thresholds a fifth
of a simulated run and a third of the time from submit to bind were spent on them. Here an object is
searched once or twice, then frozen: reference counts still free it, no later collection searches
it. Cycles that existed at a collection are freed only after the block. So a process that lives long
only gets the thresholds (`raise_gc_thresholds`): in it such cycles would add up.
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
    """Times of searches (thresholds, of `gc`), and the generation after which objects freeze."""

    thresholds: Thresholds
    frozen_after: int


LONG_PAUSES: Final = GcTuning((50_000, 100, 100), 0)
"""Each object is searched once. A collection takes 12 to 28 ms if all new objects stay."""

SHORT_PAUSES: Final = GcTuning((2_500, 1, 120_000), 1)
"""Pauses of up to 2 ms; every second one, of up to 3 ms, freezes the objects.

At such short intervals many objects are still in use that soon are unreachable, so objects are
searched twice before they freeze.
"""

SHORT_BATCH_PODS: Final = 16
"""Size of batches up to which pauses are short. Larger ones are decided in longer steps anyway."""

NEVER: Final = 3
"""No generation has this number, or a higher one."""

_active: list[GcTuning] = []
"""Tunings of the `gc_tuned` blocks that are entered, the latest last.

The first entry holds the thresholds outside of all blocks.

The collector is the process's: blocks of several threads may overlap.
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

    freezes: no later collection searches the objects that exist at the end, unless it raised.
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
