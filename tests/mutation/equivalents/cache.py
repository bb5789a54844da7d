"""Mutants of the cache that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "roadstead/cache/core.py",
        "left out for events that begin no trial, which have no deadline",
        (("CacheCore", "0.0", "1.0"),),
    ),
    Same(
        "roadstead/cache/core.py",
        "pods are counted one by one, to the same deltas",
        (("CacheCore.assume", "if uid in accepted: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/cache/deadlines.py",
        "numbers of tickets are only compared with each other",
        (
            ("AssumeDeadlines.__init__", "0", "1"),
            ("AssumeDeadlines.put", "1", "2"),
        ),
    ),
    Same(
        "roadstead/cache/pods.py",
        "overwritten when the pod gets a deadline, and read of no other pod",
        (("CacheRecord", "0.0", "1.0"),),
    ),
)
