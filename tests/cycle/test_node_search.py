"""SearchResult alone: the evaluated nodes, those that extenders leave, the next search's start."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.node_search import (
    MAX_SCORE,
    FilteredNodes,
    NodeSearch,
    OrderedNodes,
    OrderedNodesCache,
)
from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.extender import Extender
from roadstead.extenders.sequence import EXTENDER, Extenders
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.sampling import indices_to_visit
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.status import Code, Status
from tests.extenders.servers import config_of

CLASSES = PodClasses()
PROFILE = Profile(default_config().profiles[0], in_tree_registry(), Handle(CLASSES))


class Without:
    """A profile of the default name without plugins at `score`."""

    scheduler_name = "default-scheduler"
    score = ()


class Answers:
    """An extender's caller that computes its replies."""

    def __init__(self, **by_verb):
        self.by_verb = by_verb
        self.asked = []

    def call(self, verb, payload):
        self.asked.append((verb, payload["NodeNames"]))
        return self.by_verb[verb](payload["NodeNames"])


def extenders(ignorable=False, **by_verb):
    verbs = {f"{verb}_verb": verb for verb in by_verb}
    config = config_of(node_cache_capable=True, ignorable=ignorable, weight=1, **verbs)
    answers = Answers(**by_verb)
    return Extenders([Extender(config, answers)]), answers


def failing(_):
    raise ExtenderError("gone")


def pod(nominated=""):
    facts = PodFacts("ns", nominated_node_name=nominated)
    return PodInCycle("u", "ns/p", CLASSES.pod_class(facts), "s")


def order(count, offset=10):
    nodes = tuple(NodeFacts(f"n{index}") for index in range(count))
    return OrderedNodes(nodes, np.arange(count, dtype=np.int64) + offset)


def arrivals(*places, offset=10):
    return np.array(places, dtype=np.int64) + offset


def stays(result, offset=10):
    return [each - offset for each in result.found_nodes.remaining.tolist()]


def searched_as_upstream(fits, to_find, start):
    """Search one node after another, as one goroutine does; return (found, failed) in order."""
    found, failed = [], []
    for step in range(len(fits)):
        place = (start + step) % len(fits)
        if not fits[place]:
            failed.append(place)
        elif len(found) == to_find:
            break
        else:
            found.append(place)
    return found, failed


@given(st.lists(st.booleans()), st.integers(1, 30), st.integers(0, 100))
def test_nodes_are_visited_as_by_one_goroutine(fits, to_find, start):
    found, failed = searched_as_upstream(fits, to_find, start)

    visited = indices_to_visit(np.array(fits, dtype=np.bool_), to_find, start).tolist()

    assert [place for place in visited if fits[place]] == found
    assert [place for place in visited if not fits[place]] == failed


@st.composite
def samples(draw):
    count = draw(st.integers(1, 25))
    fits = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    left = draw(st.none() | st.lists(st.booleans(), min_size=count, max_size=count))
    return fits, left, draw(st.integers(0, count - 1)), draw(st.integers(1, 99))


@given(samples(), st.sampled_from(["", "n0", "n3", "n99"]))
def test_a_sample_equals_upstreams_and_starts_where_upstream_ended(search, nominated):
    fits, left, start, share = search
    count = len(fits)
    considered = [i for i in range(count) if left is None or left[i]]
    feasible = [i for i in considered if fits[i]]
    found = FilteredNodes(arrivals(*feasible), None if left is None else arrivals(*considered))
    node_search = NodeSearch({"default-scheduler": share})
    node_search.start = start

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 3)
        result = node_search.search(PROFILE, pod(nominated), order(count), found)

    place = int(nominated[1:]) if nominated and int(nominated[1:]) < count else None
    if place in feasible:
        assert (stays(result), result.next_start) == ([place], start)
        return
    enough = max(3, len(considered) * share // 100) if len(considered) >= 3 else len(considered)
    mine, failed = searched_as_upstream([i in feasible for i in considered], enough, start)
    sampled = {considered[i] for i in failed} | ({place} if place is not None else set())
    assert stays(result) == [considered[i] for i in mine]
    assert result.next_start == (start + len(mine) + len(sampled)) % count
    evaluated = result.found_nodes.evaluated
    if evaluated is not None:
        assert set(evaluated.tolist()) == {i + 10 for i in sampled} | {
            considered[i] + 10 for i in mine
        }


def test_without_scoring_the_first_feasible_node_is_enough():
    found = FilteredNodes(arrivals(1, 2, 4))
    node_search = NodeSearch({"default-scheduler": 50})

    first = node_search.search(Without(), pod(), order(5), found)
    node_search.advance(first)
    second = node_search.search(Without(), pod(), order(5), found)

    assert (stays(first), stays(second)) == ([1], [2])
    assert (first.next_start, second.next_start) == (2, 4)


def test_extenders_that_filter_or_score_need_more_than_one_node():
    for verb in ({"filter": lambda names: {"NodeNames": names}}, {"prioritize": lambda _: []}):
        chain, _ = extenders(**verb)
        node_search = NodeSearch({"default-scheduler": 50}, chain)

        result = node_search.search(Without(), pod(), order(5), FilteredNodes(arrivals(1, 2, 4)))

        assert stays(result) == [1, 2, 4]


def test_a_profile_without_sampling_evaluates_all_nodes():
    node_search = NodeSearch({"other-scheduler": 1})

    assert node_search.applies_to(PodFacts("ns"))
    result = node_search.search(Without(), pod(), order(5), FilteredNodes(arrivals(1, 2, 4)))
    assert stays(result) == [1, 2, 4]
    assert not NodeSearch().applies_to(PodFacts("ns"))


def test_extenders_refuse_and_score_the_remaining_nodes():
    chain, answers = extenders(
        filter=lambda names: {"NodeNames": names[1:], "FailedNodes": {"n0": "full", "x": "?"}},
        prioritize=lambda names: [{"Host": name, "Score": 2} for name in names],
    )

    result = NodeSearch({}, chain).search(
        PROFILE, pod(), order(4), FilteredNodes(arrivals(0, 1, 3))
    )

    assert answers.asked == [("filter", ["n0", "n1", "n3"]), ("prioritize", ["n1", "n3"])]
    assert stays(result) == [1, 3]
    assert result.scores == {"n1": 20, "n3": 20}
    assert result.found_nodes.scores.tolist() == [20, 20]
    ((status, them),) = result.found_nodes.refused
    assert status == Status(Code.UNSCHEDULABLE, ("full",), EXTENDER)
    assert them.tolist() == [10]
    assert result.unknown_nodes == (Status(Code.UNSCHEDULABLE, ("?",), EXTENDER),)
    assert result.by_extender
    assert result.next_start == 0


def test_a_single_remaining_node_is_not_scored():
    chain, answers = extenders(
        filter=lambda names: {"NodeNames": names[:1]}, prioritize=lambda _: [{"Host": "n1"}]
    )

    NodeSearch({}, chain).search(PROFILE, pod(), order(3), FilteredNodes(arrivals(1, 2)))

    assert [verb for verb, _ in answers.asked] == ["filter"]


def test_scores_out_of_range_are_clamped():
    huge = [{"Host": "n0", "Score": 2**62}, {"Host": "n1", "Score": -(2**62)}]
    chain, _ = extenders(prioritize=lambda _: huge)

    result = NodeSearch({}, chain).search(PROFILE, pod(), order(2), FilteredNodes(arrivals(0, 1)))

    assert result.scores == {"n0": MAX_SCORE, "n1": -MAX_SCORE}


def test_a_failing_extender_ends_the_cycle_and_the_next_search_starts_after_it():
    chain, _ = extenders(filter=failing)
    node_search = NodeSearch({"default-scheduler": 1}, chain)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)
        result = node_search.search(PROFILE, pod(), order(9), FilteredNodes(arrivals(*range(9))))

    assert (result.error, result.next_start, stays(result)) == ("gone", 2, [])


def test_extenders_get_a_nominated_node_alone_and_then_with_all_others():
    chain, answers = extenders(
        filter=lambda names: {
            "NodeNames": [n for n in names if n != "n2"],
            "FailedNodes": {"n2": "no"},
        }
    )
    node_search = NodeSearch({}, chain)
    found = FilteredNodes(arrivals(1, 2))

    taken = node_search.search(PROFILE, pod("n1"), order(4), found)
    refused = node_search.search(PROFILE, pod("n2"), order(4), found)

    assert (stays(taken), stays(refused)) == ([1], [1])
    assert answers.asked == [("filter", ["n1"]), ("filter", ["n2"]), ("filter", ["n1", "n2"])]
    assert (taken.next_start, refused.next_start) == (0, 1)


def test_an_extender_that_fails_on_the_nominated_node_is_called_again():
    calls = []

    def once(names):
        calls.append(names)
        return failing(names) if len(calls) == 1 else {"NodeNames": names}

    chain, _ = extenders(filter=once)

    result = NodeSearch({}, chain).search(
        PROFILE, pod("n1"), order(3), FilteredNodes(arrivals(0, 1))
    )

    assert (stays(result), result.error) == ([0, 1], "")


def test_a_node_that_is_returned_as_passed_and_as_failed_has_passed():
    chain, _ = extenders(filter=lambda names: {"NodeNames": names, "FailedNodes": {"n0": "odd"}})

    result = NodeSearch({}, chain).search(PROFILE, pod(), order(1), FilteredNodes(arrivals(0)))

    assert (stays(result), result.found_nodes.refused) == ([0], ())
    assert not result.by_extender


def test_without_nodes_the_result_is_empty():
    result = NodeSearch({"default-scheduler": 0}).search(
        PROFILE, pod("n1"), OrderedNodes(), FilteredNodes(np.zeros(0, dtype=np.int64))
    )

    assert (stays(result), result.next_start) == ([], 0)


def zoned(name, zone):
    return NodeFacts(name, (("topology.kubernetes.io/zone", zone),))


def test_the_node_order_of_a_table_is_renewed_with_its_nodes():
    table, of_table = NodeTable(), OrderedNodesCache()
    for facts in (zoned("n1", "a"), zoned("n2", "a"), zoned("n3", "b")):
        table.add_node(facts)

    first = of_table.snapshot(table)
    assert [node.name for node in first.nodes] == ["n1", "n3", "n2"]
    assert of_table.snapshot(table) is first

    table.remove_node("n1")
    second = of_table.snapshot(table)
    assert [node.name for node in second.nodes] == ["n2", "n3"]
    assert second.arrivals.tolist() == [1, 2]
    assert [table.names[row] for row in second.rows.tolist()] == ["n2", "n3"]
