import pytest

from roadstead.bench.process_usage import ProcessUsage, by_name, processor_spent


def usages(**seconds):
    """name_pid=seconds"""
    keys = {key: key.rsplit("_", 1) for key in seconds}
    return {
        (name, int(pid)): ProcessUsage(int(pid), seconds[key], 1)
        for key, (name, pid) in keys.items()
    }


def test_what_a_process_used_before_does_not_count_and_ended_ones_are_left_out():
    before = usages(control_7=2.0, worker_8=1.0)

    spent_s = processor_spent(before, usages(control_7=2.5, scheduler_9=0.25))

    assert spent_s == {("control", 7): 0.5, ("scheduler", 9): 0.25}


def test_processes_of_two_machines_with_one_number_are_two():
    spent_s = processor_spent({}, usages(control_7=1.0, worker_7=2.0))

    assert by_name(spent_s) == {"worker": 2.0, "control": 1.0}


def test_a_process_and_its_replacement_are_added_up():
    found = by_name(processor_spent({}, usages(worker_7=1.0, worker_8=0.5, control_9=4.0)))

    assert found == pytest.approx({"control": 4.0, "worker": 1.5})
    assert list(found) == ["control", "worker"]
