"""The smallest changes that admit a refused pod: each kind by hand, and their order."""

from dataclasses import replace

import pytest

from roadstead.facts.pod import HostPort, PodAffinityTerm
from roadstead.facts.selectors import LabelSelector
from roadstead.whatif.changes import drops, reduced
from roadstead.whatif.sandbox import Sandbox
from roadstead.whatif.smallest_changes import smallest_changes
from tests.actors.world import identity, inputs_of, plan_of
from tests.builders import GIB, MIB, node, pod, require, taint, term
from tests.whatif.questions import ZONE, running


def changes_of(nodes, facts, there=(), **more):
    sandbox = Sandbox(inputs_of(nodes, (), there), plan_of())
    return smallest_changes(sandbox, (identity("x"), facts), **more)


def texts(nodes, facts, there=()):
    return [each.text for each in changes_of(nodes, facts, there).changes]


def test_a_taint_is_tolerated():
    nodes = [
        node("n1", taints=(taint("gpu", "yes"), taint("old"))),
        node("n2", taints=(taint("gpu"),)),
    ]

    assert texts(nodes, pod(cpu=1)) == [
        "tolerate gpu:NoSchedule",
        "tolerate gpu=yes:NoSchedule and old:NoSchedule",
    ]


def test_a_cordoned_node_needs_a_toleration_too():
    assert texts([node("n1", unschedulable=True)], pod(cpu=1)) == [
        "tolerate node.kubernetes.io/unschedulable:NoSchedule"
    ]


def test_a_soft_taint_is_no_obstacle():
    nodes = [node("n1", cpu=100, taints=(taint("gpu", effect="PreferNoSchedule"),))]

    assert texts(nodes, pod(cpu=200)) == ["request cpu 100m instead of 200m"]


def test_one_label_of_the_node_selector_is_dropped_and_then_all():
    nodes = [node("n1", labels={"a": "1"})]

    found = changes_of(nodes, pod(node_selector={"a": "1", "b": "2"})).changes

    assert [each.text for each in found] == ["drop node selector b=2", "drop the node selector"]
    assert [each.parts for each in found] == [1, 2]


def test_a_requirement_of_an_affinity_term_is_dropped():
    terms = (term(require("a", "In", "1"), require("b", "Exists")),)

    assert texts([node("n1", labels={"a": "1"})], pod(required_node_terms=terms)) == [
        "drop node affinity b Exists",
        "drop the required node affinity",
    ]


def test_the_only_requirement_of_the_only_term_is_dropped_with_the_affinity():
    terms = (term(require("a", "In", "1")),)

    assert texts([node("n1")], pod(required_node_terms=terms)) == ["drop node affinity a In (1)"]


def test_pod_anti_affinity_a_port_and_a_label_are_dropped():
    mine = LabelSelector((require("app", "In", "x"),))
    apart = PodAffinityTerm("kubernetes.io/hostname", mine, ("default",), None)
    nodes = [node("n1", labels={"kubernetes.io/hostname": "n1"})]
    alone = pod(labels={"app": "x"}, pod_anti_affinity=(apart,))
    port = (HostPort("0.0.0.0", "TCP", 80),)

    # Each pod has a term against the other one.
    assert texts(nodes, alone, [running("y", "n1", alone)]) == [
        "give it priority 1",
        "drop pod anti-affinity (kubernetes.io/hostname), and drop label app=x",
    ]
    # The other pod has no term of its own: either change admits this one.
    assert texts(nodes, alone, [running("y", "n1", replace(alone, pod_anti_affinity=()))]) == [
        "drop pod anti-affinity (kubernetes.io/hostname)",
        "give it priority 1",
    ]
    assert texts(nodes, pod(host_ports=port), [running("y", "n1", pod(host_ports=port))])[:1] == [
        "drop host port 80/TCP"
    ]


def test_a_request_is_reduced_as_little_as_possible():
    nodes = [node("n1", cpu=1234, memory=3 * GIB + 5)]

    found = changes_of(nodes, pod(cpu=2000, memory=GIB)).changes
    assert [each.text for each in found] == ["request cpu 1234m instead of 2"]
    assert found[0].share == pytest.approx(1 - 1234 / 2000)

    of_memory = changes_of(nodes, pod(memory=4 * GIB)).changes
    assert [each.text for each in of_memory] == ["request memory 3 GiB instead of 4 GiB"]


def test_amounts_of_other_resources_are_exact():
    nodes = [node("n1", others={"example.com/gpu-milli": 999})]

    assert texts(nodes, pod(others={"example.com/gpu-milli": 1000})) == [
        "request example.com/gpu-milli 999 instead of 1,000"
    ]


def test_pairs_are_tried_if_no_single_change_suffices():
    nodes = [node("n1", cpu=1000, taints=(taint("gpu"),))]

    found = changes_of(nodes, pod(cpu=1500, memory=MIB)).changes

    assert [each.text for each in found] == [
        "tolerate gpu:NoSchedule, and request cpu 1 instead of 1500m"
    ]
    assert found[0].kinds == ("tolerate", "reduce")


def test_two_elements_of_one_field_are_dropped_together():
    web, admin = HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "TCP", 81)
    own = pod(host_ports=(web, admin))
    there = [running("r", "n1", own)]

    assert "drop host port 80/TCP, and drop host port 81/TCP" in texts([node("n1")], own, there)


def test_two_requirements_of_one_affinity_term_are_dropped_together():
    terms = (term(require("a", "Exists"), require("b", "Exists"), require("c", "Exists")),)

    assert texts([node("n1", labels={"c": "1"})], pod(required_node_terms=terms)) == [
        "drop the required node affinity",
    ]
    edits = {each.text: each.edit for each in drops(pod(required_node_terms=terms))}
    left = edits["drop node affinity b Exists"](
        edits["drop node affinity a Exists"](pod(required_node_terms=terms))
    )
    assert left.required_node_terms == (term(require("c", "Exists")),)
    assert edits["drop node affinity c Exists"](left).required_node_terms is None


def test_an_element_is_not_restored_after_its_whole_field_was_dropped():
    facts = pod(node_selector={"a": "1", "b": "2"})
    edits = {each.text: each.edit for each in drops(facts)}

    left = edits["drop node selector a=1"](edits["drop the node selector"](facts))

    assert left.node_selector == ()


def test_two_resources_are_reduced_together():
    nodes = [node("n1", cpu=1000, memory=GIB)]

    assert texts(nodes, pod(cpu=2000, memory=2 * GIB)) == [
        "request cpu 1 instead of 2, and request memory 1 GiB instead of 2 GiB"
    ]


def test_the_smallest_sufficient_priority_is_found_with_the_pods_it_evicts():
    there = [
        running("a", "n1", pod(cpu=4000, priority=10)),
        running("b", "n2", pod(cpu=4000, priority=20)),
    ]

    found = changes_of([node("n1"), node("n2")], pod(cpu=4000, priority=3), there).changes

    (preempting,) = [each for each in found if each.kinds == ("preempt",)]
    assert preempting.text == "give it priority 11"
    assert (preempting.node, preempting.evicts) == ("n1", ("default/a",))


def test_a_pod_that_may_not_preempt_is_allowed_to():
    there = [running("a", "n1", pod(cpu=4000))]
    facts = pod(cpu=4000, priority=5, preemption_policy="Never")

    assert "allow preemption" in texts([node("n1")], facts, there)


def test_changes_are_in_the_documented_order():
    nodes = [
        node("n1", cpu=100, labels={ZONE: "a"}),
        node("n2", cpu=4000, labels={ZONE: "b"}),
        node("n3", cpu=4000, labels={ZONE: "a"}, taints=(taint("gpu"),)),
        node("n4", cpu=4000, labels={ZONE: "a"}),
    ]
    there = [running("y", "n4", pod(cpu=3900))]

    assert texts(nodes, pod(cpu=1000, node_selector={ZONE: "a"}), there) == [
        "tolerate gpu:NoSchedule",
        f"drop node selector {ZONE}=b".replace("=b", "=a"),
        "request cpu 100m instead of 1",
        "give it priority 1",
    ]


def test_a_pod_that_nothing_admits_has_no_changes():
    assert changes_of([], pod(cpu=1)).changes == ()


def test_the_number_of_runs_is_bounded():
    nodes = [node(f"n{n}", cpu=100, taints=(taint(f"t{n}"),)) for n in range(30)]

    found = changes_of(nodes, pod(cpu=1000, labels={f"l{n}": "" for n in range(30)}), runs_max=25)

    assert found.tried == 25


def test_the_sandbox_is_as_before():
    there = [running("a", "n1", pod(cpu=4000, priority=10))]
    sandbox = Sandbox(inputs_of([node("n1")], (), there), plan_of())

    smallest_changes(sandbox, (identity("x"), pod(cpu=4000)))

    assert [who.key for who, _ in sandbox.pods_on("n1")] == ["default/a"]
    assert sandbox.schedule([(identity("y"), pod(cpu=1))]).pending


def test_a_reduced_request_also_changes_the_counts_of_scoring():
    facts = reduced(pod(cpu=2000, memory=GIB), "cpu", 500)

    assert dict(facts.requests) == {"cpu": 500, "memory": GIB}
    assert (facts.nonzero_cpu_milli, facts.nonzero_memory_bytes) == (500, GIB)
