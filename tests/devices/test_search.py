"""The search for devices answers as upstream's, peculiarities included."""

import pytest

from roadstead.devices import AllocationAborted, AllocationError
from roadstead.devices.allocator import StepLimit
from roadstead.facts.devices import (
    ALL_DEVICES,
    AllocatedDevice,
    Allocation,
    DeviceConstraint,
)
from tests.devices.making import (
    EVERYWHERE,
    GPU,
    allocate,
    allocator,
    alternative,
    alternatives,
    claim,
    device,
    devices_of,
    model_is,
    request,
    slice_of,
)

FOUR = slice_of(*(device(f"d{n}", numa=n % 2, model="ab"[n // 2]) for n in range(4)))
NUMA = DeviceConstraint(match_attribute=f"{GPU}/numa")


def use(made, *names, pool="p0"):
    results = tuple(AllocatedDevice("r", GPU, pool, name) for name in names)
    made.in_use.add(Allocation(results))


def error(made, *claims):
    with pytest.raises(AllocationError) as caught:
        allocate(made, *claims)
    return str(caught.value)


class TestOrder:
    def test_the_first_free_devices_that_match_are_taken(self):
        made = allocator(FOUR)
        use(made, "d0")
        assert devices_of(made, claim(request(count=2))) == [[("r", "d1"), ("r", "d2")]]

    def test_an_earlier_choice_is_revised_for_a_later_request(self):
        made = allocator(FOUR)
        picky = request("b", selectors=(model_is("a"),), count=2)
        found = devices_of(made, claim(request("a")), claim(picky, name="c1"))
        assert found == [[("a", "d2")], [("b", "d0"), ("b", "d1")]]

    def test_devices_of_one_request_may_be_found_by_going_back(self):
        made = allocator(FOUR)
        found = devices_of(made, claim(request(count=2), constraints=[NUMA]))
        assert found == [[("r", "d0"), ("r", "d2")]]

    @pytest.mark.parametrize(
        "asked",
        [
            claim(request(count=16), request("last", count=16), constraints=[NUMA]),
            claim(request(count=31), alternatives("last", alternative("alt"))),
        ],
        ids=["with constraint", "with alternatives"],
    )
    def test_one_device_too_few_ends_without_trying_all_orders(self, asked):
        many = slice_of(*(device(f"d{n:02}", numa=0) for n in range(31)))
        steps = iter(range(10_000))
        assert allocate(allocator(many), asked, is_over=lambda: next(steps) > 9_000) is None

    def test_incomplete_pools_do_not_matter_if_devices_are_counted(self):
        made = allocator(slice_of(device("a"), slices_in_pool=2))
        assert devices_of(made, claim(request())) == [[("r", "a")]]

    def test_hundreds_of_claims_do_not_exhaust_the_stack(self):
        many = slice_of(*(device(f"d{n:04}", numa=0) for n in range(600)))
        claims = [claim(request(), name=f"c{n}", constraints=[NUMA]) for n in range(600)]
        assert len(devices_of(allocator(many), *claims)) == 600


class TestErrors:
    def test_a_selector_fails_only_on_a_device_that_is_reached(self):
        made = allocator(slice_of(device("good", model="a"), device("bad")))
        asked = claim(request(selectors=(model_is("a"),)))
        assert devices_of(made, asked) == [[("r", "good")]]
        use(made, "good")
        assert (
            error(made, asked) == "claim ns/c: selector #0: CEL runtime error: no such key: model"
        )
        use(made, "bad")
        assert devices_of(made, asked) is None, "a device in use is not looked at"

    def test_an_expression_that_does_not_compile_is_an_error_of_the_first_device(self):
        made = allocator(FOUR)
        text = "claim ns/c: selector #1: CEL compile error: compilation failed"
        assert error(made, claim(request(selectors=("true", "1")))) == text

    def test_an_invalid_pool_is_an_error_where_the_search_comes_to_it(self):
        twice = slice_of(device("x"), device("x"), name="s1", pool="p1")
        made = allocator(FOUR, twice)
        assert devices_of(made, claim(request(count=4))) is not None
        text = "pool p1 is invalid: duplicate device name x"
        assert error(made, claim(request(count=5))) == text

    def test_a_class_that_is_missing_is_an_error_even_in_a_later_alternative(self):
        made = allocator(FOUR)
        asked = claim(alternatives("r", alternative("a"), alternative("b", "gone")))
        text = (
            "claim ns/c, request b: could not retrieve device class gone: "
            'deviceclass.resource.k8s.io "gone" not found'
        )
        assert error(made, asked) == text

    @pytest.mark.parametrize(
        ("asked", "gates", "text"),
        [
            (
                request(capacity=()),
                {},
                "has capacity requests, but the DRAConsumableCapacity feature",
            ),
            (
                request(has_admin_access=True),
                {"admin_access": False},
                "admin access is requested, but",
            ),
            (
                alternatives("r", alternative("a")),
                {"prioritized_list": False},
                "has subrequests, but the DRAPrioritizedList feature",
            ),
        ],
    )
    def test_a_request_whose_gate_is_off_is_an_error(self, asked, gates, text):
        found = error(allocator(FOUR, **gates), claim(asked))
        assert found.startswith(f"claim ns/c, request r: {text}")

    def test_a_constraint_of_no_known_type_is_an_error(self):
        text = "claim ns/c, constraint #0: empty constraint (unsupported constraint type?)"
        assert error(allocator(FOUR), claim(request(), constraints=[DeviceConstraint()])) == text

    def test_the_time_of_the_search_may_be_over(self):
        made = allocator(FOUR)
        with pytest.raises(AllocationAborted, match="context deadline exceeded"):
            allocate(made, claim(request(), constraints=[NUMA]), is_over=lambda: True)

    def test_a_search_ends_after_a_number_of_steps_if_nothing_else_ends_it(self):
        limit = StepLimit(50)
        many = slice_of(*(device(f"d{n:02}", numa=n // 15) for n in range(30)))
        asked = claim(*(request(f"r{n}", count=4) for n in range(4)), constraints=[NUMA])
        with pytest.raises(AllocationAborted):
            allocate(allocator(many), asked, is_over=limit)
        assert limit(), "its steps are used up"


class TestAdminAccess:
    ADMIN = request("admin", has_admin_access=True)

    def test_it_may_use_a_device_in_use_but_not_twice_in_a_claim(self):
        made = allocator(slice_of(device("a"), device("b")))
        use(made, "a", "b")
        twice = claim(self.ADMIN, request("more", has_admin_access=True))
        assert devices_of(made, twice) == [[("admin", "a"), ("more", "b")]]

    def test_claims_of_a_pod_may_share_its_device(self):
        made = allocator(slice_of(device("a")))
        found = devices_of(made, claim(self.ADMIN), claim(self.ADMIN, name="c1"))
        assert found == [[("admin", "a")], [("admin", "a")]]

    def test_its_devices_do_not_count_as_in_use(self):
        made = allocator(slice_of(device("a")))
        for each in allocate(made, claim(self.ADMIN)):
            made.in_use.add(each)
        assert devices_of(made, claim(request())) == [[("r", "a")]]


class TestAll:
    ALL = request(mode=ALL_DEVICES, count=0, selectors=(model_is("a"),))

    def test_all_matching_devices_are_taken(self):
        assert devices_of(allocator(FOUR), claim(self.ALL)) == [[("r", "d0"), ("r", "d1")]]

    def test_no_matching_device_is_no_allocation(self):
        none = request(mode=ALL_DEVICES, count=0, selectors=(model_is("z"),))
        assert devices_of(allocator(FOUR), claim(none)) is None

    def test_a_matching_device_in_use_is_no_allocation(self):
        made = allocator(FOUR)
        use(made, "d1")
        assert devices_of(made, claim(self.ALL)) is None

    def test_a_device_that_breaks_a_constraint_is_an_error(self):
        text = (
            "claim ns/c, request r: cannot add device gpu.example.com/p0/d1 "
            "because a claim constraint would not be satisfied"
        )
        assert error(allocator(FOUR), claim(self.ALL, constraints=[NUMA])) == text

    @pytest.mark.parametrize(
        ("slices", "state"),
        [
            ([slice_of(device("x"), name="s1", pool="p1", slices_in_pool=2)], "being updated"),
            ([slice_of(device("x"), device("x"), name="s1", pool="p1")], "invalid"),
        ],
    )
    def test_any_incomplete_or_invalid_pool_is_an_error(self, slices, state):
        text = (
            "claim ns/c, request r: asks for all devices, but resource pool "
            f"gpu.example.com/p1 is currently {state}"
        )
        assert error(allocator(FOUR, *slices), claim(self.ALL)) == text


class TestLimit:
    MANY = slice_of(*(device(f"d{n:02}") for n in range(40)))

    def test_more_than_32_devices_in_a_claim_are_an_error(self):
        text = "claim ns/c: number of requested devices 33 exceeds the claim limit of 32"
        assert error(allocator(self.MANY), claim(request(count=30), request("s", count=3))) == text

    def test_the_limit_is_per_claim(self):
        made = allocator(self.MANY)
        found = devices_of(made, claim(request(count=20)), claim(request(count=20), name="c1"))
        assert [len(each) for each in found] == [20, 20]

    def test_an_alternative_that_is_too_large_is_passed_over(self):
        asked = claim(
            request("a", count=30),
            alternatives("b", alternative("big", count=9), alternative("small", count=2)),
        )
        assert devices_of(allocator(self.MANY), asked)[0][-2:] == [
            ("b/small", "d30"),
            ("b/small", "d31"),
        ]


class TestAlternatives:
    def test_the_first_that_can_be_satisfied_is_chosen(self):
        asked = claim(alternatives("r", alternative("five", count=5), alternative("two", count=2)))
        assert devices_of(allocator(FOUR), asked) == [[("r/two", "d0"), ("r/two", "d1")]]

    def test_a_later_request_may_need_another_alternative(self):
        asked = claim(
            alternatives("r", alternative("three", count=3), alternative("one")),
            request("s", count=2),
        )
        assert devices_of(allocator(FOUR), asked)[0][0] == ("r/one", "d0")

    def test_all_in_the_second_takes_what_all_in_the_first_matched(self):
        first = alternative("a", mode=ALL_DEVICES, count=0, selectors=(model_is("a"),))
        second = alternative("b", mode=ALL_DEVICES, count=0, selectors=(model_is("b"),))
        made = allocator(FOUR)
        use(made, "d0")
        # d0 is in use, so neither has all of its devices, which are the same.
        assert devices_of(made, claim(alternatives("r", first, second))) is None

    def test_all_in_the_third_is_not_mixed_up(self):
        first = alternative("a", mode=ALL_DEVICES, count=0, selectors=(model_is("a"),))
        third = alternative("c", mode=ALL_DEVICES, count=0, selectors=(model_is("z"),))
        made = allocator(FOUR)
        use(made, "d0")
        assert devices_of(made, claim(alternatives("r", first, first, third))) is None

    def test_all_in_another_than_the_first_goes_on_with_the_first(self):
        second = alternative("b", mode=ALL_DEVICES, count=0, selectors=(model_is("b"),))
        three = alternative("a", count=3, selectors=(model_is("a"),))
        found = devices_of(allocator(FOUR), claim(alternatives("r", three, second)))
        assert found == [[("r/b", "d2"), ("r/a", "d0"), ("r/a", "d1")]]

    def test_a_first_alternative_of_one_device_ends_all_after_one(self):
        one = alternative("a", selectors=(model_is("z"),))
        every = alternative("b", mode=ALL_DEVICES, count=0, selectors=(model_is("b"),))
        assert devices_of(allocator(FOUR), claim(alternatives("r", one, every))) == [
            [("r/b", "d2")]
        ]


def test_devices_of_a_network_pool_are_taken_from_any_node():
    made = allocator(slice_of(device("a"), place=EVERYWHERE))
    assert devices_of(made, claim(request()), node="n9") == [[("r", "a")]]
