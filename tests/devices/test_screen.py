"""All nodes are screened at once, and the answers are those of single allocations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roadstead.devices import AllocationError
from roadstead.devices.quick import Verdict
from roadstead.facts.devices import DeviceConstraint, Placement
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint
from tests.devices.making import (
    EVERYWHERE,
    GPU,
    allocate,
    allocator,
    alternative,
    alternatives,
    claim,
    device,
    model_is,
    request,
    slice_of,
)
from tests.inside import objects_in

EACH = np.arange(2)
NO, YES, UNKNOWN = (each.value for each in (Verdict.NO, Verdict.YES, Verdict.UNKNOWN))


def equivalence_code(made, name, labels=()):
    return made.nodes.equivalence_code(made.nodes.put(name, labels))


def on(node, *devices, **more):
    return slice_of(*devices, name=node, pool=node, place=Placement(node_name=node), **more)


def screen(made, *claims):
    """Return the verdicts by node."""
    names = ("n0", "n1")
    numbers = made.nodes.numbers((name, ()) for name in names)
    return dict(zip(names, made.screen(made.plan(claims), numbers).tolist(), strict=True))


def two_nodes(*slices, **gates):
    made = allocator(*slices, **gates)
    for name in ("n0", "n1"):
        made.nodes.put(name, ())
    return made


ONE_AND_TWO = (on("n0", device("a")), on("n1", device("b"), device("c")))


def test_nodes_with_enough_free_devices_pass():
    made = two_nodes(*ONE_AND_TWO)
    assert screen(made, claim(request(count=2))) == {"n0": NO, "n1": YES}
    assert screen(made, claim(request()), claim(request())) == {"n0": NO, "n1": YES}


def test_verdicts_follow_devices_slices_and_nodes():
    made = two_nodes(*ONE_AND_TWO)
    asked = claim(request())
    assert screen(made, asked) == {"n0": YES, "n1": YES}
    (found,) = allocate(made, asked)
    made.in_use.add(found)
    assert screen(made, asked) == {"n0": NO, "n1": YES}
    made.in_use.remove(found)
    assert screen(made, asked) == {"n0": YES, "n1": YES}
    made.pools.remove("n1")
    assert screen(made, asked) == {"n0": YES, "n1": NO}
    made.pools.put(slice_of(device("net"), name="net", pool="net", place=EVERYWHERE))
    assert screen(made, asked) == {"n0": YES, "n1": YES}
    made.nodes.remove("n0")
    assert made.screen(made.plan((asked,)), EACH).tolist() == [NO, YES]
    assert screen(made, asked) == {"n0": YES, "n1": YES}, "a node may be added again"


def test_changed_labels_of_a_node_change_its_verdict():
    zone = Placement(terms=(NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),))
    made = two_nodes(slice_of(device("a"), place=zone))
    plan = made.plan((claim(request()),))
    number = made.nodes.put("n0", ())
    assert made.screen(plan, EACH)[number] == NO
    assert made.nodes.put("n0", (("zone", "a"),)) == number
    assert made.screen(plan, EACH)[number] == YES


def test_requests_that_compete_for_devices_need_enough_in_all():
    made = two_nodes(on("n0", device("a", model="x"), device("b", model="y")))
    picky = request("picky", selectors=(model_is("x"),))
    assert screen(made, claim(request(), picky))["n0"] == YES
    assert screen(made, claim(request(count=2), picky))["n0"] == NO
    twice = request("twice", selectors=(model_is("x"),), count=2)
    assert screen(made, claim(twice))["n0"] == NO


def test_only_the_search_knows_about_errors_counters_and_taints():
    asked = claim(request(selectors=(model_is("x"),)))
    failing = two_nodes(on("n0", device("a", model="x"), device("b")))
    assert screen(failing, asked)["n0"] == UNKNOWN
    twice = two_nodes(on("n0", device("a"), device("a")))
    assert screen(twice, claim(request()))["n0"] == UNKNOWN
    tainted = on("n0", device("a", taints=(Taint("bad", "", "NoSchedule"),)))
    assert screen(two_nodes(tainted, taints=True), claim(request()))["n0"] == UNKNOWN
    assert screen(two_nodes(tainted), claim(request()))["n0"] == YES


def test_a_failing_device_in_use_is_not_looked_at():
    made = two_nodes(on("n0", device("b"), device("a", model="x")))
    made.in_use.add(allocate(made, claim(request()))[0])
    assert screen(made, claim(request(selectors=(model_is("x"),))))["n0"] == YES


def test_constraints_exclude_impossible_nodes_only():
    made = two_nodes(*ONE_AND_TWO)
    numa = DeviceConstraint(match_attribute=f"{GPU}/numa")
    assert screen(made, claim(request(count=2), constraints=[numa])) == {"n0": NO, "n1": UNKNOWN}


def test_claims_with_alternatives_are_not_screened():
    made = two_nodes(*ONE_AND_TWO)
    assert made.screen(made.plan((claim(alternatives("r", alternative("a"))),)), EACH) is None
    assert made.screen(made.plan((claim(request(mode="All", count=0)),)), EACH) is None
    assert made.screen(made.plan((claim(request(has_admin_access=True)),)), EACH) is None


@given(st.data())
def test_verdicts_are_those_of_allocations_after_any_changes(data):
    """Screening never disagrees with `allocate`, whatever was allocated, removed or replaced."""
    made = two_nodes()
    models = st.sampled_from(("x", "x", "y", None))
    shapes = [
        (claim(request()),),
        (claim(request("a", count=2), request("b", selectors=(model_is("x"),))),),
        (claim(request("a", selectors=(model_is("y"),))), claim(request(count=2), name="d")),
    ]
    allocated = []
    for _ in range(data.draw(st.integers(1, 12))):
        node = data.draw(st.sampled_from(("n0", "n1")))
        match data.draw(st.sampled_from(("slice", "network", "allocate", "allocate", "free"))):
            case "slice":
                names = range(data.draw(st.integers(0, 4)))
                devices = [device(f"d{n}", model=data.draw(models)) for n in names]
                made.pools.put(on(node, *devices))
            case "network":
                found = device("net", model=data.draw(models))
                made.pools.put(slice_of(found, name="x", pool="x", place=EVERYWHERE))
            case "allocate":
                try:
                    found = allocate(made, *data.draw(st.sampled_from(shapes)), node=node)
                except AllocationError:
                    found = None
                for each in found or ():
                    made.in_use.add(each)
                    allocated.append(each)
            case "free" if allocated:
                made.in_use.remove(allocated.pop())
        for claims in shapes:
            for name, verdict in screen(made, *claims).items():
                if verdict != UNKNOWN:
                    assert (allocate(made, *claims, node=name) is not None) == (verdict == YES)


def test_outcomes_of_searches_are_known_until_a_pool_of_the_node_changes():
    made = two_nodes(*ONE_AND_TWO)
    first, second = made.nodes.numbers([("n0", ()), ("n1", ())]).tolist()
    assert made.nodes.outcomes("k", EACH).tolist() == [UNKNOWN, UNKNOWN]
    made.nodes.record("k", first, Verdict.NO)
    made.nodes.record("k", second, Verdict.YES)
    assert made.nodes.outcomes("k", EACH).tolist() == [NO, YES]
    (found,) = allocate(made, claim(request()))
    made.in_use.add(found)
    assert made.nodes.outcomes("k", EACH).tolist() == [UNKNOWN, YES], "a device of n0 is in use"
    made.nodes.forget_outcomes()
    assert made.nodes.outcomes("k", EACH).tolist() == [UNKNOWN, UNKNOWN]


def test_nodes_with_equal_devices_and_use_are_alike():
    made = two_nodes(on("n0", device("a"), device("b")), on("n1", device("a"), device("b")))
    assert equivalence_code(made, "n0") == equivalence_code(made, "n1") is not None
    (found,) = allocate(made, claim(request()), node="n0")
    made.in_use.add(found)
    assert equivalence_code(made, "n0") != equivalence_code(made, "n1")
    made.in_use.remove(found)
    assert equivalence_code(made, "n0") == equivalence_code(made, "n1")


def test_other_devices_and_another_order_are_not_alike():
    first = on("n0", device("a"), device("b"))
    for other in (
        on("n1", device("b"), device("a")),
        on("n1", device("a", model="x"), device("b")),
    ):
        made = two_nodes(first, other)
        assert equivalence_code(made, "n0") != equivalence_code(made, "n1")


def test_pools_chosen_by_labels_or_searched_by_more_than_devices_are_like_none():
    zone = Placement(terms=(NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),))
    chosen = two_nodes(slice_of(device("a"), place=zone))
    assert equivalence_code(chosen, "n0", (("zone", "a"),)) is None
    tainted = device("a", taints=(Taint("k", "", "NoSchedule"),))
    assert equivalence_code(two_nodes(on("n0", tainted), taints=True), "n0") is None
    twice = two_nodes(on("n0", device("a"), device("a")))
    assert equivalence_code(twice, "n0") is None, "an invalid pool is an error"


def test_equal_pools_are_matched_once_with_equal_answers():
    made = two_nodes(
        on("n0", device("a", model="x"), device("b", model="y")),
        on("n1", device("a", model="x"), device("b", model="y")),
    )
    for count, expected in ((1, YES), (2, NO)):
        asked = claim(request(count=count, selectors=(model_is("x"),)))
        assert screen(made, asked) == {"n0": expected, "n1": expected}


def test_only_asked_nodes_are_screened_and_changes_are_logged_by_number():
    """The verdict of one node does not need those of the others, which are still right later."""
    made = two_nodes(*ONE_AND_TWO)
    plan = made.plan((claim(request()),))
    first, second = made.nodes.numbers([("n0", ()), ("n1", ())]).tolist()
    assert made.screen(plan, np.array([second])).tolist() == [YES]
    assert made.screen(plan, np.array([first])).tolist() == [YES]
    position = made.nodes.changes.end
    made.in_use.add(allocate(made, claim(request()), node="n0")[0])
    assert made.nodes.changes.since(position) == [first]
    assert made.screen(plan, np.array([second])).tolist() == [YES]
    assert made.screen(plan, np.array([first])).tolist() == [NO]


def test_removed_nodes_and_their_pools_are_not_remembered():
    made = two_nodes(on("n0", device("a")))
    plan = made.plan((claim(request()),))
    for name in ("new-1", "new-2"):
        made.pools.put(on(name, device("a")))
        (number,) = made.nodes.numbers([(name, ())])
        assert made.screen(plan, np.array([number])).tolist() == [YES]
        made.pools.remove(name)
        assert made.screen(plan, np.array([number])).tolist() == [NO]
        made.pools.put(on(name, device("a")))
        assert made.screen(plan, np.array([number])).tolist() == [YES]
        made.nodes.remove(name)
        made.pools.remove(name)

    assert not {"new-1", "new-2"}.intersection(objects_in(made.nodes, str))


def test_outcomes_are_those_of_like_nodes_until_their_devices_differ():
    made = two_nodes(on("n0", device("a")), on("n1", device("a")))
    first, second = made.nodes.numbers([("n0", ()), ("n1", ())]).tolist()
    made.nodes.outcomes("k", EACH[:0])
    made.nodes.record("k", first, Verdict.YES)
    assert made.nodes.outcome_of_equivalent("k", second) is Verdict.YES
    made.in_use.add(allocate(made, claim(request()), node="n1")[0])
    assert made.nodes.outcome_of_equivalent("k", second) is Verdict.UNKNOWN
    assert made.nodes.outcomes("k", EACH)[first] == YES
