"""Hints of the plugins that read one node: the events that let a rejected pod try again."""

import pytest

from roadstead.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
)
from roadstead.facts.pod import HostPort, PodClaim
from roadstead.facts.selectors import NodeSelectorTerm
from roadstead.framework.events import HintError
from roadstead.framework.plugin import Handle
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.default_preemption import DefaultPreemption
from roadstead.plugins.dynamic_resources import DynamicResources
from roadstead.plugins.node_affinity import NodeAffinity
from roadstead.plugins.node_name import NodeName
from roadstead.plugins.node_ports import NodePorts
from roadstead.plugins.node_resources_fit import NodeResourcesFit
from roadstead.plugins.node_unschedulable import NodeUnschedulable
from roadstead.plugins.scheduling_gates import SchedulingGates
from roadstead.plugins.taint_toleration import TaintToleration
from tests.builders import named, node, node_affinity, pod, require, taint, term, tolerate
from tests.plugins.hints import asked, labels_of, on_node, waiting

QUEUE, SKIP = "Queue", "QueueSkip"
FIT = NodeResourcesFit(NodeResourcesFitArgs())
AFFINITY = NodeAffinity(NodeAffinityArgs())
PREEMPTION = DefaultPreemption(DefaultPreemptionArgs())
TAINTS, CORDONS, PORTS = TaintToleration(), NodeUnschedulable(), NodePorts()


@pytest.mark.parametrize(
    ("plugin", "labels"),
    [
        (NodeName(), {"NodeAdd"}),
        (PORTS, {"PodDelete?", "NodeAdd"}),
        (FIT, {"PodDelete+UpdatePodScaleDown?", "NodeAdd+UpdateNodeAllocatable?"}),
        (AFFINITY, {"NodeAdd+UpdateNodeLabel?"}),
        (TAINTS, {"NodeAdd+UpdateNodeTaint?", "PodUpdatePodToleration?"}),
        (CORDONS, {"NodeAdd+UpdateNodeTaint?", "PodUpdatePodToleration?"}),
        (PREEMPTION, {"PodDelete?"}),
        (SchedulingGates(), {"PodUpdatePodSchedulingGatesEliminated?"}),
    ],
)
def test_plugins_register_upstreams_events(plugin, labels):
    assert labels_of(plugin) == labels


class TestNodeResourcesFit:
    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (None, node(cpu=100), QUEUE),
            (None, node(cpu=99), SKIP),
            (None, node(cpu=100, pods=0), SKIP),
            (node(cpu=50), node(cpu=100), QUEUE),
            (node(cpu=200), node(cpu=100), SKIP),
            (node(cpu=200, pods=1), node(cpu=100, pods=2), QUEUE),
            (node(cpu=100, memory=1), node(cpu=100, memory=2), SKIP),
            (node(cpu=100), node(cpu=100, labels={"a": "b"}), SKIP),
        ],
    )
    def test_a_node_with_more_wanted_resources_that_fits_the_pod_helps(self, old, new, expected):
        assert asked(FIT.after_node_change, pod(cpu=100), old=old, new=new) == expected

    def test_ignored_resources_count_for_the_hint(self):
        ignoring = NodeResourcesFit(NodeResourcesFitArgs(ignored_resources=("example.com/gpu",)))
        wants = pod(others={"example.com/gpu": 1})
        assert asked(ignoring.after_node_change, wants, new=node()) == SKIP

    @pytest.mark.parametrize(
        ("gone", "expected"),
        [
            (on_node(pod()), QUEUE),
            (waiting(pod()), SKIP),
            (waiting(pod(nominated_node_name="n1")), QUEUE),
        ],
    )
    def test_a_deleted_pod_helps_if_it_was_on_a_node_or_nominated(self, gone, expected):
        assert asked(FIT.after_pod_event, pod(cpu=100), old=gone) == expected

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (on_node(pod(cpu=2)), on_node(pod(cpu=1)), QUEUE),
            (on_node(pod(cpu=2)), on_node(pod()), QUEUE),
            (on_node(pod(memory=2)), on_node(pod(memory=1)), SKIP),
            (on_node(pod(cpu=1)), on_node(pod(cpu=2)), SKIP),
            (waiting(pod(cpu=2)), waiting(pod(cpu=1)), SKIP),
        ],
    )
    def test_a_pod_on_a_node_that_requests_less_helps_pods_that_lack_the_resource(
        self, old, new, expected
    ):
        assert asked(FIT.after_pod_event, pod(cpu=100, memory=0), old=old, new=new) == expected

    def test_a_pod_whose_own_requests_decrease_is_tried_again(self):
        old, new = waiting(pod(cpu=2)), waiting(pod(cpu=1))
        assert asked(FIT.after_pod_event, pod(cpu=1), old=old, new=new, own=True) == QUEUE


class TestNodeAffinity:
    SSD = pod(node_selector={"disk": "ssd"})

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (None, node(labels={"disk": "ssd"}), QUEUE),
            (None, node(), SKIP),
            (node(), node(labels={"disk": "ssd"}), QUEUE),
            (node(labels={"disk": "ssd"}), node(labels={"disk": "ssd", "a": "b"}), SKIP),
            (node(labels={"disk": "ssd"}), node(), SKIP),
        ],
    )
    def test_a_node_that_newly_matches_helps(self, old, new, expected):
        assert asked(AFFINITY.after_node_change, self.SSD, old=old, new=new) == expected

    @pytest.mark.parametrize(("terms", "expected"), [((), SKIP), (None, QUEUE)])
    def test_an_empty_list_of_terms_matches_nothing(self, terms, expected):
        wants = pod(required_node_terms=terms)
        assert asked(AFFINITY.after_node_change, wants, new=node()) == expected

    def test_one_matching_required_term_is_enough(self):
        wants = pod(required_node_terms=(term(require("disk", "In", "ssd")), named("n1")))
        assert asked(AFFINITY.after_node_change, wants, new=node("n1")) == QUEUE
        assert asked(AFFINITY.after_node_change, wants, new=node("n2")) == SKIP

    def test_a_node_excluded_by_the_profile_never_helps(self):
        wanted = {"key": "disk", "operator": "In", "values": ["hdd"]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        added = node_affinity(requiredDuringSchedulingIgnoredDuringExecution=terms)
        hdd = node(labels={"disk": "hdd"})
        assert asked(added.after_node_change, pod(), new=node()) == SKIP
        assert asked(added.after_node_change, pod(), new=hdd) == QUEUE

    def test_an_invalid_term_gives_an_error_unless_another_matches(self):
        broken = NodeSelectorTerm(error="bad", errors=("bad",))
        fine = term(require("disk", "In", "ssd"))
        with pytest.raises(HintError, match="bad"):
            asked(AFFINITY.after_node_change, pod(required_node_terms=(broken,)), new=node())
        both = pod(required_node_terms=(broken, fine))
        ssd = node(labels={"disk": "ssd"})
        assert asked(AFFINITY.after_node_change, both, new=ssd) == QUEUE
        with pytest.raises(HintError, match="bad"):
            asked(AFFINITY.after_node_change, both, old=node(), new=ssd)


class TestTaintToleration:
    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (None, node(), QUEUE),
            (None, node(taints=(taint("gpu"),)), SKIP),
            (None, node(taints=(taint("gpu", "", "PreferNoSchedule"),)), QUEUE),
            (node(taints=(taint("gpu"),)), node(), QUEUE),
            (node(taints=(taint("ok"),)), node(), SKIP),
            (node(), node(taints=(taint("gpu"),)), SKIP),
        ],
    )
    def test_a_node_without_its_last_untolerated_taint_helps(self, old, new, expected):
        wants = pod(tolerations=(tolerate("ok", operator="Exists"),))
        assert asked(TAINTS.after_node_change, wants, old=old, new=new) == expected

    @pytest.mark.parametrize(("own", "expected"), [(True, QUEUE), (False, SKIP)])
    def test_a_pod_with_more_tolerations_is_tried_again(self, own, expected):
        new = waiting(pod())
        hint = TAINTS.after_pod_toleration_change
        assert asked(hint, pod(), old=new, new=new, own=own) == expected


class TestNodeUnschedulable:
    SHUT = node(unschedulable=True)

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (None, node(), QUEUE),
            (None, SHUT, SKIP),
            (SHUT, node(), QUEUE),
            (node(), SHUT, SKIP),
            (node(), node(), SKIP),
        ],
    )
    def test_an_uncordoned_node_helps(self, old, new, expected):
        assert asked(CORDONS.after_node_change, pod(), old=old, new=new) == expected

    @pytest.mark.parametrize(
        ("key", "own", "expected"),
        [
            ("node.kubernetes.io/unschedulable", True, QUEUE),
            ("node.kubernetes.io/unschedulable", False, SKIP),
            ("other", True, SKIP),
        ],
    )
    def test_a_pod_that_newly_tolerates_cordons_is_tried_again(self, key, own, expected):
        new = waiting(pod(tolerations=(tolerate(key, operator="Exists"),)))
        hint = CORDONS.after_pod_toleration_change
        assert asked(hint, new.facts, old=waiting(pod()), new=new, own=own) == expected


class TestNodePorts:
    WANTS = pod(host_ports=(HostPort("0.0.0.0", "TCP", 80),))

    @pytest.mark.parametrize(
        ("gone", "expected"),
        [
            (on_node(pod(host_ports=(HostPort("10.0.0.1", "TCP", 80),))), QUEUE),
            (on_node(pod(host_ports=(HostPort("10.0.0.1", "UDP", 80),))), SKIP),
            (on_node(pod()), SKIP),
            (waiting(WANTS), SKIP),
        ],
    )
    def test_a_deleted_pod_with_a_wanted_port_helps(self, gone, expected):
        assert asked(PORTS.after_pod_deleted, self.WANTS, old=gone) == expected

    def test_a_deleted_nominated_pod_with_a_wanted_port_helps(self):
        ports = self.WANTS.host_ports
        gone = waiting(pod(host_ports=ports, nominated_node_name="n1"))
        assert asked(PORTS.after_pod_deleted, self.WANTS, old=gone) == QUEUE


class TestOthers:
    @pytest.mark.parametrize(("own", "expected"), [(True, QUEUE), (False, SKIP)])
    def test_removed_gates_help_their_own_pod(self, own, expected):
        hint = SchedulingGates().after_gates_eliminated
        assert asked(hint, pod(), old=waiting(pod()), new=waiting(pod()), own=own) == expected

    def test_preemption_leaves_hints_to_the_plugins_that_refused(self):
        assert asked(PREEMPTION.after_pod_deleted, pod(), old=on_node(pod())) == SKIP

    @pytest.mark.parametrize(
        ("new", "own", "expected"),
        [
            (pod(), True, QUEUE),
            (pod(), False, SKIP),
            (pod(device_claims=(PodClaim("gpu", template_name="t"),)), True, SKIP),
        ],
    )
    def test_created_resource_claims_help_their_own_pod(self, new, own, expected):
        plugin = DynamicResources(DynamicResourcesArgs(), Handle(PodClasses()))
        found = asked(plugin.after_pod_change, pod(), old=waiting(pod()), new=waiting(new), own=own)
        assert found == expected
