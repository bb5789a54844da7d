"""Rules across nodes, case by case: affinity, anti-affinity and hard topology spread."""

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodAffinityTerm, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.invariants.affinity import unmet_affinity, violated_anti_affinity
from roadstead.invariants.spread import exceeded_skew
from roadstead.invariants.world import World
from tests.builders import node, pod, require, taint, tolerate

WEB, DB = (LabelSelector((require("app", "In", app),)) for app in ("web", "db"))
CLUSTER = ClusterFacts(namespaces=(("default", (("team", "a"),)), ("other", (("team", "b"),))))
OF_B = LabelSelector((require("team", "In", "b"),))


def world_of(nodes, *there):
    """nodes: name → labels; there: (name of the node, pod)."""
    world = World(CLUSTER, {name: node(name, labels=labels) for name, labels in nodes.items()})
    for number, (name, facts) in enumerate(there):
        world.put(f"p{number}", name, facts)
    return world


def of(app, **facts):
    return pod(labels={"app": app}, **facts)


def near(key="zone", selector=WEB, namespaces=("default",), namespace_selector=None):
    return PodAffinityTerm(key, selector, namespaces, namespace_selector)


ZONES = {"n1": {"zone": "a"}, "n2": {"zone": "b"}, "n3": {}}


def reasons(rule, world, facts, name="n1"):
    return list(rule(world, facts, world.nodes[name]))


ALONE = ["affinity over zone: no such pod is near"]


@pytest.mark.parametrize(
    ("terms", "there", "texts"),
    [
        ((), [], []),
        ((near(),), [("n1", of("web"))], []),
        ((near(),), [("n2", of("web"))], ALONE),
        ((near(),), [("n1", of("db"))], ALONE),
        ((near(),), [("n2", of("web")), ("n1", of("web"))], []),
        ((near(),), [("n1", of("web", namespace="other"))], ALONE),
        ((near("rack"),), [("n1", of("web"))], ["the node has no rack"]),
        # A pod matches one term's selector, but not the other's.
        (
            (near(), near("host")),
            [("n1", of("web"))],
            ["the node has no host"],
        ),
        # One pod must match all the terms.
        ((near(), near(selector=DB)), [("n1", of("web")), ("n1", of("db"))], ALONE),
        # A pod on a node without the label is in no topology domain.
        ((near(),), [("n3", of("web"))], ALONE),
    ],
)
def test_affinity_requires_a_pod_that_matches_all_its_terms(terms, there, texts):
    facts = pod(pod_affinity=terms)

    assert reasons(unmet_affinity, world_of(ZONES, *there), facts) == texts


def test_each_affinity_term_uses_its_own_topology():
    world = world_of({"n1": {"zone": "a", "host": "1"}, "n2": {"zone": "a", "host": "2"}})
    world.put("w", "n2", of("web"))
    facts = of("web", pod_affinity=(near("zone"), near("host")))

    assert reasons(unmet_affinity, world, facts, "n2") == []
    assert reasons(unmet_affinity, world, facts, "n1") == [
        "affinity over host: no such pod is near"
    ]


@pytest.mark.parametrize(
    ("terms", "there", "texts"),
    [
        ((near(),), [], []),
        ((near(),), [("n1", of("db"))], []),
        ((near(),), [("n2", of("web"))], ALONE),
        # It must match the selectors of all its terms itself.
        ((near(selector=DB),), [], ALONE),
        ((near(), near(selector=DB)), [], ALONE),
        # Matching pods on nodes without the label do not count as existing.
        ((near(),), [("n3", of("web"))], []),
    ],
)
def test_affinity_of_a_pod_that_matches_its_own_terms_needs_no_other_pod(terms, there, texts):
    facts = of("web", pod_affinity=terms)

    assert reasons(unmet_affinity, world_of(ZONES, *there), facts) == texts


def test_terms_select_pods_by_namespace_name_or_namespace_labels():
    world = world_of(ZONES, ("n1", of("web", namespace="other")))

    def is_near(term):
        return reasons(unmet_affinity, world, pod(pod_affinity=(term,))) == []

    assert is_near(near(namespaces=("default", "other")))
    assert is_near(near(namespaces=(), namespace_selector=OF_B))
    assert is_near(near(namespace_selector=LabelSelector()))
    assert not is_near(near(namespaces=("default",)))
    assert not is_near(near(DB, namespace_selector=OF_B))
    assert not is_near(near(namespaces=(), namespace_selector=WEB))
    assert not is_near(near(selector=None, namespace_selector=LabelSelector()))


EXCLUDED = ["anti-affinity over zone: such a pod is near"]
EXCLUDES = ["a pod near excludes it over zone"]


@pytest.mark.parametrize(
    ("there", "is_crowded"),
    [
        (("n1", of("web")), True),
        (("n1", of("db")), False),
        (("n2", of("web")), False),
        (("n1", of("web", namespace="other")), False),
    ],
)
def test_anti_affinity_holds_in_both_directions(there, is_crowded):
    name, other = there
    hermit = pod(pod_anti_affinity=(near(),))

    assert reasons(violated_anti_affinity, world_of(ZONES, there), hermit) == (
        EXCLUDED if is_crowded else []
    )
    assert reasons(violated_anti_affinity, world_of(ZONES, (name, hermit)), other) == (
        EXCLUDES if is_crowded else []
    )


def test_any_term_excludes_and_the_first_is_named():
    both = pod(pod_anti_affinity=(near(selector=DB), near()))

    assert reasons(violated_anti_affinity, world_of(ZONES, ("n1", of("web"))), both) == EXCLUDED
    assert reasons(violated_anti_affinity, world_of(ZONES, ("n1", both)), of("web")) == EXCLUDES


def test_nodes_without_the_label_share_no_topology_domain():
    hermit, unlabelled = pod(pod_anti_affinity=(near(),)), {"n1": {}, "n2": {}}

    assert reasons(violated_anti_affinity, world_of(unlabelled, ("n1", of("web"))), hermit) == []
    assert reasons(violated_anti_affinity, world_of(unlabelled, ("n1", hermit)), of("web")) == []


def test_terms_of_an_excluding_pod_select_by_namespace_labels():
    """Its own terms select by namespace labels, unlike those of the pod that is bound."""
    hermit = of("db", pod_anti_affinity=(near(namespaces=(), namespace_selector=OF_B),))
    world = world_of(ZONES, ("n1", hermit))

    assert reasons(violated_anti_affinity, world, of("web", namespace="other")) == EXCLUDES
    assert (
        reasons(violated_anti_affinity, world, of("web"))
        == reasons(violated_anti_affinity, world, of("web", namespace="new"))
        == []
    )


def test_excluding_pods_count_while_they_and_their_nodes_exist():
    world = world_of(ZONES, ("n1", pod(pod_anti_affinity=(near(),))), ("n1", of("web")))

    assert [facts for _, facts in world.running_with_anti_affinity()] == [
        pod(pod_anti_affinity=(near(),))
    ]
    gone = world.nodes.pop("n1")
    assert list(world.running_with_anti_affinity()) == list(world.running()) == []
    world.nodes["n1"] = gone
    world.remove("p0", "n1")
    assert list(world.running_with_anti_affinity()) == []
    assert list(world.running()) == [(gone, of("web"))]


def even(
    key="zone", skew=1, when="DoNotSchedule", selector=WEB, least=1, affinity="Ignore", **more
):
    taints, keys = more.get("taints", "Ignore"), more.get("keys", ())
    return SpreadConstraint(key, skew, when, selector, least, affinity, taints, keys)


def spread(*constraints, **facts):
    return of("web", spread_constraints=constraints, **facts)


def too_many(skew, key="zone", most=1):
    return [f"skew {skew} over {key} is more than {most}"]


@pytest.mark.parametrize(
    ("constraint", "there", "texts"),
    [
        (even(), [], []),
        (even(), ["n1"], too_many(2)),
        (even(), ["n1", "n2"], []),
        (even(), ["n2"], []),
        (even(), ["n1", "n1b"], too_many(3)),
        (even(), ["n1b", "n2", "n2"], []),
        (even(skew=2), ["n1"], []),
        (even(skew=2), ["n1", "n1"], too_many(3, most=2)),
        (even(when="ScheduleAnyway"), ["n1", "n1"], []),
        # A pod that does not match the selector adds nothing.
        (even(selector=DB), [], []),
        (even(selector=None), ["n1", "n1"], []),
        (even(selector=LabelSelector()), ["n1", "n1"], []),
        # With fewer domains than minDomains, the minimum count is zero.
        (even(least=2), ["n1", "n2"], []),
        (even(least=3), ["n1", "n2"], too_many(2)),
        (even(least=3), ["n2"], []),
        (even("rack"), [], ["the node has no rack"]),
    ],
)
def test_a_domain_exceeds_the_minimum_by_at_most_the_skew(constraint, there, texts):
    nodes = {"n0": {}, "n1": {"zone": "a"}, "n1b": {"zone": "a"}, "n2": {"zone": "b"}}
    world = world_of(nodes, *((name, of("web")) for name in there))

    assert reasons(exceeded_skew, world, spread(constraint)) == texts


@pytest.mark.parametrize(
    "other",
    [of("db"), of("web", namespace="other"), of("web", is_terminating=True), pod()],
)
def test_only_running_pods_with_matching_labels_and_namespace_are_counted(other):
    world = world_of(ZONES, ("n1", other), ("n1", other))

    assert reasons(exceeded_skew, world, spread(even())) == []
    world.put("w", "n1", of("web"))
    assert reasons(exceeded_skew, world, spread(even())) == too_many(2)


def test_a_satisfied_constraint_does_not_hide_the_next_one():
    nodes = {"n1": {"zone": "a", "host": "1"}, "n2": {"zone": "a", "host": "2"}}
    world = world_of(nodes, ("n1", of("web")))

    assert reasons(exceeded_skew, world, spread(even(), even("host"))) == too_many(2, "host")
    assert reasons(exceeded_skew, world, spread(even("rack"), even("row"))) == [
        "the node has no rack",
        "the node has no row",
    ]


def test_only_nodes_with_the_labels_of_all_constraints_are_counted():
    nodes = {"n0": {"zone": "b"}, "n1": {"zone": "a", "host": "1"}, "n2": {"host": "2"}}
    world = world_of(nodes, ("n1", of("web")))

    # The zone of n0 does not count, or this would be one pod too many.
    assert reasons(exceeded_skew, world, spread(even(), even("host"))) == []
    assert reasons(exceeded_skew, world, spread(even())) == too_many(2)


@pytest.mark.parametrize(("policy", "texts"), [("Honor", []), ("Ignore", too_many(2))])
def test_unselected_and_tainted_nodes_count_where_a_constraint_ignores_that(policy, texts):
    world = world_of({"n0": {"zone": "b"}, "n1": {"zone": "a", "disk": "ssd"}}, ("n1", of("web")))
    picky = {"node_selector": {"disk": "ssd"}}
    assert reasons(exceeded_skew, world, spread(even(affinity=policy), **picky)) == texts

    # Nodes that it selects are counted after those that it does not select.
    world.nodes["n2"] = node("n2", labels={"zone": "c", "disk": "ssd"})
    assert reasons(exceeded_skew, world, spread(even(affinity=policy), **picky)) == too_many(2)
    world.nodes.pop("n2")

    world.nodes["n0"] = node("n0", labels={"zone": "b"}, taints=(taint("gpu"),))
    assert reasons(exceeded_skew, world, spread(even(taints=policy))) == texts
    world.nodes["n0"] = node("n0", labels={"zone": "b"}, taints=(taint("gpu", "", "NoExecute"),))
    assert reasons(exceeded_skew, world, spread(even(taints=policy))) == texts


@pytest.mark.parametrize(
    ("effect", "toleration"),
    [("PreferNoSchedule", ()), ("NoSchedule", (tolerate("gpu", operator="Exists"),))],
)
def test_nodes_with_irrelevant_or_tolerated_taints_are_counted(effect, toleration):
    world = world_of({"n0": {}, "n1": {"zone": "a"}}, ("n1", of("web")))
    world.nodes["n0"] = node("n0", labels={"zone": "b"}, taints=(taint("gpu", "", effect),))

    facts = spread(even(taints="Honor"), tolerations=toleration)
    assert reasons(exceeded_skew, world, facts) == too_many(2)


def test_a_domain_of_uncounted_nodes_has_no_pods():
    """Another rule reports a pod that was bound to a node it does not select."""
    world = world_of({"n1": {"zone": "a"}, "n2": {"zone": "b", "disk": "ssd"}}, ("n1", of("web")))
    picky = {"node_selector": {"disk": "ssd"}}

    assert reasons(exceeded_skew, world, spread(even(affinity="Honor"), **picky)) == []
    world.nodes.pop("n2")
    honored, ignored = even(affinity="Honor", least=0), even(affinity="Ignore", least=2)
    assert reasons(exceeded_skew, world, spread(honored, ignored, **picky)) == too_many(2)


def test_pods_match_on_the_label_keys_of_a_constraint():
    world = world_of(ZONES, ("n1", pod(labels={"app": "web", "rev": "1"})))
    constraint = even(keys=("rev",))

    old, new = (
        pod(labels={"app": "web", "rev": rev}, spread_constraints=(constraint,)) for rev in "12"
    )
    assert reasons(exceeded_skew, world, old) == too_many(2)
    assert reasons(exceeded_skew, world, new) == []
