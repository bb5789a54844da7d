"""SchedulerCache: the changes that it sends, their order, its refusals and its results."""

import pytest

from roadstead.cache import (
    Assumption,
    BinderAnswer,
    CacheSettings,
    CacheState,
    ClusterState,
    SchedulerCache,
)
from roadstead.cache.attempt_ends import is_of_earlier_epoch
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodIdentity
from roadstead.storage import BindingProfiles, StorageState
from tests.builders import node, pod
from tests.storage.world import ZONE, claim, storage, using, volume, waiting

SMALL = pod(cpu=100)
CLAIMS = storage(waiting("local"), claim("c"), volume("v"))
OWNER = "scheduler-0"


def identity(name):
    return PodIdentity(f"uid-{name}", "default", name)


def assumption(name, facts=SMALL, epoch=1):
    return Assumption(f"uid-{name}", f"default/{name}", facts, "n1", f"{OWNER}/{epoch}/{name}")


BINDING = BindingProfiles(frozenset({"default-scheduler"}))


class World:
    """A cache and its sent changes. sent: a line for each change, in order."""

    def __init__(self, *names, partitions=1, **settings):
        settings = CacheSettings(**settings)
        self.state = ClusterState.empty(
            StorageState(CLAIMS), BINDING, settings, partitions=partitions
        )
        self.core, self.sent = self.state.core, []
        self.cache = SchedulerCache(self.state, self)
        self.add_nodes(*(names or ("n1", "n2")))

    def send(self, deltas):
        self.sent += [f"{each.kind} {each.uid or each.node_name}" for each in deltas]

    def send_nodes(self, nodes):
        self.sent += [f"new {name}" for name in nodes.names]

    def send_storage(self, changes):
        claims = [claim for each in changes for claim in each.claims]
        self.sent += [f"claim {'bound' if each.is_bound else 'free'}" for each in claims]

    def send_versions(self, rows):
        self.sent += [f"version {name} {version}" for name, version in rows]

    def news(self):
        """Return the changes sent since the last call."""
        sent, self.sent = self.sent, []
        return sent

    def add_nodes(self, *names, revision=0, **facts):
        self.cache.add_nodes(NodeList.of([node(name, **facts) for name in names]), revision)

    def assume(self, *names, facts=SMALL, epoch=1, now_s=0.0):
        return self.cache.assume([assumption(name, facts, epoch) for name in names], now_s)

    def finish_attempts(self, *, forget=(), finish=(), confirm=(), rows=(), now_s=0.0):
        forget, finish = ([assumption(n)[::4] for n in some] for some in (forget, finish))
        return self.cache.finish_attempts(
            forget, finish, [f"uid-{n}" for n in confirm], rows, now_s
        )

    def remove(self, *names, revision=1):
        self.cache.remove_pods([f"uid-{name}" for name in names], revision)

    def claim(self):
        return (
            "bound"
            if self.state.volumes.assumed_claims.storage.claims["default/c"].is_bound
            else "free"
        )


def pods_of(*names, facts=SMALL):
    return [(identity(name), facts) for name in names]


def test_new_nodes_are_sent_together_and_others_one_by_one():
    world = World("n1", "n2")
    assert world.news() == ["new n1", "new n2"]

    world.add_nodes("n2", "n3", cpu=9000)
    world.add_nodes("n2", cpu=9000)

    assert world.news() == ["update_node n2", "add_node n3"]


def test_a_removed_node_is_added_again_only_with_a_later_revision():
    world = World()
    world.cache.remove_nodes(["n1"], revision=2)
    world.add_nodes("n1", revision=1)
    world.cache.remove_nodes(["n1"], revision=2)
    assert world.news() == ["new n1", "new n2", "remove_node n1"]

    world.add_nodes("n1", revision=2)

    assert world.news() == ["new n1"]


def test_removing_a_node_returns_its_pods_and_clears_its_partition_and_version():
    world = World(partitions=2)
    world.cache.add_running(pods_of("p"), ["n1"])
    world.finish_attempts(rows=[("n1", 4), ("n2", 4)])
    world.news()

    aside = world.cache.remove_nodes(["n1", "unknown"])

    assert aside == pods_of("p")
    assert world.news() == ["remove_pod uid-p", "remove_node n1"]
    assert world.state.versions.of(["n1", "n2"]) == [("n2", 4)]
    assert sum(world.state.partitioning.sizes) == 1
    with pytest.raises(KeyError):
        world.state.partitioning.partition_of("n1")


def test_running_pods_are_counted_without_nominations_and_keep_their_start_times():
    world = World()
    nominated = pod(cpu=100, nominated_node_name="n2")

    world.cache.add_running(pods_of("p", facts=nominated), ["n1"], 0, {"uid-p": 70.0})

    assert world.news()[-1] == "add_pod uid-p"
    assert world.core.facts_of("uid-p") == SMALL
    assert world.state.started_s == {"uid-p": 70.0}


def test_start_times_of_removed_and_outdated_pods_are_not_kept():
    world = World()
    starts = {f"uid-{name}": 70.0 for name in "pqr"}
    world.cache.add_running(pods_of("p", "q"), ["n1"] * 2, 0, starts)
    world.remove("p", revision=3)
    world.cache.nominate([], [], [], ["uid-q"])
    world.cache.add_running(pods_of("p"), ["n1"], 2, starts)

    assert world.state.started_s == {}


def test_a_running_pod_changes_on_its_own_node_only_and_not_by_an_older_change():
    world = World()
    world.cache.add_running(pods_of("p", "q", "gone"), ["n1"] * 3)
    world.remove("gone", revision=3)
    world.cache.update_running(pods_of("q", facts=pod(cpu=2)), ["n1"], 5)
    world.news()

    pods = pods_of("p", "q", "gone", facts=pod(cpu=300))
    world.cache.update_running(pods, ["n2", "n1", "n1"], 4)
    assert world.news() == []
    world.cache.update_running(pods, ["n1", "n1", "n1"], 6)

    assert world.news() == [f"{kind} uid-{n}" for n in "pq" for kind in ("remove_pod", "add_pod")]


def test_removed_pods_are_neither_counted_nor_nominated():
    world = World()
    world.cache.add_running(pods_of("p"), ["n1"])
    world.cache.nominate(pods_of("u"), ["n1"], [False])
    world.news()

    world.remove("p", "u", "unknown")
    world.cache.nominate(pods_of("u"), ["n1"], [False])
    world.cache.add_running(pods_of("p"), ["n1"])

    assert world.news() == ["remove_pod uid-p", "withdraw uid-u"]


def test_evicted_pods_are_removed_before_others_are_nominated():
    world = World()
    world.cache.add_running(pods_of("p"), ["n1"])
    world.cache.nominate(pods_of("low"), ["n1"], [False])
    world.news()

    urgent = pod(cpu=100, priority=5)
    gone = ["uid-p", "uid-unknown"]
    world.cache.nominate(pods_of("u", facts=urgent), ["n1"], [True], gone)

    assert world.news() == ["remove_pod uid-p", "withdraw uid-low", "nominate uid-u"]


def test_claims_are_bound_after_all_pods_and_a_pod_without_its_claims_is_refused():
    world = World()
    world.news()

    outcome = world.cache.assume(
        [assumption("p", using("absent")), assumption("q", using("c")), assumption("r")], 0.0
    )

    assert world.news() == [
        *("add_pod uid-p", "add_pod uid-q", "add_pod uid-r"),
        *("claim bound", "remove_pod uid-p"),
    ]
    assert outcome.refused == ((f"{OWNER}/1/p", "the volumes of its claims are in use"),)
    assert [each.token for each in outcome.bound] == [f"{OWNER}/1/q"]
    assert world.core.state_of("uid-p") is CacheState.INITIAL


def test_an_assumption_of_a_pod_of_another_attempt_is_refused_by_its_token():
    world = World()
    world.assume("p")

    outcome = world.assume("p", "q", epoch=2)

    ((token, why),) = outcome.refused
    assert token == f"{OWNER}/2/p"
    assert "is not allowed" in why


def test_claims_of_an_attempt_that_arrives_after_its_end_are_free():
    world = World()
    facts = using("c")
    world.assume("p", facts=facts)
    world.remove("p")
    assert world.claim() == "bound"

    world.assume("p", facts=facts)

    assert world.claim() == "free"


def test_forgotten_attempts_free_their_claims_and_confirmed_ones_keep_them():
    world = World()
    world.assume("p", facts=using("c"))
    world.finish_attempts(forget=["p"])
    assert world.claim() == "free"

    world.assume("p2", facts=using("c"))
    world.finish_attempts(confirm=["p2"])
    world.remove("p2")

    assert world.claim() == "bound"
    assert world.state.volumes.assumed_claims.holders() == ()


def test_only_forgotten_pods_deleted_before_their_assumption_are_returned():
    world = World()
    world.remove("p")
    world.assume("p", "q")

    assert world.finish_attempts(forget=["p", "q"]) == pods_of("p")
    assert world.finish_attempts(forget=["p", "q"]) == []


def test_versions_are_sent_last_and_once_and_for_existing_nodes():
    world = World()
    world.assume("p")
    world.news()

    world.finish_attempts(forget=["p"], rows=[("n1", 3), ("away", 3)])
    world.finish_attempts(rows=[("n1", 3), ("n2", 1)])

    assert world.news() == ["remove_pod uid-p", "version n1 3", "version n2 1"]


def test_finished_bindings_restart_their_deadline():
    world = World(assume_s=10.0, bind_s=5.0)
    world.assume("p", "q")
    world.finish_attempts(finish=["p"], now_s=9.0)

    assert [each.uid for each in world.cache.expire(12.0)] == ["uid-q"]
    assert [each.uid for each in world.cache.expire(14.0)] == ["uid-p"]


def test_the_binders_answers_end_attempts_unless_they_arrive_too_late():
    world = World(assume_s=1.0, max_gone_remembered=1)
    world.assume("a", "b", "c", "d")
    asks = world.cache.expire(2.0)
    world.finish_attempts(forget=["d"])
    world.news()

    node_of = {"uid-a": "n1"}
    answers = [BinderAnswer(each.uid, each.token, node_of.get(each.uid)) for each in asks]
    outcome = world.cache.resolve(answers)

    assert (outcome.late, list(outcome.freed)) == (1, pods_of("b", "c"))
    assert world.news() == ["remove_pod uid-b", "remove_pod uid-c"]
    assert world.core.state_of("uid-a") is CacheState.ADDED


@pytest.mark.parametrize(("node_name", "claim_is"), [("n1", "bound"), (None, "free")])
def test_the_binders_answer_decides_the_result_of_claims(node_name, claim_is):
    world = World(assume_s=1.0)
    world.assume("p", facts=using("c"))
    (ask,) = world.cache.expire(2.0)

    world.cache.resolve([BinderAnswer(ask.uid, ask.token, node_name)])

    assert world.claim() == claim_is
    assert world.state.volumes.assumed_claims.holders() == ()


def test_attempts_of_earlier_lives_are_confirmed_or_forgotten_and_deleted_ones_returned():
    world = World()
    world.remove("late")
    world.assume("a", "b", "late")
    world.assume("now", epoch=2)

    assert world.cache.assumed_by(OWNER, 2) == ["uid-a", "uid-b", "uid-late"]
    freed = world.cache.end_owner(OWNER, 2, {"uid-a": "n1", "uid-b": "", "uid-late": None})

    assert freed == pods_of("late")
    states = [world.core.state_of(f"uid-{name}") for name in ("a", "b", "late", "now")]
    assert states == [CacheState.ADDED, CacheState.INITIAL, CacheState.INITIAL, CacheState.ASSUMED]


def test_lives_are_distinguished_by_owner_and_epoch():
    assert is_of_earlier_epoch("scheduler-0/1/5", OWNER, 2)
    assert not is_of_earlier_epoch("scheduler-0/2/5", OWNER, 2)
    assert not is_of_earlier_epoch("scheduler-01/1/5", OWNER, 2)
    assert not is_of_earlier_epoch("t1", OWNER, 2)


@pytest.mark.parametrize(("committed", "claim_is"), [({"default/c"}, "bound"), (set(), "free")])
def test_claims_of_pods_deleted_during_an_earlier_life_stay_where_commits_bound_them(
    committed, claim_is
):
    world = World()
    world.assume("p", facts=using("c"))
    world.remove("p")
    assert world.cache.orphaned_claims(OWNER, 1) == []
    assert world.cache.orphaned_claims(OWNER, 2) == ["uid-p"]

    world.cache.end_claims(OWNER, 2, committed)

    assert world.claim() == claim_is
    assert world.cache.orphaned_claims(OWNER, 2) == []


def test_changes_of_earlier_commits_are_loaded_and_sent_once():
    before = World()
    before.assume("p", facts=using("c"))
    changes = tuple(before.state.volumes.log)
    world = World()
    world.news()

    world.cache.load_storage(changes)
    world.cache.load_storage(changes)

    assert world.news() == ["claim bound"]
    assert world.claim() == "bound"


def test_changes_older_than_the_known_revisions_are_ignored():
    world = World()
    world.cache.merge_revisions([("n1", 5)], [("uid-p", 5)])
    world.news()

    world.add_nodes("n1", revision=4, cpu=1)
    world.cache.add_running(pods_of("p"), ["n1"], 4)
    assert world.news() == []
    world.cache.add_running(pods_of("p"), ["n1"], 5)

    assert world.news() == ["add_pod uid-p"]


def test_pods_removed_before_a_cache_was_created_are_not_nominated():
    world = World()
    world.cache.merge_revisions([], [("uid-gone", 5), ("uid-p", 5)], ["uid-gone"])
    world.news()

    world.cache.nominate(pods_of("gone", "p"), ["n1", "n1"], [False, False])

    assert world.news() == ["nominate uid-p"]


def test_a_cache_with_wrong_counts_differs_from_a_rebuilt_one():
    world = World()
    world.assume("p")
    assert world.cache.differences() == []

    world.state.table.columns.pod_count[0] += 1

    assert any("n1" in line for line in world.cache.differences())


def test_the_first_nodes_keep_zones_together_and_later_ones_are_placed_one_by_one():
    world = World(partitions=2)
    world.cache.remove_nodes(["n1", "n2"])
    # They are added one by one because one of them is known already.
    world.cache.nominate(pods_of("u"), ["a1"], [False])
    zones = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}

    world.cache.add_nodes(zoned(zones))
    world.cache.add_nodes(zoned({"a1": "a", "b3": "b"}))

    partitioning = world.state.partitioning
    of = {name: partitioning.partition_of(name) for name in (*zones, "b3")}
    assert (of["a1"], of["b1"]) == (of["a2"], of["b2"])
    assert of["a1"] != of["b1"]
    assert sum(partitioning.sizes) == 5


def zoned(zones):
    return NodeList.of([node(name, labels={ZONE: zone}) for name, zone in zones.items()])


def test_nominations_to_a_removed_node_reserve_no_room():
    world = World()
    world.cache.nominate(pods_of("u"), ["n1"], [False])
    world.news()

    assert world.cache.remove_nodes(["n1"]) == []
    assert world.news() == ["withdraw uid-u", "remove_node n1"]


def test_a_pod_of_a_profile_without_claim_binding_has_nothing_bound():
    outcome = World().assume("p", facts=using("c", scheduler_name="another"))

    assert (outcome.refused, outcome.bound) == ((), ())


def test_a_refused_attempt_binds_no_claims():
    world = World()
    world.cache.add_running(pods_of("p", facts=using("c")), ["n1"])

    outcome = world.assume("p", facts=using("c"))

    assert [token for token, _ in outcome.refused] == [f"{OWNER}/1/p"]
    assert world.claim() == "free"


def test_a_refused_attempt_leaves_the_claims_of_the_current_attempt():
    world = World()
    world.assume("p", facts=using("c"))

    world.assume("p", facts=using("c"), epoch=2)

    assert world.claim() == "bound"
    assert world.state.volumes.assumed_claims.keys_of("uid-p") == ("default/c",)


def test_pods_after_a_deleted_one_are_nominated():
    world = World()
    world.remove("gone")
    world.news()

    world.cache.nominate(pods_of("gone", "u"), ["n1", "n2"], [False, False])

    assert world.news() == ["nominate uid-u"]


def test_uncounted_changes_are_older_than_the_first_counted_one():
    world = World()
    world.cache.add_nodes(NodeList.of([node("n3")]))
    world.cache.add_running(pods_of("p", "q"), ["n1", "n1"])
    world.cache.update_running(pods_of("p", facts=pod(cpu=2)), ["n1"])
    world.news()

    world.cache.remove_nodes(["n3"], 1)
    world.remove("p", "q", revision=1)

    assert world.news() == ["remove_node n3", "remove_pod uid-p", "remove_pod uid-q"]


def test_uncounted_removals_always_apply():
    world = World()
    world.cache.add_nodes(NodeList.of([node("n1")]), 5)
    world.cache.add_running(pods_of("p"), ["n2"], 5)
    world.news()

    world.cache.remove_nodes(["n1"])
    world.cache.remove_pods(["uid-p"])

    assert world.news() == ["remove_node n1", "remove_pod uid-p"]


def test_an_empty_cluster_has_one_partition():
    assert ClusterState.empty(StorageState(CLAIMS), BINDING).partitioning.sizes == [0]
