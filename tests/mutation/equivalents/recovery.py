"""Of the actors' rooms of recovery: `Same` as in this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "actors/binder/recovery.py",
        "nothing hangs on when a snapshot replaces what was written",
        (
            ("", "1024", "1025"),
            ("", "256", "257"),
        ),
    ),
    Same(
        "actors/binder/recovery.py",
        "a revision of 0 is not learned",
        (
            ("BinderRecovery._note_revisions", "if not any(run.epochs): ...", "if False: ..."),
            ("BinderRecovery._note_revisions", "r.epoch", "True"),
        ),
    ),
    Same(
        "actors/binder/recovery.py",
        "a journal of exactly so many bytes is replaced as well",
        (
            (
                "BinderRecovery.bound_journal",
                "journal.grown_bytes > SNAPSHOT_BYTES",
                "journal.grown_bytes >= SNAPSHOT_BYTES",
            ),
        ),
    ),
    Same(
        "actors/binder/recovery.py",
        "what is told beside the core stands in snapshots, which only a file journal has",
        (("BinderRecovery.recover", "False", "True"),),
    ),
    Same(
        "actors/binder/recovery.py",
        "the text of a log, which only a person reads",
        (
            ("BinderRecovery.recover", "if self._journal.tail is not None: ...", "if False: ..."),
            ("BinderRecovery.recover", "if self._journal.tail is not None: ...", "if True: ..."),
            (
                "BinderRecovery.recover",
                "self._journal.tail is not None",
                "self._journal.tail is None",
            ),
        ),
    ),
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
                "CacheRecovery._mind",
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
