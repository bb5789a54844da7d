"""Dispatch of envelopes to the handlers of an actor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from roadstead.actors.interface import (
    BUGS,
    ERROR,
    METHODS,
    NOTHING,
    REPLY,
    ActorError,
    Failure,
    FencedError,
    encode_failure,
)
from roadstead.actors.logs import ROOT
from roadstead.actors.messages.common import STATUS, ActorStatus
from roadstead.actors.messages.process import FENCE, PROCESS_CALLS, Fences
from roadstead.actors.runtime.process_calls import answer_process_call
from roadstead.actors.runtime.transcript import Transcript
from roadstead.protocol.codec import Envelope, from_wire, to_message, to_wire
from roadstead.protocol.plain_data import DecodeLimits


def error_reply(failure: BaseException) -> bytes:
    """Return the encoded reply that raises an error at the caller."""
    return _encoded(encode_failure(failure))


def _encoded(failure: Failure) -> bytes:
    return Envelope(ERROR, 0, 0, "", to_wire(failure)).encode()


class Dispatcher:
    """Dispatcher of received envelopes to the handlers of one actor.

    To the text of an unexpected error (`BUGS`) it appends the actor's last messages, whether a
    handler raised it or the actor's status reports that one of its tasks did.

    If the actor has a method `before_reply`, each reply waits for it: with it the binder flushes
    its journal before it acknowledges.

    _fences: sender → the epoch below which its messages are refused.
    """

    __slots__ = (
        *("_actor", "_before_reply", "_collect_warnings", "_fences", "_limits", "_transcript"),
        "name",
    )

    def __init__(
        self,
        name: str,
        actor: object,
        limits: DecodeLimits,
        collect_warnings: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        """collect_warnings: returns the warnings of this process that the driver does not have."""
        self.name = name
        self._collect_warnings = collect_warnings
        self._actor = actor
        self._before_reply = getattr(actor, "before_reply", None)
        self._limits = limits
        self._fences: dict[str, int] = {}
        self._transcript = Transcript(name)

    async def receive(self, data: bytes) -> bytes:
        """Handle one envelope and return the encoded reply; an exception is encoded as a reply."""
        try:
            envelope = Envelope.decode(data, self._limits, typed=True)
            reply = await self._handle(envelope, data)
            return Envelope(REPLY, envelope.seq, envelope.epoch, envelope.token, reply).encode()
        except asyncio.CancelledError:
            raise
        except Exception as failure:
            out = encode_failure(failure)
            if out.kind in BUGS:
                logger = logging.getLogger(f"{ROOT}.{self.name}")
                logger.info("a handler failed", exc_info=failure)
                out = replace(out, text=out.text + self._transcript.excerpt(out.text))
            return _encoded(out)

    async def status(self) -> ActorStatus:
        """Return the actor's status by a direct call; an empty one if the actor has no handler."""
        handler = getattr(self._actor, STATUS.name, None)
        reply = None if handler is None else await handler(NOTHING)
        return reply if isinstance(reply, ActorStatus) else ActorStatus("")

    def release(self) -> None:
        """Release the resources of an actor that ended while its process continues."""
        release = getattr(self._actor, "release", None)
        if release is not None:
            release()

    async def _handle(self, envelope: Envelope, data: bytes) -> object:
        # token: the sender. Epoch 0 is that of senders without incarnations, such as the client.
        if envelope.epoch < self._fences.get(envelope.token, 0) and envelope.epoch:
            raise FencedError(f"{self.name}: {envelope.token} of epoch {envelope.epoch} is over")
        if envelope.kind in PROCESS_CALLS:
            return await answer_process_call(envelope.kind, envelope.body)
        self._transcript.note(envelope, data)
        method = METHODS.get(envelope.kind)
        if method is FENCE:
            # A copy of an earlier message may arrive late: no fence is lowered.
            for sender, epoch in from_wire(Fences, envelope.body).epochs:
                self._fences[sender] = max(epoch, self._fences.get(sender, 0))
            return to_wire(NOTHING)
        handler = getattr(self._actor, envelope.kind, None) if method is not None else None
        if method is None or handler is None:
            raise ActorError(f"{self.name} has no handler {envelope.kind!r}")
        reply = await handler(from_wire(method.message, envelope.body))
        if self._before_reply is not None:
            await self._before_reply(envelope.kind)
        if method is STATUS and isinstance(reply, ActorStatus):
            if reply.error_kind in BUGS:
                reply = replace(reply, error=reply.error + self._transcript.excerpt(reply.error))
            if warnings := self._collect_warnings():
                reply = replace(reply, warnings=warnings)
        return to_message(reply)
