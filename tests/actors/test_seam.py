import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors.interface import (
    METHODS,
    NOTHING,
    REPLY,
    ActorError,
    ActorLostError,
    DeadlineError,
    Failure,
    deadline_error,
    decode_failure,
    decode_reply,
    encode_failure,
    method,
)
from roadstead.actors.messages import ADD_NODES, BOUND, STATUS, ActorStatus, BoundPage, PageRequest
from roadstead.actors.runtime.dispatch import Dispatcher
from roadstead.config.errors import ConfigError, Problem
from roadstead.protocol.codec import Envelope, from_wire, to_wire
from roadstead.protocol.errors import (
    IllegalTransitionError,
    InputError,
    RoadsteadError,
    UnsupportedError,
)
from roadstead.protocol.plain_data import CodecError, DecodeLimits, pack, unpack

LIMITS = DecodeLimits(max_bytes=10_000)


class Actor:
    """An actor that answers `status` with its constructor's argument, or raises it."""

    def __init__(self, answer):
        self.answer = answer

    async def status(self, _):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def bound(self, ask):
        return BoundPage((), (), ask.count)


def request(declared, message, *, kind=None):
    return Envelope(kind or declared.name, 7, 3, "token", to_wire(message)).encode()


async def asked(answer, declared=STATUS, message=NOTHING, **also):
    """Return the reply that a caller receives from an actor with this answer."""
    data = await Dispatcher("actor-1", Actor(answer), LIMITS).receive(
        request(declared, message, **also)
    )
    return decode_reply("actor-1", declared, data, LIMITS)


async def asked_raw(body):
    """Return the reply to a caller that sends this body to `bound`."""
    data = Envelope(BOUND.name, 0, 0, "", body).encode()
    reply = await Dispatcher("actor-1", Actor(None), LIMITS).receive(data)
    return decode_reply("actor-1", BOUND, reply, LIMITS)


def crossed(failure):
    """Return an exception as the receiver decodes it."""
    data = unpack(pack(to_wire(encode_failure(failure))))
    return decode_failure("actor-1", from_wire(Failure, data))


async def test_a_handler_gets_its_message_and_the_caller_the_reply():
    assert await asked(None, BOUND, PageRequest(3, 5)) == BoundPage((), (), 5)


async def test_a_reply_has_the_envelope_of_its_message():
    data = await Dispatcher("actor-1", Actor(ActorStatus("is well")), LIMITS).receive(
        request(STATUS, NOTHING)
    )

    reply = Envelope.decode(data)

    assert (reply.kind, reply.seq, reply.epoch, reply.token) == (REPLY, 7, 3, "token")


def test_bad_input_is_decoded_with_all_its_parts():
    sent = InputError(
        "is no quantity", source="a.yaml", obj='Node "n"', field="status", value='"x"'
    )

    arrived = crossed(sent)

    assert type(arrived) is InputError, "the class of the error is kept"
    assert str(arrived) == str(sent)
    assert (arrived.source, arrived.obj, arrived.field) == ("a.yaml", 'Node "n"', "status")


def test_a_wrong_configuration_is_decoded_as_bad_input():
    sent = ConfigError("decode", [Problem("profiles[0]", "is not known")], source="c.yaml")

    arrived = crossed(sent)

    assert type(arrived) is InputError, "the class of the error is kept"
    assert str(arrived) == str(sent)


def test_a_missing_plugin_is_decoded_with_plugin_object_and_field():
    arrived = crossed(UnsupportedError("VolumeBinding", 'Pod "default/p"', "spec.volumes"))

    assert type(arrived) is UnsupportedError, "the class of the error is kept"
    assert (arrived.plugin, arrived.obj, arrived.field) == (
        "VolumeBinding",
        'Pod "default/p"',
        "spec.volumes",
    )


@pytest.mark.parametrize("kind", [ActorLostError, DeadlineError])
def test_an_error_about_a_third_actor_is_forwarded_unchanged(kind):
    arrived = crossed(kind("worker-1 is gone"))

    assert type(arrived) is kind, "the class of the error is kept"
    assert str(arrived) == "worker-1 is gone"


@pytest.mark.parametrize("kind", [RoadsteadError, IllegalTransitionError, CodecError, ActorError])
def test_other_roadstead_errors_are_decoded_with_actor_and_text(kind):
    arrived = crossed(kind("pod u1: done is not allowed"))

    assert type(arrived) is ActorError, "an error of no class of its own is one of the actor"
    assert str(arrived) == "actor-1: pod u1: done is not allowed"


async def test_any_other_exception_is_decoded_with_its_type_and_place():
    with pytest.raises(ActorError, match=r"actor-1: KeyError: 'n1' at status:\d+"):
        await asked(KeyError("n1"))


def test_an_exception_that_was_never_raised_has_no_place():
    assert encode_failure(ValueError("odd")) == Failure("UnexpectedError", "ValueError: odd")


def test_a_failure_of_a_known_type_with_missing_parts_is_still_an_error():
    for kind in ("InputError", "UnsupportedError"):
        arrived = decode_failure("actor-1", Failure(kind, "half of it", ("only",)))

        assert type(arrived) is ActorError, "without its parts it is an error of the actor"
        assert str(arrived) == "actor-1: half of it"


@given(
    st.sampled_from([RoadsteadError, InputError, ActorLostError, ValueError]),
    st.text(alphabet=st.characters(codec=None)),
)
def test_any_text_of_a_failure_is_encoded_and_decoded(kind, text):
    arrived = crossed(kind(text))

    assert text.encode(errors="backslashreplace").decode() in str(arrived)


async def test_an_undeclared_method_is_an_error():
    with pytest.raises(ActorError, match="actor-1 has no handler 'format_disk'"):
        await asked(None, kind="format_disk")


async def test_attributes_of_an_actor_that_are_not_declared_can_not_be_called():
    with pytest.raises(ActorError, match="no handler 'answer'"):
        await asked("secret", kind="answer")
    with pytest.raises(ActorError, match="no handler '__init__'"):
        await asked("secret", kind="__init__")


async def test_a_declared_method_that_this_actor_lacks_is_an_error():
    with pytest.raises(ActorError, match="actor-1 has no handler 'add_nodes'"):
        await asked(None, kind=ADD_NODES.name)


@given(st.binary(max_size=200))
async def test_garbage_is_answered_with_an_error(data):
    dispatcher = Dispatcher("actor-1", Actor(ActorStatus("is well")), LIMITS)

    with pytest.raises(ActorError):
        decode_reply("actor-1", STATUS, await dispatcher.receive(data), LIMITS)


async def test_a_message_of_another_type_is_refused_by_field():
    with pytest.raises(ActorError, match=r"PageRequest\.count: want int"):
        await asked_raw([3, "many"])


async def test_a_too_long_message_is_refused():
    with pytest.raises(ActorError, match="are more than 10000"):
        await asked_raw([3, "x" * 20_000])


async def test_a_reply_of_another_type_is_refused():
    with pytest.raises(CodecError, match="ActorStatus: want a list of 8"):
        await asked("not a status")


async def test_a_reply_that_can_not_be_packed_is_an_error():
    with pytest.raises(ActorError, match="cannot be packed"):
        await asked(ActorStatus("lone \ud800 surrogate"))


async def test_a_reply_that_is_too_long_for_the_caller_is_refused():
    with pytest.raises(CodecError, match="are more than 10000"):
        await asked(ActorStatus("x" * 20_000))


def test_an_answer_that_is_neither_reply_nor_error_is_refused():
    data = Envelope("lease", 0, 0, "", None).encode()

    with pytest.raises(CodecError, match="actor-1 answered with 'lease'"):
        decode_reply("actor-1", STATUS, data, LIMITS)


async def test_a_cancelled_handler_sends_no_answer():
    with pytest.raises(asyncio.CancelledError):
        await asked(asyncio.CancelledError())


def test_a_name_is_declared_once():
    with pytest.raises(AssertionError, match="method status is declared twice"):
        method("status", PageRequest, PageRequest)

    assert METHODS["status"] is STATUS


def test_a_missed_deadline_names_actor_method_and_time():
    assert (
        str(deadline_error("worker-0", "evaluate", 1.5))
        == "worker-0 did not answer evaluate within 1.5 s"
    )


@dataclass(frozen=True, slots=True)
class Unsendable:
    value: complex


async def test_a_reply_of_a_type_that_can_not_be_encoded_is_an_error():
    with pytest.raises(ActorError, match="cannot be packed"):
        await asked(Unsendable(1j))
