"""Amounts that a request may consume of a capacity, against the API's definition of policies."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.devices import AllocatedDevice, DeviceCapacity, DeviceFacts, RequestPolicy
from roadstead.invariants.device_capacity import capacity_errors

TOTAL = 12
AMOUNTS = st.integers(0, TOTAL)


def errors(policy, wanted, consumed):
    """Return the errors of a request for memory: (too little, against the policy)."""
    device = DeviceFacts(
        "d", capacity=(DeviceCapacity("memory", str(TOTAL), policy),), allows_several=True
    )
    requested = () if wanted is None else (("memory", str(wanted)),)
    share = AllocatedDevice(
        "r", "driver", "pool", "d", share_id="s", consumed=(("memory", str(consumed)),)
    )
    found = list(capacity_errors(device, requested, share))
    return any("is requested" in each for each in found), any("policy" in each for each in found)


def text_or_none(amount):
    return None if amount is None else str(amount)


@given(st.none() | AMOUNTS, st.none() | AMOUNTS, AMOUNTS)
def test_without_a_request_the_default_or_the_whole_capacity_is_consumed(wanted, default, consumed):
    least = next((each for each in (wanted, default) if each is not None), TOTAL)
    policy = None if default is None else RequestPolicy(str(default))

    assert errors(policy, wanted, consumed) == (consumed < least, False)


@given(st.none() | AMOUNTS, st.sets(AMOUNTS, min_size=1, max_size=4), AMOUNTS)
def test_one_of_the_valid_amounts_or_the_default_is_consumed(default, valid, consumed):
    policy = RequestPolicy(text_or_none(default), valid_amounts=tuple(map(str, sorted(valid))))

    assert errors(policy, 0, consumed) == (False, consumed not in valid | {default})


@given(
    st.none() | AMOUNTS,
    AMOUNTS,
    st.none() | AMOUNTS,
    st.none() | st.integers(1, 5),
    AMOUNTS,
)
def test_an_amount_in_the_range_or_the_default_is_consumed(default, least, most, step, consumed):
    allowed = set(range(least, TOTAL + 1 if most is None else most + 1, step or 1)) | {default}
    texts = {"minimum": str(least), "maximum": text_or_none(most), "step": text_or_none(step)}

    found = errors(RequestPolicy(text_or_none(default), **texts), 0, consumed)

    assert found == (False, consumed not in allowed)
