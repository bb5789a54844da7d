from dataclasses import replace

from roadstead.framework.diagnosis import NO_NODES, Diagnosis, excluded_status
from roadstead.protocol.status import error, unresolvable, unschedulable

CPU = replace(unschedulable("Insufficient cpu"), plugin="NodeResourcesFit")
CPU_AND_MEMORY = replace(
    unschedulable("Insufficient cpu", "Insufficient memory"), plugin="NodeResourcesFit"
)
TAINT = replace(unresolvable("node(s) had untolerated taint {gpu: yes}"), plugin="TaintToleration")


def diagnosis_of(*refusals, nodes=None):
    diagnosis = Diagnosis(sum(r[1] for r in refusals) if nodes is None else nodes)
    for status, *counts in refusals:
        diagnosis.add(status, *counts)
    return diagnosis


def test_reasons_are_counted_and_joined():
    message = diagnosis_of((CPU, 2), (TAINT, 1)).message()

    assert message == (
        "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 2 Insufficient cpu."
    )


def test_reasons_are_sorted_as_text_so_that_ten_comes_before_two():
    assert diagnosis_of((TAINT, 2), (CPU, 10)).message() == (
        "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint {gpu: yes}."
    )


def test_a_node_with_several_reasons_counts_in_each():
    assert diagnosis_of((CPU_AND_MEMORY, 2), (CPU, 1)).message() == (
        "0/3 nodes are available: 2 Insufficient memory, 3 Insufficient cpu."
    )


def test_only_the_pre_filter_message_is_printed_if_there_is_one():
    diagnosis = diagnosis_of((CPU, 3))
    diagnosis.pre_filter = unresolvable('persistentvolumeclaim "x" not found')

    assert diagnosis.message() == ('0/3 nodes are available: persistentvolumeclaim "x" not found.')


def test_several_reasons_of_pre_filter_are_joined():
    diagnosis = Diagnosis(4, pre_filter=unschedulable("one", "two"))

    assert diagnosis.message() == "0/4 nodes are available: one, two."


def test_the_post_filter_message_is_last():
    message = diagnosis_of((CPU, 1)).message("preemption: not eligible.")

    assert message == "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible."
    assert Diagnosis(1).message("not found") == "0/1 nodes are available: not found"


def test_refusals_without_reasons_add_nothing_to_the_head():
    assert diagnosis_of((unschedulable(), 2)).message() == "0/2 nodes are available:"


def test_without_nodes_nothing_is_counted():
    assert Diagnosis(0).message("ignored") == NO_NODES == "no nodes available to schedule pods"


def test_nodes_excluded_by_pre_filter_name_the_plugins():
    status = excluded_status(("InterPodAffinity", "NodeAffinity"))

    assert diagnosis_of((status, 7)).message() == (
        "0/7 nodes are available: "
        "7 node(s) didn't satisfy plugin(s) [InterPodAffinity NodeAffinity]."
    )


def test_the_plugins_that_refused_are_named_once_and_sorted():
    diagnosis = diagnosis_of((TAINT, 1), (CPU, 1), (CPU_AND_MEMORY, 1))
    assert diagnosis.plugins == ("NodeResourcesFit", "TaintToleration")

    diagnosis.pre_filter = replace(unresolvable("no"), plugin="NodeAffinity")
    assert diagnosis.plugins == ("NodeAffinity", "NodeResourcesFit", "TaintToleration")
    assert Diagnosis(3).plugins == ()


def test_removing_pods_helps_only_if_a_node_was_refused_with_unschedulable():
    diagnosis = diagnosis_of((CPU, 4), (CPU_AND_MEMORY, 1), (TAINT, 5), (error("x"), 1))

    assert diagnosis.helpful() == 5
    assert Diagnosis(1).helpful() == 0


def test_the_lowest_priority_is_recorded():
    diagnosis = Diagnosis(3)
    assert diagnosis.lowest_priority is None

    for priority in (5, -2, 9, None):
        diagnosis.record_priority(priority)

    assert diagnosis.lowest_priority == -2


def test_plugins_that_excluded_nodes_count_as_refusing_plugins():
    diagnosis = Diagnosis(3, restricted_by=("NodeAffinity",))
    diagnosis.add(excluded_status(("NodeAffinity",)), 3)

    assert diagnosis.plugins == ("NodeAffinity",)
