import numpy as np
import pytest

from roadstead.config.plugin_args import ServiceAffinityArgs
from roadstead.facts.cluster import ClusterFacts, SelectsPods
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import ActionType, EventResource
from roadstead.framework.plugin import Handle, Reads
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.service_affinity import ServiceAffinity
from tests.builders import (
    found_before_filter,
    found_before_score,
    is_affected,
    node,
    pod,
    put,
    refused,
    require,
    score_with,
    table_of,
)

WEB = LabelSelector((require("app", "In", "web"),))
TIER = LabelSelector((require("tier", "In", "front"),))
SERVICE = SelectsPods("Service", "default", "web", WEB)
REFUSED = refused("node(s) didn't match service affinity")


def web(**facts):
    return pod(labels={"app": "web"} | facts.pop("labels", {}), **facts)


def machines():
    """Return five nodes: two of region r1, three of r2 in two zones."""
    return table_of(
        node("m1", labels={"region": "r1", "zone": "z11"}),
        node("m2", labels={"region": "r1", "zone": "z12"}),
        node("m3", labels={"region": "r2", "zone": "z21"}),
        node("m4", labels={"region": "r2", "zone": "z22"}),
        node("m5", labels={"region": "r2", "zone": "z22"}),
    )


def plugin(*labels, spread=(), selecting=(SERVICE,)):
    args = ServiceAffinityArgs(labels, tuple(spread))
    return ServiceAffinity(args, Handle(PodClasses(), ClusterFacts((), tuple(selecting))))


def fitting(facts, table, affinity):
    """Return names of the nodes that pass; the others are refused with the one reason."""
    state = CycleState(len(table))
    pod_class = table.classes.pod_class(facts)
    if affinity.pre_filter(state, pod_class, table).status.is_skip:
        return set(table.names)
    result = affinity.filter(state, pod_class, table)
    if result.codes is None:
        return set(table.names)
    per_code = [None, *((each.code.upstream_name, each.reasons) for each in result.statuses)]
    answers = [per_code[code] for code in result.codes.tolist()]
    assert set(answers) <= {None, REFUSED}
    return {name for name, each in zip(table.names, answers, strict=True) if each is None}


def test_without_labels_every_node_fits():
    assert fitting(web(), machines(), plugin()) == {"m1", "m2", "m3", "m4", "m5"}


def test_a_pod_of_no_service_fits_everywhere():
    table = machines()
    put(table, "m1", pod(labels={"app": "db"}))

    assert fitting(pod(labels={"app": "db"}), table, plugin("region")) == set(table.names)


def test_the_first_pod_of_a_service_fits_everywhere():
    assert fitting(web(), machines(), plugin("region")) == {"m1", "m2", "m3", "m4", "m5"}


def test_later_pods_fit_on_nodes_with_the_labels_of_the_first_ones_node():
    table = machines()
    put(table, "m3", web())

    assert fitting(web(), table, plugin("region")) == {"m3", "m4", "m5"}
    assert fitting(web(), table, plugin("region", "zone")) == {"m3"}


def test_labels_in_the_node_selector_replace_those_of_the_first_pods_node():
    table = machines()
    put(table, "m3", web())

    assert fitting(web(node_selector={"region": "r1"}), table, plugin("region")) == {"m1", "m2"}
    assert fitting(web(node_selector={"region": "r1"}), table, plugin("region", "zone")) == set()
    named = web(node_selector={"region": "r1", "zone": "z11"})
    assert fitting(named, table, plugin("region", "zone")) == {"m1"}


def test_a_label_missing_on_the_first_pods_node_requires_nothing():
    table = table_of(node("bare"), node("m1", labels={"region": "r1"}))
    put(table, "bare", web())

    assert fitting(web(), table, plugin("region")) == {"bare", "m1"}


def test_the_first_pod_is_in_the_namespace_and_has_all_labels_of_the_new_one():
    table = machines()
    put(table, "m1", web(namespace="other"), pod())
    put(table, "m2", web(is_terminating=True))
    put(table, "m3", web(labels={"rev": "2"}))

    assert fitting(web(), table, plugin("zone")) == {"m2"}
    assert fitting(web(labels={"rev": "2"}), table, plugin("zone")) == {"m3"}


def test_the_pod_on_the_first_added_node_counts():
    table = table_of(node("late", labels={"zone": "b"}))
    table.remove_node("late")
    table.add_node(node("late", labels={"zone": "b"}), 9)
    table.add_node(node("early", labels={"zone": "a"}), 3)
    put(table, "late", web())
    put(table, "early", web())

    assert fitting(web(), table, plugin("zone")) == {"early"}


def after(table, affinity, facts, name, **moves):
    """Return the nodes that fit a pod after pods of these kinds are added to a node or removed."""
    pod_class = table.classes.pod_class(facts)
    kinds = {"web": web(), "db": pod(labels={"app": "db"}), "far": web(namespace="far")}
    changes = {table.classes.pod_class(kinds[kind]): count for kind, count in moves.items()}
    row = table.view(np.array([table.row_of(name)]))
    state = CycleState(len(table))
    before = found_before_filter(affinity, pod_class, table)
    found = affinity.with_pods_moved(before, pod_class, row, changes)
    state.write(affinity.name, found)
    result = affinity.filter(state, pod_class, table)
    codes = [0] * len(table) if result.codes is None else result.codes.tolist()
    return {name for name, code in zip(table.names, codes, strict=True) if not code}


def test_after_the_first_pods_are_removed_those_of_the_next_node_are_first():
    table, affinity = machines(), plugin("region", "zone")
    put(table, "m1", web(), web())
    put(table, "m3", web())

    assert after(table, affinity, web(), "m1", web=-1) == {"m1"}
    assert after(table, affinity, web(), "m1", web=-2) == {"m3"}
    assert after(table, affinity, web(), "m3", web=-1) == {"m1"}


def test_after_the_only_pods_are_removed_every_node_fits():
    table = machines()
    put(table, "m3", web())

    assert after(table, plugin("zone"), web(), "m3", web=-1) == set(table.names)


def test_a_new_pod_is_first_only_if_there_is_no_other():
    table, affinity = machines(), plugin("zone")
    assert after(table, affinity, web(), "m1", web=1) == {"m1"}

    put(table, "m3", web())

    assert after(table, affinity, web(), "m1", web=1) == {"m3"}
    assert after(table, affinity, web(), "m3", web=1) == {"m3"}


def test_moves_of_other_pods_do_not_change_the_result():
    table, affinity = machines(), plugin("zone")
    put(table, "m1", web())
    pod_class = table.classes.pod_class
    found = found_before_filter(affinity, pod_class(web()), table)
    row = table.view(np.array([0]))

    far = pod_class(web(namespace="far"))
    assert affinity.with_pods_moved(found, pod_class(web()), row, {far: -1}) is found
    named = pod_class(web(node_selector={"zone": "z11"}))
    none = found_before_filter(affinity, named, table)
    assert affinity.with_pods_moved(none, named, row, {pod_class(web()): 1}) is none
    elsewhere = table.view(np.array([2]))
    assert (
        affinity.with_pods_moved(found, pod_class(web()), elsewhere, {pod_class(web()): 1}) is found
    )


@pytest.mark.parametrize(
    ("counts", "scores"),
    [
        ((0, 0, 0, 0, 0), [100, 100, 100, 100, 100]),
        ((1, 0, 0, 0, 0), [0, 0, 100, 100, 100]),
        ((1, 0, 1, 0, 0), [50, 50, 50, 50, 50]),
        ((1, 1, 1, 0, 0), [33, 33, 66, 66, 66]),
        ((0, 0, 1, 0, 3), [100, 100, 0, 0, 0]),
    ],
)
def test_values_with_fewer_pods_of_the_service_score_higher(counts, scores):
    table = machines()
    for name, count in zip(table.names, counts, strict=True):
        put(table, name, *[web()] * count)

    assert score_with(plugin(spread=["region"]), web(), table) == scores


def test_several_labels_contribute_equally_to_the_score():
    table = machines()
    put(table, "m4", web())
    put(table, "m1", web())

    scores = score_with(plugin(spread=["region", "zone"]), web(), table)

    assert scores == [50, 75, 75, 50, 50]


def test_a_node_without_the_label_scores_zero_for_it():
    table = table_of(node("m1", labels={"zone": "a"}), node("bare"))

    assert score_with(plugin(spread=["zone"]), web(), table) == [100, 0]
    put(table, "bare", web())
    assert score_with(plugin(spread=["zone"]), web(), table) == [100, 0]


def test_only_non_terminating_pods_of_the_namespace_and_first_service_are_counted():
    table = machines()
    put(
        table, "m1", web(namespace="other"), web(is_terminating=True), pod(labels={"tier": "front"})
    )
    put(table, "m3", web())
    both = (SERVICE, SelectsPods("Service", "default", "tier", TIER))

    scores = score_with(
        plugin(spread=["region"], selecting=both), web(labels={"tier": "front"}), table
    )

    assert scores == [100, 100, 0, 0, 0]


def test_all_labelled_nodes_score_equally_for_a_pod_without_a_service():
    table = machines()
    put(table, "m1", web())

    assert score_with(plugin(spread=["region"]), pod(), table) == [100] * 5
    assert score_with(plugin("region"), web(), table) == [0] * 5


def test_the_affected_pods_depend_on_labels_and_arguments():
    pod_class = PodClasses().pod_class
    binds, spreads = plugin("region"), plugin(spread=["region"])
    named = web(node_selector={"region": "r1"})

    assert is_affected(binds, pod_class(web()), pod_class(web(labels={"rev": "1"})))
    assert not is_affected(binds, pod_class(web(labels={"rev": "1"})), pod_class(web()))
    assert not is_affected(binds, pod_class(web()), pod_class(web(namespace="other")))
    assert not is_affected(binds, pod_class(named), pod_class(web()))
    assert not is_affected(binds, pod_class(pod()), pod_class(web()))
    assert is_affected(spreads, pod_class(web()), pod_class(pod()))
    assert not is_affected(spreads, pod_class(pod()), pod_class(web()))


def test_the_signature_has_the_facts_that_the_plugin_reads():
    sign = plugin("region").sign

    assert sign(web(cpu=5)) == sign(web())
    assert sign(pod()) == sign(pod(namespace="other"))
    assert sign(web()) != sign(web(labels={"rev": "1"}))
    assert sign(web()) != sign(web(node_selector={"region": "r1"}))
    assert sign(web(node_selector={"disk": "ssd"})) == sign(web())
    assert plugin("region").reads is Reads.CLUSTER


def test_the_registered_events_are_upstreams():
    pods, nodes = plugin("region").events_to_register()

    assert plugin().events_to_register() == ()
    assert pods.event.resource is EventResource.POD
    assert pods.event.action == ActionType.UPDATE | ActionType.DELETE
    assert nodes.event.action == ActionType.ADD | ActionType.UPDATE_NODE_LABEL


def test_services_without_a_selector_select_nothing():
    table = machines()
    put(table, "m1", web())
    empty = SelectsPods("Service", "default", "none", None)
    affinity = plugin("region", selecting=[empty])

    assert fitting(web(), table, affinity) == set(table.names)
    assert found_before_score(affinity, table.classes.pod_class(web()), table) is None
