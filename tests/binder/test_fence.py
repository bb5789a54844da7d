"""A fenced owner commits nothing any more, also where the binder is recovered before the next life
of that owner binds a pod.
"""

import pytest

from roadstead.binder import BinderHaltedError
from roadstead.binder.recovery import recover, snapshot_records, split_by_kind
from roadstead.facts.run_mark import EPOCH
from roadstead.journal import RecordKind
from tests.binder.test_binder_core import ask, binder, causes
from tests.binder.test_recovery import new_core
from tests.binder.test_void import records_of


def test_a_fence_is_a_separate_record_and_written_once():
    core = binder("a")

    (record,) = records_of(core.fence("s", 2))

    assert (record.kind, record.subject.what) == (RecordKind.RUN, EPOCH)
    assert (record.owner, record.epoch) == ("s", 2)
    assert record.lsn == core.last_lsn == 1
    assert core.fence("s", 2) == core.fence("s", 1) == []
    assert causes(core.bind([ask("a", owner="s", epoch=1)])) == ["stale_epoch"]


@pytest.mark.parametrize("from_snapshot", [False, True])
def test_a_recovered_binder_refuses_a_fenced_owner_without_later_binds(from_snapshot):
    core = binder("a")
    records = records_of(core.fence("s", 2))
    core.flushed(core.last_lsn)
    replayed = list(snapshot_records(core)) if from_snapshot else records

    recovered = new_core()
    recover(recovered, split_by_kind([replayed]))

    assert recovered.current_epoch("s") == 2
    request = ask("a", owner="s", epoch=1)
    recovered.add_pods([(request.uid, request.key, request.facts)])
    assert causes(recovered.bind([request])) == ["stale_epoch"]


def test_a_halted_binder_fences_no_owner():
    core = binder("a")
    core.flush_failed("disk is full")

    with pytest.raises(BinderHaltedError):
        core.fence("s", 2)
