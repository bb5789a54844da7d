"""Rules of single nodes, case by case: accepted and refused pods."""

from dataclasses import replace

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import HostPort
from roadstead.facts.selectors import LabelSelector
from roadstead.facts.storage import StorageFacts
from roadstead.invariants import node_rules
from roadstead.invariants.world import World, selects
from tests.builders import GPU, named, node, pod, require, taint, term, tolerate
from tests.storage.world import bound, disk, using

ANY = "0.0.0.0"
MANY = (1 << 63) - 1


def beside(*others, on=None, cluster=None):
    """A world of one node with these pods."""
    on = on or node("n1")
    world = World(cluster or ClusterFacts(), {"n1": on})
    for number, each in enumerate(others):
        world.put(f"p{number}", "n1", each)
    return world


def texts(rule, facts, *others, on=None, cluster=None):
    """Return a rule's texts about a pod on a node with these pods."""
    world = beside(*others, on=on, cluster=cluster)
    return list(rule(world, facts, world.nodes["n1"]))


@pytest.mark.parametrize(
    ("requests", "offered", "used", "text"),
    [
        ({"cpu": 400}, {"cpu": 1000}, {"cpu": 600}, ""),
        ({"cpu": 401}, {"cpu": 1000}, {"cpu": 600}, "cpu: 600 + 401 of 1000"),
        ({"cpu": 400}, {"cpu": 400}, {"memory": 1}, ""),
        ({"others": {GPU: 1}}, {"others": {GPU: 1}}, {}, ""),
        ({"others": {GPU: 1}}, {}, {}, f"{GPU}: 0 + 1 of 0"),
        # No request means that nothing is missing, even where too much is used already.
        ({"cpu": 0}, {"cpu": 100}, {"cpu": 600}, ""),
        ({"cpu": 0, "memory": 2}, {"cpu": 100, "memory": 1}, {}, "memory: 0 + 2 of 1"),
        # Upstream does not count a name that is no node resource.
        ({"others": {"unheard-of": 1}}, {}, {}, ""),
    ],
)
def test_requests_fit_up_to_the_allocatable_amount(requests, offered, used, text):
    there = pod(**used)

    found = texts(node_rules.overfull, pod(**requests), there, on=node("n1", **offered))

    assert found == ([text] if text else [])


@pytest.mark.parametrize(("most", "is_full"), [(3, False), (2, True)])
def test_a_node_accepts_as_many_pods_as_it_declares(most, is_full):
    found = texts(node_rules.overfull, pod(), pod(), pod(), on=node("n1", pods=most))

    assert found == (["3 pods on a node for 2"] if is_full else [])


@pytest.mark.parametrize(
    ("mine", "theirs", "is_taken"),
    [
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), (ANY, "TCP", 80), True),
        ((ANY, "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "UDP", 80), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 81), False),
    ],
)
def test_a_port_is_used_once_per_address_and_protocol(mine, theirs, is_taken):
    asking, holding = (pod(host_ports=(HostPort(*each),)) for each in (mine, theirs))

    found = texts(node_rules.port_in_use, asking, holding)

    assert found == (["port TCP 80 is taken"] if is_taken else [])


def test_a_pod_that_names_a_node_is_bound_there_only():
    assert texts(node_rules.other_node_name, pod()) == []
    assert texts(node_rules.other_node_name, pod(node_name="n1")) == []
    assert texts(node_rules.other_node_name, pod(node_name="n2")) == ["the pod asks for node n2"]


def test_a_cordoned_node_accepts_only_pods_that_tolerate_it():
    cordoned, patient = (
        node("n1", unschedulable=True),
        pod(tolerations=(tolerate("", operator="Exists"),)),
    )

    assert texts(node_rules.unschedulable, pod(), on=cordoned) == ["the node is cordoned"]
    assert texts(node_rules.unschedulable, patient, on=cordoned) == []
    assert texts(node_rules.unschedulable, pod()) == []


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", "PreferNoSchedule"])
def test_only_a_preferring_taint_repels_no_pod(effect):
    tainted = node("n1", taints=(taint("gpu", "a100", effect),))
    refusal = [] if effect == "PreferNoSchedule" else [f"taint gpu=a100:{effect}"]

    assert texts(node_rules.tainted, pod(), on=tainted) == refusal


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        (tolerate("gpu", "a100", "NoSchedule", "Equal"), True),
        (tolerate("gpu", "a100", "NoSchedule"), True),
        (tolerate("gpu", "a100"), True),
        (tolerate("gpu", "h100"), False),
        (tolerate("tpu", "a100"), False),
        (tolerate("gpu", "a100", "NoExecute"), False),
        (tolerate("gpu", "", "", "Exists"), True),
        (tolerate("gpu", "", "NoExecute", "Exists"), False),
        (tolerate("tpu", "", "", "Exists"), False),
        (tolerate("", "", "", "Exists"), True),
        (tolerate("gpu", "a100", "", "Unheard"), False),
    ],
)
def test_a_toleration_matches_a_taint_by_key_effect_and_value(toleration, is_tolerated):
    wanted = taint("gpu", "a100", "NoSchedule")

    assert node_rules.tolerates(pod(tolerations=(toleration,)), wanted) is is_tolerated
    # One matching toleration is enough.
    other = tolerate("other", "x")
    assert node_rules.tolerates(pod(tolerations=(other, toleration)), wanted) is is_tolerated


SSD, FAST = require("disk", "In", "ssd"), require("net", "Exists")
OTHER_FIELD = require("metadata.other", "In", "n1")


@pytest.mark.parametrize(
    ("facts", "is_wanted"),
    [
        ({}, True),
        ({"node_selector": {"disk": "ssd"}}, True),
        ({"node_selector": {"disk": "ssd", "net": "fast"}}, False),
        ({"required_node_terms": ()}, False),
        ({"required_node_terms": (term(SSD),)}, True),
        ({"required_node_terms": (term(FAST),)}, False),
        ({"required_node_terms": (term(FAST), term(SSD))}, True),
        ({"required_node_terms": (term(SSD, FAST),)}, False),
        ({"required_node_terms": (term(),)}, False),
        ({"required_node_terms": (term(SSD, error="does not parse"),)}, False),
        ({"required_node_terms": (named("n1"),)}, True),
        ({"required_node_terms": (named("n2"),)}, False),
        ({"required_node_terms": (term(FAST, fields=named("n1").fields),)}, False),
        ({"required_node_terms": (term(SSD, fields=named("n2").fields),)}, False),
        ({"required_node_terms": (term(fields=(*named("n1").fields, OTHER_FIELD)),)}, False),
        ({"node_selector": {"net": "fast"}, "required_node_terms": (term(SSD),)}, False),
    ],
)
def test_nodes_match_the_selector_and_some_term_of_the_affinity(facts, is_wanted):
    ssd = node("n1", labels={"disk": "ssd"})

    assert node_rules.matches_node_affinity(pod(**facts), ssd) is is_wanted
    refusal = [] if is_wanted else ["node selector or required node affinity"]
    assert texts(node_rules.unmatched_node_affinity, pod(**facts), on=ssd) == refusal


@pytest.mark.parametrize(
    ("requirement", "one", "other", "absent"),
    [
        (require("key", "In", "a", "b"), True, False, False),
        (require("key", "NotIn", "a", "b"), False, True, True),
        (require("key", "Exists"), True, True, False),
        (require("key", "DoesNotExist"), False, False, True),
    ],
)
def test_a_requirement_matches_a_value_another_value_or_no_label(requirement, one, other, absent):
    expected = [one, other, absent]

    assert [node_rules.meets(has, requirement) for has in ("a", "c", None)] == expected
    for rest in ((), (require("sound", "Exists"),)):
        selector = LabelSelector((requirement, *rest))
        given = [{"key": "a", "sound": ""}, {"key": "c", "sound": ""}, {"sound": ""}]
        assert [selects(selector, labels) for labels in given] == expected


def test_no_selector_selects_nothing_and_an_empty_one_everything():
    assert not selects(None, {"key": "a"})
    assert selects(LabelSelector(), {"key": "a"})
    assert selects(LabelSelector(), {})


@pytest.mark.parametrize(
    ("label", "limit", "more", "less"),
    [
        ("5", "4", True, False),
        ("4", "4", False, False),
        ("3", "4", False, True),
        ("-5", "4", False, True),
        (str(MANY), "4", True, False),
        (str(MANY + 1), "4", False, False),
        ("many", "4", False, False),
        ("4", "many", False, False),
        ("", "4", False, False),
        (None, "-1", False, False),
    ],
)
def test_only_numbers_are_compared_as_greater_or_less(label, limit, more, less):
    assert node_rules.meets(label, require("cores", "Gt", limit)) is more
    assert node_rules.meets(label, require("cores", "Lt", limit)) is less


def test_only_a_claim_for_a_single_pod_is_limited_to_one_pod():
    alone = bound("alone", "v1", access_modes=("ReadWriteOncePod",))
    shared = bound("shared", "v2", access_modes=("ReadWriteMany",))
    cluster = ClusterFacts(storage=StorageFacts(claims=(alone, shared)))
    both, other = using("alone", "shared"), using("alone", namespace="other")

    def found(facts, *others):
        return texts(node_rules.claim_shared, facts, *others, cluster=cluster)

    assert found(both, both) == ["claim default/alone is for one pod alone"]
    assert found(both, using("shared")) == found(both) == []
    assert found(both, other) == found(other, both) == []
    # A volume that is no claim does not count, whatever its name.
    (named_so,) = (replace(each, kind="ephemeral") for each in using("alone").volumes)
    assert found(pod(volumes=(named_so,)), both) == found(both, pod(volumes=(named_so,))) == []


RBD = disk("rbd", image="i", pool="p", monitors=("m1", "m2"))


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (disk("iscsi", iqn="q"), disk("iscsi", iqn="q"), "iscsi q is in use"),
        (disk("iscsi", iqn="q"), disk("iscsi", iqn="r"), ""),
        (
            disk("iscsi", iqn="q", readOnly="true"),
            disk("iscsi", iqn="q"),
            "iscsi q is in use",
        ),
        (disk("iscsi", iqn="q", readOnly="true"), disk("iscsi", iqn="q", readOnly="true"), ""),
        (
            disk("iscsi", iqn="q", readOnly="false"),
            disk("iscsi", iqn="q", readOnly="false"),
            "iscsi q is in use",
        ),
        (disk("iscsi", iqn="q"), disk("rbd", image="q", iqn="q"), ""),
        (disk("emptyDir"), disk("emptyDir"), ""),
        (
            disk("awsElasticBlockStore", volumeID="d"),
            disk("awsElasticBlockStore", volumeID="e"),
            "",
        ),
        (
            disk("awsElasticBlockStore", volumeID="d", readOnly="true"),
            disk("awsElasticBlockStore", volumeID="d", readOnly="true"),
            "awsElasticBlockStore d is in use",
        ),
        (RBD, disk("rbd", image="i", pool="p", monitors=("m2", "m3")), "rbd i is in use"),
        (RBD, disk("rbd", image="j", pool="p", monitors=("m2",)), ""),
        (RBD, disk("rbd", image="i", pool="q", monitors=("m2",)), ""),
        (RBD, disk("rbd", image="i", pool="p", monitors=("m3",)), ""),
        (disk("rbd", image="i", pool="m1"), disk("rbd", image="i", pool="m1"), ""),
    ],
)
def test_a_disk_conflicts_with_the_same_disk_of_another_pod_on_the_node(one, other, text):
    found = texts(node_rules.disk_shared, using(volumes=(one,)), using(volumes=(other,)))

    assert found == ([text] if text else [])
