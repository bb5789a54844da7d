"""Values that messages repeat are decoded to one object, and equal to newly decoded ones."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from roadstead.protocol.codec import from_wire, to_message, to_wire
from roadstead.protocol.codec_memo import CACHED_RECENT_VALUES, CACHED_VALUE_MAX_BYTES
from roadstead.protocol.plain_data import CodecError, pack, unpack


@dataclass(frozen=True, slots=True)
class Spec:
    repeats_on_wire: ClassVar[bool] = True

    name: str
    number: int = 0
    flag: bool = False


@dataclass(frozen=True, slots=True)
class Holder:
    specs: tuple[Spec, ...]


def sent(value):
    return from_wire(type(value), unpack(pack(to_message(value)), typed=True))


def test_equal_values_are_one_object():
    first, second = sent(Holder((Spec("a", 1), Spec("a", 1), Spec("b", 1)))).specs[:2]
    assert first == Spec("a", 1)
    assert first is second
    assert sent(Holder((Spec("a", 1),))).specs[0] is first


@pytest.mark.parametrize("wrong", [["a", True, False], ["a", 1, 1], ["a", 1.0, False], ["a"], "a"])
def test_data_that_compare_equal_are_checked_as_before(wrong):
    assert sent(Spec("a", 1)) == Spec("a", 1)
    with pytest.raises(CodecError):
        from_wire(Spec, wrong)


def test_data_of_no_message_are_refused_by_the_decoder():
    with pytest.raises(CodecError):
        from_wire(Spec, ["a", object(), False])


def test_many_and_long_values_are_sent_as_others():
    for number in range(CACHED_RECENT_VALUES + 2):
        assert sent(Spec("a", number)).number == number
    long = Spec("x" * (CACHED_VALUE_MAX_BYTES + 1))
    assert sent(long) == long
    assert sent(long) is not sent(long), "long ones are not remembered"


def test_a_value_that_is_sent_within_a_process_is_not_decoded():
    value, long = Spec("within", 7), Spec("y" * (CACHED_VALUE_MAX_BYTES + 1))

    assert sent(Holder((value,))).specs[0] is value
    assert sent(Holder((Spec("within", 7),))).specs[0] is value
    assert sent(Holder((long,))).specs[0] is not long


def test_an_object_is_encoded_once():
    one = Spec("c", 3)
    first, second = to_message(Holder((one, one)))[0]
    assert unpack(first) == ["c", 3, False]
    assert first is second
    first, second = to_wire(Holder((one, one)))[0]
    assert first == ["c", 3, False], "files have the fields themselves"
    assert first is second


def test_an_object_that_was_received_is_sent_as_the_same_bytes():
    (data,) = to_message(Holder((Spec("received", 3),)))[0]
    (value,) = from_wire(Holder, [[bytes(bytearray(data))]]).specs
    assert to_message(value) is to_message(value)
    assert to_message(Holder((value,)))[0] == [data]


def test_a_list_of_fields_is_read_as_in_files():
    assert from_wire(Holder, [[["d", 4, True]]]) == Holder((Spec("d", 4, True),))


@pytest.mark.parametrize("wrong", [b"", b"\xc1", pack(["a", 1]), pack(["a", 1.0, False])])
def test_bytes_of_no_value_are_refused(wrong):
    with pytest.raises(CodecError):
        from_wire(Holder, [[wrong]])


def test_a_value_that_is_used_again_and_again_stays():
    used = sent(Spec("used"))
    for number in range(3 * CACHED_RECENT_VALUES):
        sent(Spec("other", number))
        if number % (CACHED_RECENT_VALUES // 2) == 0:
            assert sent(Spec("used")) is used
