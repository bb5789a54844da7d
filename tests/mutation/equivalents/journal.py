"""Mutants of the journal that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "roadstead/journal/segments.py",
        "more of a file is written again than need be, and to the same bytes",
        (("Reader._extend", "frame.position is not None", "frame.position is None"),),
    ),
    Same(
        "roadstead/journal/disk.py",
        "how much is read and written at once where a file is written again",
        (
            ("", "1", "2"),
            ("", "20", "21"),
        ),
    ),
    Same("roadstead/journal/disk.py", "a pid has fewer digits", (("RealDisk._lock", "32", "33"),)),
    Same(
        "roadstead/journal/disk.py",
        "Python opens no descriptor that processes inherit",
        (("RealDisk.sync_names", "os.O_RDONLY | os.O_CLOEXEC", "os.O_RDONLY & os.O_CLOEXEC"),),
    ),
    Same(
        "roadstead/journal/disk.py",
        "the bit of O_WRONLY, which is set already",
        (("RealFile.__init__", "0", "1"),),
    ),
    Same(
        "roadstead/journal/fields.py",
        "a limit far from the names of all fields",
        (
            ("", "1", "2"),
            ("", "16", "17"),
            ("", "8", "9"),
        ),
    ),
    Same(
        "roadstead/journal/fields.py",
        "a tuple of any length has two arguments, and no other has an ellipsis",
        (("_adapter", "-1", "1"),),
    ),
    Same(
        "roadstead/journal/fields.py",
        "tuples of a fixed length hold texts, numbers and tuples of them, which need no adapter",
        (
            ("_adapter", "any(adapters)", "all(adapters)"),
            (
                "_adapter",
                "if get_origin(hint) is tuple and arguments[-1:] != (Ellipsis,): ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/journal/fields.py",
        "data whose checksum is right is of the class that its file says",
        (
            (
                "_class_adapter.adapt",
                "if not isinstance(values, list) or len(values) != len(in_file): ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/journal/fields.py",
        "the fields of a class that is met again are followed again, to the same names",
        (("present_fields", "if hint.__name__ not in classes: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/journal/files.py",
        "nothing hangs on how large a segment grows",
        (
            ("", "1024", "1025"),
            ("", "64", "65"),
            (
                "FileJournal._write",
                "self._file.grown_bytes >= self._segment_bytes",
                "self._file.grown_bytes > self._segment_bytes",
            ),
        ),
    ),
    Same(
        "roadstead/journal/files.py",
        "how many records of a snapshot are one frame",
        (("", "4096", "4097"),),
    ),
    Same(
        "roadstead/journal/files.py",
        "it is read only where a segment is open, which sets it",
        (("FileJournal.__init__", "self._name = ''", "pass"),),
    ),
    Same(
        "roadstead/journal/files.py",
        "a file of which nothing is left out is cut at its end",
        (("FileJournal._reopened", "if end.unread is not None: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/journal/frames.py",
        "a limit on what a checksum vouches for is counted once more",
        (("FactsTable.add", "True", "False"),),
    ),
    Same(
        "roadstead/journal/frames.py",
        "left out for frames of format 1, which have no digest that is compared",
        (("Frame", "0", "1"),),
    ),
    Same(
        "roadstead/journal/frames.py",
        "numbers that follow one another are written out, and read as the same",
        (("body_of", "first + len(lsns)", "first - len(lsns)"),),
    ),
    Same(
        "roadstead/journal/frames.py",
        "columns of other lengths were refused before",
        (("decode", "True", "False"),),
    ),
    Same(
        "roadstead/journal/frames.py",
        "a mark begins with a byte that is not in its rest, so that none begins right behind one",
        (("later_frames", "1", "2"),),
    ),
    Same(
        "roadstead/journal/segments.py",
        "the text of an error, which names the place in both",
        (
            ("Reader._accept_broken", "if end.header.format != 1: ...", "if False: ..."),
            ("Reader._accept_broken", "if end.header.format != 1: ...", "if True: ..."),
        ),
    ),
    Same(
        "roadstead/journal/segments.py",
        "of a segment of format 1 all is written again",
        (("Reader._extend", "0", "1"),),
    ),
    Same(
        "roadstead/journal/segments.py",
        "more is written again than need be",
        (
            (
                "Reader._extend",
                "end.confirmed_bytes = frame.position.durable_bytes if frame.position is not None "
                "else 0",
                "pass",
            ),
        ),
    ),
    Same(
        "roadstead/journal/segments.py",
        "nothing is cut from a group of which a snapshot covers nothing",
        (("Reader._after_snapshot", "if group.lsns[0] <= self.last_lsn: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/journal/segment_end.py",
        "left out for segments without a frame, which no writer leaves: the first is durable",
        (("SegmentEnd", "0", "1"),),
    ),
    Same(
        "roadstead/journal/segments.py",
        "a file that is shorter than a frame holds none, from wherever it is read",
        (("is_closed", "0", "1"),),
    ),
    Same(
        "roadstead/journal/disk.py",
        "only macOS has that call",
        (("_sync", "if hasattr(fcntl, 'F_FULLFSYNC'): ...", "if False: ..."),),
    ),
)
