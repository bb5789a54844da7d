from roadstead.plugins.scheduling_gates import SchedulingGates
from roadstead.protocol.status import SUCCESS, unresolvable
from tests.builders import pod

PLUGIN = SchedulingGates()


def test_a_pod_without_gates_enters_the_queue():
    assert PLUGIN.pre_enqueue(pod()) is SUCCESS


def test_a_gated_pod_is_held_with_the_names_of_its_gates():
    held = pod(scheduling_gates=("example.com/quota", "example.com/audit"))

    assert PLUGIN.pre_enqueue(held) == unresolvable(
        "waiting for scheduling gates: [example.com/quota example.com/audit]"
    )


def test_gates_are_not_part_of_a_signature():
    assert PLUGIN.sign(pod()) == PLUGIN.sign(pod(scheduling_gates=("x",))) == ()
