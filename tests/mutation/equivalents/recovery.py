"""Mutants of the actors' recovery packages that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "actors/cache/recovery.py",
        "nothing hangs on how often the cache looks, which costs time alone",
        (
            ("", "1.0", "2.0"),
            ("", "60.0", "61.0"),
        ),
    ),
    Same(
        "actors/cache/recovery.py",
        "it compares a second later at the most",
        (
            (
                "CacheRecovery._expire_forever",
                "clock_s() - compared_s >= COMPARE_S",
                "clock_s() - compared_s > COMPARE_S",
            ),
        ),
    ),
    Same(
        "actors/cache/refill.py", "a worker is filled again a second later", (("", "1.0", "2.0"),)
    ),
    Same(
        "actors/cache/stream.py",
        "the cache, which alone makes a stream, says whether it is new",
        (("ChangeStream", "False", "True"),),
    ),
    Same(
        "actors/messages/recovery.py",
        "nothing hangs on how much one message of many holds",
        (("", "5000", "5001"),),
    ),
    Same(
        "actors/messages/recovery.py",
        "the binder, which alone sends pages of nodes, gives the revision of each",
        (("NodesPage", "0", "1"),),
    ),
)
