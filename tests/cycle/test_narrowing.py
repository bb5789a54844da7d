"""Narrowing by itself: what is looked at, what extenders leave, where the next search starts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.narrowing import (
    MAX_SCORE,
    Found,
    Narrower,
    Roster,
    RosterOf,
)
from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.chain import EXTENDER, Extenders
from roadstead.extenders.extender import Extender
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.sampling import places_to_visit
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
    return PodInCycle("u", "ns/p", CLASSES.info(facts), "s")


def roster(count, offset=10):
    nodes = tuple(NodeFacts(f"n{index}") for index in range(count))
    return Roster(nodes, np.arange(count, dtype=np.int64) + offset)


def arrivals(*places, offset=10):
    return np.array(places, dtype=np.int64) + offset


def stays(narrowing, offset=10):
    return [each - offset for each in narrowing.narrowed.stays.tolist()]


def searched_as_upstream(fits, to_find, start):
    """One node after another, as one goroutine does; (found, failed) in order."""
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
def test_places_are_visited_as_one_goroutine_does(fits, to_find, start):
    found, failed = searched_as_upstream(fits, to_find, start)

    visited = places_to_visit(np.array(fits, dtype=np.bool_), to_find, start).tolist()

    assert [place for place in visited if fits[place]] == found
    assert [place for place in visited if not fits[place]] == failed


@st.composite
def searches(draw):
    count = draw(st.integers(1, 25))
    fits = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    left = draw(st.none() | st.lists(st.booleans(), min_size=count, max_size=count))
    return fits, left, draw(st.integers(0, count - 1)), draw(st.integers(1, 99))


@given(searches(), st.sampled_from(["", "n0", "n3", "n99"]))
def test_a_sample_is_what_upstream_finds_and_starts_where_upstream_ends(search, nominated):
    fits, left, start, share = search
    count = len(fits)
    considered = [i for i in range(count) if left is None or left[i]]
    feasible = [i for i in considered if fits[i]]
    found = Found(arrivals(*feasible), None if left is None else arrivals(*considered))
    narrower = Narrower({"default-scheduler": share})
    narrower.start = start

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 3)
        narrowing = narrower.narrow(PROFILE, pod(nominated), roster(count), found)

    place = int(nominated[1:]) if nominated and int(nominated[1:]) < count else None
    if place in feasible:
        assert (stays(narrowing), narrowing.next_start) == ([place], start)
        return
    enough = max(3, len(considered) * share // 100) if len(considered) >= 3 else len(considered)
    mine, failed = searched_as_upstream([i in feasible for i in considered], enough, start)
    told = {considered[i] for i in failed} | ({place} if place is not None else set())
    assert stays(narrowing) == [considered[i] for i in mine]
    assert narrowing.next_start == (start + len(mine) + len(told)) % count
    seen = narrowing.narrowed.seen
    if seen is not None:
        assert set(seen.tolist()) == {i + 10 for i in told} | {considered[i] + 10 for i in mine}


def test_without_scoring_the_first_feasible_node_is_enough():
    found = Found(arrivals(1, 2, 4))
    narrower = Narrower({"default-scheduler": 50})

    first = narrower.narrow(Without(), pod(), roster(5), found)
    narrower.settle(first)
    second = narrower.narrow(Without(), pod(), roster(5), found)

    assert (stays(first), stays(second)) == ([1], [2])
    assert (first.next_start, second.next_start) == (2, 4)


def test_extenders_that_filter_or_score_want_more_than_one():
    for verb in ({"filter": lambda names: {"NodeNames": names}}, {"prioritize": lambda _: []}):
        chain, _ = extenders(**verb)
        narrower = Narrower({"default-scheduler": 50}, chain)

        narrowing = narrower.narrow(Without(), pod(), roster(5), Found(arrivals(1, 2, 4)))

        assert stays(narrowing) == [1, 2, 4]


def test_a_profile_that_does_not_sample_sees_all():
    narrower = Narrower({"other-scheduler": 1})

    assert narrower.concerns(PodFacts("ns"))
    narrowing = narrower.narrow(Without(), pod(), roster(5), Found(arrivals(1, 2, 4)))
    assert stays(narrowing) == [1, 2, 4]
    assert not Narrower().concerns(PodFacts("ns"))


def test_extenders_refuse_and_score_what_is_left():
    chain, answers = extenders(
        filter=lambda names: {"NodeNames": names[1:], "FailedNodes": {"n0": "full", "x": "?"}},
        prioritize=lambda names: [{"Host": name, "Score": 2} for name in names],
    )

    narrowing = Narrower({}, chain).narrow(PROFILE, pod(), roster(4), Found(arrivals(0, 1, 3)))

    assert answers.asked == [("filter", ["n0", "n1", "n3"]), ("prioritize", ["n1", "n3"])]
    assert stays(narrowing) == [1, 3]
    assert narrowing.scores == {"n1": 20, "n3": 20}
    assert narrowing.narrowed.scores.tolist() == [20, 20]
    ((status, them),) = narrowing.narrowed.refused
    assert status == Status(Code.UNSCHEDULABLE, ("full",), EXTENDER)
    assert them.tolist() == [10]
    assert narrowing.strangers == (Status(Code.UNSCHEDULABLE, ("?",), EXTENDER),)
    assert narrowing.by_extender
    assert narrowing.next_start == 0


def test_one_node_that_is_left_is_not_scored():
    chain, answers = extenders(
        filter=lambda names: {"NodeNames": names[:1]}, prioritize=lambda _: [{"Host": "n1"}]
    )

    Narrower({}, chain).narrow(PROFILE, pod(), roster(3), Found(arrivals(1, 2)))

    assert [verb for verb, _ in answers.asked] == ["filter"]


def test_scores_beyond_all_bounds_are_bounded():
    huge = [{"Host": "n0", "Score": 2**62}, {"Host": "n1", "Score": -(2**62)}]
    chain, _ = extenders(prioritize=lambda _: huge)

    narrowing = Narrower({}, chain).narrow(PROFILE, pod(), roster(2), Found(arrivals(0, 1)))

    assert narrowing.scores == {"n0": MAX_SCORE, "n1": -MAX_SCORE}


def test_a_failing_extender_ends_the_cycle_and_the_search_goes_on_behind_it():
    chain, _ = extenders(filter=failing)
    narrower = Narrower({"default-scheduler": 1}, chain)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)
        narrowing = narrower.narrow(PROFILE, pod(), roster(9), Found(arrivals(*range(9))))

    assert (narrowing.error, narrowing.next_start, stays(narrowing)) == ("gone", 2, [])


def test_a_nominated_node_is_asked_about_alone_and_then_with_all():
    chain, answers = extenders(
        filter=lambda names: {
            "NodeNames": [n for n in names if n != "n2"],
            "FailedNodes": {"n2": "no"},
        }
    )
    narrower = Narrower({}, chain)
    found = Found(arrivals(1, 2))

    taken = narrower.narrow(PROFILE, pod("n1"), roster(4), found)
    refused = narrower.narrow(PROFILE, pod("n2"), roster(4), found)

    assert (stays(taken), stays(refused)) == ([1], [1])
    assert answers.asked == [("filter", ["n1"]), ("filter", ["n2"]), ("filter", ["n1", "n2"])]
    assert (taken.next_start, refused.next_start) == (0, 1)


def test_an_extender_that_fails_on_the_nominated_node_is_asked_again():
    calls = []

    def once(names):
        calls.append(names)
        return failing(names) if len(calls) == 1 else {"NodeNames": names}

    chain, _ = extenders(filter=once)

    narrowing = Narrower({}, chain).narrow(PROFILE, pod("n1"), roster(3), Found(arrivals(0, 1)))

    assert (stays(narrowing), narrowing.error) == ([0, 1], "")


def test_a_node_that_is_named_as_left_and_as_refused_is_left():
    chain, _ = extenders(filter=lambda names: {"NodeNames": names, "FailedNodes": {"n0": "odd"}})

    narrowing = Narrower({}, chain).narrow(PROFILE, pod(), roster(1), Found(arrivals(0)))

    assert (stays(narrowing), narrowing.narrowed.refused) == ([0], ())
    assert not narrowing.by_extender


def test_without_nodes_nothing_is_left():
    narrowing = Narrower({"default-scheduler": 0}).narrow(
        PROFILE, pod("n1"), Roster(), Found(np.zeros(0, dtype=np.int64))
    )

    assert (stays(narrowing), narrowing.next_start) == ([], 0)


def zoned(name, zone):
    return NodeFacts(name, (("topology.kubernetes.io/zone", zone),))


def test_the_roster_of_a_table_is_renewed_with_its_nodes():
    table, of_table = NodeTable(), RosterOf()
    for facts in (zoned("n1", "a"), zoned("n2", "a"), zoned("n3", "b")):
        table.add_node(facts)

    first = of_table.take(table)
    assert [node.name for node in first.nodes] == ["n1", "n3", "n2"]
    assert of_table.take(table) is first

    table.remove_node("n1")
    second = of_table.take(table)
    assert [node.name for node in second.nodes] == ["n2", "n3"]
    assert second.arrivals.tolist() == [1, 2]
    assert [table.names[row] for row in second.rows.tolist()] == ["n2", "n3"]
