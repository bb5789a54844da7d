from types import SimpleNamespace

import pytest

from roadstead.actors.interface import NOTHING, RunFailedError
from roadstead.actors.messages import CommitPage, Submitted, pod_list
from roadstead.actors.runs import session as sessions
from roadstead.actors.runs.session import CLASSES_PER_MESSAGE, RunSession, is_idle
from roadstead.config.settings import Bounds
from roadstead.facts.pod import PodIdentity
from roadstead.queue import QueueState
from tests.actors.fleets import apps, near
from tests.actors.world import Fake, batch_of, plan_of, tables_of, until
from tests.bench.sessions import with_session
from tests.builders import node, pod

SMALL = pod(cpu=600)


async def until_idle(session):
    while not is_idle(await session.state()):
        pass


async def bound(session):
    return (await session.commits(0)).uids


def test_pods_are_bound_on_submission_and_the_binder_reports_when():
    async def work(session, actors):
        await session.begin()
        await session.add_nodes([node("n1", cpu=1000)])
        await session.submit(batch_of("a"))
        await until_idle(session)
        await session.add_nodes([node("n2", cpu=1000)])
        await session.submit(batch_of("b", "c"))
        await until_idle(session)
        page = await session.commits(0)
        return page, await session.commits(1, 1), await session.commits(0, 0)

    page, second, none = with_session(work)

    assert page.uids == ("uid-a", "uid-b", "uid-c")
    assert sum(count for count, *_ in page.times) == page.total == 3
    assert [spent_s for *_, spent_s in page.times] == sorted(spent_s for *_, spent_s in page.times)
    assert page.times[-1][2] <= page.processor_s
    assert second.uids == ("uid-b",)
    assert (none.uids, none.total) == ((), 3)


def test_a_new_node_wakes_waiting_pods():
    async def work(session, actors):
        await session.begin()
        await session.add_nodes([node("n1", cpu=100)])
        await session.submit(batch_of("a", facts=SMALL))
        await until_idle(session)
        notes, waiting = await session.pending(5)
        await session.add_nodes([node("n2", cpu=1000)])
        await until_idle(session)
        return waiting, notes[0].message, await bound(session)

    waiting, message, uids = with_session(work)

    assert waiting == 1
    assert "Insufficient cpu" in message
    assert uids == ("uid-a",)


def changes(old, new, *names):
    """Return updates of pods of the default namespace from `old` to `new`."""
    return [(PodIdentity(f"uid-{name}", "default", name), old, new) for name in names]


def test_a_pod_that_requests_less_on_its_node_frees_resources_for_a_waiting_one():
    async def work(session, actors):
        await session.begin()
        await session.add_nodes([node("n1", cpu=1000)])
        await session.submit(batch_of("a", facts=SMALL))
        await until_idle(session)
        await session.submit(batch_of("b", facts=SMALL))
        await until_idle(session)
        waiting = (await session.state()).unschedulable
        await session.update_pods(changes(SMALL, pod(cpu=300), "a"))
        await until_idle(session)
        for core in (actors["cache"].core, actors["binder"].core, actors["queue"].core):
            core.validate()
        rows = [
            actors[name].core.placements.store.table.row_facts("n1")["nonzero_requested"][0]
            for name in ("cache", "binder")
        ]
        return waiting, await bound(session), rows

    assert with_session(work) == (1, ("uid-a", "uid-b"), [900, 900])


def test_a_new_label_of_a_bound_pod_wakes_pods_with_affinity_to_it():
    async def work(session, actors):
        await session.begin()
        await session.add_nodes([node("n1", labels={"zone": "z"})])
        await session.submit(batch_of("a", facts=pod(cpu=1)))
        await session.submit(
            batch_of("near", facts=pod(cpu=1, pod_affinity=(near(apps("x"), "zone"),)))
        )
        await until_idle(session)
        before = await bound(session)
        await session.update_pods(changes(pod(cpu=1), pod(cpu=1, labels={"app": "x"}), "a"))
        await until_idle(session)
        return before, await bound(session)

    assert with_session(work) == (("uid-a",), ("uid-a", "uid-near"))


def test_waiting_pods_are_updated_and_deleted_pods_stay_deleted():
    async def work(session, actors):
        await session.begin()
        await session.add_nodes([node("n1", cpu=1000)])
        await session.submit(batch_of("large", "gone", facts=pod(cpu=2000)))
        await until_idle(session)
        await session.delete_pods(["uid-gone"])
        await session.update_pods(changes(pod(cpu=2000), SMALL, "large", "gone", "never"))
        await until_idle(session)
        return await bound(session), await session.state()

    uids, state = with_session(work)

    assert uids == ("uid-large",)
    assert state.unschedulable == 0


def test_a_deleted_pod_frees_resources_for_a_waiting_one():
    async def work(session, actors):
        await session.begin()
        await session.add_nodes([node("n1", cpu=1000)])
        await session.submit(batch_of("a", facts=SMALL))
        await until_idle(session)
        await session.submit(batch_of("b", facts=SMALL))
        await until_idle(session)
        await session.delete_pods(["uid-a", "uid-unknown"])
        await session.delete_pods(["uid-a"])
        await until_idle(session)
        for core in (actors["cache"].core, actors["binder"].core, actors["queue"].core):
            core.validate()
        return await bound(session), actors["cache"].core.counts().added

    uids, counted = with_session(work)

    assert uids == ("uid-a", "uid-b")
    assert counted == 1


def test_a_waiting_pod_can_be_deleted():
    async def work(session, actors):
        await session.begin()
        await session.submit(batch_of("a"))
        await until_idle(session)
        await session.delete_pods(["uid-a"])
        return (await session.pending(5))[1], actors["queue"].core.state_of("uid-a")

    waiting, state = with_session(work)

    assert waiting == 0
    assert state in (QueueState.NEW, QueueState.DELETED)


def test_a_removed_node_removes_its_resources():
    async def work(session, actors):
        await session.begin()
        gone = node("n1", cpu=1000)
        await session.add_nodes([gone, node("n2", cpu=100)])
        await session.remove_nodes([gone])
        await session.remove_nodes([gone])
        await session.submit(batch_of("a", facts=SMALL))
        await until_idle(session)
        (table,) = tables_of(actors)
        return await session.pending(5), len(table)

    (notes, waiting), nodes = with_session(work)

    assert waiting == 1
    assert "0/1 nodes are available" in notes[0].message
    assert nodes == 1


def test_long_lists_are_sent_in_parts(monkeypatch):
    monkeypatch.setattr(sessions, "PODS_PER_MESSAGE", 2)

    async def work(session, actors):
        await session.begin()
        await session.add_nodes([node(f"n{number}", cpu=1000) for number in range(5)])
        await session.submit(batch_of("a", "b", "c"))
        await until(lambda: len(actors["binder"].binder.outcomes.bound) == 3)
        await session.delete_pods(["uid-a", "uid-b", "uid-c"])
        return actors["cache"].core.counts(), len(actors["binder"].binder.outcomes.bound)

    counts, left = with_session(work)

    assert counts.nodes == 5
    assert (counts.assumed, counts.added, left) == (0, 0, 0)


def test_without_notify_queue_new_nodes_are_not_sent_to_the_queue():
    async def work(session, actors):
        events = []
        actors["queue"].observe = events.append
        await session.add_nodes([node("n1")], notify_queue=False)
        return events

    assert with_session(work) == []


def test_a_full_queue_ends_the_run_with_its_limit():
    async def work(session, actors):
        await session.submit(batch_of("a", "b"))

    with pytest.raises(RunFailedError, match=r"refused 1 pods \(bounds.queue_max_pods is 1\)"):
        with_session(work, plan_of(bounds=Bounds(queue_max_pods=1)))


def test_statuses_include_every_actor():
    async def work(session, actors):
        return set(await session.statuses())

    names = {"queue", "cache", "binder", "worker-0", "worker-1", "scheduler-0"}
    assert with_session(work, plan=plan_of(workers=2)) == names


@pytest.mark.parametrize(("batch", "most"), [(1, CLASSES_PER_MESSAGE), (50, 50)])
async def test_pods_of_many_classes_are_submitted_in_short_messages(batch, most):
    binder = Fake("binder", add_pending=NOTHING)
    queue = Fake("queue", submit=lambda batch: Submitted(len(batch.uids), ()))
    facts = [pod(cpu=1 + number) for number in range(2 * most + 1)]
    pods = [(PodIdentity(f"u{n}", "default", f"p{n}"), each) for n, each in enumerate(facts)]

    supervisor = SimpleNamespace(refs={"binder": binder, "queue": queue})
    await RunSession(supervisor, plan_of(batch=batch)).submit(pod_list(pods))

    sent = binder.received("add_pending")
    assert [len(each.classes) for each in sent] == [most, most, 1]
    assert [each for part in sent for each in part.pods()] == pods
    assert queue.received("submit") == sent


async def test_times_of_another_machine_are_converted_to_the_local_clock():
    far = CommitPage(("a",), ((1, 1e9, 0.5),), 1, 1e9, 0.7)

    supervisor = SimpleNamespace(refs={"binder": Fake("binder", commits=far)})

    page = await RunSession(supervisor, plan_of()).commits(0)

    assert page.times[0][1] == page.now_s
    assert page.now_s < 1e8
    assert (page.times[0][2], page.processor_s) == (0.5, 0.7), "as they were"
