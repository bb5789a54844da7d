"""A void token commits nothing any more, whatever is sent later (I6)."""

import pytest

from roadstead.binder import (
    Acknowledge,
    AppendJournal,
    BinderHaltedError,
    BinderState,
    Bound,
    RejectCause,
)
from roadstead.binder.recovery import recover, snapshot_records, split_by_kind
from roadstead.facts.node import NodeFacts
from roadstead.facts.run_mark import VOID
from roadstead.invariants.checker import check
from roadstead.journal import JournalRecord, RecordKind
from tests.binder.test_binder_core import ask, binder
from tests.binder.test_recovery import new_core


def records_of(effects):
    return [r for effect in effects if isinstance(effect, AppendJournal) for r in effect.records]


def decided(core, request):
    """The result of a request after everything is flushed."""
    answers = core.bind([request])
    answers += core.flushed(core.last_lsn)
    (found,) = [each.result for each in answers if isinstance(each, Acknowledge)]
    return found


def test_a_bind_after_its_token_is_void_is_refused():
    core = binder("a")

    core.flushed(records_of(core.void(["token-a"]))[-1].lsn)

    assert decided(core, ask("a")).cause is RejectCause.EXPIRED
    assert core.pod_status("uid-a") == (BinderState.PENDING, None)
    core.validate()


def test_the_pod_may_be_bound_under_another_token():
    core = binder("a")
    core.flushed(records_of(core.void(["token-a"]))[-1].lsn)

    assert isinstance(decided(core, ask("a", token="again")), Bound)


def test_a_repeated_void_is_written_once():
    core = binder("a")

    first, second = core.void(["token-a", "token-b"]), core.void(["token-b", "token-a"])

    assert [(r.kind, r.token, r.subject.what) for r in records_of(first)] == [
        (RecordKind.RUN, "token-a", VOID),
        (RecordKind.RUN, "token-b", VOID),
    ]
    assert second == []


def test_bound_pods_stay_bound():
    core = binder("a")
    bound = decided(core, ask("a"))

    core.flushed(records_of(core.void(["token-a"]))[-1].lsn)

    assert decided(core, ask("a")) == bound


def test_only_the_last_void_tokens_are_remembered():
    core = binder("a", "b", max_tokens=2)

    core.flushed(records_of(core.void(["token-a", "x", "y"]))[-1].lsn)

    assert isinstance(decided(core, ask("a")), Bound)


def test_a_halted_binder_voids_no_token():
    core = binder("a")
    core.flush_failed("no space")

    with pytest.raises(BinderHaltedError):
        core.void(["token-a"])


@pytest.mark.parametrize("from_snapshot", [False, True])
def test_a_recovered_binder_knows_void_tokens(from_snapshot):
    core = new_core()
    journal = records_of([*core.add_node(NodeFacts("n1")), *core.void(["token-a"])])
    journal += records_of(core.add_pods([("uid-a", "default/a", ask("a").facts)]))
    core.flushed(core.last_lsn)

    again = new_core()
    recover(
        again,
        split_by_kind([[*snapshot_records(core)] if from_snapshot else journal]),
        core.last_lsn,
    )

    assert decided(again, ask("a")).cause is RejectCause.EXPIRED
    assert check(journal).violations == []


def test_the_record_of_a_void_token_names_no_pod():
    core = binder()

    (record,) = records_of(core.void(["t"]))

    assert record == JournalRecord(1, RecordKind.RUN, "", "", "", "t", subject=record.subject)
