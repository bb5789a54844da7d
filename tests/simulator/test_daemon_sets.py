"""DaemonSet: one pod on each node that may run it, while nodes are added, changed and removed."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import Taint, Toleration
from roadstead.simulator.share import Share
from roadstead.simulator.simulated_pods import Ending, LifeState
from tests.simulator.fake_fleet import (
    LIFE,
    SECOND_US,
    FakeFleet,
    PodTemplatePlan,
    controller,
    rolled_out,
)

TOLERATED = Toleration(key="gpu", operator="Exists", value="", effect="")
NO_SCHEDULE = Taint("full", "", "NoSchedule")
NO_EXECUTE = Taint("broken", "", "NoExecute")


def revision(label, **facts):
    made = PodFacts(labels=(("base", label),), tolerations=(TOLERATED,), **facts)
    return PodTemplatePlan("web", made, LIFE)


REVISIONS = (revision("a"), revision("b"))


def daemon_set(*changes, templates=REVISIONS, missing=1, **more):
    bounds = {"max_surge": Share(0), "max_unavailable": Share(missing)}
    return controller("DaemonSet", templates=templates, changes=changes, **bounds, **more)


def nodes(number):
    return tuple(f"n{index}" for index in range(number))


def served(fleet):
    """The nodes of the active pods, and their revisions."""
    return {life.node: dict(life.facts.labels)["base"] for life in fleet.active()}


def test_every_node_gets_a_pod_that_names_it():
    tainted = NodeFacts("n1", taints=(NO_SCHEDULE,))
    tolerated = NodeFacts("n2", taints=(Taint("gpu", "", "NoSchedule"),))

    fleet = FakeFleet(daemon_set(), nodes=("n0", tainted, tolerated))

    assert served(fleet) == {"n0": "a", "n2": "a"}
    for life in fleet.created:
        (term,) = life.facts.required_node_terms
        assert term.matches({}, life.node)


def test_pods_of_one_node_have_the_same_facts_one_after_another():
    fleet = FakeFleet(daemon_set(), nodes=("n0",))
    fleet.run_to(10)

    fleet.end(*fleet.active())

    assert fleet.created[1].facts is fleet.created[0].facts, "a class is found by identity"


def test_a_new_node_gets_a_pod_and_one_that_left_needs_none():
    fleet = FakeFleet(daemon_set(), nodes=nodes(2))
    fleet.run_to(10)

    fleet.put(NodeFacts("n2"))
    fleet.drop("n0")

    assert served(fleet) == {"n1": "a", "n2": "a"}
    assert len(fleet.created) == 3


def test_a_pending_pod_goes_with_its_node():
    fleet = FakeFleet(daemon_set(), nodes=nodes(2), starts=False)
    fleet.start(fleet.created[1])

    fleet.drop("n0")

    assert [life.node for life in fleet.pods.values()] == ["n1"]


def test_a_pod_stays_under_no_schedule_and_leaves_under_no_execute():
    fleet = FakeFleet(daemon_set(), nodes=nodes(1))
    fleet.run_to(10)

    fleet.put(NodeFacts("n0", taints=(NO_SCHEDULE,)))
    assert served(fleet) == {"n0": "a"}
    fleet.put(NodeFacts("n0", taints=(NO_EXECUTE,)))
    assert served(fleet) == {}
    fleet.run_to(60)
    assert not fleet.pods, "it must not return"

    fleet.put(NodeFacts("n0"))
    assert served(fleet) == {"n0": "a"}


def test_labels_of_a_node_decide_whether_a_pod_runs_there():
    templates = (revision("a", node_selector=(("disk", "ssd"),)),)
    fleet = FakeFleet(daemon_set(templates=templates), nodes=nodes(1))
    assert not fleet.pods

    fleet.put(NodeFacts("n0", labels=(("disk", "ssd"),)))
    assert served(fleet) == {"n0": "a"}
    fleet.put(NodeFacts("n0"))
    assert served(fleet) == {}


def test_a_pod_that_terminates_is_replaced_when_it_has_ended():
    fleet = FakeFleet(daemon_set(), nodes=nodes(1))
    fleet.run_to(10)

    fleet.evict(*fleet.active())
    fleet.run_to(39)
    assert served(fleet) == {}
    fleet.run_to(40)

    assert served(fleet) == {"n0": "a"}


def test_an_update_replaces_as_many_pods_at_a_time_as_may_be_missing():
    fleet = FakeFleet(daemon_set(rolled_out(60, 1), missing=2), nodes=nodes(5))

    for at_s, old, new in ((59, 5, 0), (60, 3, 0), (90, 1, 2), (120, 0, 4), (150, 0, 5)):
        fleet.run_to(at_s)
        found = list(served(fleet).values())
        assert (found.count("a"), found.count("b")) == (old, new), f"at {at_s} s"
    assert fleet.notes[1:] == [(60, "rollout started", ""), (150, "rollout finished", "")]


def test_a_percentage_of_pods_that_may_be_missing_is_rounded_up():
    plan = replace(daemon_set(rolled_out(60, 1)), max_unavailable=Share(basis_points=3_000))
    fleet = FakeFleet(plan, nodes=nodes(5))

    fleet.run_to(60)

    assert len(fleet.active()) == 3, "30% of 5 are 1.5"


def test_an_update_replaces_pods_that_are_not_available_first():
    fleet = FakeFleet(daemon_set(rolled_out(60, 1)), nodes=nodes(3), starts=False)
    fleet.start(*fleet.created[:2])

    fleet.run_to(60)

    assert served(fleet) == {"n0": "a", "n1": "a", "": "b"}, "the pending pod has gone"


def test_on_delete_pods_get_the_new_template_when_they_are_replaced():
    fleet = FakeFleet(daemon_set(rolled_out(60, 1), updates_on_delete=True), nodes=nodes(2))
    fleet.run_to(100)
    assert served(fleet) == {"n0": "a", "n1": "a"}

    fleet.end(fleet.created[0])

    assert served(fleet) == {"n0": "b", "n1": "a"}


def test_a_new_template_may_run_on_other_nodes():
    selective = revision("b", node_selector=(("disk", "ssd"),))
    fleet = FakeFleet(
        daemon_set(rolled_out(60, 1), templates=(REVISIONS[0], selective)),
        nodes=("n0", NodeFacts("n1", labels=(("disk", "ssd"),))),
    )

    fleet.run_to(200)

    assert served(fleet) == {"n1": "b"}


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["put", "drop", "taint", "expel", "lose", "evict", "wait"]),
        st.integers(0, 5),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(st.integers(1, 3), st.lists(st.integers(1, 150), max_size=2).map(sorted), MOVES)
def test_a_node_never_has_two_pods_and_in_the_end_those_that_need_one_have_it(
    missing, times, moves
):
    changes = [rolled_out(at_s, 1 - index) for index, at_s in enumerate(times)]
    fleet = FakeFleet(daemon_set(*changes, missing=missing), nodes=nodes(4))
    (core,) = fleet.controllers.cores

    for what, number in moves:
        fleet.run_to(fleet.now_us / SECOND_US + 1)
        name = f"n{number}"
        known = fleet.nodes.get(name, NodeFacts(name))
        if what == "put":
            fleet.put(NodeFacts(name))
        elif what == "taint":
            fleet.put(replace(known, taints=(NO_SCHEDULE,)))
        elif what == "expel":
            fleet.put(replace(known, taints=(NO_EXECUTE,)))
        elif what == "drop" and len(fleet.nodes) > 1 and name in fleet.nodes:
            fleet.drop(name)
        elif what in ("lose", "evict"):
            here = [each for each in fleet.available() if each.node == name]
            fleet.end(*here, ending=Ending.FAILED) if what == "lose" else fleet.evict(*here)
        elif what == "wait":
            fleet.run_to(fleet.now_us / SECOND_US + 20 * number)
        hosts = [life.node for life in fleet.pods.values()]
        assert len(set(hosts)) == len(hosts), "a node has two pods"
        assert set(hosts) <= set(fleet.nodes)

    fleet.run_to(2_000)
    wanted = {name for name, node in fleet.nodes.items() if not node.taints}
    kept = {name for name, node in fleet.nodes.items() if node.taints == (NO_SCHEDULE,)}
    found = served(fleet)
    assert wanted <= found.keys() <= wanted | kept
    label = dict(REVISIONS[core.template].facts.labels)["base"]
    assert {found[name] for name in wanted} <= {label}
    assert not fleet.names(LifeState.TERMINATING)
