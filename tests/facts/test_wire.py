"""Facts of pods encoded as bytes."""

from dataclasses import replace

import pytest
from hypothesis import given

from roadstead.facts import wire
from roadstead.facts.pod_amounts import AMOUNT_FIELDS, amounts_of, other_fields_of
from roadstead.facts.wire import decode_facts, decode_unknown_facts, encode_facts
from roadstead.protocol.codec import to_wire
from roadstead.protocol.plain_data import CodecError, pack, unpack
from tests.builders import pod
from tests.strategies import pods


@given(pods)
def test_decoded_facts_equal_the_encoded_ones(facts):
    apart = replace(facts, container_requests=(("cpu", 5),))

    for each in (facts, apart):
        data = encode_facts(each)
        assert decode_unknown_facts(data) == each, "as in another process"
        assert decode_facts(data) == each
        assert decode_facts(bytes(data)) is decode_facts(data), "equal bytes are one object"
        assert encode_facts(decode_unknown_facts(data)) == data


def test_facts_that_this_process_encoded_are_not_decoded():
    facts = pod(cpu=1, labels={"encoded": "here"})

    assert decode_facts(encode_facts(facts)) is facts


def test_facts_beside_amounts_are_encoded_once_for_pods_that_share_them():
    small, large = pod(cpu=1, labels={"a": "b"}), pod(cpu=2, labels={"a": "b"})

    rests = {bytes(unpack(encode_facts(each))[0]) for each in (small, large)}

    assert len(rests) == 1
    assert other_fields_of(small) == other_fields_of(large)
    assert amounts_of(small) != amounts_of(large)
    assert len(AMOUNT_FIELDS) == len(amounts_of(small))


def test_bytes_that_encode_no_facts_are_refused():
    whole = unpack(encode_facts(pod(cpu=1)))
    with_other_rest = pack([pack("no pod"), *whole[1:]])

    for data in (b"", b"\xc1", pack(to_wire(pod(cpu=1))), pack(whole[:2]), with_other_rest):
        with pytest.raises(CodecError):
            decode_facts(data)
        with pytest.raises(CodecError):
            decode_unknown_facts(data)
    assert wire.MAX_CACHED_CLASSES > 1
