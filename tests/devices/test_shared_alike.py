"""Cached answers for shared devices and for equal nodes equal newly computed ones."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from roadstead.devices import AllocationError, AllocatorPanic, search
from roadstead.devices.quick import Verdict
from roadstead.facts.devices import DeviceCapacity, DeviceFacts, Placement
from tests.devices.making import allocate, allocator, claim, request, slice_of

NODES = ("n0", "n1", "n2")


def shared(name, *, allows_several=True):
    capacity = (DeviceCapacity("milli", "1000"),)
    return DeviceFacts(name, capacity=capacity, allows_several=allows_several)


def slices(node, *parts):
    """Slices of one pool that only this node reaches, each with these devices."""
    return [
        slice_of(*part, name=f"{node}-{n}", pool=node, place=Placement(node_name=node),
                 slices_in_pool=len(parts))
        for n, part in enumerate(parts)
    ]  # fmt: skip


def asking(*amounts):
    return claim(
        *(
            request(f"r{n}", capacity=None if amount is None else (("milli", str(amount)),))
            for n, amount in enumerate(amounts)
        )
    )


def made_of(found):
    made = allocator(*found, consumable_capacity=True)
    for node in NODES:
        made.nodes.put(node, ())
    return made


def equivalence_code(made, node):
    return made.nodes.equivalence_code(made.nodes.put(node, ()))


def test_nodes_are_alike_while_the_same_is_consumed_of_their_devices():
    parts = (shared("a"),), (shared("b"),)
    made = made_of([*slices("n0", *parts), *slices("n1", *parts)])
    unused = equivalence_code(made, "n0")
    assert equivalence_code(made, "n1") == unused is not None

    (first,) = allocate(made, asking(400), node="n0")
    made.in_use.add(first)
    assert equivalence_code(made, "n0") != equivalence_code(made, "n1")

    (second,) = allocate(made, asking(400), node="n1")
    made.in_use.add(second)
    assert equivalence_code(made, "n0") == equivalence_code(made, "n1"), (
        "the same part of the same device"
    )

    made.in_use.remove(first)
    made.in_use.remove(second)
    assert equivalence_code(made, "n0") == equivalence_code(made, "n1") == unused


def test_nodes_with_other_slices_are_not_alike():
    """The devices that upstream compares depend on the slice."""
    a, b = shared("a"), shared("b")
    made = made_of([*slices("n0", (a, b)), *slices("n1", (a,), (b,))])

    assert equivalence_code(made, "n0") != equivalence_code(made, "n1")


def test_an_outcome_is_over_once_a_part_of_a_device_is_used_or_freed():
    made = made_of([*slices("n0", (shared("a"),)), *slices("n1", (shared("b"),))])
    (found,) = allocate(made, asking(400), node="n0")
    numbers = made.nodes.numbers((node, ()) for node in NODES[:2])
    for use in (made.in_use.add, made.in_use.remove):
        made.nodes.outcomes("k", numbers)
        for number in numbers.tolist():
            made.nodes.record("k", number, Verdict.YES)
        use(found)
        kept = made.nodes.outcomes("k", numbers).tolist()
        assert kept == [Verdict.UNKNOWN.value, Verdict.YES.value]
        made.nodes.forget_outcomes()


AMOUNTS = st.sampled_from([300, 500, 1000, None])
STEPS = st.lists(
    st.tuples(st.sampled_from(NODES), st.lists(AMOUNTS, min_size=1, max_size=3), st.booleans()),
    min_size=1,
    max_size=25,
)
PARTS = st.lists(st.sampled_from(["s", "ss", "sp", "p"]), min_size=1, max_size=2)


def answer(made, asked, node):
    """The allocations with devices, amounts and names of shares; or the reason of an error."""
    try:
        return allocate(made, asked, node=node)
    except (AllocationError, AllocatorPanic) as problem:
        return str(problem)


@given(st.lists(PARTS, min_size=3, max_size=3), STEPS)
def test_kept_answers_equal_those_of_an_allocator_that_knows_nothing(shapes, steps):
    found = []
    for node, parts in zip(NODES, shapes, strict=True):
        names = iter("abcdef")
        found += slices(
            node,
            *(tuple(shared(next(names), allows_several=kind == "s") for kind in p) for p in parts),
        )
    made, used = made_of(found), []

    for node, amounts, frees in steps:
        asked = asking(*amounts)
        anew = made_of(found)
        for each in used:
            anew.in_use.add(each)
        now = answer(made, asked, node)
        assert now == answer(anew, asked, node)
        if frees and used:
            made.in_use.remove(used.pop(0))
        elif isinstance(now, tuple):
            made.in_use.add(now[0])
            used.append(now[0])


@given(PARTS, st.lists(AMOUNTS, min_size=2, max_size=4), st.lists(AMOUNTS, max_size=4))
def test_requests_that_lack_capacity_are_those_that_a_search_cannot_serve(parts, amounts, before):
    names = iter("abcdef")
    shape = (tuple(shared(next(names), allows_several=kind == "s") for kind in p) for p in parts)
    found = slices("n0", *shape)
    made, anew = made_of(found), made_of(found)
    for amount in before:
        allocations = answer(made, asking(amount), "n0")
        if isinstance(allocations, tuple):
            made.in_use.add(allocations[0])
            anew.in_use.add(allocations[0])

    counted = answer(made, asking(*amounts), "n0")
    with mock.patch.object(search, "lacks_capacity", return_value=False):
        searched = answer(anew, asking(*amounts), "n0")

    assert counted == searched


def test_eight_whole_gpus_are_not_searched_among_seven_in_all_orders():
    made = made_of(slices("n0", *((shared(name),) for name in "abcdefgh")))
    (one,) = allocate(made, asking(100))
    made.in_use.add(one)
    steps = []

    found = allocate(made, asking(*[1000] * 8), is_over=lambda: bool(steps.append(1)))

    assert found is None
    assert len(steps) < 100, "all orders of seven devices are some 13,700 steps"
