"""The state that a new binder restores from its journal's records, or from a snapshot of them."""

from contextlib import suppress
from dataclasses import replace

import pytest

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.interface import NOTHING
from roadstead.actors.messages import BindBatch, Evict, PageRequest, RunningPods, node_batch
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import PodNodes, PodRemoval, Uids
from roadstead.binder.pods import BinderHaltedError
from roadstead.cache.volumes import CacheVolumes
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.run_mark import RunMark
from roadstead.journal.files import FileJournal
from roadstead.storage.claim_messages import AttemptBindings
from tests.actors.world import NOBODY, batch_of, plan_of
from tests.builders import node, pod
from tests.journal.simulated_disk import SimulatedDisk
from tests.storage.world import claim, storage, using, volume, waiting

SMALL = pod(cpu=100)
ALL = PageRequest(0, 100)
BY_JOURNAL, BY_SNAPSHOT = 1 << 40, -1


class World:
    """Successive binders on one disk."""

    def __init__(self, plan=None):
        self.plan, self.disk = plan or plan_of(), SimulatedDisk()
        self.binder = BinderActor(self.plan, NOBODY, FileJournal(self.disk))

    async def with_pods(self, *names):
        await self.binder.add_nodes(node_batch((node("n1"), node("n2"))))
        await self.binder.add_pending(batch_of(*names, facts=SMALL))
        return self

    async def bind(self, *names, epoch=1):
        tokens = tuple(f"scheduler-0/{epoch}/{name}" for name in names)
        pods = batch_of(*names, facts=SMALL)
        batch = BindBatch("scheduler-0", epoch, pods, ("n1",) * len(names), tokens)
        return await self.binder.bind(batch)

    def next_life(self):
        """Start the next binder on the records of the last one; return the last one."""
        self.binder.release()
        before = self.binder
        self.binder = BinderActor(self.plan, NOBODY, FileJournal(self.disk))
        self.binder.core.validate()
        return before


class _DyingJournal(FileJournal):
    """A journal that writes nothing after the first group."""

    def append(self, records):
        if self.last_lsn:
            raise OSError
        return super().append(records)


@pytest.mark.parametrize("digest", ["", "abc"])
def test_a_binder_that_ends_at_its_start_leaves_a_complete_journal_or_none(digest):
    plan, disk = replace(plan_of(), digest=digest), SimulatedDisk()
    with suppress(BinderHaltedError):
        BinderActor(plan, NOBODY, _DyingJournal(disk)).release()

    subjects = BinderActor(plan, NOBODY, FileJournal(disk)).binder.journal.subjects

    assert list(map(type, subjects)) == [ClusterFacts, Rules, *[RunMark] * bool(digest)]


@pytest.fixture(params=[BY_JOURNAL, BY_SNAPSHOT], ids=["journal", "snapshot"])
def _short_or_long_journal(request, monkeypatch):
    monkeypatch.setattr("roadstead.binder.binder_journal.SNAPSHOT_BYTES", request.param)


@pytest.mark.usefixtures("_short_or_long_journal")
async def test_the_next_binder_lists_the_bound_pods_and_none_that_ran_before():
    world = await World().with_pods("a", "b", "waits")
    await world.binder.add_running(RunningPods(batch_of("ran", facts=SMALL), ("n2",)))
    await world.bind("b", "a")
    listed = await world.binder.bound(ALL)
    assert listed.uids == ("uid-b", "uid-a")

    for _ in range(2):
        world.next_life()

        assert await world.binder.bound(ALL) == listed
        page = await world.binder.pods_page(ALL)
        assert sorted(zip(page.pods.names, page.nodes, strict=True)) == [
            ("a", "n1"),
            ("b", "n1"),
            ("ran", "n2"),
            ("waits", ""),
        ]
        assert [page.pods.names[place] for place in page.ran] == ["ran"]


@pytest.mark.usefixtures("_short_or_long_journal")
async def test_the_next_binder_commits_after_the_records_of_the_last_one():
    world = await World().with_pods("a", "b", "c")
    for number, name in enumerate("abc", 1):
        answers = await world.bind(name, epoch=number)
        assert answers.refused == ()
        last = world.next_life()
        assert world.binder.core.last_lsn == world.binder.core.flushed_lsn == last.core.last_lsn

    placements = await world.binder.pod_nodes(Uids(("uid-a", "uid-b", "uid-c")))
    assert placements == PodNodes(("n1", "n1", "n1"))
    assert world.binder.core.current_epoch("scheduler-0") == 3


@pytest.mark.usefixtures("_short_or_long_journal")
async def test_every_binder_restores_the_cluster_and_the_rules_of_the_profiles():
    world = await World().with_pods("a")
    subjects = world.binder.binder.journal.subjects
    assert [type(each) for each in subjects] == [ClusterFacts, Rules]

    await world.bind("a")
    for _ in range(2):
        world.next_life()
        assert world.binder.binder.journal.subjects == subjects
        # This write makes a snapshot if each group makes one.
        await world.bind("a")


@pytest.mark.usefixtures("_short_or_long_journal")
async def test_the_next_binder_knows_evicted_pods_and_their_preemptors():
    world = await World().with_pods("victim", "deleted", "stays", "last")
    await world.bind("victim", "deleted", "stays")
    await world.binder.evict(Evict(("uid-victim",), ("default/urgent",)))
    await world.binder.delete_pods(PodRemoval(("uid-deleted",), revision=7))
    await world.bind("last")
    gone = await world.binder.preempted(ALL)
    assert [(note.uid, note.node_name, note.preemptor) for note in gone.pods] == [
        ("uid-victim", "n1", "default/urgent"),
        ("uid-deleted", "n1", ""),
    ]

    world.next_life()

    again = await world.binder.preempted(ALL)
    assert [(note.uid, note.preemptor) for note in again.pods] == [
        ("uid-victim", "default/urgent"),
        ("uid-deleted", ""),
    ]
    assert sorted((await world.binder.bound(ALL)).uids) == ["uid-last", "uid-stays"]


async def test_an_evicted_pod_is_returned_with_its_facts_at_the_eviction():
    world = await World().with_pods("victim")
    await world.bind("victim")
    await world.binder.evict(Evict(("uid-victim",), ("default/urgent",)))

    evicted = await world.binder.evicted_pods(NOTHING)

    assert [(who.key, facts) for who, facts in evicted.pods()] == [("default/victim", SMALL)]


@pytest.mark.usefixtures("_short_or_long_journal")
async def test_the_next_binder_knows_the_last_revision_of_changed_nodes_and_pods():
    world = await World().with_pods("a", "b", "c", "victim", "plain")
    binder = world.binder
    await binder.add_nodes(node_batch((node("n3"),), revision=3))
    await binder.remove_nodes(NodeNames(("n2",), revision=4))
    await binder.delete_pods(PodRemoval(("uid-a",), revision=5))
    await binder.delete_pods(PodRemoval(("uid-c",)))
    await world.bind("victim")
    await binder.update_pods(replace(batch_of("victim", facts=pod(cpu=200)), revision=6))
    await binder.evict(Evict(("uid-victim",), ("default/urgent",)))
    await world.bind("b")
    known = await binder.revisions(NOTHING)
    assert (dict(known.nodes), dict(known.pods)) == (
        {"n3": 3, "n2": 4},
        {"uid-a": 5, "uid-victim": 7},
    )

    for _ in range(2):
        world.next_life()
        again = await world.binder.revisions(NOTHING)
        assert (dict(again.nodes), dict(again.pods)) == (dict(known.nodes), dict(known.pods))
        await world.bind("plain", epoch=2)


def claiming(name, number, plan):
    """Return a pod with a claim, and the bind that binds both."""
    facts = using(f"c{number}")
    reserved = CacheVolumes(plan.storage_state(), plan.binding_profiles()).assume(
        f"uid-{name}", facts, node("n1")
    )
    token = f"scheduler-0/1/{name}"
    volumes = (AttemptBindings(token, reserved.bindings),)
    pods = batch_of(name, facts=facts)
    return pods, BindBatch("scheduler-0", 1, pods, ("n1",), (token,), volumes=volumes)


@pytest.mark.usefixtures("_short_or_long_journal")
async def test_the_next_binder_restores_the_volumes_of_bound_claims():
    facts = storage(waiting("local"), claim("c1"), volume("v1"))
    plan = replace(plan_of(), cluster=ClusterFacts(storage=facts))
    world = await World(plan).with_pods("plain")
    pods, batch = claiming("a", 1, plan)
    await world.binder.add_pending(pods)
    assert (await world.binder.bind(batch)).refused == ()
    log = await world.binder.storage_log(NOTHING)
    assert [one.volume_name for change in log.changes for one in change.claims] == ["v1"]

    for _ in range(2):
        last = world.next_life()
        assert await world.binder.storage_log(NOTHING) == log
        # Records of claims follow the bind, and have no number in a snapshot.
        assert world.binder.core.last_lsn == world.binder.core.flushed_lsn == last.core.last_lsn
        await world.bind("plain")


class Groups(FileJournal):
    """A journal that keeps the record kinds of each group."""

    def __init__(self):
        super().__init__(SimulatedDisk())
        self.kinds = []

    def append(self, records):
        self.kinds.append([each.kind for each in records])
        return super().append(records)


async def test_a_bind_and_its_bound_claims_are_one_group_of_records():
    """After a crash the journal has both records or neither."""
    facts = storage(waiting("local"), claim("c1"), volume("v1"))
    plan, journal = replace(plan_of(), cluster=ClusterFacts(storage=facts)), Groups()
    binder = BinderActor(plan, NOBODY, journal)
    await binder.add_nodes(node_batch((node("n1"),)))
    pods, batch = claiming("a", 1, plan)
    await binder.add_pending(pods)

    await binder.bind(batch)

    assert sorted(journal.kinds[-1]) == ["bind", "storage"]
