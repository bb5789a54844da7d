"""The binder as one object: no actor, no message, no clock."""

import pytest

from roadstead.binder import BinderHaltedError, BinderSettings, BindRequest, Rejected
from roadstead.binder.binder import Binder
from roadstead.binder.binder_journal import RunDescription
from roadstead.binder.outcomes import RemovedPod
from roadstead.config.model import default_config
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts
from roadstead.facts.run_mark import BEGUN, FINISHED, RunMark
from roadstead.journal import JournalError, NullJournal
from roadstead.journal.files import FileJournal
from roadstead.placements import TableStore
from roadstead.storage import AssumedClaims, StorageState
from roadstead.storage.claim_messages import AttemptBindings
from tests.builders import node, pod
from tests.journal.memory_journal import MemoryJournal
from tests.journal.simulated_disk import SimulatedDisk
from tests.storage.world import claim, profiles_of, storage, using, volume, waiting

N1, N2 = node("n1"), node("n2")
HALF = pod(cpu=2000)
CLAIMS = storage(waiting("local"), claim("c"), volume("a"))


def begun(journal=None, settings=None, digest=""):
    store = TableStore()
    return Binder(
        store,
        profiles_of(CLAIMS)(store.table.classes),
        journal or NullJournal(),
        RunDescription(ClusterFacts(storage=CLAIMS), default_config().profiles, digest),
        settings or BinderSettings(),
    )


def binder_of(*names, facts=HALF, **how):
    """A binder with nodes n1, n2 of four CPUs, and pods that may be bound."""
    binder = begun(**how)
    binder.add_nodes(NodeList.of((N1, N2)))
    binder.add_pending([keyed(name, facts) for name in names])
    return binder


def keyed(name, facts=HALF):
    return f"uid-{name}", f"default/{name}", facts


def ask(name, node_name="n1", facts=HALF, attempt=1, epoch=1):
    return BindRequest(f"t/{name}/{attempt}", *keyed(name)[:2], node_name, facts, "s", epoch)


def refusals(decisions):
    return [str(each.cause) for each in decisions.values() if isinstance(each, Rejected)]


class Broken(MemoryJournal):
    """A journal that fails on command."""

    works = True

    def flush(self):
        if not self.works:
            raise JournalError("no space left")
        super().flush()


class Groups(FileJournal):
    """kinds: of the records of the last group."""

    def append(self, records):
        self.kinds = [each.kind for each in records]
        return super().append(records)


def test_decisions_are_returned_by_token_in_the_order_of_the_requests():
    binder = binder_of("a", "b", "c")

    decisions = binder.bind([ask(name) for name in "bac"])

    assert list(decisions) == ["t/b/1", "t/a/1", "t/c/1"]
    assert refusals(decisions) == ["constraint"]
    assert binder.outcomes.bound == {"uid-b": "n1", "uid-a": "n1"}
    assert binder.bound_nodes(["uid-a", "uid-c", "uid-x"]) == ("n1", "", None)
    assert binder.batches == 1


def test_commits_have_the_time_of_their_mark():
    binder = binder_of("a", "b")
    for name, now_s in (("a", 3.0), ("b", 7.0)):
        binder.bind([ask(name)])
        binder.commits.mark(now_s, now_s / 10)

    assert binder.commits.page(0, 9) == (["uid-a", "uid-b"], [(1, 3.0, 0.3), (1, 7.0, 0.7)])


def test_claims_are_written_in_one_group_with_the_bind():
    facts, journal = using("c"), Groups(SimulatedDisk())
    binder = binder_of("a", facts=facts, journal=journal)
    reserved = AssumedClaims(StorageState(CLAIMS)).assume("uid-a", facts, N1)

    binder.bind([ask("a", facts=facts)], [AttemptBindings("t/a/1", reserved.bindings)])

    assert sorted(journal.kinds) == ["bind", "storage"]
    assert len(binder.volumes.log) == len(reserved.changes)


def test_evicted_pods_are_returned_and_waiting_ones_are_never_bound():
    binder = binder_of("a", "b")
    binder.bind([ask("a")])

    gone = binder.evict(["uid-a", "uid-b", "uid-x"], ["default/p", "default/p", "default/q"])

    assert gone == [keyed("a"), keyed("b")] == binder.evicted()
    assert binder.outcomes.removed == [
        RemovedPod("uid-a", "default/a", "n1", "default/p"),
        RemovedPod("uid-b", "default/b", "", "default/p"),
    ]
    assert refusals(binder.bind([ask("b")])) == ["deleted"]


@pytest.mark.parametrize("is_recovered", [False, True])
def test_a_late_copy_does_not_bring_back_a_pod_evicted_while_waiting(is_recovered):
    disk = SimulatedDisk()
    binder = binder_of("a", journal=FileJournal(disk))
    binder.evict(["uid-a"], ["default/p"])
    if is_recovered:
        preempted = binder.outcomes.removed
        binder.close()
        binder = binder_of(journal=FileJournal(disk))
        assert binder.outcomes.removed == preempted

    binder.add_pending([keyed("a")])

    assert refusals(binder.bind([ask("a")])) == ["deleted"]


def test_a_recovered_binder_knows_the_removed_pods():
    disk = SimulatedDisk()
    binder = binder_of("a", "b", "c", journal=FileJournal(disk))
    binder.delete_pods(["uid-a"], revision=5)
    binder.delete_pods(["uid-c"], revision=5)
    binder.add_pending([keyed("c")], revision=5)
    assert binder.pod_revisions.gone() == ("uid-a",)
    binder.close()

    assert binder_of(journal=FileJournal(disk)).pod_revisions.gone() == ("uid-a",)


def test_pods_deleted_long_ago_are_known_by_name_only():
    binder = binder_of("a", "b", settings=BinderSettings(max_gone_remembered=1))
    for name in "ab":
        binder.delete_pods([f"uid-{name}"])

    assert binder.evicted() == [keyed("a", PodFacts("default")), keyed("b")]


def test_late_copies_of_changes_are_ignored():
    binder = binder_of("a")
    binder.remove_nodes(["n2"], revision=4)
    assert binder.delete_pods(["uid-a"], revision=5) == [keyed("a")]

    binder.add_nodes(NodeList.of((N2,)), revision=3)
    binder.add_pending([keyed("a")], revision=4)

    assert list(binder.core.placements.nodes) == ["n1"]
    assert binder.bound_nodes(["uid-a"]) == (None,)
    assert (binder.node_revisions.latest, binder.pod_revisions.latest) == (4, 5)


def test_an_update_returns_the_known_pods_with_their_new_facts():
    binder = binder_of("a", "b")
    binder.add_running([keyed("r")], ["n2"])
    small = pod(cpu=100)

    records = binder.update_pods([keyed(name, small) for name in "arx"], revision=1)

    assert [(each.uid, each.facts, each.node_name) for each in records] == [
        ("uid-a", small, ""),
        ("uid-r", small, "n2"),
    ]


def test_resolved_and_fenced_state_is_final():
    binder = binder_of("a", "b")

    assert binder.resolve(["uid-a", "uid-x"], ["t/a/1", "t/x/1"]) == ("", None)
    binder.fence("s", 2)

    assert refusals(binder.bind([ask("a", epoch=2)])) == ["expired"]
    assert refusals(binder.bind([ask("b")])) == ["stale_epoch"]


def test_a_binder_with_fewer_checks_binds_pods_that_do_not_fit():
    binder = binder_of("a", "b", "c")

    class Trusting(type(binder.verifier)):
        def verify_prefix(self, pods, node_names):
            return len(pods)

    binder.verifier = Trusting(binder.core.placements.store.table, {})

    assert refusals(binder.bind([ask(name) for name in "abc"])) == []


def test_a_failing_journal_leaves_requests_unanswered_and_refuses_the_rest():
    journal = Broken()
    binder = binder_of("a", "b", journal=journal)
    last = journal.last_lsn
    journal.works = False

    assert binder.error == ""
    assert binder.bind([ask("a")]) == {}
    assert binder.error == f"no space left; records 1 to {last} of {last + 1} are durable"
    with pytest.raises(BinderHaltedError, match="halted: no space left"):
        binder.fence("s", 2)
    assert refusals(binder.bind([ask("b")])) == ["halted"]


def test_the_next_binder_continues_the_journal_of_the_previous_one():
    disk = SimulatedDisk()
    first = binder_of("a", "b", "c", journal=FileJournal(disk), digest="abc")
    before = first.bind([ask("a")])
    first.evict(["uid-b"], ["default/p"])
    first.end_run("of the outcome")
    first.end()

    second = begun(journal=FileJournal(disk), digest="abc")

    assert second.bind([ask("a")]) == before
    assert second.bound_nodes(["uid-a", "uid-b", "uid-c"]) == ("n1", None, "")
    assert second.outcomes.bound == first.outcomes.bound
    assert second.evicted() == first.evicted()
    assert second.journal.subjects == first.journal.subjects
    assert second.journal.subjects[-2:] == (
        RunMark(BEGUN, "abc"),
        RunMark(FINISHED, "of the outcome"),
    )
    assert second.batches == 1
