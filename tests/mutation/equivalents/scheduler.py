"""Mutants of a scheduler around its core that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "roadstead/scheduler/leasing.py",
        "a lease is renewed more often in its time",
        (("", "3", "4"),),
    ),
    Same(
        "roadstead/scheduler/needs.py",
        "only runs in one process leave it out, which have no partitions and do not read it",
        (("LeasedPods", "0", "1"),),
    ),
    Same(
        "roadstead/scheduler/performer.py",
        "a report of nothing is sent",
        (("Performer.perform", "if reasons: ...", "if True: ..."),),
    ),
)
