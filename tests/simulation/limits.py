"""Limits that production runs hardly reach, made so small that a simulated run reaches them.

The behaviour at a limit is part of its contract: a pod with a forgotten token is decided again, a
full log of events becomes "any event", a full segment is followed by another one. No run may give a
different result because of it.
"""

import random
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

from roadstead import run_parts
from roadstead.actors.cache import recovery as cache_recovery
from roadstead.actors.scheduler import actor as scheduler
from roadstead.actors.scheduler import scorers
from roadstead.binder import binder_journal, verification
from roadstead.cycle import class_cache
from roadstead.journal import frames
from roadstead.kernel import cell_layout

SEGMENT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Shrunk:
    """binder, queue, cache: changed settings of the cores. max_remembered: ended pods that a
    scheduler remembers. max_classes: classes with cached results. segment_bytes, snapshot_bytes: of
    the journal.
    """

    binder: dict
    queue: dict
    cache: dict
    max_remembered: int
    max_classes: int
    segment_bytes: int
    snapshot_bytes: int

    @contextmanager
    def applied(self):
        """Actors that are built inside this context have these limits."""
        with ExitStack() as stack:
            for module, name, settings in (
                (run_parts, "BinderSettings", self.binder),
                (run_parts, "QueueSettings", self.queue),
                (run_parts, "CacheSettings", self.cache),
                (scheduler, "AttemptsCore", {"max_remembered": self.max_remembered}),
            ):
                put = _with(getattr(module, name), settings)
                stack.enter_context(patch.object(module, name, put))
            for module, name in (
                (class_cache, "MIN_CLASSES"),
                (class_cache, "MAX_CLASSES"),
                (verification, "MAX_CACHED"),
            ):
                most = min(self.max_classes, getattr(module, name))
                stack.enter_context(patch.object(module, name, most))
            # The decision to ask workers must not depend on how long plugins took.
            stack.enter_context(patch.object(scorers, "MIN_PLUGINS_S", 0.0))
            for name, number in (
                ("MIN_NODES_FOR_LISTS", 1),
                ("MIN_LISTED", 1),
                ("ROWS_PER_LIST", 3),
            ):
                stack.enter_context(patch.object(scorers, name, number))
            stack.enter_context(patch.object(cell_layout, "MIN_PODS", 2))
            stack.enter_context(patch.object(binder_journal, "SNAPSHOT_BYTES", self.snapshot_bytes))
            yield


DOCUMENTED = (
    (binder_journal, "SNAPSHOT_BYTES", 256 * 1024 * 1024),
    (cache_recovery, "EXPIRY_S", 1.0),
    (cache_recovery, "COMPARE_S", 60.0),
    (cache_recovery, "COMPARED_MAX", 5_000),
    (frames, "MAX_FRAME_BYTES", 64 * 1024 * 1024),
)
"""Limits that the documents state, of which simulated runs use smaller values."""


def undocumented():
    """Return limits that differ from the documents; call it before any limit is applied."""
    for module, name, number in DOCUMENTED:
        if getattr(module, name) != number:
            yield f"{module.__name__}.{name} is {getattr(module, name)}, not {number}"


def _with(build, settings):
    """Return the same class with these settings, which override the caller's, and with those of
    limits that are applied already.
    """
    original, known = getattr(build, "limited", (build, {}))
    settings = {**known, **settings}

    def limited(*what, **how):
        return original(*what, **{**how, **settings})

    limited.limited = original, settings
    return limited


def late_of(seed):
    """Time until a cache asks about an attempt: often about one that would have ended well."""
    draw = random.Random(f"late {seed}")
    # Messages may be seconds late, and many messages may be in transit.
    late = {"bind_s": 0.3, "ask_again_s": 0.5}, {"bind_s": 0.01, "ask_again_s": 2.5}
    return draw.choice(({}, *late))


def shrunk_of(seed):
    """Return the limits of a seed."""
    draw = random.Random(f"limits {seed}")
    return Shrunk(
        binder={
            # More than can be in transit at one time. A gang is committed whole; a pod that finds
            # the binder busy a dozen times is parked, as is one that loses as many races.
            "max_tokens": draw.choice((192, 320)),
            "max_unflushed": draw.choice((40, 100)),
        },
        queue={
            "max_in_flight_events": draw.choice((1, 4, 100)),
            "max_bypasses": draw.choice((2, 10, 1000)),
            # Late enough that the cluster comes to rest.
            "unschedulable_max_s": draw.choice((12.0, 25.0, 300.0)),
        },
        cache=late_of(seed),
        max_remembered=draw.choice((64, 1000)),
        max_classes=draw.choice((1, 2, 5, 4096)),
        segment_bytes=draw.choice((4 * 1024, SEGMENT_BYTES)),
        snapshot_bytes=draw.choice((6 * 1024, 20 * 1024, 256 * 1024)),
    )


USUAL = replace(
    shrunk_of(0),
    binder={},
    queue={},
    cache={},
    max_remembered=65_536,
    max_classes=4096,
    segment_bytes=64 * 1024 * 1024,
    snapshot_bytes=256 * 1024 * 1024,
)
