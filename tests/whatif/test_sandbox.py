"""A sandbox schedules as a run does, and can undo what it did."""

import pytest

from roadstead.protocol.errors import InputError
from roadstead.whatif import sandbox as sandbox_module
from roadstead.whatif.sandbox import Sandbox
from tests.actors.world import identity, inputs_of, placed, plan_of, run_inline
from tests.builders import node, pod
from tests.local.test_run import fleet
from tests.whatif.questions import running


def test_the_given_pods_are_placed_as_by_a_run():
    nodes, pods = fleet()
    inputs, plan = inputs_of(nodes, pods), plan_of(seed=3)

    first = Sandbox(inputs, plan).result_of_inputs

    keys = {who.uid: who.key for who, _ in pods}
    assert {keys[uid]: name for uid, name in first.placed.items()} == placed(
        run_inline(inputs, plan)[0]
    )


def test_settings_of_several_schedulers_are_replaced_by_one():
    nodes, pods = fleet()
    plan = plan_of(seed=3, schedulers=3, mode="partitioned", partitions=3)

    first = Sandbox(inputs_of(nodes, pods), plan).result_of_inputs

    assert first.placed == Sandbox(inputs_of(nodes, pods), plan_of(seed=3)).result_of_inputs.placed


def test_pods_that_stay_pending_do_not_use_room_that_appears_later():
    sandbox = Sandbox(
        inputs_of([node("n1", cpu=1000)], [(identity("big"), pod(cpu=4000))]), plan_of()
    )
    assert [each.pod for each in sandbox.result_of_inputs.pending] == ["default/big"]

    sandbox.change_nodes([node("n2", cpu=4000)])

    assert sandbox.schedule([(identity("x"), pod(cpu=4000))]).placed == {"uid-x": "n2"}


def test_a_removed_pod_frees_its_node_and_a_preempted_one_can_be_brought_back():
    low, high = pod(cpu=3000), pod(cpu=3000, priority=9)
    sandbox = Sandbox(inputs_of([node("n1")], (), [running("low", "n1", low)]), plan_of())

    scheduled = sandbox.schedule([(identity("high"), high)])
    assert [each.pod for each in scheduled.preempted] == ["default/low"]
    assert scheduled.placed == {"uid-high": "n1"}
    assert not scheduled.is_complete, "the evicted pod has no node"
    sandbox.remove(["uid-high"])
    sandbox.restore_preempted(scheduled.preempted)

    assert [who.key for who, _ in sandbox.pods_on("n1")] == ["default/low"]
    assert sandbox.schedule([(identity("other"), low)]).pending


def test_scheduling_can_end_at_the_first_refusal():
    sandbox = Sandbox(inputs_of([node("n1")], ()), plan_of(batch=2))
    pods = [(identity(f"p{number}"), pod(cpu=1000)) for number in range(20)]

    scheduled = sandbox.schedule(pods, until_refused=True)

    assert len(scheduled.placed) == 4
    assert len(scheduled.pending) == 16
    assert any(each.message == "has not been tried yet" for each in scheduled.pending)


def test_added_nodes_can_be_removed_again():
    sandbox = Sandbox(inputs_of([node("n1", cpu=1000)], ()), plan_of())
    sandbox.change_nodes([node("n2")])
    sandbox.remove_nodes(["n2"])

    assert sandbox.schedule([(identity("x"), pod(cpu=4000))]).pending


def test_more_pods_than_the_queue_holds_are_an_error_with_the_setting():
    plan = plan_of(bounds={"queue_max_pods": 3})
    pods = [(identity(f"p{number}"), pod(cpu=1)) for number in range(5)]

    with pytest.raises(InputError, match=r"bounds.queue_max_pods"):
        Sandbox(inputs_of([node("n1")], pods), plan)


def test_a_pod_that_is_both_running_and_pending_is_an_error():
    inputs = inputs_of([node("n1")], [(identity("x"), pod())], [running("x", "n1", pod())])

    with pytest.raises(InputError, match=r'Pod "default/x": metadata.uid'):
        Sandbox(inputs, plan_of())


def test_the_kernel_is_loaded_for_many_pods_and_compiled_only_for_very_many(monkeypatch):
    calls = []
    monkeypatch.setattr(sandbox_module, "loaded", lambda: None)
    monkeypatch.setattr(sandbox_module, "load", lambda report: calls.append("load"))
    monkeypatch.setattr(sandbox_module, "is_compiled", lambda: False)
    monkeypatch.setattr(sandbox_module, "KERNEL_PODS", 3)
    monkeypatch.setattr(sandbox_module, "COMPILED_PODS", 6)
    sandbox = Sandbox(inputs_of([node("n1")], ()), plan_of())

    def submit(count):
        pods = [sandbox.copy_of((identity("x"), pod(cpu=1))) for _ in range(count)]
        assert sandbox.schedule(pods).is_complete

    submit(4)
    assert calls == []
    submit(2)
    assert calls == ["load"]


def test_without_numba_the_plugins_decide(monkeypatch):
    def fail():
        raise ImportError

    monkeypatch.setattr(sandbox_module, "loaded", lambda: None)
    monkeypatch.setattr(sandbox_module, "is_compiled", fail)
    monkeypatch.setattr(sandbox_module, "KERNEL_PODS", 1)
    sandbox = Sandbox(inputs_of([node("n1")], ()), plan_of())

    for number in range(2):
        assert sandbox.schedule([(identity(f"x{number}"), pod(cpu=1))]).is_complete
