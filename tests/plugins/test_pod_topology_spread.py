"""The rules of PodTopologySpread one by one.

test_pod_topology_spread_properties.py tests all of them together over random clusters.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from roadstead.config.plugin_args import PodTopologySpreadArgs
from roadstead.facts.cluster import ClusterFacts, SelectsPods
from roadstead.facts.pod import Owner, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Extremes, Handle, Reads
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins import matching_pods
from roadstead.plugins.matching_pods import MatchingPods
from roadstead.plugins.pod_topology_spread import (
    IGNORED,
    PodTopologySpread,
    SpreadCounts,
)
from roadstead.plugins.pod_topology_spread_constraints import SpreadSource
from tests.builders import (
    found_before_filter,
    found_before_score,
    hopeless,
    is_affected,
    node,
    pod,
    put,
    refused,
    require,
    table_of,
    taint,
    term,
    tolerate,
)

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
WEB = LabelSelector((require("app", "In", "web"),))
EVERYTHING = LabelSelector()
TOO_MANY = refused("node(s) didn't match pod topology spread constraints")
NO_LABEL = hopeless("node(s) didn't match pod topology spread constraints (missing required label)")
MISTAKE = '"Inn" is not a valid label selector operator'


def constraint(key=ZONE, *, hard=True, max_skew=1, selector=WEB, min_domains=1, **others):
    kind = "DoNotSchedule" if hard else "ScheduleAnyway"
    affinity = others.pop("affinity", "Honor")
    taints = others.pop("taints", "Ignore")
    keys = others.pop("match_label_keys", ())
    return SpreadConstraint(
        key, max_skew, kind, selector, min_domains, affinity, taints, keys, **others
    )


def soft(key=ZONE, **facts):
    return constraint(key, hard=False, **facts)


def web(*constraints, app="web", **facts):
    labels = {"app": app} | facts.pop("labels", {})
    return pod(labels=labels, spread_constraints=constraints, **facts)


def zoned(name, zone=None, *, labels=None, **facts):
    own = {HOSTNAME: name} | ({ZONE: zone} if zone is not None else {})
    return node(name, labels=own | (labels or {}), **facts)


def plugin_for(table=None, *, args=None, selecting=()):
    classes = table.classes if table is not None else PodClasses()
    handle = Handle(classes, ClusterFacts((), tuple(selecting)))
    return PodTopologySpread(args or PodTopologySpreadArgs(), handle)


def three_zones(web_pods=(2, 1, 0)):
    table = table_of(zoned("n1", "a"), zoned("n2", "b"), zoned("n3", "c"))
    for name, count in zip(table.names, web_pods, strict=True):
        put(table, name, *[web()] * count)
    return table


def filtered(facts, table, plugin=None):
    """Return per row None or (code, reasons), after PreFilter over this table."""
    plugin = plugin or plugin_for(table)
    state = CycleState(len(table))
    pod_class = table.classes.pod_class(facts)
    status = plugin.pre_filter(state, pod_class, table).status
    assert status.is_success, status
    result = plugin.filter(state, pod_class, table)
    if result.codes is None:
        return [None] * len(table)
    per_code = [None, *((each.code.upstream_name, each.reasons) for each in result.statuses)]
    return [per_code[code] for code in result.codes.tolist()]


def scored(facts, table, plugin=None, feasible=None):
    """Return (raw, normalized) per row, the extremes without IGNORED rows; None after Skip."""
    plugin = plugin or plugin_for(table)
    state = CycleState(len(table))
    pod_class = table.classes.pod_class(facts)
    rows = np.ones(len(table), dtype=np.bool_) if feasible is None else np.array(feasible)
    if plugin.pre_score(state, pod_class, table, lambda: rows).is_skip:
        return None
    raw = plugin.score(state, pod_class, table)[rows]
    taking_part = raw[raw != IGNORED]
    extremes = Extremes.of(taking_part) if len(taking_part) else Extremes(IGNORED, IGNORED)
    return raw.tolist(), plugin.normalize(state, pod_class, raw, extremes).tolist()


def test_a_domain_may_exceed_the_emptiest_one_by_max_skew():
    assert filtered(web(constraint()), three_zones()) == [TOO_MANY, TOO_MANY, None]
    assert filtered(web(constraint(max_skew=2)), three_zones()) == [TOO_MANY, None, None]
    assert filtered(web(constraint(max_skew=3)), three_zones()) == [None, None, None]


def test_a_pod_that_its_own_selector_does_not_match_adds_zero():
    other = web(constraint(), app="db")

    assert filtered(other, three_zones()) == [TOO_MANY, None, None]


def test_preemption_can_not_help_on_a_node_without_the_topology_key():
    table = table_of(zoned("n1", "a"), zoned("n2"))

    assert filtered(web(constraint()), table) == [None, NO_LABEL]


def test_the_first_refusing_constraint_sets_the_status():
    table = three_zones()
    by_zone, by_rack = constraint(), constraint("rack")

    assert filtered(web(by_rack, by_zone), table) == [NO_LABEL] * 3
    assert filtered(web(constraint(HOSTNAME), by_rack), table) == [NO_LABEL] * 3


def test_nodes_without_one_key_are_in_no_domain_of_the_others():
    table = table_of(zoned("n1", "a"), node("n2", labels={ZONE: "b"}))
    put(table, "n1", web())

    assert filtered(web(constraint()), table) == [TOO_MANY, None]
    assert filtered(web(constraint(), constraint(HOSTNAME)), table) == [None, NO_LABEL]


def test_fewer_domains_than_min_domains_make_the_minimum_zero():
    table = three_zones((1, 1, 1))

    assert filtered(web(constraint(min_domains=3)), table) == [None] * 3
    assert filtered(web(constraint(min_domains=4)), table) == [TOO_MANY] * 3


def test_without_counting_nodes_every_domain_is_empty():
    table = three_zones((5, 0, 0))
    nowhere = web(constraint(), node_selector={"disk": "ssd"})

    assert found_before_filter(
        plugin_for(table), table.classes.pod_class(nowhere), table
    ).counts == ({},)
    assert filtered(nowhere, table) == [None] * 3


def test_nodes_outside_the_pods_affinity_count_only_if_it_is_ignored():
    table = table_of(zoned("n1", "a", labels={"disk": "ssd"}), zoned("n2", "b"))
    put(table, "n1", web())

    def asking(policy):
        return web(constraint(affinity=policy), required_node_terms=(term(SSD),))

    assert filtered(asking("Honor"), table) == [None, None]
    assert filtered(asking("Ignore"), table) == [TOO_MANY, None]


SSD = require("disk", "In", "ssd")


@pytest.mark.parametrize(
    ("effect", "counts"), [("NoSchedule", False), ("NoExecute", False), ("PreferNoSchedule", True)]
)
def test_tainted_nodes_count_unless_taints_are_honored_and_not_tolerated(effect, counts):
    table = table_of(zoned("n1", "a"), zoned("n2", "b", taints=(taint("gpu", effect=effect),)))
    put(table, "n1", web())
    tolerating = (tolerate("gpu", operator="Exists"),)

    assert filtered(web(constraint()), table) == [TOO_MANY, None]
    honoring = filtered(web(constraint(taints="Honor")), table)
    assert honoring == [TOO_MANY if counts else None, None]
    assert filtered(web(constraint(taints="Honor"), tolerations=tolerating), table)[0] == TOO_MANY


def test_only_non_terminating_pods_of_the_same_namespace_count():
    table = three_zones((0, 0, 0))
    put(table, "n1", web(is_terminating=True), web(namespace="other"), web(app="db"))

    assert filtered(web(constraint()), table) == [None] * 3
    assert filtered(web(constraint(), namespace="other"), table) == [TOO_MANY, None, None]


def test_match_label_keys_restrict_the_selector_to_the_pods_own_values():
    table = three_zones((0, 0, 0))
    put(table, "n1", web(labels={"rev": "1"}))
    by_rev = constraint(match_label_keys=("rev", "absent"))

    assert filtered(web(by_rev, labels={"rev": "2"}), table) == [None] * 3
    assert filtered(web(by_rev, labels={"rev": "1"}), table) == [TOO_MANY, None, None]
    assert filtered(web(by_rev), table) == [TOO_MANY, None, None]


@pytest.mark.parametrize("selector", [None, EVERYTHING])
def test_an_absent_or_empty_selector_counts_no_pod(selector):
    table = three_zones((9, 0, 0))

    assert filtered(web(constraint(selector=selector)), table) == [None] * 3


def test_an_empty_selector_still_matches_the_pod_itself():
    table = three_zones((0, 0, 0))

    assert filtered(web(constraint(selector=EVERYTHING, max_skew=0)), table) == [TOO_MANY] * 3
    assert filtered(web(constraint(selector=None, max_skew=0)), table) == [None] * 3


def test_a_pod_without_hard_constraints_skips_the_filter():
    table = three_zones()
    plugin = plugin_for(table)

    for facts in (web(), web(soft())):
        pod_class = table.classes.pod_class(facts)
        assert plugin.pre_filter(CycleState(3), pod_class, table).status.is_skip


def test_a_view_of_some_rows_uses_the_counts_of_all():
    table = three_zones()
    plugin = plugin_for(table)
    pod_class = table.classes.pod_class(web(constraint()))
    state = CycleState(3)
    plugin.pre_filter(state, pod_class, table)

    view = table.view(np.array([2, 0]))

    assert plugin.filter(state, pod_class, view).codes.tolist() == [0, 1]


def test_an_invalid_selector_ends_the_cycle_where_upstream_reads_it():
    table = three_zones()
    plugin = plugin_for(table)
    state = CycleState(3)
    hard, gentle = (
        table.classes.pod_class(web(make(), make(error=MISTAKE), make(error="a later one")))
        for make in (constraint, soft)
    )

    refusal = plugin.pre_filter(state, hard, table).status
    assert refusal.message == (
        f"get constraints from pod: obtaining pod's hard topology spread constraints: {MISTAKE}"
    )
    assert plugin.pre_score(state, hard, table, lambda: table.pod_count >= 0).is_skip
    assert plugin.pre_filter(state, gentle, table).status.is_skip
    assert plugin.pre_score(state, gentle, table, lambda: table.pod_count >= 0).message == (
        f"calculating preScoreState: obtaining pod's soft topology spread constraints: {MISTAKE}"
    )


def test_soft_constraints_prefer_the_emptier_domain():
    raw, normalized = scored(web(soft()), three_zones((4, 1, 0)))

    assert raw == [6, 2, 0]
    assert normalized == [0, 66, 100]


def test_halves_are_rounded_away_from_zero(monkeypatch):
    monkeypatch.setattr("math.log", lambda domains: 0.5)

    assert scored(web(soft()), three_zones((1, 2, 3)))[0] == [1, 1, 2]


def test_max_skew_reduces_the_differences():
    assert scored(web(soft(max_skew=5)), three_zones((4, 1, 0))) == ([10, 6, 4], [40, 80, 100])


def test_empty_domains_everywhere_have_the_highest_score():
    assert scored(web(soft()), three_zones((0, 0, 0))) == ([0, 0, 0], [100, 100, 100])


def test_nodes_without_a_topology_key_are_not_scored():
    table = table_of(zoned("n1", "a"), zoned("n2", "b"), zoned("n3"))
    put(table, "n1", web())
    put(table, "n3", *[web()] * 9)

    assert scored(web(soft()), table) == ([1, 0, IGNORED], [0, 100, 0])
    assert scored(web(soft("rack")), table) == ([IGNORED] * 3, [0, 0, 0])


def test_domains_are_those_of_feasible_nodes_and_pods_of_all_nodes_count():
    table = table_of(zoned("n1", "a"), zoned("n2", "a"), zoned("n3", "b"), zoned("n4", "c"))
    put(table, "n2", web(), web())

    raw, normalized = scored(web(soft()), table, feasible=[True, False, True, False])

    assert raw == [3, 0]
    assert normalized == [0, 100]


def test_with_the_hostname_key_each_node_counts_its_own_pods():
    table = three_zones((4, 1, 0))

    assert scored(web(soft(HOSTNAME)), table) == ([6, 2, 0], [0, 66, 100])
    assert scored(web(soft(HOSTNAME)), table, feasible=[True, False, True])[0] == [6, 0]


def test_inclusion_policies_apply_to_soft_constraints_too():
    table = table_of(zoned("n1", "a"), zoned("n2", "a", labels={"disk": "ssd"}))
    put(table, "n1", web())
    asking = {"node_selector": {"disk": "ssd"}}

    assert scored(web(soft(), **asking), table, feasible=[False, True])[0] == [0]
    assert scored(web(soft(affinity="Ignore"), **asking), table, feasible=[False, True])[0] == [1]


def test_without_soft_constraints_or_nodes_there_is_no_score():
    assert scored(web(constraint()), three_zones()) is None
    assert scored(web(soft()), table_of()) is None


def test_without_feasible_nodes_every_domain_is_empty():
    table = three_zones((0, 0, 0))
    pod_class = table.classes.pod_class(web(soft()))
    nowhere = np.zeros(3, dtype=np.bool_)
    plugin = plugin_for(table)

    found = found_before_score(plugin, pod_class, table, nowhere)

    assert found == SpreadCounts((math.log(2),), ({},))


def service(selector=WEB, namespace="default"):
    return SelectsPods("Service", namespace, "web", selector)


def owned(kind, name="owner"):
    return Owner(kind, name, "uid", "v1" if kind == "ReplicationController" else "apps/v1")


def source(*selecting, args=None):
    return SpreadSource(args or PodTopologySpreadArgs(), ClusterFacts((), selecting))


def test_system_defaults_spread_the_pods_of_a_service_over_hosts_and_zones():
    found = source(service()).of(web())

    assert [(each.topology_key, each.max_skew) for each in found.soft] == [(HOSTNAME, 3), (ZONE, 5)]
    assert all(each.selector == WEB for each in found.soft)
    assert not found.hard
    assert not found.needs_all_keys


def test_without_a_selector_of_the_pod_there_are_no_defaults():
    of = source(service(), service(namespace="other"), service(None)).of

    assert not of(web(app="db")).soft
    assert not of(web(app="db", owner=owned("ReplicaSet"))).soft
    assert not source(service(None)).of(web()).soft


def test_own_constraints_of_either_type_replace_the_defaults():
    found = source(service()).of(web(constraint()))

    assert not found.soft
    assert found.needs_all_keys


def test_the_owner_selects_by_its_name_whether_or_not_the_labels_match():
    db = LabelSelector((require("app", "In", "db"),))
    for kind in ("ReplicaSet", "StatefulSet"):
        of = source(service(), SelectsPods(kind, "default", "owner", db))
        both = LabelSelector((*WEB.requirements, *db.requirements))
        assert of.default_selector(web(owner=owned(kind))) == both
        assert of.default_selector(web(owner=owned(kind, "another"))) == WEB


def test_an_owner_of_another_api_group_is_not_a_replica_set_whatever_its_kind():
    db = LabelSelector((require("app", "In", "db"),))
    of = source(service(), SelectsPods("ReplicaSet", "default", "owner", db))
    foreign = replace(owned("ReplicaSet"), api_version="example.com/v1")

    assert of.default_selector(web(owner=foreign)) == WEB


def test_a_replication_controllers_labels_replace_those_of_services():
    db = LabelSelector((require("app", "In", "db"),))
    of = source(service(), SelectsPods("ReplicationController", "default", "owner", db))

    assert of.default_selector(web(owner=owned("ReplicationController"))) == db


def test_listed_defaults_may_be_hard_and_have_all_fields_of_a_constraint():
    listed = {
        "topologyKey": ZONE,
        "maxSkew": 2,
        "whenUnsatisfiable": "DoNotSchedule",
        "minDomains": 3,
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
    }
    args = PodTopologySpreadArgs((listed,), "List")

    (found,) = source(service(), args=args).of(web()).hard

    assert (found.max_skew, found.min_domains, found.selector) == (2, 3, WEB)
    assert (found.honors_affinity, found.honors_taints) == (False, True)


def test_an_empty_list_of_defaults_spreads_nothing():
    args = PodTopologySpreadArgs((), "List")

    assert not source(service(), args=args).of(web()).soft


def test_system_defaults_score_nodes_without_a_zone_by_their_hosts():
    table = table_of(zoned("n1", "a"), zoned("n2"))
    put(table, "n1", web())
    plugin = plugin_for(table, selecting=[service()])

    raw, normalized = scored(web(), table, plugin)

    assert raw == [9, 2]
    assert normalized == [22, 100]


def test_a_missing_label_is_a_domain_of_its_own_equal_to_an_empty_value():
    table = table_of(zoned("n1"), zoned("n2", ""), zoned("n3", "a"))
    put(table, "n1", *[web()] * 3)
    pod_class = table.classes.pod_class(web())
    plugin = plugin_for(table, selecting=[service()])

    found = found_before_score(plugin, pod_class, table)

    assert found == SpreadCounts((math.log(3 + 2), math.log(2 + 2)), ({}, {"": 3}))


def affects(facts, placed):
    classes = PodClasses()
    plugin = plugin_for(None, selecting=[service()])
    return is_affected(plugin, classes.pod_class(facts), classes.pod_class(placed))


def test_a_pod_with_hard_constraints_is_affected_by_pods_that_its_selectors_count():
    hard = web(constraint())

    assert affects(hard, web()), "a pod with the selected labels"
    assert not affects(hard, web(app="db")), "a pod with other labels"
    assert not affects(hard, web(namespace="other")), "a pod of another namespace"
    assert not affects(hard, web(is_terminating=True))
    assert not affects(web(constraint(selector=EVERYTHING)), web())


def test_a_pod_with_soft_constraints_is_affected_by_any_pod_that_may_fill_a_node():
    assert affects(web(soft()), web(app="db", namespace="other"))
    assert affects(web(), web(app="db"))
    assert not affects(web(app="db"), web())


def test_the_plugin_reads_the_cluster():
    assert PodTopologySpread.reads is Reads.CLUSTER


def test_a_pod_without_constraints_has_an_empty_signature():
    plugin = plugin_for(None, selecting=[service()])

    assert plugin.sign(web(app="db")) == plugin.sign(pod(namespace="other")) == ()


def test_a_signature_has_only_the_facts_that_the_constraints_read():
    sign = plugin_for().sign
    narrow = constraint(affinity="Ignore")

    assert sign(web(narrow, labels={"a": "b"}, node_selector={"x": "y"})) == sign(web(narrow))
    assert sign(web(narrow, tolerations=(tolerate("gpu"),))) == sign(web(narrow))
    assert sign(web(narrow, app="db")) != sign(web(narrow))
    assert sign(web(narrow, namespace="other")) != sign(web(narrow))
    wide = constraint(taints="Honor")
    assert sign(web(wide, node_selector={"x": "y"})) != sign(web(wide))
    assert sign(web(wide, tolerations=(tolerate("gpu"),))) != sign(web(wide))


def test_matching_pods_are_recounted_after_nodes_change():
    table = three_zones()
    matching = MatchingPods()
    assert matching.on_rows(table, "default", WEB).tolist() == [2, 1, 0]

    put(table, "n3", web())
    assert matching.on_rows(table, "default", WEB).tolist() == [2, 1, 1]
    table.remove_node("n1")
    assert matching.on_rows(table, "default", WEB).tolist() == [1, 1]
    assert matching.on_rows(table.view(np.array([1])), "default", WEB).tolist() == [1]


def test_least_recently_used_counts_of_tables_and_selectors_are_dropped(monkeypatch):
    monkeypatch.setattr(matching_pods, "MAX_TABLES", 1)
    monkeypatch.setattr(matching_pods, "MAX_SELECTORS", 1)
    other = LabelSelector((require("app", "In", "db"),))
    first, second = three_zones(), three_zones((0, 0, 7))
    matching = MatchingPods()

    for _ in range(2):
        assert matching.on_rows(first, "default", WEB).tolist() == [2, 1, 0]
        assert matching.on_rows(first, "default", other).tolist() == [0, 0, 0]
        assert matching.on_rows(second, "default", WEB).tolist() == [0, 0, 7]


def test_rows_with_many_classes_match_only_their_own():
    table = NodeTable()
    for name in ("n1", "n2"):
        table.add_node(zoned(name, "a"))
        put(table, name, *(web(labels={"id": f"{name}-{number}"}) for number in range(3)))

    assert MatchingPods().on_rows(table, "default", WEB).tolist() == [3, 3]
