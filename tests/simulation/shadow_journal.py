"""A shadow of the journal: the required contents of its disk, through all processes of its writer.

After each call `plain_journal`, which knows the format and shares nothing with the product's
reader, reads the new bytes. The state at the start of a life is compared with the records appended
before.
"""

from itertools import zip_longest

from roadstead.journal import JournalError
from roadstead.journal.files import FileJournal
from roadstead.journal.segments import Reader
from tests.simulation.damage import judged, read
from tests.simulation.plain_journal import (
    CLASSES,
    FIELDS,
    FLUSHED,
    RECORDS,
    SEGMENT,
    SNAPSHOT,
    PlainFile,
    PlainJournal,
    plain,
    raw,
)
from tests.simulation.snapshots import TOKENS_KEPT, Kept

ENOUGH = 5
"""Maximum number of reported problems of one run."""


class ShadowJournal:
    """Follows one disk. problems: receives differences. found: the records at the start of this
    life.

    should_stand: the required contents of a snapshot, from the model that follows the binder.
    """

    def __init__(self, disk, limits, problems):
        self._disk, self.limits, self.problems = disk, limits, problems
        self._memo, self._appended = {}, {}
        self._bases = {0: []}
        self.durable_lsn = self.last_lsn = 0
        self.found = None
        self._file, self._seen_count, self._grown = None, 0, 0
        self._is_due, self._alike = False, None
        self.should_stand, self._opened = None, len(disk.opened)
        disk.removing, disk.renaming = self._removed, self._named

    @classmethod
    def begun(cls, disk, limits, problems):
        """A shadow that treats the contents of a disk as appended."""
        shadow, found = cls(disk, limits, problems), PlainJournal(disk.contents)
        covered = len(found.snapshot.records) if found.snapshot else 0
        shadow._bases = {found.snapshot_lsn: found.records[:covered]}
        shadow._appended = {each[0]: each for each in found.records[covered:]}
        shadow.durable_lsn = found.last_lsn
        return shadow

    def wrong(self, text):
        if len(self.problems) < ENOUGH and not self._disk.lied:
            self.problems.append(f"shadow of the journal: {text}")

    def same(self, what, found, wanted):
        if found != wanted:
            self.wrong(f"{what} is {found}, not {wanted}")

    def plain(self, records):
        return [plain(each, self._memo) for each in records]

    def raw(self, facts):
        """Facts as a file has them."""
        return raw(facts, self._memo)

    def kinds(self):
        """The kinds of all records since the last snapshot."""
        return [each[1] for each in self._appended.values()]

    # A life begins.

    def opening(self):
        self._disk.shortened, self._opened = False, len(self._disk.opened)
        self.found = PlainJournal(self._disk.contents)

    def opened(self, journal, records):
        """records: the product's result of reading."""
        found, disk = self.found, self._disk
        for text in found.problems:
            self.wrong(text)
        if self.plain(records) != found.records:
            self.wrong(f"{len(records)} records are read, and not the {len(found.records)} there")
        if found.last_lsn < self.durable_lsn or found.snapshot_lsn not in self._bases:
            self.wrong(f"{found.last_lsn} records are there, {self.durable_lsn} were durable")
        elif found.records != self._should(found.snapshot_lsn, found.last_lsn):
            self.wrong("other records are there than were appended")
        tail = journal.tail and (journal.tail.name, journal.tail.offset, journal.tail.size_bytes)
        self.same("what is cut", tail, found.tail)
        numbers = journal.last_lsn, journal.durable_lsn, journal.epoch, journal.grown_bytes
        self.same("an opened journal", numbers, (found.last_lsn,) * 2 + (found.epoch + 1, 0))
        self._bases = {found.snapshot_lsn: self._bases.get(found.snapshot_lsn, [])}
        self._appended = {n: r for n, r in self._appended.items() if n <= found.last_lsn}
        self.durable_lsn = self.last_lsn = found.last_lsn
        again = PlainJournal(disk.contents)
        for text in again.problems:
            self.wrong(f"once opened, {text}")
        self.same("the rest", (again.tail, again.epoch), (None, found.epoch + 1))
        if again.records != found.records:
            self.wrong("opening changes the records")
        self._all_durable(again.files)
        self._file, self._grown, self._is_due = again.segments[-1], 0, False
        self._seen_count = len(self._file.records)
        self.same(
            "a new segment", (self._file.first_lsn, self._seen_count), (found.last_lsn + 1, 0)
        )

    def _should(self, snapshot_lsn, last_lsn):
        since = [self._appended[n] for n in range(snapshot_lsn + 1, last_lsn + 1)]
        return self._bases[snapshot_lsn] + since

    def _all_durable(self, files):
        """All files are durable, with the fields of all their facts."""
        disk = self._disk
        for file in files:
            fields, name = getattr(file, "fields", {}), file.name
            if missing := [each for each in CLASSES if fields.get(each) != CLASSES[each]]:
                self.wrong(f"{name} does not say the fields of {missing}")
            if name not in disk.lasting or disk.durable[name] < len(disk.contents[name]):
                self.wrong(f"{name} may be lost")

    @property
    def has_failed(self):
        """Whether the disk failed to do a call."""
        return self._disk.met

    # Records are appended.

    def append(self, journal, records, append):
        # A failed journal, for example after a snapshot, accepts no appends anyway.
        if self._is_due and not journal.has_failed:
            self.wrong("the journal has grown, and no snapshot is taken")
        number = self._file.number
        must_rotate = self._file.offset - self._file.began_bytes >= self.limits.segment_bytes
        for each in self.plain(records):
            self._appended[each[0]] = each
        last_lsn = append(records)
        self.last_lsn = records[-1].lsn
        self.same("the last record", (last_lsn, journal.last_lsn), (self.last_lsn,) * 2)
        if self._disk.shortened:
            return last_lsn
        self._follow()
        self.same("the segment", self._file.number, number + must_rotate)
        self.same("what has grown", journal.grown_bytes, self._grown)
        return last_lsn

    def flushed(self, journal):
        self.durable_lsn = self.last_lsn
        self.same("what is durable", journal.durable_lsn, self.last_lsn)
        file, disk = self._file, self._disk
        if disk.shortened:
            if PlainJournal(disk.contents).last_lsn < self.last_lsn:
                self.wrong("what a short write left out counts as flushed")
            return
        self._follow()
        file = self._file
        if file.records and file.last != FLUSHED:
            self.wrong("no frame records the flush")
        ends = [each.end for each in file.frames if each.kind == RECORDS][-1:]
        if file.name not in disk.lasting or disk.durable[file.name] < max(ends, default=0):
            self.wrong("what was flushed is not durable")
        self._is_due = self._grown > self.limits.snapshot_bytes and any(
            each[1] == "bind" for each in file.records[-1:]
        )

    def _follow(self):
        """Read the new part of the present segment, and of the next one."""
        newest = max(filter(SEGMENT.fullmatch, self._disk.contents))
        self._go_on(self._file)
        file = PlainFile(newest).read(self._disk.contents[newest])
        if (file.name, file.number) != (self._file.name, self._file.number):
            before = self._file.number, self._file.digest
            self.same("what it follows", (file.number - 1, file.before), before)
            self._file, self._seen_count = PlainFile(newest), 0
            self._go_on(self._file)

    def _go_on(self, file):
        data, known = self._disk.contents.get(file.name, b""), len(file.frames)
        file.read(data)
        for text in file.problems:
            self.wrong(text)
        if file.offset < len(data):
            self.wrong(f"{file.name} has bytes that are no frame at {file.offset}")
        former = file.frames[known - 1] if known else None
        for frame in file.frames[known:]:
            self._check_frame(frame, former)
            former = frame
        news, self._seen_count = file.records[self._seen_count :], len(file.records)
        if news != [self._appended.get(each[0]) for each in news]:
            self.wrong(f"{file.name} holds other records than were appended")

    def _check_frame(self, frame, former):
        """Compare its durable mark: at most the durable bytes, and for a mark all of them."""
        at_least = former.durable_bytes if former else 0
        if former and former.kind == FIELDS:
            at_least = former.end
        at_least = frame.offset if frame.kind == FLUSHED else at_least
        if not at_least <= frame.durable_bytes <= frame.offset:
            self.wrong(f"a frame at {frame.offset} records {frame.durable_bytes} durable bytes")
        self._grown += frame.end - frame.offset if frame.kind == RECORDS else 0

    # A snapshot is taken.

    def snapshot(self, journal, records, take):
        if self._grown <= self.limits.snapshot_bytes:
            self.wrong("a snapshot is taken of a journal that has not grown")
        records, lsn = list(records), self.last_lsn
        wanted = records if self.should_stand is None else list(self.should_stand())
        for one, other in zip_longest(records, wanted):
            if one != other:
                self.wrong(f"a snapshot has {one}, not {other}")
        base = self.plain(records)
        if not journal.has_failed:
            # A failed journal writes nothing: an earlier file may have this number.
            self._bases[lsn] = base
        for number, kind, *_ in base:
            if not 0 <= number <= (lsn if kind == "load" else 0):
                self.wrong(f"a snapshot gives the number {number} to what has none: {kind}")
        before = None if self._disk.lied else Kept.of(Reader(self._disk).records())
        take(records)
        self._is_due, self.durable_lsn = False, lsn
        names = [f"journal-{lsn + 1:020}.segment", f"snapshot-{lsn:020}.snapshot"]
        self.same("files", [n for n in self._disk.names() if not n.endswith("new")], names)
        now = PlainJournal(self._disk.contents)
        for text in now.problems:
            self.wrong(f"behind a snapshot, {text}")
        self.same("what is left", (now.tail, now.last_lsn), (None, lsn))
        if now.records != self._bases[lsn]:
            self.wrong("a snapshot holds something else than what stands")
        self._all_durable(now.files)
        self._bases, self._grown = {lsn: self._bases[lsn]}, 0
        self.same("what has grown", journal.grown_bytes, 0)
        self._file, self._seen_count = now.segments[-1], 0
        if before is not None:
            tokens = min(TOKENS_KEPT, self.limits.binder.get("max_tokens", TOKENS_KEPT))
            self.problems += before.lost(Kept.of(Reader(self._disk).records()), tokens)

    def _named(self, name):
        """Files whose digest a snapshot or segment contains must be durable before it gets its
        name.
        """
        disk = self._disk
        segments = sorted(each for each in disk.contents if SEGMENT.fullmatch(each))
        for last in segments[-1:]:
            if last != name and disk.durable.get(last, 0) < len(disk.contents[last]):
                self.wrong(f"{name} follows {last}, of which something may be lost")

    def _removed(self, name):
        """The remaining files must contain all durable state, also if the machine stops now."""
        if not (SEGMENT.fullmatch(name) or SNAPSHOT.fullmatch(name)):
            return
        disk = self._disk
        here = {
            each: bytes(data[: disk.durable[each]])
            for each, data in disk.contents.items()
            if each in disk.lasting
        }
        left = {each: data for each, data in here.items() if each != name}
        for contents in (here, left):
            # The remains of one file often still exist when the next file is removed.
            if contents != self._alike and read(contents, self._memo) != judged(contents):
                self.wrong(f"before and after {name} goes, other records are read")
            self._alike = contents
        found = PlainJournal(left)
        if found.last_lsn < self.durable_lsn or found.problems:
            self.wrong(f"{name} is removed, and with it what was durable: {found.problems}")

    def ended(self):
        """The writer closed the journal properly."""
        found = PlainJournal(self._disk.contents)
        last = found.segments[-1]
        self.same("the end", found.closed, (self.last_lsn, last.digest))
        self.same("what is left", (found.problems, found.tail), ([], None))
        self._all_durable(found.files)
        if found.records != self._should(found.snapshot_lsn, found.last_lsn):
            self.wrong("a journal that ended holds other records than were appended")

    def not_open(self, *calls):
        """A journal that was not read yet, or that was closed, accepts no calls."""
        for call in calls:
            try:
                call()
                self.wrong("a journal that is not open takes records")
            except JournalError:
                pass

    def closed(self):
        self.same("the folder of a journal that is closed", self._disk.locked, False)
        if not self.has_failed and len(self._disk.opened) > self._opened:
            self.wrong("a journal that is closed has files open")


class WatchedJournal(FileJournal):
    """A journal with a shadow, which may not continue after its first failure."""

    def __init__(self, disk, shadow, **how):
        super().__init__(disk, **how)
        self._shadow, self.has_failed = shadow, False
        shadow.same("the folder of a journal", disk.locked, True)
        shadow.not_open(super().flush, lambda: FileJournal.append(self, []))

    def recovered_groups(self):
        self._shadow.opening()
        seen = []
        for group in super().recovered_groups():
            seen += group
            yield group
        self._shadow.opened(self, seen)

    def _watched(self, call):
        try:
            done = call()
        except JournalError:
            self.has_failed = True
            raise
        if self.has_failed:
            self._shadow.wrong("it goes on after it failed")
        return done

    def append(self, records):
        append = super().append
        return self._watched(lambda: self._shadow.append(self, records, append))

    def flush(self):
        flush = super().flush
        self._watched(flush)
        self._shadow.flushed(self)

    def snapshot(self, records):
        take = super().snapshot
        self._watched(lambda: self._shadow.snapshot(self, records, take))

    def end(self):
        end = super().end
        self._watched(end)
        self._shadow.ended()

    def close(self):
        super().close()
        self._shadow.closed()
        self._shadow.not_open(super().flush, lambda: FileJournal.append(self, []))
