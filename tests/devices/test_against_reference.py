"""Bits, shortcuts and skipped orders change no answer: a plain recursion finds the same."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from roadstead.devices import AllocationError, DeviceGates
from roadstead.facts.devices import (
    ALL_DEVICES,
    AllocatedDevice,
    Allocation,
    CounterSetFacts,
    DeviceConstraint,
    Placement,
    SliceFacts,
)
from roadstead.facts.taints import Taint, Toleration
from tests.devices.making import (
    CLASSES,
    EVERYWHERE,
    GPU,
    HERE,
    NODE,
    allocator,
    alternative,
    alternatives,
    claim,
    compile_stub,
    device,
    driver_is,
    model_is,
    request,
    slice_of,
)
from tests.devices.reference import Reference, Refused

DRIVERS = (GPU, "nic.example.com")
SELECTORS = ("true", driver_is(GPU), model_is("a"), model_is("b"), model_is("a", DRIVERS[1]))
TAINT = Taint("bad", "", "NoSchedule")

selectors = st.lists(st.sampled_from(SELECTORS), max_size=1).map(tuple)
counts = st.integers(1, 3)


@st.composite
def devices(draw, name, gates):
    more = {}
    if draw(st.integers(0, 3)) == 0:
        amount = str(draw(st.integers(1, 3)))
        more["consumes"] = (CounterSetFacts("set", (("slots", amount),)),)
    if gates.taints and draw(st.booleans()):
        more["taints"] = (TAINT,)
    if draw(st.integers(0, 9)) == 0:
        more["binding_conditions"] = ("Ready",)
    model = draw(st.sampled_from(("a", "b", "b", None)))
    numa = draw(st.sampled_from((0, 0, 1, None)))
    return device(name, model=model, numa=numa, **more)


@st.composite
def slices(draw, index, gates) -> SliceFacts:
    prefix = draw(st.sampled_from((f"s{index}-", f"s{index}-", "x")))
    names = [f"{prefix}{number}" for number in range(draw(st.integers(0, 4)))]
    return slice_of(
        *(draw(devices(name, gates)) for name in names),
        name=f"s{index}",
        driver=draw(st.sampled_from(DRIVERS)),
        pool=draw(st.sampled_from(("p0", "p1"))),
        place=draw(st.sampled_from((HERE, EVERYWHERE))),
        generation=draw(st.sampled_from((1, 1, 1, 2))),
        slices_in_pool=draw(st.sampled_from((1, 1, 2))),
        shared_counters=(CounterSetFacts("set", (("slots", "4"),)),),
    )


def forms(make, name, *, may_be_admin=False):
    tolerations = st.sampled_from(((), (Toleration("bad", "Exists"),)))
    wanted = st.one_of(
        st.fixed_dictionaries({"count": counts}),
        st.fixed_dictionaries({"count": counts}),
        st.just({"mode": ALL_DEVICES, "count": 0}),
    )
    return st.builds(
        lambda device_class, chosen, amount, tolerated, admin: make(
            name,
            device_class,
            selectors=chosen,
            tolerations=tolerated,
            **amount,
            **({"has_admin_access": True} if admin else {}),
        ),
        st.sampled_from(("any", "gpu")),
        selectors,
        wanted,
        tolerations,
        st.sampled_from((False, False, False, may_be_admin)),
    )


def requests(name):
    several = st.integers(1, 3).flatmap(
        lambda number: st.tuples(*(forms(alternative, f"alt{each}") for each in range(number)))
    )
    one = forms(request, name, may_be_admin=True)
    return st.one_of(one, one, one, several.map(lambda found: alternatives(name, *found)))


@st.composite
def claims(draw, index):
    number = draw(st.integers(1, 3))
    constraints = draw(
        st.lists(
            st.builds(
                DeviceConstraint,
                st.sampled_from(((), ("r0",), ("r0", "r1"), ("r0/alt0",))),
                st.sampled_from((f"{GPU}/numa", "numa")),
            ),
            max_size=1,
        )
    )
    asked = [draw(requests(f"r{each}")) for each in range(number)]
    return claim(*asked, name=f"c{index}", constraints=constraints)


gate_sets = st.sampled_from(
    ({}, {}, {"partitionable": True}, {"taints": True}, {"binding_conditions": True})
)


def answer(search):
    try:
        return search()
    except (Refused, AllocationError) as error:
        return str(error)


@given(st.data(), gate_sets)
def test_the_answer_is_that_of_a_plain_recursion(data, gates):
    found = [
        data.draw(slices(each, DeviceGates(**gates)))
        for each in range(data.draw(st.integers(1, 4)))
    ]
    asked = tuple(data.draw(claims(each)) for each in range(data.draw(st.integers(1, 2))))
    made = allocator(*found, **gates)
    pools = made.pools.seen_from(NODE, ())
    ids = [each.id for pool in pools for each in pool.devices]
    used = data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=4)) if ids else []
    made.in_use.add(Allocation(tuple(AllocatedDevice("r", *each) for each in used)))

    def reference():
        return Reference(
            made.gates,
            {each.name: each for each in CLASSES},
            pools,
            made.in_use.ids(),
            compile_stub,
            asked,
        ).allocate()

    def product():
        allocated = made.allocate(made.plan(asked), NODE, ())
        if allocated is None:
            return None
        return [[(each.request, each.id) for each in one.results] for one in allocated]

    assert answer(product) == answer(reference)


OTHER = "n1"


def twin(found: SliceFacts) -> SliceFacts:
    """Return a slice of the other node with the same devices, in a pool of its own."""
    name, pool = f"t{found.name}", f"q{found.pool}"
    return replace(found, name=name, pool=pool, placement=Placement(node_name=OTHER))


@given(st.data(), gate_sets)
def test_a_node_like_one_before_gets_the_allocation_that_it_gets_alone(data, gates):
    found = [
        data.draw(slices(each, DeviceGates(**gates)))
        for each in range(data.draw(st.integers(1, 4)))
    ]
    here = [each for each in found if each.placement is HERE]
    twins = [twin(each) for each in here if data.draw(st.integers(0, 9))]
    asked = tuple(data.draw(claims(each)) for each in range(data.draw(st.integers(1, 2))))
    ids = [(each.driver, each.pool, one.name) for each in here for one in each.devices]
    used = data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=4)) if ids else []
    both = [*used, *((driver, f"q{pool}", name) for driver, pool, name in used)]

    def allocations(*nodes):
        made = allocator(*found, *twins, **gates)
        made.in_use.add(Allocation(tuple(AllocatedDevice("r", *each) for each in both)))
        for node in nodes:
            found_on = answer(lambda node=node: made.allocate(made.plan(asked), node, ()))
        return found_on

    assert allocations(NODE, OTHER) == allocations(OTHER)
    assert allocations(OTHER, OTHER) == allocations(OTHER)
