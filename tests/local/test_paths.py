"""Batches on one table, with workers or without, decide like single pods in turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.facts.pod import PodIdentity
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.local.decision_paths import BatchPath, PathOptions, PlainPath, WorkersPath
from roadstead.plugins.in_tree import in_tree_registry
from tests.actors import fleets
from tests.builders import MIB, node, pod

FIRST = TieBreak("first")


def profiles_of(classes):
    return {
        each.scheduler_name: Profile(each, in_tree_registry(), Handle(classes))
        for each in default_config().profiles
    }


def filled(path, inputs):
    path.add_nodes(inputs.nodes)
    for _, facts, name in inputs.running:
        path.add_pod(name, facts)
    return path


def plain(inputs, tie_break=FIRST):
    """Return a path that decides one pod after another."""
    return filled(PlainPath(profiles_of, PathOptions(tie_break=tie_break)), inputs)


def beside(inputs, tie_break=FIRST):
    """Return a path that decides a batch at a time."""
    return filled(BatchPath(profiles_of, PathOptions(tie_break=tie_break)), inputs)


def prepared(path, facts):
    return [
        path.prepare(PodIdentity(f"u{number}", "default", f"p{number}"), each)
        for number, each in enumerate(facts)
    ]


def decide(path, facts, batch=10):
    """Decide all pods, in batches of up to `batch`."""
    waiting = prepared(path, facts)
    decisions = []
    while waiting:
        decided = path.decide(waiting[:batch])
        path.table.validate()
        decisions += decided
        waiting = waiting[len(decided) :]
    return decisions


def contents(decision):
    """Return the contents of a decision, without codes and classes."""
    diagnosis = decision.diagnosis
    why = (diagnosis.message(""), diagnosis.plugins) if diagnosis else None
    return (
        decision.pod.key,
        decision.node_name,
        decision.feasible,
        decision.total,
        decision.best_size,
        decision.best,
        why,
        decision.error,
    )


def zoned(*zones):
    return fleets.inputs_of([fleets.host(number, zone) for number, zone in enumerate(zones)], [])


@given(
    fleets.inputs(),
    st.integers(1, 12),
    st.sampled_from([FIRST, TieBreak("random", 3)]),
)
def test_batches_of_any_size_decide_like_single_pods_in_turn(inputs, batch, tie_break):
    facts = [each for _, each in inputs.pending]

    alone = decide(plain(inputs, tie_break), facts)
    together = decide(beside(inputs, tie_break), facts, batch)

    assert [contents(each) for each in together] == [contents(each) for each in alone]


@given(fleets.inputs(), st.integers(1, 6))
def test_any_number_of_workers_gives_one_explanation(inputs, workers):
    paths = plain(inputs), filled(WorkersPath(workers, profiles_of), inputs)
    facts = [each for _, each in inputs.pending]
    for one, other in zip(*(prepared(path, facts) for path in paths), strict=True):
        alone, together = paths[0].explain(one), paths[1].explain(other)

        assert together.as_recorded() == alone.as_recorded()
        assert together.message == alone.message


def test_a_batch_without_further_needs_is_decided_immediately():
    path = beside(zoned("a", "b"))

    assert len(path.decide(prepared(path, [pod(cpu=100)] * 6))) == 6


def test_decided_pods_are_counted_on_their_nodes():
    path = beside(zoned("a", "b"))

    decide(path, [pod(cpu=3000)] * 3)

    counts = {name: path.table.row_facts(name)["pod_count"] for name in path.table.node_names()}
    assert counts == {"n0": 1, "n1": 1}


def test_a_removed_pod_frees_its_resources():
    path = beside(zoned("a"))
    path.add_pod("n0", pod(cpu=4000))
    assert decide(path, [pod(cpu=1000)])[0].node_name is None

    path.remove_pod("n0", pod(cpu=4000))

    assert decide(path, [pod(cpu=1000)])[0].node_name == "n0"


def test_a_removed_node_is_not_used_any_more():
    path = beside(zoned("a", "b"))
    assert decide(path, [pod(cpu=100)])[0].node_name == "n0"

    path.remove_node("n0")

    assert decide(path, [pod(cpu=200)])[0].node_name == "n1"


def test_a_node_added_later_is_used():
    path = beside(zoned())
    nowhere = decide(path, [pod()])[0]
    assert (nowhere.node_name, nowhere.diagnosis.message("")) == (
        None,
        "no nodes available to schedule pods",
    )

    path.add_nodes([node("late")])

    assert decide(path, [pod()])[0].node_name == "late"


@pytest.mark.parametrize(("late", "decided_count"), [([], 3), ([fleets.host(2)], 1)])
def test_a_batch_ends_at_a_row_with_an_outdated_snapshot_of_nodes(late, decided_count):
    path = beside(zoned())
    with_image = fleets.host(0, labels={"disk": "ssd"}, images={"app:v1": 700 * MIB})
    path.add_nodes([with_image, fleets.host(1)])
    decide(path, [pod(cpu=100, node_name="n1")])
    there = pod(cpu=100, node_selector={"disk": "ssd"})

    path.add_nodes(late)

    assert len(path.decide(prepared(path, [there] * 3))) == decided_count
