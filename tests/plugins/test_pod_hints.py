"""Hints of the plugins that read other pods: InterPodAffinity and PodTopologySpread."""

import pytest

from roadstead.config.plugin_args import InterPodAffinityArgs, PodTopologySpreadArgs
from roadstead.facts.cluster import ClusterFacts, SelectsPods
from roadstead.facts.pod import PodAffinityTerm, SpreadConstraint
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.framework.events import HintError
from roadstead.framework.plugin import Handle
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins import affinity_hints
from roadstead.plugins.inter_pod_affinity import InterPodAffinity
from roadstead.plugins.pod_topology_spread import PodTopologySpread
from tests.builders import node, pod, taint, tolerate
from tests.plugins.hints import asked, labels_of, on_node, waiting

QUEUE, SKIP = "Queue", "QueueSkip"
ZONE = "zone"
AFFINITY = InterPodAffinity(InterPodAffinityArgs(), Handle(PodClasses()))
SPREAD = PodTopologySpread(PodTopologySpreadArgs(), Handle(PodClasses()))


def selecting(**labels):
    return LabelSelector(tuple(Requirement(k, "In", (v,)) for k, v in sorted(labels.items())))


def near(key=ZONE, namespaces=("default",), chosen=None, error="", **labels):
    return PodAffinityTerm(key, selecting(**labels), namespaces, chosen, error=error)


def spread(key=ZONE, when="DoNotSchedule", taints="Ignore", error="", keys=(), **labels):
    return SpreadConstraint(key, 1, when, selecting(**labels), 1, "Honor", taints, keys, error)


def test_plugins_register_upstreams_events():
    assert labels_of(AFFINITY) == {
        "PodAdd+Delete+UpdatePodLabel?",
        "NodeAdd+UpdateNodeLabel?",
    }
    assert labels_of(SPREAD) == {
        "PodAdd+Delete+UpdatePodLabel+UpdatePodToleration?",
        "NodeAdd+Delete+UpdateNodeLabel+UpdateNodeTaint?",
    }


WEB, DB = pod(labels={"app": "web"}), pod(labels={"app": "db"})
WITH_WEB = pod(pod_affinity=(near(app="web"),))
WITHOUT_WEB = pod(pod_anti_affinity=(near(app="web"),))


class TestInterPodAffinity:
    @pytest.mark.parametrize(
        ("wants", "old", "new", "expected"),
        [
            (WITH_WEB, None, WEB, QUEUE),
            (WITH_WEB, None, DB, SKIP),
            (WITH_WEB, DB, WEB, QUEUE),
            (WITH_WEB, WEB, DB, SKIP),
            (WITH_WEB, WEB, None, SKIP),
            (WITHOUT_WEB, WEB, None, QUEUE),
            (WITHOUT_WEB, DB, None, SKIP),
            (WITHOUT_WEB, WEB, DB, QUEUE),
            (WITHOUT_WEB, DB, WEB, SKIP),
            (WITHOUT_WEB, None, WEB, SKIP),
            (pod(), None, WEB, SKIP),
        ],
    )
    def test_pods_that_newly_match_affinity_or_no_longer_anti_affinity_help(
        self, wants, old, new, expected
    ):
        seen = {k: v and on_node(v) for k, v in (("old", old), ("new", new))}
        assert asked(affinity_hints.after_pod_change, wants, **seen) == expected

    @pytest.mark.parametrize(
        ("old", "new"),
        [(None, waiting(WEB)), (waiting(DB), on_node(WEB)), (waiting(WEB), waiting(WEB))],
    )
    def test_pods_without_a_node_do_not_help_inter_pod_affinity(self, old, new):
        assert asked(affinity_hints.after_pod_change, WITH_WEB, old=old, new=new) == SKIP

    def test_one_pod_must_match_all_terms(self):
        wants = pod(pod_affinity=(near(app="web"), near(tier="front")))
        both = pod(labels={"app": "web", "tier": "front"})
        assert asked(affinity_hints.after_pod_change, wants, new=on_node(WEB)) == SKIP
        assert asked(affinity_hints.after_pod_change, wants, new=on_node(both)) == QUEUE

    def test_namespaces_are_selected_by_their_current_labels(self):
        wants = pod(pod_affinity=(near(namespaces=(), chosen=selecting(team="a"), app="web"),))
        cluster = ClusterFacts(namespaces=(("default", (("team", "a"),)),))
        new = on_node(WEB)
        assert asked(affinity_hints.after_pod_change, wants, new=new, cluster=cluster) == QUEUE
        assert asked(affinity_hints.after_pod_change, wants, new=new) == SKIP

    @pytest.mark.parametrize(
        ("wants", "old", "new", "expected"),
        [
            (WITH_WEB, None, {ZONE: "a"}, QUEUE),
            (WITH_WEB, None, {}, SKIP),
            (WITH_WEB, {}, {ZONE: "a"}, QUEUE),
            (WITH_WEB, {ZONE: "a"}, {ZONE: "b"}, QUEUE),
            (WITH_WEB, {ZONE: "a"}, {ZONE: "a", "disk": "ssd"}, SKIP),
            (WITH_WEB, {ZONE: "a"}, {}, SKIP),
            (WITHOUT_WEB, None, {}, QUEUE),
            (WITHOUT_WEB, {ZONE: "a"}, {}, QUEUE),
            (WITHOUT_WEB, {ZONE: "a"}, {ZONE: "b"}, QUEUE),
            (WITHOUT_WEB, {}, {ZONE: "a"}, SKIP),
            (pod(), None, {ZONE: "a"}, SKIP),
        ],
    )
    def test_nodes_that_join_or_leave_a_topology_domain_help(self, wants, old, new, expected):
        before = None if old is None else node(labels=old)
        hint = affinity_hints.after_node_change
        assert asked(hint, wants, old=before, new=node(labels=new)) == expected

    @pytest.mark.parametrize("field", ["pod_affinity", "pod_anti_affinity"])
    def test_an_invalid_term_gives_an_error(self, field):
        wants = pod(**{field: (near(error="bad"),)})
        with pytest.raises(HintError, match="bad"):
            asked(affinity_hints.after_node_change, wants, new=node())
        with pytest.raises(HintError, match="bad"):
            asked(affinity_hints.after_pod_change, wants, new=on_node(WEB))
        assert asked(affinity_hints.after_pod_change, wants, new=waiting(WEB)) == SKIP


SPREADS_WEB = pod(spread_constraints=(spread(app="web"),))


class TestPodTopologySpread:
    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (None, WEB, QUEUE),
            (None, DB, SKIP),
            (WEB, None, QUEUE),
            (DB, None, SKIP),
            (WEB, DB, QUEUE),
            (DB, WEB, QUEUE),
            (WEB, WEB, SKIP),
            (None, pod(labels={"app": "web"}, namespace="other"), SKIP),
        ],
    )
    def test_pods_that_newly_count_or_no_longer_count_help(self, old, new, expected):
        seen = {k: v and on_node(v) for k, v in (("old", old), ("new", new))}
        assert asked(SPREAD.after_pod_change, SPREADS_WEB, **seen) == expected

    def test_other_pods_without_a_node_do_not_help_spreading(self):
        assert asked(SPREAD.after_pod_change, SPREADS_WEB, old=waiting(WEB)) == SKIP
        old, new = waiting(DB), waiting(WEB)
        assert asked(SPREAD.after_pod_change, SPREADS_WEB, old=old, new=new) == SKIP
        assert asked(SPREAD.after_pod_change, SPREADS_WEB, old=old, new=new, own=True) == QUEUE

    @pytest.mark.parametrize(
        ("policy", "own", "expected"),
        [("Honor", True, QUEUE), ("Ignore", True, SKIP), ("Honor", False, SKIP)],
    )
    def test_more_tolerations_of_the_pod_itself_help_if_taints_count(self, policy, own, expected):
        wants = pod(spread_constraints=(spread(taints=policy, app="web"),))
        old, new = waiting(pod()), waiting(pod(tolerations=(tolerate("a"),)))
        assert asked(SPREAD.after_pod_change, wants, old=old, new=new, own=own) == expected

    def test_soft_constraints_do_not_count(self):
        wants = pod(spread_constraints=(spread(when="ScheduleAnyway", app="web"),))
        assert asked(SPREAD.after_pod_change, wants, new=on_node(WEB)) == SKIP

    def test_match_label_keys_restrict_the_selector(self):
        wants = pod(labels={"v": "1"}, spread_constraints=(spread(keys=("v",), app="web"),))
        same = on_node(pod(labels={"app": "web", "v": "1"}))
        assert asked(SPREAD.after_pod_change, wants, new=on_node(WEB)) == SKIP
        assert asked(SPREAD.after_pod_change, wants, new=same) == QUEUE

    def test_default_constraints_apply_if_a_selector_matches_the_pod(self):
        web = SelectsPods("Service", "default", "web", selecting(app="web"))
        cluster = ClusterFacts(selecting=(web,))
        hard = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        args = PodTopologySpreadArgs(default_constraints=(hard,), defaulting_type="List")
        plugin = PodTopologySpread(args, Handle(PodClasses(), cluster))
        assert asked(plugin.after_pod_change, WEB, new=on_node(WEB)) == QUEUE
        assert asked(plugin.after_pod_change, DB, new=on_node(WEB)) == SKIP

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (None, node(labels={ZONE: "a"}), QUEUE),
            (None, node(), SKIP),
            (node(labels={ZONE: "a"}), None, QUEUE),
            (node(), None, SKIP),
            (node(), node(labels={ZONE: "a"}), QUEUE),
            (node(labels={ZONE: "a"}), node(), QUEUE),
            (node(labels={ZONE: "a"}), node(labels={ZONE: "b"}), QUEUE),
            (node(labels={ZONE: "a"}), node(labels={ZONE: "a", "x": "y"}), SKIP),
            (node(labels={ZONE: "a"}), node(labels={ZONE: "a"}, taints=(taint("t"),)), QUEUE),
            (node(), node(taints=(taint("t"),)), SKIP),
        ],
    )
    def test_added_removed_and_changed_nodes_with_all_keys_help(self, old, new, expected):
        assert asked(SPREAD.after_node_change, SPREADS_WEB, old=old, new=new) == expected

    def test_for_a_pod_without_constraints_every_node_has_all_keys(self):
        assert asked(SPREAD.after_node_change, pod(), new=node()) == QUEUE

    def test_an_invalid_selector_gives_an_error(self):
        wants = pod(spread_constraints=(spread(error="bad"),))
        with pytest.raises(HintError, match="bad"):
            asked(SPREAD.after_pod_change, wants, new=on_node(WEB))
        with pytest.raises(HintError, match="bad"):
            asked(SPREAD.after_node_change, wants, new=node())
