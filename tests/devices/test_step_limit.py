"""The end of a search depends on the claims and the devices, not on searches before it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.devices import AllocationAborted, AllocationError, Allocator, DeviceGates
from roadstead.devices.allocator import StepLimit
from roadstead.facts.devices import AllocatedDevice, Allocation, DeviceConstraint, Placement
from tests.devices.making import (
    CLASSES,
    GPU,
    alternative,
    alternatives,
    claim,
    compile_stub,
    device,
    model_is,
    request,
    slice_of,
)

NODES = ("n0", "n1", "n2")
NUMA = DeviceConstraint(match_attribute=f"{GPU}/numa")

devices_of_node = st.lists(
    st.builds(
        lambda model, numa: (model, numa),
        st.sampled_from(("a", "b", "b", None)),
        st.sampled_from((0, 1, 1)),
    ),
    max_size=6,
)
selectors = st.sampled_from(((), (model_is("a"),), (model_is("b"),)))
counts = st.integers(1, 3)


@st.composite
def requests(draw, name):
    if draw(st.integers(0, 2)):
        return request(name, selectors=draw(selectors), count=draw(counts))
    forms = (
        alternative(each, selectors=draw(selectors), count=draw(counts)) for each in ("x", "y")
    )
    return alternatives(name, *forms)


@st.composite
def claims(draw, name):
    names = [f"r{number}" for number in range(draw(st.integers(1, 3)))]
    constraints = draw(st.sampled_from(((), (NUMA,))))
    return claim(*(draw(requests(each)) for each in names), name=name, constraints=constraints)


pods = st.lists(
    st.integers(1, 2).flatmap(
        lambda count: st.tuples(*(claims(f"c{number}") for number in range(count)))
    ),
    min_size=1,
    max_size=3,
)


def fleet(devices, steps_max=1000):
    """Return an allocator for nodes that are alike."""
    made = Allocator(DeviceGates(), compile_stub, steps_max)
    made.set_classes(CLASSES)
    facts = [device(f"d{n}", model=model, numa=numa) for n, (model, numa) in enumerate(devices)]
    made.pools.replace(
        slice_of(*facts, name=name, pool=name, place=Placement(node_name=name)) for name in NODES
    )
    return made


def outcome(made, pod, node, **more):
    try:
        found = made.allocate(made.plan(pod), node, (), **more)
    except AllocationAborted:
        return "aborted"
    except AllocationError as error:
        return str(error)
    return None if found is None else [[each.id for each in one.results] for one in found]


def use(made, used):
    """Record that the same devices are in use on each node."""
    for node in NODES:
        results = tuple(AllocatedDevice("r", GPU, node, name) for name in used)
        made.in_use.add(Allocation(results))


EITHER = claim(
    alternatives(
        "r", alternative("x", count=3, selectors=(model_is("a"),)), alternative("y", count=1)
    )
)


@pytest.mark.parametrize("steps", range(1, 10))
def test_a_node_that_was_searched_is_searched_in_as_many_steps(steps):
    made = fleet([("a", 0), ("a", 0), ("b", 0)])
    first = outcome(made, (EITHER,), "n0", is_over=StepLimit(steps))
    assert outcome(made, (EITHER,), "n0", is_over=StepLimit(steps)) == first


@given(devices=devices_of_node, pods=pods, used=st.integers(0, 2), steps=st.integers(1, 25))
def test_a_search_ends_like_the_first_one_after_any_results_on_other_nodes(
    devices, pods, used, steps
):
    names = [f"d{n}" for n in range(min(used, len(devices)))]
    known = fleet(devices, steps)
    use(known, names)
    for node in NODES:
        for pod in pods:
            plain = fleet(devices)
            use(plain, names)
            expected = outcome(plain, pod, node, is_over=StepLimit(steps))
            assert outcome(known, pod, node) == expected
            assert outcome(known, pod, node, is_over=StepLimit(steps)) == expected
