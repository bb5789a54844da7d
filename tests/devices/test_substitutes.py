"""Substitutes are bounded: a forgotten shape gets a new name, and facts with the old one last."""

from dataclasses import replace

import pytest

from roadstead.devices import substitutes
from roadstead.devices.state import DeviceState
from roadstead.devices.substitutes import is_substitute
from roadstead.facts.devices import ClaimSpec, DeviceRequest, DevicesFacts
from tests.devices.fleet import owned, using, with_template

KEPT = 3


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(substitutes, "SHAPES_MAX", KEPT)


def spec(count):
    return ClaimSpec((DeviceRequest("r", "gpu", count=count),))


def waiting(*counts):
    """Return substitutes of a state whose claim c1 asks for the first count, and so on."""
    claims = [
        owned(f"c{number}", f"p{number}", spec=spec(count))
        for number, count in enumerate(counts, start=1)
    ]
    return DeviceState(DevicesFacts(claims=tuple(claims))).substitutes


def pod(number):
    return with_template(f"p{number}", f"c{number}")


def shared(found, number):
    """Return the facts by which a pod is evaluated."""
    facts = pod(number)
    return replace(facts, device_claims=found.claims_for(facts), claims_as=None)


def test_claims_that_ask_for_the_same_have_one_name():
    found = waiting(1, 1, 2)
    assert shared(found, 1) == shared(found, 2) != shared(found, 3)
    assert is_substitute(shared(found, 1))
    assert not is_substitute(pod(1))


def test_no_more_shapes_are_kept_than_allowed():
    found = waiting(*range(1, 20))
    first = [shared(found, number) for number in range(1, 20)]
    again = [shared(found, number) for number in range(19, 0, -1)]
    assert len({*first} & {*again}) <= KEPT


def test_facts_with_a_forgotten_name_are_read_and_not_used_for_pods_any_more():
    found = waiting(*range(1, 2 * KEPT + 2))
    first = shared(found, 1)
    assert found.substitutes_for(first, pod(1))
    others = [shared(found, number) for number in range(2, 2 * KEPT + 2)]

    (asked,) = found.claims_of(first)
    assert asked.spec == spec(1)
    assert not found.substitutes_for(first, pod(1))
    assert shared(found, 1) not in (first, *others), "no name is used again"


def test_equal_specs_have_one_name_also_after_some_were_forgotten():
    found = waiting(*range(1, KEPT + 2), 1, 1)
    for number in range(1, KEPT + 2):
        shared(found, number)
    assert shared(found, KEPT + 2) == shared(found, KEPT + 3) == shared(found, 1)


def test_claims_of_a_pods_own_facts_are_its_own():
    found = waiting(1)
    assert [each.name for each in found.claims_of(pod(1))] == ["c1"]
    assert found.claims_of(using("p")) == ()
