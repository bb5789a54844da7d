import pytest

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.interface import NOTHING
from roadstead.actors.messages import BindBatch, Evict, PageRequest, RunningPods, node_batch
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import (
    OwnerEpoch,
    PodNodes,
    PodRemoval,
    ResolveAttempts,
    Uids,
)
from roadstead.binder import BindConflictError, BinderHaltedError
from roadstead.binder.verification import Verifier
from roadstead.journal import JournalError
from roadstead.journal.files import FileJournal
from roadstead.protocol.errors import RoadsteadError
from tests.actors.world import NOBODY, batch_of, plan_of
from tests.builders import node, pod
from tests.inside import counts_of
from tests.journal.memory_journal import MemoryJournal
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_files import opened

HALF = pod(cpu=2000)
ALL = PageRequest(0, 100)
TWO = PageRequest(0, 2)


class Broken(MemoryJournal):
    """A journal that fails from one point on."""

    def __init__(self):
        super().__init__()
        self.works = True

    def flush(self):
        if not self.works:
            raise JournalError("journal: no space left on device")
        super().flush()


async def binder_of(*pending, facts=HALF, journal=None):
    """Return a binder with nodes n1, n2 of four CPUs, and pods that may be bound."""
    binder = BinderActor(plan_of(), NOBODY, journal)
    await binder.add_nodes(node_batch((node("n1"), node("n2"))))
    await binder.add_pending(batch_of(*pending, facts=facts))
    return binder


def request(*names, on="n1", owner="scheduler-0", epoch=1, facts=HALF, attempt=1):
    tokens = tuple(f"{owner}/{epoch}/{name}/{attempt}" for name in names)
    return BindBatch(owner, epoch, batch_of(*names, facts=facts), (on,) * len(names), tokens)


async def bind(binder, *names, **how):
    answers = (await binder.bind(request(*names, **how))).answers
    binder.core.validate()
    return answers


async def causes(binder, *names, **how):
    return [answer.cause for answer in await bind(binder, *names, **how)]


async def bound(binder, ask=ALL):
    page = await binder.bound(ask)
    return dict(zip(page.uids, page.nodes, strict=True))


async def test_a_commit_is_answered_with_node_record_and_version():
    binder = await binder_of("a", "b")

    first, second = await bind(binder, "a", "b")

    assert (first.token, first.uid, first.node_name) == ("scheduler-0/1/a/1", "uid-a", "n1")
    assert (first.cause, first.reasons) == ("", ())
    assert (first.lsn, second.lsn) == (1, 2)
    assert first.version < second.version
    assert await bound(binder) == {"uid-a": "n1", "uid-b": "n1"}


async def test_a_late_copy_of_a_bind_does_not_list_a_pod_that_now_runs_elsewhere():
    binder = await binder_of("a")
    (before,) = await bind(binder, "a")
    await binder.delete_pods(PodRemoval(("uid-a",)))
    await binder.add_running(RunningPods(batch_of("a", facts=HALF), ("n2",)))

    assert await bind(binder, "a") == (before,)
    assert await bound(binder) == {}


async def test_a_repeated_token_gets_the_same_answer_without_a_second_bind():
    journal = MemoryJournal()
    binder = await binder_of("a", journal=journal)
    first = await bind(binder, "a")

    assert await bind(binder, "a") == first
    assert await bound(binder) == {"uid-a": "n1"}
    assert len(journal.durable) == 1


async def test_a_token_that_names_another_request_is_an_error_that_changes_nothing():
    binder = await binder_of("a")
    await bind(binder, "a")

    with pytest.raises(BindConflictError, match="on n2, asked before for default/a on n1"):
        await bind(binder, "a", on="n2")

    assert await bound(binder) == {"uid-a": "n1"}


async def test_a_bind_that_overfills_a_node_is_refused_at_any_read_version():
    binder = await binder_of("a", "b", "c")

    answers = await bind(binder, "a", "b", "c")

    assert [answer.cause for answer in answers] == ["", "", "constraint"]
    assert answers[2].reasons == ("Insufficient cpu",)
    assert await causes(binder, "c", on="n2", attempt=2) == [""]


async def test_a_refusal_is_remembered_under_its_token():
    binder = await binder_of("a", "b", "c")
    *_, refused = await bind(binder, "a", "b", "c")

    assert await bind(binder, "c") == (refused,)


async def test_running_pods_use_their_resources():
    binder = await binder_of("a", "b")
    await binder.add_running(RunningPods(batch_of("r", facts=HALF), ("n1",)))

    assert await causes(binder, "a", "b") == ["", "constraint"]
    assert await bound(binder) == {"uid-a": "n1"}


async def test_a_page_of_pods_marks_those_that_ran_from_the_start():
    binder = await binder_of("a", "b")
    await binder.add_running(RunningPods(batch_of("r", facts=HALF), ("n1",)))
    await bind(binder, "a")

    page = await binder.pods_page(ALL)

    assert (page.pods.names, page.nodes) == (("a", "b", "r"), ("n1", "", "n1"))
    assert page.ran == (2,)


async def test_a_removal_between_two_pages_skips_no_other_pod_or_node():
    names = [f"p{number}" for number in range(5)]
    binder = await binder_of(*names)
    await binder.delete_pods(PodRemoval(("uid-p0",)))
    await binder.add_nodes(node_batch((node("n3"), node("n4"), node("n5"))))
    await binder.remove_nodes(NodeNames(("n1",)))

    pods, nodes = await binder.pods_page(TWO), await binder.nodes_page(TWO)
    await binder.delete_pods(PodRemoval(("uid-p2", "uid-p1")))
    await binder.remove_nodes(NodeNames(("n3",)))
    more_pods = await binder.pods_page(PageRequest(pods.next_start, 2))
    more_nodes = await binder.nodes_page(PageRequest(nodes.next_start, 2))

    assert (pods.pods.names, more_pods.pods.names) == (("p1", "p2"), ("p3", "p4"))
    assert ([each.name for each in nodes.nodes], [each.name for each in more_nodes.nodes]) == (
        ["n2", "n3"],
        ["n4", "n5"],
    )
    assert (more_pods.next_start, more_nodes.next_start) == (0, 0)


async def test_running_pods_sent_twice_count_once():
    binder = await binder_of("a")
    for _ in range(2):
        await binder.add_running(RunningPods(batch_of("r", facts=HALF), ("n1",)))

    assert await causes(binder, "a") == [""]


async def test_requests_refused_for_other_reasons_than_resources_name_the_cause():
    binder = await binder_of("a", "b")
    await bind(binder, "a")

    assert await causes(binder, "a", on="n2", attempt=2) == ["already_bound"]
    assert await causes(binder, "b", on="n9") == ["unknown_node"]
    assert await causes(binder, "stranger") == ["unknown_pod"]


async def test_a_scheduler_of_an_older_epoch_is_refused():
    binder = await binder_of("a", "b")
    await bind(binder, "a", epoch=2)

    assert await causes(binder, "b", epoch=1) == ["stale_epoch"]


async def test_a_fenced_scheduler_commits_nothing_of_its_earlier_epochs():
    binder = await binder_of("a")

    await binder.fence_owner(OwnerEpoch("scheduler-0", 2))

    assert await causes(binder, "a", epoch=1) == ["stale_epoch"]
    assert await causes(binder, "a", epoch=2) == [""]


async def test_a_fence_that_is_not_durable_is_not_answered():
    journal = Broken()
    binder = await binder_of(journal=journal)
    journal.works = False

    with pytest.raises(BinderHaltedError, match="no space left"):
        await binder.fence_owner(OwnerEpoch("scheduler-0", 2))


async def test_each_scheduler_has_an_epoch_of_its_own():
    binder = await binder_of("a", "b")
    await bind(binder, "a", epoch=5)

    assert await causes(binder, "b", owner="scheduler-1", epoch=1) == [""]


async def test_acknowledged_binds_are_in_the_journal_in_commit_order():
    journal = MemoryJournal()
    binder = await binder_of("a", "b", journal=journal)

    await bind(binder, "b", on="n2")
    await bind(binder, "a")

    assert [(record.key, record.node_name) for record in journal.durable] == [
        ("default/b", "n2"),
        ("default/a", "n1"),
    ]


async def test_a_journal_that_fails_halts_the_binder_before_it_answers():
    journal = Broken()
    binder = await binder_of("a", "b", journal=journal)
    await bind(binder, "a")
    journal.works = False

    assert await bind(binder, "b") == ()

    assert await bound(binder) == {"uid-a": "n1"}
    status = await binder.status(NOTHING)
    assert status.error == "journal: no space left on device; records 1 to 1 of 2 are durable"


async def test_a_halted_binder_refuses_new_requests_and_repeats_known_answers():
    journal = Broken()
    binder = await binder_of("a", "b", "c", journal=journal)
    first = await bind(binder, "a")
    journal.works = False
    await bind(binder, "b")

    assert await causes(binder, "c") == ["halted"]
    assert await bind(binder, "a") == first
    with pytest.raises(BinderHaltedError, match="no space left"):
        await binder.add_pending(batch_of("d"))


async def test_binds_that_a_failing_journal_did_not_write_are_not_answered():
    journal = Broken()
    binder = await binder_of("a", journal=journal)
    journal.works = False

    with pytest.raises(BinderHaltedError, match="no space left"):
        await binder.delete_pods(PodRemoval(("uid-a",)))


async def test_a_grown_journal_is_replaced_by_a_snapshot(monkeypatch):
    monkeypatch.setattr("roadstead.binder.binder_journal.SNAPSHOT_BYTES", 2000)
    names, disk = [f"p{number}" for number in range(20)], SimulatedDisk()
    binder = await binder_of(*names, facts=pod(cpu=100), journal=opened(disk)[0])
    for name in names:
        await bind(binder, name, facts=pod(cpu=100))
    binder.release()

    assert any(name.endswith(".snapshot") for name in disk.names())
    again = BinderActor(plan_of(), NOBODY, FileJournal(disk))
    assert len((await again.nodes_page(ALL)).nodes) == 2
    placements = await again.pod_nodes(Uids(tuple(f"uid-{name}" for name in names)))
    assert placements == PodNodes(("n1",) * len(names))


async def test_a_journal_that_has_not_grown_is_left_unchanged():
    disk = SimulatedDisk()
    binder = await binder_of("a", journal=opened(disk)[0])

    await bind(binder, "a")

    assert not any(name.endswith(".snapshot") for name in disk.names())


async def test_a_recovered_binder_lists_deleted_pods():
    disk = SimulatedDisk()
    binder = await binder_of("a", "b", journal=opened(disk)[0])
    await bind(binder, "a")
    await bind(binder, "b")
    await binder.evict(Evict(("uid-a",), ("default/x",)))
    known = await binder.preempted(ALL)
    assert [note.uid for note in known.pods] == ["uid-a"]
    binder.release()

    again = BinderActor(plan_of(), NOBODY, FileJournal(disk))

    assert await again.preempted(ALL) == known
    assert (await again.bound(ALL)).uids == ("uid-b",)


async def test_a_snapshot_contains_only_durable_records(monkeypatch):
    monkeypatch.setattr("roadstead.binder.binder_journal.SNAPSHOT_BYTES", 1 << 40)
    disk = SimulatedDisk(short_writes=0.0)
    journal = opened(disk)[0]
    binder = await binder_of("a", "b", journal=journal)
    await bind(binder, "a")
    before = disk.names()

    def failing():
        raise JournalError("journal: no space left on device")

    monkeypatch.setattr(journal, "flush", failing)
    monkeypatch.setattr("roadstead.binder.binder_journal.SNAPSHOT_BYTES", -1)

    assert await bind(binder, "b") == ()
    assert disk.names() == before


async def test_a_recovered_binder_knows_the_last_change_of_each_node_and_pod():
    disk = SimulatedDisk()
    binder = await binder_of("a", "b", "c", journal=opened(disk)[0])
    await bind(binder, "b")
    await binder.remove_nodes(NodeNames(("n2",), revision=4))
    await binder.delete_pods(PodRemoval(("uid-a",), revision=5))
    await binder.evict(Evict(("uid-b",), ("default/x",)))
    known = await binder.revisions(NOTHING)
    assert dict(known.nodes) == {"n2": 4}
    assert dict(known.pods) == {"uid-a": 5, "uid-b": 1}
    binder.release()

    again = BinderActor(plan_of(), NOBODY, FileJournal(disk))

    assert await again.revisions(NOTHING) == known


async def test_attempts_that_the_binder_reports_as_void_are_never_committed():
    binder = await binder_of("a", "b")
    await bind(binder, "a")
    tokens = ("scheduler-0/1/a/1", "scheduler-0/1/b/1", "scheduler-0/1/c/1")

    placements = await binder.resolve(ResolveAttempts(("uid-a", "uid-b", "uid-c"), tokens))

    assert placements == PodNodes(("n1", "", None))
    assert await causes(binder, "b") == ["expired"]
    assert await causes(binder, "b", attempt=2) == [""]


async def test_a_binder_whose_journal_fails_reports_no_final_outcome():
    journal = Broken()
    binder = await binder_of("a", journal=journal)
    journal.works = False

    with pytest.raises(RoadsteadError, match="halted: journal: no space left"):
        await binder.resolve(ResolveAttempts(("uid-a",), ("t",)))


async def test_binds_are_listed_in_commit_order_page_by_page():
    names = [f"p{number}" for number in range(5)]
    binder = await binder_of(*names, facts=pod(cpu=1))
    await bind(binder, *reversed(names), facts=pod(cpu=1))

    pages = [await binder.bound(PageRequest(start, 2)) for start in (0, 2, 4, 6)]

    assert [page.uids for page in pages] == [
        ("uid-p4", "uid-p3"),
        ("uid-p2", "uid-p1"),
        ("uid-p0",),
        (),
    ]
    assert {page.total for page in pages} == {5}


@pytest.mark.parametrize("how", ["delete", "evict"])
async def test_a_late_copy_of_a_bind_does_not_list_a_deleted_pod(how):
    binder = await binder_of("a", "b")
    first = await bind(binder, "a", "b")
    if how == "delete":
        await binder.delete_pods(PodRemoval(("uid-a",), 1))
    else:
        await binder.evict(Evict(("uid-a",), ("default/b",)))

    again = await bind(binder, "a", "b")

    assert again == first
    assert await bound(binder) == {"uid-b": "n1"}
    assert (await binder.commits(ALL)).total == 2


async def test_nodes_and_pods_sent_twice_change_nothing():
    binder = await binder_of("a")
    await bind(binder, "a")
    before = counts_of(binder.core)

    await binder.add_nodes(node_batch((node("n1"), node("n2"))))
    await binder.add_pending(batch_of("a", facts=HALF))

    assert counts_of(binder.core) == before


async def test_status_reports_committed_pods():
    binder = await binder_of("a", "b")
    await bind(binder, "a", "b")

    status = await binder.status(NOTHING)

    assert (status.text, status.error) == ("had committed 2 binds in 1 batches", "")
    assert dict(status.counts) == {"bound": 2, "batches": 1}


class Unwritable(MemoryJournal):
    """A journal that raises an error of an undeclared type."""

    def append(self, records):
        if any(each.kind == "bind" for each in records):
            raise ValueError("cannot be encoded")
        return super().append(records)


async def test_a_journal_that_fails_unexpectedly_halts_the_binder_too():
    binder = await binder_of("a", "b", journal=Unwritable())

    assert await bind(binder, "a", "b") == ()

    assert "cannot be encoded" in (await binder.status(NOTHING)).error
    assert await bound(binder) == {}
    assert await causes(binder, "a", attempt=2) == ["halted"]


async def test_a_filter_that_raises_for_the_third_pod_leaves_the_binder_unchanged(monkeypatch):
    journal = MemoryJournal()
    binder = await binder_of("a", "b", "c", facts=pod(cpu=100), journal=journal)
    verify, seen = Verifier.verify, []

    def raises_for_the_third(self, facts, node_name):
        seen.append(node_name)
        if len(seen) == 3:
            raise ZeroDivisionError
        return verify(self, facts, node_name)

    with monkeypatch.context() as patched:
        patched.setattr(Verifier, "verify", raises_for_the_third)
        patched.setattr(Verifier, "verify_prefix", lambda self, pods, names: 0)
        with pytest.raises(ZeroDivisionError):
            await bind(binder, "a", "b", "c", facts=pod(cpu=100))
    binder.core.validate()

    answers = await bind(binder, "a", "b", "c", facts=pod(cpu=100))

    assert [each.cause for each in answers] == ["", "", ""]
    assert [each.lsn for each in answers] == [each.lsn for each in journal.durable[-3:]]


async def test_all_evicted_pods_are_returned_after_any_time():
    binder = await binder_of("a", "b", "c")
    binder.core.pods.max_ended = 1
    await bind(binder, "a", "b")
    for name in "ab":
        await binder.evict(Evict((f"uid-{name}",), ("default/c",)))

    evicted = await binder.evicted_pods(NOTHING)

    assert [(pod.key, facts.namespace) for pod, facts in evicted.pods()] == [
        ("default/a", "default"),
        ("default/b", "default"),
    ]
