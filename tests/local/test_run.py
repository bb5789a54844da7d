"""LocalRun decides like a run of actors with one scheduler, with the time as an argument."""

import json
from dataclasses import replace

import pytest

from roadstead.cycle.batch import CompiledKernel
from roadstead.cycle.needs import CatchUp, CatchUpTimeoutError
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import GroupMembership, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.invariants.checker import check
from roadstead.journal.files import FileJournal
from roadstead.journal.segments import Reader
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.local.drive import drive
from roadstead.local.run import LocalRun
from tests.actors.world import identity, inputs_of, placed, plan_of, pods_of, run_inline
from tests.builders import node, pod, require
from tests.journal.simulated_disk import SimulatedDisk
from tests.simulation.scenarios import GANGS
from tests.storage.world import random_fleet

BIG, SMALL = pod(cpu=3000), pod(cpu=900)


def local(plan, inputs, **more):
    """Return a local run in which all inputs were tried."""
    run = LocalRun(plan, **more)
    run.add_nodes(inputs.nodes)
    run.add_running(
        [(who, facts) for who, facts, _ in inputs.running], [n for *_, n in inputs.running]
    )
    run.submit(inputs.pending)
    run.run(0.0)
    return run


def by_key(run, inputs):
    keys = {who.uid: who.key for who, _ in inputs.pending}
    return {keys[uid]: node_name for uid, node_name in run.placements().items()}


def fleet():
    nodes = [node(f"n{number}", cpu=4000, labels={"zone": f"z{number % 3}"}) for number in range(9)]
    same = LabelSelector((require("app", "In", "s"),))
    evenly = SpreadConstraint("zone", 1, "DoNotSchedule", same, 1, "Honor", "Ignore", ())
    spread = pod(cpu=300, labels={"app": "s"}, spread_constraints=(evenly,))
    kinds = (BIG, SMALL, spread, pod(cpu=200, priority=5))
    return nodes, [(identity(f"p{number}"), kinds[number % 4]) for number in range(40)]


@pytest.mark.parametrize("batch", [1, 7, 100])
@pytest.mark.parametrize("has_kernel", [False, True])
def test_a_local_run_places_like_actors(batch, has_kernel):
    plan, inputs = plan_of(batch=batch, seed=3), inputs_of(*fleet())
    compiled_kernel = CompiledKernel(load(), DecisionCounts()) if has_kernel else None

    run = local(plan, inputs, compiled_kernel=compiled_kernel)

    assert by_key(run, inputs) == placed(run_inline(inputs, plan)[0])


@pytest.mark.parametrize("seed", range(3))
def test_a_local_run_binds_claims_like_actors(seed):
    nodes, facts, pods = random_fleet(seed)
    inputs = inputs_of(nodes, [(identity(name), each) for name, each in pods])
    plan = replace(plan_of(), cluster=ClusterFacts(storage=facts))

    assert by_key(local(plan, inputs), inputs) == placed(run_inline(inputs, plan)[0])


def test_a_pod_preempts_another_one():
    low, high = pod(cpu=4000), pod(cpu=4000, priority=100)
    run = LocalRun(plan_of())
    run.add_nodes([node("n1", cpu=4000)])
    run.submit([(identity("low"), low)])
    run.run(0.0)
    run.submit([(identity("high"), high)])
    run.run(1.0)

    assert run.placements() == {"uid-high": "n1"}
    assert run.binder.core.placements.node_of("uid-high") == "n1"
    assert [note.uid for note in run.binder.outcomes.removed] == ["uid-low"]


def test_a_fitting_gang_is_placed_completely_and_another_not_at_all():
    facts = pod(cpu=2000, pod_group=GroupMembership("g", 3))
    run = LocalRun(plan_of(config=json.dumps(GANGS)))
    run.add_nodes([node("n1", cpu=4000)])
    run.submit([(identity(f"g{number}"), facts) for number in range(3)])
    run.run(0.0)
    assert not run.placements()

    run.add_nodes([node("n2", cpu=4000)])
    run.run(60.0)
    assert {*run.placements().values()} == {"n1", "n2"}


def test_a_pod_that_fits_nowhere_is_reported_and_placed_on_a_new_node():
    run = LocalRun(plan_of())
    run.add_nodes([node("n1", cpu=100)])
    run.submit(pods_of("a", facts=SMALL))
    assert run.run(0.0) == 0
    assert [note.message for note in run.pending()] == [
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    ]

    run.add_nodes([node("n2", cpu=1000)])
    assert run.run(0.5) == 1
    assert run.placements() == {"uid-a": "n2"}


def test_a_deleted_pod_frees_its_resources():
    run = LocalRun(plan_of())
    run.add_nodes([node("n1", cpu=1000)])
    run.submit(pods_of("a", "b", facts=SMALL))
    run.run(0.0)
    run.delete_pods(["uid-a"])
    run.run(30.0)
    assert run.placements() == {"uid-b": "n1"}

    run.remove_nodes(["n1"])
    run.submit(pods_of("c"))
    assert run.run(31.0) == 0


def test_a_batch_whose_changes_do_not_arrive_begins_again_and_its_time_counts(monkeypatch):
    run = LocalRun(plan_of())
    run.add_nodes([node("n1")])
    run.submit(pods_of("a"))
    late = [CatchUpTimeoutError("no change in 2 s")]

    def drive_late(steps, answer_need):
        def answer_late(need):
            if isinstance(need, CatchUp) and late:
                run.now_s += 2.0
                raise late.pop()
            return answer_need(need)

        return drive(steps, answer_late)

    monkeypatch.setattr("roadstead.local.run.drive", drive_late)
    assert run.step() is None
    assert run.step().retry_reason == "no change in 2 s"

    assert run.scheduler.performer.metrics.busy_s == 2.0
    assert run.run(0.0) == 1


def test_a_local_run_keeps_no_scores_as_nothing_reads_them():
    run = local(plan_of(), inputs_of([node("n1"), node("n2")], pods_of("a")))

    assert len(run.placements()) == 1
    assert run.scheduler.scores is None


def test_the_checker_finds_no_error_in_the_journal_of_a_local_run():
    disk = SimulatedDisk()
    journal = FileJournal(disk)
    assert list(journal.recovered()) == []
    run = local(plan_of(), inputs_of(*fleet()), journal=journal)
    run.binder.end()

    report = check(Reader(disk).records())

    assert report.violations == []
    assert report.binds_checked == len(run.placements())
