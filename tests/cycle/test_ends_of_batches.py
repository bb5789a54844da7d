"""The points where a scheduling cycle ends a batch, and the requests that it sends before."""

import pytest

from roadstead.config.concurrency import DecisionTime, JobTime
from roadstead.cycle import class_cache, scheduling_cycle
from roadstead.cycle.needs import CallExtenders, CatchUp, YieldToMessages
from roadstead.cycle.node_search import NodeSearch
from roadstead.extenders.extender import Extender
from roadstead.extenders.sequence import Extenders
from roadstead.facts.pod import GroupMembership
from tests.builders import pod
from tests.cycle.test_scheduling_cycle import STALE, World
from tests.extenders.servers import config_of
from tests.kernel.test_equality import compiled_kernel

OWN = {"own": {"n1": 0, "n2": 1}, "mode": "partitioned", "schedulers": 2, "partitions": 2}


def full(world):
    """Fill most of both nodes with pods of low priority."""
    low = world.nodes.table.classes.pod_class(pod(cpu=900, priority=-1))
    for name in ("n1", "n2"):
        world.nodes.table.add_pod(name, low, uid=f"low-{name}", key=f"d/{name}")
    return world


def is_read_again(world):
    """Whether the next batch reads the state again although a stale state is allowed."""
    world.decide(world.pods(1, cpu=1))
    return "CatchUp" in world.kinds()


def test_pods_after_a_preempting_one_are_decided_as_if_its_victims_were_removed():
    world = full(World(**STALE))

    assert world.decide(world.pods(4, cpu=600, priority=10)) == ([None] * 4, 4)

    results = [each.post_filter for each in world.decisions]
    assert sorted(each.nominated_node for each in results[:2]) == ["n1", "n2"]
    assert results[2:] == [None, None], "no pod of lower priority is left"
    assert "CallExtenders" not in world.kinds()
    assert is_read_again(world)


def test_a_batch_ends_if_a_preemption_can_not_be_shown_on_the_table():
    world = full(World(**STALE))
    world.nodes.tentative.preempt = lambda pod, node_name, victims: False

    assert world.decide(world.pods(3, cpu=600, priority=10)) == ([None], 1)
    assert is_read_again(world)


def test_pods_without_possible_victims_do_not_end_a_batch():
    world = full(World(**STALE))

    assert world.decide(world.pods(3, cpu=600, priority=-1)) == ([None] * 3, 3)
    assert not is_read_again(world)


def test_a_batch_ends_where_a_gang_fails():
    world = World(**STALE)
    gang = {"pod_group": GroupMembership("a", 3), "preemption_policy": "Never"}

    nodes, done_count = world.decide(world.pods(5, cpu=1000, **gang))

    assert (sorted(nodes[:2]), nodes[2:], done_count) == (["n1", "n2"], [None], 3)
    assert is_read_again(world)


def test_a_pod_that_fits_nowhere_on_a_stale_state_ends_the_batch_after_fitting_ones():
    world = World(**STALE)
    world.decide(world.pods(3))
    small, large = world.pods(1), world.pods(2, cpu=900)[1:]

    nodes, done_count = world.decide([*small, *large])

    assert (len(nodes), done_count) == (1, 1)
    assert nodes[0] is not None
    assert is_read_again(world)


def test_a_batch_ends_once_the_state_is_too_old(monkeypatch):
    monkeypatch.setattr(scheduling_cycle, "DECISIONS_PER_PAUSE", 2)
    world = World(**STALE)
    world.happens[YieldToMessages] = lambda: setattr(world, "now_s", world.now_s + 3.0)

    assert world.decide(world.pods(8, cpu=100))[1] == 4


def test_the_state_is_read_again_after_a_failure():
    world = World(**STALE)
    world.decide(world.pods(1))
    world.cycle.drop()

    assert is_read_again(world)


def test_row_versions_are_kept_for_the_answer_if_they_are_compared():
    world = World()
    (scope,) = world.cycle.scopes
    world.decide(world.pods(1))
    assert scope.builder.row_versions == {}

    world.nodes.row_versions = lambda decisions: {each.node_name: 7 for each in decisions}
    ((name,), _) = world.decide(world.pods(2)[1:])
    assert scope.builder.row_versions == {name: 7}


def test_pods_decided_by_the_kernel_and_by_the_reference_are_one_batch():
    world, slow = World(), World()
    world.compiled_kernel = compiled_kernel()
    both = []
    for each in (world, slow):
        pods = [*each.pods(5), *each.pods(2, cpu=50)]
        both.append(each.decide(pods))

    assert both[0] == both[1]
    assert (both[0][0][4], both[0][1]) == (None, 7)
    assert world.compiled_kernel.decision_counts.by_kernel == 6
    counts = [world.nodes.table.row_facts(name)["pod_count"] for name in ("n1", "n2")]
    assert sum(counts) == 6, "the table has all placed pods"


def test_a_pod_that_fits_nowhere_on_a_state_read_after_thinking_is_final():
    latency = DecisionTime(batch=JobTime(job_s=6.0, task_s=0.0))
    world = World(decision_time=latency, latency=latency, **STALE)
    world.decide(world.pods(1))

    assert world.decide(world.pods(2, cpu=2000)[1:]) == ([None], 1)
    assert world.kinds() == ["WaitUntil", "CatchUp", "Prepare", "ApplyWaiting"]


def test_a_pod_that_fits_nowhere_on_a_stale_state_is_rejected_on_a_fresh_one():
    world = World(**STALE)
    world.decide(world.pods(1))

    assert world.decide(world.pods(2, cpu=2000)[1:]) == ([None], 1)
    assert world.kinds().count("CatchUp") == 1


def test_a_state_that_is_fresh_after_thinking_is_not_read_again():
    latency = DecisionTime(batch=JobTime(job_s=5.0, task_s=0.0))
    world = World(decision_time=latency, latency=latency, **STALE)
    world.decide(world.pods(1))

    assert world.kinds() == ["CatchUp", "WaitUntil", "Prepare", "ApplyWaiting"]


def test_a_state_that_is_not_fresh_does_not_catch_up_again_for_workers():
    world = World(limit_batch=lambda cycle, pods: pods, **STALE)
    world.decide(world.pods(1))
    world.decide(world.pods(2)[1:])

    assert world.kinds() == ["Prepare", "ScoreClasses", "ApplyWaiting"]


@pytest.mark.parametrize(("settings", "most"), [({}, 16), ({"schedulers": 2}, 8), (OWN, 4)])
def test_schedulers_and_their_scopes_share_the_memory_for_classes(settings, most, monkeypatch):
    monkeypatch.setattr(class_cache, "MAX_RESULTS", 0)
    world = World(**settings)
    pods = [each for cpu in range(1, 30) for each in world.pods(1, cpu=cpu)]

    assert len(world.cycle.next(pods)[1]) == most


class Answers:
    """An extender that lets only n2 pass, and preempts only there."""

    def call(self, verb, payload):
        if verb == "preempt":
            return {"NodeNameToMetaVictims": {"n2": payload["NodeNameToMetaVictims"]["n2"]}}
        return {"NodeNames": ["n2"]}


def extended(**verbs):
    config = config_of(node_cache_capable=True, **verbs)
    return World(node_search=NodeSearch({}, Extenders([Extender(config, Answers())])), **STALE)


def test_the_driver_of_the_cycle_calls_extenders_for_a_single_pod():
    world = extended(filter_verb="filter")

    assert world.decide(world.pods(3)) == (["n2"], 1)
    assert world.kinds() == ["CatchUp", "Prepare", "CallExtenders", "ApplyWaiting"]


def test_extenders_with_only_preempt_are_called_if_a_pod_fits_nowhere():
    world = full(extended(preempt_verb="preempt"))

    found = []
    world.happens[CallExtenders] = lambda: found.append(world.nodes.is_held)
    assert world.decide(world.pods(3, cpu=600, priority=10)[:1]) == ([None], 1)

    assert found == [True], "nothing changes the table meanwhile"
    assert world.decisions[0].post_filter.nominated_node == "n2"


def test_a_sampled_pod_is_decided_without_a_call():
    world = World(node_search=NodeSearch({"default-scheduler": 50}))

    nodes, done_count = world.decide(world.pods(2))

    assert (sorted(nodes), done_count) == (["n1", "n2"], 2)
    assert "CallExtenders" not in world.kinds()


def test_a_batch_contains_only_pods_of_its_scope():
    world = World(**OWN)
    first, again, other = world.pods(3)
    again = again._replace(attempt=2)
    everywhere, own = world.cycle.scopes

    assert world.cycle.next([first, again, other]) == (own, [first, other])
    assert world.cycle.next([again, first, other]) == (everywhere, [again])


def test_sampled_pods_are_decided_on_all_nodes():
    world = World(node_search=NodeSearch({"default-scheduler": 50}), **OWN)

    assert world.cycle.next(world.pods(1))[0] is world.cycle.scopes[0]


def test_pods_after_one_that_moved_on_to_all_nodes_are_decided_on_own_nodes():
    world = World(**OWN)

    assert world.decide([*world.pods(1, cpu=2000), *world.pods(2)[1:]]) == (["n1"], 2)
    assert world.cycle.passed_on == 1


def test_a_pod_that_was_passed_on_is_decided_on_all_nodes_despite_a_new_lease():
    world = World(**OWN)
    world.decide(world.pods(2))
    (passed_on,) = world.pods(3)[2:]
    world.partition.pass_on(passed_on)
    world.happens[CatchUp] = lambda: world.partition.record_lease(waiting=0, turn=0)

    assert world.decide([passed_on]) == (["n2"], 1)


def test_a_pod_that_is_decided_again_counts_once():
    world = World()
    world.decide(world.pods(1, cpu=900))
    world.decide(world.pods(1, cpu=900))

    counts = [world.nodes.table.row_facts(name)["pod_count"] for name in ("n1", "n2")]
    assert (sum(counts), len(world.nodes.tentative)) == (1, 1)
