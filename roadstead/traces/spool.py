"""Rows on disk, sorted and grouped with bounded memory.

SQLite keeps a nameless temporary database in its cache of `CACHE_KIB` and moves what does not fit
to a file in SQLITE_TMPDIR, TMPDIR or /var/tmp, which it removes itself; its sorts do the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from roadstead.protocol.errors import InputError, RoadsteadError, cut_short

CACHE_KIB: Final = 65_536
BATCH_ROWS: Final = 10_000
LINE_BITS: Final = 40
"""Bits of the line number in a `line_id`; the bits above are the number of the file."""

TABLES: Final = """
CREATE TABLE pod (name TEXT, class INTEGER, creation INTEGER, deletion INTEGER, duration INTEGER,
                  line_id INTEGER);
CREATE TABLE event (job INTEGER, instance INTEGER, time INTEGER, code INTEGER, class INTEGER,
                    line_id INTEGER);
CREATE TABLE number (name TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID;
"""


class SpoolError(RoadsteadError):
    """The temporary database cannot be written to disk."""


class SpooledPod(NamedTuple):
    """A pod as it is stored. pod_class: the number of its class, which the caller assigned.

    line_id: its line in the input (`Spool.line_id`).
    """

    name: str
    pod_class: int
    creation_ms: int
    deletion_ms: int
    duration_ms: int
    line_id: int = 0


class EventRow(NamedTuple):
    """An event of an instance of a job. code: what happened, as the caller encodes it."""

    job: int
    instance: int
    time_us: int
    code: int
    pod_class: int
    line_id: int


class Spool:
    """Pods, events, and numbers by name, on disk until all are added and can be sorted.

    What a number by name is, the reader of a format decides, such as the start of a job in ms.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        with _reporting_full_disk():
            for setting in (
                f"cache_size = -{CACHE_KIB}",
                *("temp_store = FILE", "journal_mode = OFF", "synchronous = OFF"),
            ):
                self._database.execute(f"PRAGMA {setting}")
            self._database.executescript(TABLES)
            self._database.execute("BEGIN")
        self._pods: list[SpooledPod] = []
        self._events: list[EventRow] = []
        self._sources: list[str] = []
        self._latest_ms = 0
        self._is_sorted = True

    def close(self) -> None:
        self._database.close()

    def line_id(self, source: str, line: int) -> int:
        """Return a line of an input file as one number, for an error that names it later."""
        if not self._sources or self._sources[-1] != source:
            self._sources.append(source)
        return (len(self._sources) - 1) << LINE_BITS | min(line, (1 << LINE_BITS) - 1)

    def line_of(self, line_id: int) -> tuple[str, str]:
        """Return (source, "line N") of a number from `line_id`."""
        return self._sources[line_id >> LINE_BITS], f"line {line_id & (1 << LINE_BITS) - 1}"

    def add_pods(self, pods: Sequence[SpooledPod]) -> None:
        """Add pods with the same creation."""
        if not pods:
            return
        creation_ms = pods[0].creation_ms
        self._is_sorted = self._is_sorted and creation_ms >= self._latest_ms
        self._latest_ms = creation_ms
        self._pods += pods
        if len(self._pods) >= BATCH_ROWS:
            self._flush()

    def add_event(self, event: EventRow) -> None:
        self._events.append(event)
        if len(self._events) == BATCH_ROWS:
            self._flush()

    def put_number(self, name: str, number: int) -> bool:
        """Store a number by name; return False, with nothing changed, if the name has one."""
        with _reporting_full_disk():
            query = "INSERT OR IGNORE INTO number VALUES (?, ?)"
            return self._database.execute(query, (name, number)).rowcount == 1

    def number_of(self, name: str) -> int | None:
        """Return the number of a name, if it has one."""
        query = "SELECT number FROM number WHERE name = ?"
        row = self._database.execute(query, (name,)).fetchone()
        return None if row is None else int(row[0])

    def events(self) -> Iterator[tuple[tuple[int, int], list[EventRow]]]:
        """Yield the events of each instance, ordered by time and then as they were added."""
        self._flush()
        key: tuple[int, int] | None = None
        group: list[EventRow] = []
        for row in self._select("SELECT * FROM event ORDER BY job, instance, time, rowid"):
            event = EventRow(*row)
            if key != (event.job, event.instance):
                if key is not None:
                    yield key, group
                key, group = (event.job, event.instance), []
            group.append(event)
        if key is not None:
            yield key, group

    def repeated(self) -> tuple[str, int, int] | None:
        """Return a name that two pods share, with the `line_id` of the first and last of them."""
        self._flush()
        query = (
            "SELECT name, min(line_id), max(line_id) FROM pod "
            "GROUP BY name HAVING count(*) > 1 LIMIT 1"
        )
        return next(self._select(query), None)

    def check_unique(self) -> None:
        """Raise InputError with both places if two pods share a name."""
        repeated = self.repeated()
        if repeated is not None:
            name, first, last = repeated
            source, line = self.line_of(last)
            before = " ".join(self.line_of(first))
            raise InputError(
                f"is in {before} already", source=source, obj=line, value=cut_short(name)
            )

    def drop_repeated(self) -> int:
        """Remove pods whose name an earlier one has, and return their number."""
        self._flush()
        with _reporting_full_disk():
            return self._database.execute(
                "DELETE FROM pod WHERE rowid NOT IN (SELECT min(rowid) FROM pod GROUP BY name)"
            ).rowcount

    def first_ms(self) -> int:
        """Return the earliest creation; 0 without pods."""
        self._flush()
        (first,) = next(self._select("SELECT min(creation) FROM pod"))
        return 0 if first is None else int(first)

    def pods(self, rows: int) -> Iterator[list[SpooledPod]]:
        """Yield the pods in lists of `rows`, by creation and then as they were added."""
        self._flush()
        order = "rowid" if self._is_sorted else "creation, rowid"
        cursor = self._cursor(f"SELECT * FROM pod ORDER BY {order}")  # noqa: S608
        while True:
            with _reporting_full_disk():
                batch = cursor.fetchmany(rows)
            if not batch:
                return
            yield [SpooledPod(*row) for row in batch]

    def _flush(self) -> None:
        with _reporting_full_disk():
            self._database.executemany("INSERT INTO pod VALUES (?, ?, ?, ?, ?, ?)", self._pods)
            self._database.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", self._events)
        self._pods.clear()
        self._events.clear()

    def _select(self, query: str) -> Iterator[tuple[Any, ...]]:
        cursor = self._cursor(query)
        while True:
            with _reporting_full_disk():
                row = cursor.fetchone()
            if row is None:
                return
            yield row

    def _cursor(self, query: str) -> sqlite3.Cursor:
        with _reporting_full_disk():
            return self._database.execute(query)


@contextmanager
def _reporting_full_disk() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        problem = f"the temporary file cannot be written ({error}); "
        raise SpoolError(f"{problem}set SQLITE_TMPDIR to a folder with more space") from error
