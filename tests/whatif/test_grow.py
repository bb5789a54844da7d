"""grow: added nodes with which a run places every pod, and none of which can be left out."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roadstead.inputs.node_catalog import catalog_of
from roadstead.protocol.errors import InputError
from roadstead.run import RunInputs
from roadstead.whatif import grow as grow_module
from roadstead.whatif.grow import grow
from tests.actors.world import identity, inputs_of, plan_of, run_virtually
from tests.builders import GIB, GPU, node, pod
from tests.whatif.questions import ZONE, running


def shape(name, cpu="4", price=None, most=None, memory="8Gi", labels=None, **allocatable):
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"} | allocatable
    found = {
        "name": name,
        "node": {"metadata": {"labels": labels or {}}, "status": {"allocatable": amounts}},
    }
    found |= {} if price is None else {"pricePerHour": price}
    return found | ({} if most is None else {"maxCount": most})


def catalog(*shapes):
    document = {"apiVersion": "roadstead.dev/v1", "kind": "NodeCatalog", "shapes": list(shapes)}
    return catalog_of(document, "shapes.yaml")


def pods_of(count, **facts):
    return [(identity(f"p{number}"), pod(**facts)) for number in range(count)]


def grown(nodes, pods, *shapes, there=(), **more):
    return grow(inputs_of(nodes, pods, there), plan_of(), catalog(*shapes), "test", **more)


def counts_of(result):
    return {each.shape: each.count for each in result.shapes if each.count}


def with_added(nodes, shapes, counts):
    """Return the nodes with some of each shape, sorted as the API server lists them."""
    added = [
        each.node(number)
        for each in catalog(*shapes)
        for number in range(1, counts.get(each.name, 0) + 1)
    ]
    return sorted([*nodes, *added], key=lambda each: each.name.encode())


def left_by(nodes, pods, there=()):
    """Return the number of pods that a run leaves without a node."""
    outcome = run_virtually(RunInputs(nodes, tuple(there), tuple(pods)), plan_of())
    return len(outcome.pending) + len(outcome.preempted)


def test_no_node_is_added_where_everything_fits():
    result = grown([node("n1")], pods_of(4, cpu=1000), shape("small"))

    assert (result.count, result.missing_before, result.is_complete) == (0, 0, True)
    assert result.runs == 1


def test_the_fewest_nodes_of_one_shape():
    result = grown([node("n1")], pods_of(11, cpu=1000), shape("small"))

    assert counts_of(result) == {"small": 2}
    assert result.nodes == ("small-0001", "small-0002")
    assert (result.missing_before, result.pods) == (7, 11)
    assert set(result.placed_on.values()) == {*result.nodes}
    assert result.price_per_hour is None
    assert result.is_minimal


def test_the_cheaper_shape_is_taken_even_if_it_needs_more_nodes():
    shapes = shape("small", "4", 1), shape("large", "16", 9)

    assert counts_of(grown([], pods_of(8, cpu=1000), *shapes)) == {"small": 2}
    assert grown([], pods_of(8, cpu=1000), *shapes).price_per_hour == 2.0


def test_without_prices_the_larger_shape_needs_fewer_nodes():
    shapes = shape("small", "4"), shape("large", "16")

    assert counts_of(grown([], pods_of(8, cpu=1000), *shapes)) == {"large": 1}


def test_shapes_are_combined_where_one_alone_does_not_suffice():
    pods = [*pods_of(3, cpu=1000), (identity("g"), pod(cpu=1000, others={GPU: 1}))]
    shapes = shape("plain", "4", 1), shape("gpu", "1", 5, **{GPU: "1"})

    assert counts_of(grown([], pods, *shapes)) == {"plain": 1, "gpu": 1}


def test_a_maximum_count_is_kept_and_the_rest_taken_from_another_shape():
    shapes = shape("cheap", "4", 1, most=1), shape("dear", "4", 3)

    assert counts_of(grown([], pods_of(8, cpu=1000), *shapes)) == {"cheap": 1, "dear": 1}


def test_pods_that_no_shape_helps_are_reported_and_the_others_placed():
    pods = [*pods_of(4, cpu=1000), (identity("giant"), pod(cpu=64_000))]

    result = grown([], pods, shape("small"))

    assert counts_of(result) == {"small": 1}
    assert [each.pod for each in result.pending] == ["default/giant"]
    assert not result.is_complete


def test_nothing_is_added_if_it_helps_no_pod():
    pods = pods_of(2, cpu=1000, node_selector={"pool": "x"})

    result = grown([], pods, shape("small"))
    assert (result.count, len(result.pending)) == (0, 2)
    assert grown([], pods, shape("small", most=0)).count == 0
    assert counts_of(grown([], pods, shape("fine", labels={"pool": "x"}))) == {"fine": 1}


def test_nodes_are_added_until_nothing_is_preempted():
    there = [running("low", "n1", pod(cpu=4000))]
    pods = [(identity("high"), pod(cpu=4000, priority=9))]

    assert counts_of(grown([node("n1")], pods, shape("small"), there=there)) == {"small": 1}


def test_a_name_of_the_cluster_is_refused():
    with pytest.raises(InputError, match=r'"small-0001" is the name of a node of the cluster'):
        grown([node("small-0001", cpu=0)], pods_of(1, cpu=1), shape("small"))


def test_a_search_that_reaches_its_limit_returns_a_proven_answer():
    pods = pods_of(40, cpu=1000)

    result = grown([], pods, shape("small"), runs_max=3)

    assert not result.is_minimal
    assert result.runs <= 4
    assert left_by(with_added([], [shape("small")], counts_of(result)), pods) == 0


@pytest.mark.parametrize("tries", [True, False])
def test_trials_and_complete_runs_find_answers_that_hold(monkeypatch, tries):
    monkeypatch.setattr(grow_module, "TRIALS_FROM", 0 if tries else 1 << 60)
    pods = pods_of(9, cpu=1000) + [
        (identity(f"m{number}"), pod(cpu=500, memory=5 * GIB)) for number in range(4)
    ]
    shapes = shape("small", "4", 1), shape("tall", "4", 2.5, memory="32Gi")

    result = grown([node("n1")], pods, *shapes)

    assert result.is_minimal
    check(result, [node("n1")], shapes, pods)


def test_trials_leave_out_pods_that_nothing_helps(monkeypatch):
    monkeypatch.setattr(grow_module, "TRIALS_FROM", 0)
    pods = [*pods_of(6, cpu=1000), (identity("giant"), pod(cpu=64_000))]

    result = grown([], pods, shape("small"))

    assert counts_of(result) == {"small": 2}
    assert [each.pod for each in result.pending] == ["default/giant"]


def test_a_pod_for_which_others_use_the_first_nodes_gets_one_of_more():
    """One node is missing; p0 would use it, too, so that two must be added for p1."""
    pods = [(identity("p0"), pod(cpu=300)), (identity("p1"), pod(cpu=1900))]
    nodes, shapes = [node("n1", cpu=1500)], [shape("small", "2")]

    result = grown(nodes, pods, *shapes)

    assert counts_of(result) == {"small": 2}
    check(result, nodes, shapes, pods)


def test_more_nodes_than_the_catalogue_allows_are_not_tried():
    pods = [(identity("p0"), pod(cpu=300)), (identity("p1"), pod(cpu=1900))]

    result = grown([node("n1", cpu=1500)], pods, shape("small", "2", most=1))

    assert [each.pod for each in result.pending] == ["default/p1"]
    assert result.runs == 2


def test_a_note_reports_runs_that_end_before_enough_nodes_are_tried():
    pods = [(identity("p0"), pod(cpu=300)), (identity("p1"), pod(cpu=1900))]

    result = grown([node("n1", cpu=1500)], pods, shape("small", "2"), runs_max=2)

    assert not result.is_complete
    assert not result.is_minimal


def test_every_run_is_reported():
    phases = []

    result = grown(
        [], pods_of(5, cpu=1000), shape("small"), progress=lambda p: phases.append(p.phase)
    )

    runs = [each for each in phases if each.startswith("run ")]
    assert runs[:2] == ["run 1: with no added node", "run 2: with 5 small"]
    assert len(runs) == result.runs


def check(result, nodes, shapes, pods):
    """Check by runs that the nodes suffice, and that no one of them can be left out."""
    counts = counts_of(result)
    assert left_by(with_added(nodes, shapes, counts), pods) == 0
    for name, count in counts.items():
        fewer = with_added(nodes, shapes, counts | {name: count - 1})
        assert left_by(fewer, pods) > 0, f"one {name} can be left out"


SHAPES = st.lists(
    st.tuples(
        st.sampled_from(["2", "4", "9"]),
        st.sampled_from([1, 2, 3.5]),
        st.sampled_from([None, None, 2]),
        st.sampled_from(["a", "b"]),
    ),
    min_size=1,
    max_size=3,
)
PODS = st.lists(
    st.tuples(st.sampled_from([300, 1000, 1900]), st.sampled_from([{}, {}, {ZONE: "a"}])),
    min_size=1,
    max_size=10,
)


@settings(max_examples=10, deadline=None)
@given(drawn=SHAPES, drawn_pods=PODS, tries=st.booleans())
@example(drawn=[("2", 1, None, "a")], drawn_pods=[(300, {}), (1900, {})], tries=False)
def test_a_complete_answer_holds_and_no_node_of_it_can_be_left_out(drawn, drawn_pods, tries):
    shapes = [
        shape(f"s{at}", cpu, price, most, labels={ZONE: zone})
        for at, (cpu, price, most, zone) in enumerate(drawn)
    ]
    pods = [
        (identity(f"p{at}"), pod(cpu=cpu, node_selector=selector))
        for at, (cpu, selector) in enumerate(drawn_pods)
    ]
    nodes = [node("n1", cpu=1500)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grow_module, "TRIALS_FROM", 0 if tries else 1 << 60)
        result = grown(nodes, pods, *shapes)

    if result.is_complete and result.is_minimal:
        check(result, nodes, shapes, pods)
    else:
        everything = {
            f"s{at}": 10 if most is None else most for at, (_, _, most, _) in enumerate(drawn)
        }
        assert left_by(with_added(nodes, shapes, everything), pods) > 0


def test_the_answer_is_that_of_the_given_seed():
    inputs = inputs_of([], pods_of(9, cpu=1000))
    shapes = catalog(shape("small"))

    one = grow(inputs, plan_of(seed=1), shapes)
    again = grow(inputs, plan_of(seed=1), shapes)

    assert replace(one, source="") == replace(again, source="")
