"""Concurrent schedulers, in every mode: no pod is lost or doubled, and no node is overfilled."""

from itertools import product

import pytest

from roadstead.actors.interface import DeadlineError
from roadstead.actors.messages import node_batch
from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.facts.pod import Owner
from roadstead.protocol.errors import InputError
from tests.actors.fleets import ZONE, apps, host, near, spread
from tests.actors.test_runs import TWO_PROFILES, assert_all_agree
from tests.actors.test_scheduler_actor import World
from tests.actors.world import identity, inputs_of, placed, plan_of, pods_of, run_inline
from tests.builders import node, pod

MODES = {
    "shared": {"schedulers": 3, "workers": 2},
    "partitioned": {"schedulers": 3, "mode": "partitioned", "partitions": 3},
    "quality": {
        "schedulers": 2,
        "mode": "partitioned",
        "partition_policy": "quality-first",
    },
    "adaptive": {
        "schedulers": 2,
        "mode": "partitioned",
        "partition_policy": "adaptive",
        "partition_long_queue_pods": 8,
        "partition_refresh_s": 0.01,
    },
}
KNOBS = {
    "fit": {},
    "version": {"conflicts": "version"},
    "whole": {"transaction": "all-or-nothing"},
    "coarse gang": {"conflicts": "version", "transaction": "all-or-nothing"},
    "stale": {"staleness_s": 5.0},
    "fresh": {"staleness_s": 0.0},
}


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)


def job(name, **facts):
    return pod(owner=Owner("Job", name, f"uid-{name}"), **facts)


def tight():
    """Zones with hardly enough room; hard spread, anti-affinity, affinity, jobs, and plain pods."""
    nodes = [host(number, "abc"[number % 3], cpu=1000, pods=6) for number in range(9)]
    hard = spread(ZONE, 1, selector=apps("spread"))
    kinds = [
        *[pod(cpu=100, labels={"app": "spread"}, spread_constraints=(hard,))] * 6,
        *[pod(cpu=100, labels={"app": "shy"}, pod_anti_affinity=(near(apps("shy"), ZONE),))] * 4,
        *[pod(cpu=50, labels={"app": "near"}, pod_affinity=(near(apps("near"), ZONE),))] * 4,
        *[job(f"j{number // 4}", cpu=200) for number in range(16)],
        *[pod(cpu=300)] * 8,
    ]
    return inputs_of(nodes, [(identity(f"p{n}"), facts) for n, facts in enumerate(kinds)])


def run(inputs, **how):
    outcome, actors = run_inline(inputs, plan_of(**how))
    assert_all_agree(inputs, outcome, actors)
    return outcome, actors


@pytest.mark.parametrize(("mode", "knob"), list(product(MODES, KNOBS)))
def test_in_every_mode_every_commit_keeps_every_hard_constraint(mode, knob):
    inputs = tight()
    facts_of = {who.uid: facts for who, facts in inputs.pending}
    zone_of = {each.name: dict(each.labels)[ZONE] for each in inputs.nodes}

    outcome, _ = run(inputs, batch=4, **(MODES[mode] | KNOBS[knob]))

    zones = {"spread": [], "shy": [], "near": []}
    for each in outcome.placements:
        app = dict(facts_of[each.uid].labels).get("app")
        if app in zones:
            zones[app].append(zone_of[each.node])
    assert len(zones["shy"]) == len(set(zones["shy"])) == 3
    assert len(set(zones["near"])) == 1
    counts = [zones["spread"].count(zone) for zone in "abc"]
    assert max(counts) - min(counts) <= 1, "hard spread constraints have a skew of 1"
    assert len(outcome.placements) + len(outcome.pending) == len(inputs.pending)


def test_a_single_shared_scheduler_decides_like_an_exact_one():
    inputs = tight()

    exact, _ = run(inputs, batch=8)
    alone, _ = run(inputs, batch=8, mode="shared", conflicts="version")

    assert placed(exact) == placed(alone)


def test_schedulers_of_a_profile_get_its_pods_and_no_others():
    spreading = pods_of("s1", "s2", "s3", facts=pod(cpu=100))
    packing = pods_of("k1", "k2", facts=pod(cpu=100, scheduler_name="packs"))
    inputs = inputs_of([node("n1"), node("n2")], [*spreading, *packing])

    outcome, actors = run(
        inputs, config=TWO_PROFILES, schedulers={"default-scheduler": 2, "packs": 1}, batch=1
    )

    decided = [actors[f"scheduler-{number}"].metrics.decided for number in range(3)]
    assert len(outcome.placements) == 5
    assert (decided[0] + decided[1], decided[2]) == (3, 2)


def test_a_profile_without_a_scheduler_is_refused_at_the_start():
    plan = plan_of(config=TWO_PROFILES, schedulers={"packs": 1})

    with pytest.raises(InputError, match='Profile "default-scheduler": schedulers: names no'):
        ActorLauncher().run(tight(), plan, lambda _: None)


def test_a_scheduler_that_owns_all_partitions_passes_no_pod_on():
    nodes = [host(0, "a", cpu=1000), host(1, "b", cpu=1000)]
    here = pods_of(*(f"p{number}" for number in range(4)), facts=pod(cpu=500))
    plan = plan_of(schedulers=1, mode="partitioned", partitions=2, batch=1)

    outcome, actors = run_inline(inputs_of(nodes, here), plan)

    # One scheduler owns all shards, so it passes no pod on.
    assert len(outcome.placements) == 4
    assert actors["scheduler-0"].metrics.passed_on == 0


def test_pods_that_fit_on_no_own_node_are_placed_on_nodes_of_others():
    nodes = [host(0, "a", cpu=1000), host(1, "b", cpu=8000)]
    inputs = inputs_of(nodes, pods_of(*(f"p{n}" for n in range(12)), facts=pod(cpu=500)))

    outcome, actors = run(inputs, schedulers=2, mode="partitioned", partitions=2, batch=3)

    metrics = [actors[f"scheduler-{number}"].metrics for number in range(2)]
    assert len(outcome.placements) == 12
    assert not outcome.pending
    assert sum(each.decided for each in metrics) >= 12, "each pod was decided at least once"


@pytest.mark.parametrize("kernel", [False, True])
def test_every_partition_respects_anti_affinity_of_pods_on_other_partitions(kernel):
    """Its anti-affinity covers a zone in which two schedulers own a node each."""
    nodes = [host(number, "aabb"[number], cpu=4000) for number in range(4)]
    guard = pod(labels={"app": "guard"}, pod_anti_affinity=(near(apps("web"), ZONE),))
    running = [(identity("guard"), guard, "n1")]
    webs = pods_of(*(f"w{n}" for n in range(6)), facts=pod(cpu=100, labels={"app": "web"}))
    others = pods_of(*(f"o{n}" for n in range(6)), facts=pod(cpu=100))
    both = [each for pair in zip(webs, others, strict=True) for each in pair]

    outcome, _ = run(
        inputs_of(nodes, both, running),
        mode="partitioned",
        partitions=4,
        schedulers=2,
        kernel=kernel,
    )

    where = placed(outcome)
    assert len(where) == 12
    assert {where[f"default/w{n}"] for n in range(6)} <= {"n2", "n3"}


async def test_a_scheduler_asks_again_if_the_queue_grants_no_lease_in_time():
    world = World(["a"])
    late, lease = [DeadlineError("late")], world.lease
    world.queue.answers["lease"] = lambda ask: late.pop() if late else lease(ask)
    async with world:
        assert [each.bound for each in await world.reports()] == [("uid-a",)]


async def test_a_stale_state_is_read_again_before_a_pod_fails():
    world = World(["a"], ["b"], ["c"], nodes=(node("n1", pods=2),), mode="shared", staleness_s=60.0)
    assumed = []

    async def assume(batch):
        assumed.append(batch.pods.uids)
        answer = await world.counts.assume(batch)
        if len(assumed) == 2:
            # Room that is missing in the stale state.
            await world.counts.add_nodes(node_batch((node("n2"),)))
        return answer

    world.cache.answers["assume"] = assume
    async with world:
        reports = await world.reports(3)

    assert [uid for report in reports for uid in report.bound] == ["uid-a", "uid-b", "uid-c"]
    assert world.scheduler.metrics.reads == 2


def test_a_race_does_not_bind_a_job_in_part():
    outcome, actors = run(tight(), schedulers=4, batch=4, transaction="all-or-nothing", workers=1)

    metrics = [actors[f"scheduler-{number}"].metrics for number in range(4)]
    assert outcome.placements
    assert sum(each.bound for each in metrics) == len(outcome.placements)
    for each in metrics:
        assert each.asked == each.bound + each.refused.total()
        assert each.conflicted <= each.transactions <= each.asked


def test_a_state_that_may_be_stale_is_read_less_often():
    inputs = inputs_of(
        [node(f"n{number}", cpu=16000) for number in range(4)],
        pods_of(*(f"p{number}" for number in range(60)), facts=pod(cpu=100)),
    )
    reads = {}
    for staleness_s in (None, 60.0):
        how = {"mode": "shared", "batch": 4, "workers": 1, "staleness_s": staleness_s}
        outcome, actors = run(inputs, **how)
        reads[staleness_s] = actors["scheduler-0"].metrics.reads
        assert len(outcome.placements) == 60

    assert reads[None] == 15
    assert reads[60.0] < 5, "far fewer reads than without staleness"
