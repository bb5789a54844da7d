"""Frames with correct checksums whose columns are invalid: none of them may be read.

A disk that does not lie has no such bytes; a wrong or malicious writer produces them.
"""

from roadstead.journal import JournalError
from roadstead.journal.fields import FACTS
from roadstead.journal.records import RecordKind
from roadstead.journal.segments import Reader
from tests.simulation.older import classes_of, disk_of, format_2

NUMBERS, NEW, KINDS, UIDS, KEYS, NODES, TOKENS, OWNERS, OWNER, ABOUT = range(10)
"""The columns of a frame; all but NEW and OWNERS have one value per record."""

PER_RECORD = (NUMBERS, KINDS, UIDS, KEYS, NODES, TOKENS, OWNER, ABOUT)
OF_TEXTS = (UIDS, KEYS, NODES, TOKENS)
TIMES = 6


def problems_of(records, draw):
    """Return one line for each invalid frame that is read."""
    if not records:
        return
    kinds, (classes, _) = [each.value for each in RecordKind], classes_of(records)
    for spoil in draw.sample(SPOILS, TIMES):

        def spoilt(columns, spoil=spoil):
            columns = [*columns]
            spoil(draw, columns)
            return columns

        try:
            found = list(Reader(disk_of(format_2(records, kinds, classes, spoil=spoilt))).records())
        except JournalError:
            continue
        yield f"a frame with {spoil.__doc__} is read as {len(found)} records"


def _shorter(draw, columns):
    """a column that lacks a value"""
    place = draw.choice(PER_RECORD)
    columns[place] = columns[place][:-1]
    if place == NUMBERS and not columns[NUMBERS]:
        # None at all means that the numbers are consecutive.
        columns[NUMBERS] = [1, 2]


def _longer(draw, columns):
    """a column that has a value too many"""
    place = draw.choice(PER_RECORD)
    columns[place] = columns[place] + columns[place][:1]


def _all_longer(draw, columns):
    """a record more than its header counts"""
    for place in PER_RECORD:
        columns[place] = columns[place] + columns[place][:1]


def _missing(draw, columns):
    """a column missing"""
    del columns[draw.randrange(len(columns))]


def _of_another_type(draw, columns):
    """a value of another type"""
    place = draw.choice((*OF_TEXTS, NUMBERS, OWNER, ABOUT))
    values = [*columns[place]]
    wrong = draw.choice((7, None, b"x") if place in OF_TEXTS else ("7", None, 1.5))
    values[draw.randrange(len(values))] = wrong
    columns[place] = values


def _no_column(draw, columns):
    """a column that is no list"""
    columns[draw.choice((*OF_TEXTS, OWNER, ABOUT, NEW, OWNERS))] = draw.choice((None, 3, "x"))


def _unknown_kind(draw, columns):
    """a record of no kind of its file"""
    columns[KINDS] = columns[KINDS][:-1] + bytes([len(RecordKind) + draw.randrange(2)])


def _unknown_owner(draw, columns):
    """an owner that it does not list"""
    columns[OWNER] = [*columns[OWNER][:-1], draw.choice((-1, len(columns[OWNERS])))]


def _unknown_facts(draw, columns):
    """facts that its file does not have"""
    # The first frame of a file declares all facts that it has.
    beyond = max(columns[ABOUT]) + 1
    columns[ABOUT] = [*columns[ABOUT][:-1], draw.choice((-2, beyond))]


def _new_of_no_class(draw, columns):
    """new facts of no class"""
    columns[NEW] = [*columns[NEW], (draw.choice((-1, len(FACTS))), b"\x90")]


def _new_of_no_sense(draw, columns):
    """new facts that are none of their class"""
    wrong = b"", b"\x90", b"\xc1", b"\x93\x01\x02\x03", b"\xc0"
    columns[NEW] = [*columns[NEW], (draw.randrange(len(FACTS)), draw.choice(wrong))]


SPOILS = (
    *(_shorter, _longer, _all_longer, _missing, _of_another_type, _no_column),
    *(_unknown_kind, _unknown_owner, _unknown_facts, _new_of_no_class, _new_of_no_sense),
)
