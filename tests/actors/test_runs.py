from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.actors.interface import RunFailedError
from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Bounds
from roadstead.fleet.generate import generate_fleet
from roadstead.framework.hint_map import HintMap
from roadstead.protocol.errors import InputError, UnsupportedError
from roadstead.queue import QueueState, retries
from roadstead.run import RunInputs
from tests.actors import fleets
from tests.actors.world import (
    SERVED,
    inputs_of,
    lines,
    placed,
    plainly,
    plan_of,
    pods_of,
    run_inline,
    tables_of,
)
from tests.builders import MIB, node, pod, prefer, require, term
from tests.ten_shapes import ten_shapes

TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packs
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
"""
CUTS = list(product((0, 2), (1, 7, 64)))
"""(workers, batch)"""


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    """Let the client poll often, so that small runs end soon."""
    monkeypatch.setattr(client, "POLL_S", 0.002)


@pytest.fixture
def _nobody_is_woken(monkeypatch):
    """Try every pod once: the outcome of a retry depends on the end of its backoff."""
    monkeypatch.setattr(HintMap, "is_of_interest", lambda *_: False)


def run(inputs, **how):
    """Return the outcome of a run, after asserting that its actors agree at its end."""
    outcome, actors = run_inline(inputs, plan_of(**how))
    assert_all_agree(inputs, outcome, actors)
    return outcome


def places_and_reasons(outcome):
    """Return (pod → node, pod → reason that it is pending)."""
    return placed(outcome), {each.pod: each.message for each in outcome.pending}


def assert_all_agree(inputs, outcome, actors):
    """Assert that every pod is in one place in queue, cache, binder, workers and schedulers."""
    queue, cache, binder = (actors[name].core for name in (QUEUE, CACHE, BINDER))
    schedulers = [actor for name, actor in actors.items() if name.startswith("scheduler")]
    for core in (queue, cache, binder, *(each.core for each in schedulers)):
        core.validate()
    accepted = {who.uid for who, _ in inputs.pending}
    bound = {each.uid: each.node for each in outcome.placements}
    pending = {each.uid for each in outcome.pending}
    assert len(bound) == len(outcome.placements)
    assert bound.keys() | pending == accepted
    assert not bound.keys() & pending
    assert {uid for uid in accepted if queue.state_of(uid) is QueueState.DONE} == bound.keys()
    assert {uid: cache.node_of(uid) for uid in bound} == bound
    assert {uid: binder.pod_status(uid)[1] for uid in bound} == bound
    assert all(binder.pod_status(uid)[1] is cache.node_of(uid) is None for uid in pending)
    assert cache.counts().assumed == 0
    assert all(each.core.idle for each in schedulers)
    truth = lines(binder.placements.store.table)
    assert lines(cache.placements.store.table) == truth
    for table in tables_of(actors):
        assert lines(table) == truth
        table.validate()
    filled = [truth[name] for name in bound.values()]
    assert all(line["pod_count"] <= line["allocatable_pods"] for line in filled)


@pytest.mark.usefixtures("_nobody_is_woken")
@settings(max_examples=40)
@given(fleets.inputs(), st.sampled_from(CUTS), st.sampled_from(["random", "first"]))
def test_any_workers_and_batches_decide_like_single_pods_in_turn(inputs, cut, tie_break):
    workers, batch = cut
    how = {"tie_break": tie_break, "seed": 7}

    nodes, reasons = places_and_reasons(run(inputs, workers=workers, batch=batch, **how))

    assert (nodes, reasons) == plainly(inputs, plan_of(**how))


@pytest.mark.parametrize(("workers", "batch"), CUTS)
def test_a_fleet_is_placed_alike_for_any_workers_and_batches(workers, batch):
    trace = ten_shapes(40, 120, seed=3)
    inputs = inputs_of(trace.nodes(), trace.pods())

    outcome = run(inputs, workers=workers, batch=batch)

    assert places_and_reasons(outcome) == plainly(inputs, plan_of())


def overfull(seed=1):
    """Return more pods than fit, of many sizes."""
    trace = generate_fleet(8, 150, seed)
    return inputs_of(trace.nodes(), trace.pods())


def test_a_fleet_that_is_too_small_is_filled_and_other_pods_have_reasons():
    inputs = overfull()

    outcome = run(inputs, workers=3, batch=32)

    assert outcome.placements
    assert outcome.pending
    assert all("0/8 nodes are available" in each.message for each in outcome.pending)
    assert places_and_reasons(outcome) == plainly(inputs, plan_of())


def test_one_seed_gives_one_placement_and_another_seed_another():
    inputs = overfull()

    first, again, other = (run(inputs, seed=seed) for seed in (5, 5, 6))

    assert places_and_reasons(first) == places_and_reasons(again)
    assert placed(first) != placed(other)


def test_several_schedulers_lose_no_pod_and_overfill_no_node():
    outcome = run(overfull(), schedulers=3, batch=5, workers=2)

    assert outcome.placements


def test_each_pod_is_placed_by_the_profile_it_names():
    nodes = [node(f"n{number}") for number in range(3)]
    spreading = pods_of("s1", "s2", "s3", facts=pod(cpu=100))
    packing = pods_of("k1", "k2", "k3", facts=pod(cpu=100, scheduler_name="packs"))
    inputs = inputs_of(nodes, [*spreading, *packing])

    outcome = run(inputs, config=TWO_PROFILES, batch=2)

    where = placed(outcome)
    assert len({where[f"default/s{number}"] for number in (1, 2, 3)}) == 3
    assert len({where[f"default/k{number}"] for number in (1, 2, 3)}) == 1
    assert where == plainly(inputs, plan_of(config=TWO_PROFILES))[0]


def test_running_pods_keep_their_resources():
    full = pod(cpu=4000)
    running = [(who, facts, "n1") for who, facts in pods_of("r", facts=full)]
    inputs = inputs_of([node("n1"), node("n2")], pods_of("p", "q", facts=full), running)

    outcome = run(inputs)

    assert [*placed(outcome).values()] == ["n2"]
    assert [each.message.split(". ")[0] for each in outcome.pending] == [
        "0/2 nodes are available: 2 Insufficient cpu"
    ]


def test_pods_that_can_not_be_tried_are_pending_with_the_reason():
    gated = pods_of("gated", facts=pod(scheduling_gates=("hold",)))
    foreign = pods_of("foreign", facts=pod(scheduler_name="theirs"))
    going = pods_of("going", facts=pod(is_terminating=True))
    inputs = inputs_of([node("n1")], [*gated, *foreign, *going, *pods_of("p")])

    outcome = run(inputs)

    nodes, reasons = places_and_reasons(outcome)
    assert nodes == {"default/p": "n1"}
    assert reasons == {
        "default/gated": "waiting for scheduling gates: [hold]",
        "default/foreign": 'no profile has the scheduler name "theirs"',
        "default/going": "skip schedule deleting pod: default/going",
    }


def test_pods_of_higher_priority_get_the_resources():
    low = pods_of("low1", "low2", facts=pod(cpu=4000, preemption_policy="Never"))
    high = pods_of("high", facts=pod(cpu=4000, priority=10))
    inputs = inputs_of([node("n1")], [*low, *high])

    outcome = run(inputs)

    assert placed(outcome) == {"default/high": "n1"}


def test_pods_with_anti_affinity_and_spread_constraints_are_placed():
    selector = fleets.apps("web")
    alone = pod(labels={"app": "web"}, pod_anti_affinity=(fleets.near(selector, fleets.HOSTNAME),))
    evenly = pod(labels={"app": "db"}, spread_constraints=(fleets.spread(fleets.ZONE),))
    nodes = [fleets.host(number, "abc"[number % 3]) for number in range(6)]
    inputs = inputs_of(
        nodes,
        [
            *pods_of(*(f"alone{number}" for number in range(6)), facts=alone),
            *pods_of(*(f"even{number}" for number in range(6)), facts=evenly),
        ],
    )

    outcome = run(inputs, batch=64)

    where = placed(outcome)
    assert len({where[f"default/alone{number}"] for number in range(6)}) == 6
    assert where == plainly(inputs, plan_of())[0]


def test_an_image_has_the_size_that_the_first_node_of_the_cluster_reports():
    sizes = [600 * MIB, 90 * MIB, 700 * MIB, 50 * MIB]
    nodes = [
        fleets.host(number, "abcb"[number], cpu=4000 - 100 * number, images={"app:v1": size})
        for number, size in enumerate(sizes)
    ]
    inputs = inputs_of([*nodes, fleets.host(9, "c")], [])
    (asked,) = pods_of("p", facts=pod(images=("app:v1",), container_count=1))

    explained = ActorLauncher().explain(inputs, plan_of(), asked, lambda _: None)

    (locality,) = [line for line in explained.scores if line.plugin == "ImageLocality"]
    whole = 100 * (int(600 * MIB * 4 / 5) - 23 * MIB) // (1000 * MIB - 23 * MIB)
    assert locality.raw.tolist() == [whole] * 4 + [0]


def test_a_pod_with_affinity_to_another_is_placed_after_it():
    follower = pod(pod_affinity=(fleets.near(fleets.apps("leader")),))
    leader = pod(labels={"app": "leader"}, node_selector={"disk": "ssd"})
    nodes = [fleets.host(0, "a"), fleets.host(1, "b", labels={"disk": "ssd"}), fleets.host(2, "b")]
    inputs = inputs_of(
        nodes, [*pods_of("follower", facts=follower), *pods_of("leader", facts=leader)]
    )

    outcome = run(inputs, batch=1)

    where = placed(outcome)
    assert where["default/leader"] == "n1"
    assert where["default/follower"] in ("n1", "n2")


@pytest.fixture
def _no_second_try(monkeypatch):
    """Try no failed pod again, so that the run does not wait for backoff."""
    monkeypatch.setattr(retries, "MAX_FAILURES", 1)


@pytest.mark.usefixtures("_no_second_try")
def test_a_cluster_without_nodes_leaves_every_pod_pending():
    outcome = run(inputs_of([], pods_of("p", "q")))

    assert [each.message for each in outcome.pending] == ["no nodes available to schedule pods"] * 2


@pytest.mark.usefixtures("_no_second_try")
def test_a_pod_whose_cycle_always_fails_is_pending_and_the_run_ends():
    broken = term(require("disk", "In", "ssd"), error="does not parse")
    bad = pods_of("bad", facts=pod(preferred_node_terms=(prefer(1, broken),)))

    outcome = run(inputs_of([node("n1"), node("n2")], [*bad, *pods_of("good")]))

    assert [each.pod for each in outcome.placements] == ["default/good"]
    assert [each.message for each in outcome.pending] == [
        'running PreScore plugin "NodeAffinity": does not parse'
    ]


def test_a_run_without_pods_ends_immediately():
    outcome = run(inputs_of([node("n1")], []))

    assert (outcome.placements, outcome.pending) == ((), ())


def test_inputs_longer_than_a_message_are_sent_in_parts(monkeypatch):
    monkeypatch.setattr(client, "PODS_PER_MESSAGE", 3)
    running = [(who, facts, "n0") for who, facts in pods_of(*(f"r{n}" for n in range(4)))]
    full = pods_of(*(f"full{n}" for n in range(5)), facts=pod(cpu=9000))
    inputs = inputs_of(
        [node(f"n{number}") for number in range(7)],
        [*pods_of(*(f"p{n}" for n in range(8))), *full],
        running,
    )

    outcome = run(inputs)

    assert len(outcome.placements) == 8
    assert [each.pod for each in outcome.pending] == [f"default/full{n}" for n in range(5)]


def launch(inputs, **how):
    """Run through the launcher; return the outcome and the reported progress."""
    seen = []
    outcome = ActorLauncher().run(inputs, plan_of(**how), seen.append)
    return outcome, seen


def test_the_launcher_reports_the_progress_of_a_run():
    inputs = inputs_of([node("n1")], pods_of(*(f"p{n}" for n in range(5))))
    outcome, seen = launch(inputs, workers=2)

    phases = list(dict.fromkeys(each.phase for each in seen))
    assert phases == [
        "starting actors",
        "loading the cluster",
        "submitting pods",
        "scheduling",
        "collecting results",
    ]
    last = [each for each in seen if each.phase == "scheduling"][-1]
    assert (last.placed, last.pending, last.total) == (5, 0, 5)
    assert outcome.scheduling_s > 0
    spent = {
        "start actors",
        "load the cluster",
        "schedule",
        "binder: bind",
        "scheduler-0: evaluate",
    }
    assert spent <= outcome.timings_s.keys()


def test_more_pods_than_the_queue_allows_are_an_error():
    with pytest.raises(RunFailedError, match=r"it refused 2 pods \(bounds.queue_max_pods is 3\)"):
        launch(
            inputs_of([node("n1")], pods_of(*(f"p{n}" for n in range(5)))),
            bounds=Bounds(queue_max_pods=3),
        )


def test_an_unsupported_feature_ends_the_run_with_plugin_object_and_field():
    wants = pod(others={"example.com/gpu": 1})
    inputs = inputs_of([node("n1")], [*pods_of("p"), *pods_of("q", facts=wants)])

    with pytest.raises(UnsupportedError) as refusal:
        launch(inputs, featureGates={"DRAExtendedResource": True}, cluster=SERVED)

    assert refusal.value.obj == 'Pod "default/q"'
    assert refusal.value.field == "spec.containers: example.com/gpu with DRAExtendedResource"


def test_a_pod_that_is_running_and_pending_is_refused_by_name():
    (waiting,) = pods_of("twice")
    identity, facts = waiting
    inputs = RunInputs((node("n1"),), ((identity, facts, "n1"),), (waiting,))

    with pytest.raises(InputError, match="is also the UID of a running pod"):
        run_inline(inputs, plan_of())
