"""Journals of the previous release are read and continued; unknown fields are refused by name."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.storage import StorageFacts
from roadstead.journal import JournalError, RecordKind, format_1
from roadstead.journal.fields import FACTS, Fields, FieldsError, builder_of, present_fields
from roadstead.journal.headers import segment_name
from roadstead.journal.segments import Reader
from roadstead.protocol.codec import to_wire
from roadstead.protocol.plain_data import CodecError
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_files import opened, records, spoil, written

FORMAT_1 = Path(__file__).parent / "format_1"


def disk_of(folder):
    disk = SimulatedDisk()
    for path in sorted(folder.iterdir()):
        disk.contents[path.name] = path.read_bytes()
        disk.durable[path.name] = len(disk.contents[path.name])
    disk.sync_names()
    return disk


def test_a_journal_of_format_1_is_read():
    found = list(Reader(disk_of(FORMAT_1 / "run" / "journal")).records())

    assert [each.lsn for each in found] == list(range(1, 20))
    binds = {each.key: each.node_name for each in found if each.kind is RecordKind.BIND}
    assert binds["default/db"] == "n2"
    (node,) = [each.subject for each in found if each.key == "n2" and each.kind == "node"]
    assert node.taints[0].key == "dedicated"
    (claims,) = [each.subject for each in found if each.kind is RecordKind.STORAGE]
    assert claims.claims[0].volume_name == "pv-1"


def test_a_journal_of_format_1_with_a_snapshot_is_continued_in_format_2():
    disk = disk_of(FORMAT_1 / "snapshot")

    journal, found = opened(disk)
    first = journal.last_lsn + 1
    journal.append(records(first, first + 2))
    journal.end()

    assert [each.kind for each in found].count("load") == 2
    reader = Reader(disk)
    assert [each.lsn for each in reader.records()][-3:] == [first, first + 1, first + 2]
    assert reader.closed.records == first + 2


def test_a_torn_end_of_format_1_is_cut_and_durable_frames_are_not():
    disk = disk_of(FORMAT_1 / "run" / "journal")
    (name,) = [name for name in disk.names() if name.endswith(".segment")]
    whole = disk.contents[name]
    spoil(disk, name, len(whole) - 40)

    journal, found = opened(disk)

    assert (len(found), journal.tail.lsn) == (18, 19)
    disk.contents[name] = whole
    spoil(disk, name, 200)
    with pytest.raises(JournalError, match=r"damaged at offset 36"):
        list(Reader(disk).records())


def test_a_torn_header_of_format_1_is_ignored_from_the_next_record_on():
    disk = disk_of(FORMAT_1 / "run" / "journal")
    torn = segment_name(20)
    disk.contents[torn] = disk.contents[disk.names()[0]][:10]

    journal, found = opened(disk)

    assert len(found) == 19
    tail = journal.tail
    assert (tail.name, tail.offset, tail.lsn, tail.was_durable) == (torn, 0, 20, False)
    journal.append(records(20, 21))
    journal.end()
    assert [each.lsn for each in Reader(disk).records()] == list(range(1, 22))


def test_a_journal_of_format_1_with_unknown_fields_is_refused(monkeypatch):
    disk = disk_of(FORMAT_1 / "run" / "journal")
    assert format_1.fields_of(1) is None
    monkeypatch.setattr(format_1, "fields_of", lambda checksum: None)

    with pytest.raises(JournalError, match="facts have other fields; that release can read it"):
        opened(disk)


def without(cls, *names):
    """The fields of this release, without some fields of a class."""
    now = present_fields()
    classes = dict(now.classes)
    classes[cls] = tuple(name for name in classes[cls] if name not in names)
    return Fields(now.kinds, now.facts, tuple(classes.items()))


def test_a_field_that_did_not_exist_yet_has_its_default():
    data = to_wire(PodFacts(labels=(("app", "x"),), priority=7))
    names = dict(present_fields().classes)["PodFacts"]
    for missing in ("is_preempted", "priority", "tolerations"):
        older = [each for each, name in zip(data, names, strict=True) if name != missing]

        built = builder_of(without("PodFacts", missing)).build(FACTS.index(PodFacts), older)

        assert built.labels == (("app", "x"),)
        assert built.priority == (0 if missing == "priority" else 7)


def test_the_retired_names_of_claims_are_read_while_they_are_empty():
    now = present_fields()
    names = dict(now.classes)["PodFacts"]
    older = tuple("resource_claims" if name == "device_claims" else name for name in names)
    classes = tuple((dict(now.classes) | {"PodFacts": older}).items())
    builder = builder_of(Fields(now.kinds, now.facts, classes))
    data = to_wire(PodFacts(priority=7))

    assert builder.build(FACTS.index(PodFacts), data) == PodFacts(priority=7)
    data[names.index("device_claims")] = ["gpu"]
    with pytest.raises(FieldsError, match="resource_claims"):
        builder.build(FACTS.index(PodFacts), data)


def test_a_field_of_a_nested_class_has_its_default_too():
    facts = ClusterFacts(storage=StorageFacts())
    ((*before, storage, budgets, groups),) = [to_wire(facts)]
    older = [*before, storage[:-1], budgets, groups]

    built = builder_of(without("StorageFacts", "attachments")).build(
        FACTS.index(ClusterFacts), older
    )

    assert built == facts


def test_unknown_fields_of_another_release_are_refused_by_name(monkeypatch):
    now = present_fields()
    classes = tuple(
        (name, (*fields, "mood") if name == "PodFacts" else fields) for name, fields in now.classes
    )
    newer = Fields(now.kinds, now.facts, classes)
    disk = SimulatedDisk()
    monkeypatch.setattr("roadstead.journal.writing.present_fields", lambda: newer)
    written(disk, records(1, 1))

    with pytest.raises(JournalError, match='PodFacts has a field "mood", which is not known'):
        opened(disk)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (Fields(("bind", "dance"), (), ()), 'records of the kind "dance" are not known'),
        (Fields((), ("Weather",), ()), 'facts of the kind "Weather" are not known'),
        (without("HostPort", "port"), "HostPort lacks the field port, which this release needs"),
    ],
)
def test_objects_that_this_release_cannot_build_are_refused_by_name(fields, text):
    with pytest.raises(FieldsError, match=text):
        builder_of(fields)


@dataclass(frozen=True)
class Inner:
    old: int
    new: int = 7


@dataclass(frozen=True)
class Other:
    text: str
    more: int = 1


@dataclass(frozen=True)
class Outer:
    """A class with all field types of facts: nested classes, lists, unions, and defaults."""

    name: str
    pair: tuple[int, Inner, Other]
    many: tuple[Inner, ...]
    maybe: Inner | None
    plain: tuple[tuple[str, int], ...]
    made: tuple[str, ...] = field(default_factory=lambda: ("made",))
    whole: Inner = Inner(1, 2)


def outer_of(monkeypatch, data, inner=("old",), outer=("name", "pair", "many", "maybe", "plain")):
    """The class decoded from data of a release that had these fields."""
    monkeypatch.setattr("roadstead.journal.fields.FACTS", (Outer,))
    classes = (("Inner", inner), ("Other", ("text",)), ("Outer", outer))
    return builder_of(Fields((), ("Outer",), classes)).build(0, data)


def test_fields_have_their_defaults_at_any_nesting_of_their_class(monkeypatch):
    data = ["x", [3, [4], ["y"]], [[5], [6]], [8], [["a", 1]]]

    found = outer_of(monkeypatch, data)

    assert found == Outer(
        *("x", (3, Inner(4, 7), Other("y")), (Inner(5, 7), Inner(6, 7)), Inner(8, 7), (("a", 1),)),
        *(("made",), Inner(1, 2)),
    )
    assert outer_of(monkeypatch, [*data[:3], None, []]).maybe is None


def test_fields_in_another_order_are_read_by_their_names(monkeypatch):
    data = [[3, [7, 4], ["y"]], "x", [], None, []]

    found = outer_of(monkeypatch, data, ("new", "old"), ("pair", "name", "many", "maybe", "plain"))

    assert (found.name, found.pair) == ("x", (3, Inner(4, 7), Other("y")))


@pytest.mark.parametrize(
    "data",
    [
        *(None, 7, "five!", {}, [], ["x"]),
        *(["x", [3, [4]], [], None, []], ["x", "abc", [], None, []], ["x", None, [], None, []]),
        *(["x", [3, [4], ["y"]], 7, None, []], ["x", [3, [4], ["y"]], [7], None, []]),
        ["x", [3, 9, ["y"]], [], None, []],
    ],
)
def test_the_codec_refuses_data_of_another_class(monkeypatch, data):
    with pytest.raises(CodecError):
        outer_of(monkeypatch, data)


def test_this_release_writes_each_field_name_once_per_class():
    now = present_fields()
    classes = dict(now.classes)

    assert list(classes) == sorted(classes)
    assert classes["RunMark"] == ("what", "digest")
    # A class in a class, in a list, and in a union.
    assert {"StorageFacts", "Taint", "Owner", "GroupMembership", "Requirement"} <= classes.keys()
    assert Fields.decode(now.encode()) == now
