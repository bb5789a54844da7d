"""CopyLink: sends the journal's steps to its copy; replies wait until both are durable.

RecordedDisk ── before each sync: send ──► CopyLink ── one message at a time ──► journal copy
reply of the binder ── confirmed ──► waits until the copy has what the journal has
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from roadstead.actors.interface import (
    ActorError,
    ActorLostError,
    DeadlineError,
    FencedError,
    Ref,
)
from roadstead.actors.logs import log
from roadstead.actors.messages.journal_copy import BEGIN_COPY, WRITE_COPY
from roadstead.journal_copy import (
    CopyBegin,
    CopyFencedError,
    CopySender,
    CopyState,
    CopyWrite,
)

RESEND_S = 5.0
"""Time without an answer after which a message is sent again; the copy may get it twice."""

RESEND_PAUSE_S = 0.1
"""Pause before a message is sent again after an error."""


class CopyLink:
    """The binder's side of the copy.

    find: looks the copy up. halt: called with the reason when the binder must acknowledge nothing
    more, since another one has the copy, or a file cannot be read. failure: that reason, or "".
    """

    def __init__(
        self,
        sender: CopySender,
        find: Callable[[], Ref],
        halt: Callable[[str], None],
        confirm_s: float,
    ) -> None:
        """confirm_s: how long a reply waits for the copy."""
        self.failure = ""
        self._sender, self._find, self._halt = sender, find, halt
        self._confirm_s = confirm_s
        self._ref: Ref | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sending: asyncio.Task[None] | None = None
        self._last_failure = ""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def send(self) -> None:
        """Send what is due, unless a message is under way. The message leaves before this returns.

        So the copy's disk works while the caller syncs its own. Does nothing before `start`.
        """
        if self._loop is None or self.failure:
            return
        if self._sending is not None and not self._sending.done():
            return
        try:
            message = self._sender.next_message()
            if message is not None:
                self._sending = self._loop.create_task(self._send_all(self._begin(message)))
        except (CopyFencedError, OSError) as failure:
            self._fail(str(failure))

    def start(self) -> None:
        """Allow messages: the loop of the actor runs."""
        self._loop = asyncio.get_running_loop()
        self.send()

    def _begin(self, message: CopyBegin | CopyWrite) -> Coroutine[Any, Any, CopyState]:
        if self._ref is None:
            self._ref = self._find()
        if isinstance(message, CopyBegin):
            return self._ref.begin(BEGIN_COPY, message, timeout_s=RESEND_S)
        return self._ref.begin(WRITE_COPY, message, timeout_s=RESEND_S)

    async def _send_all(self, reply: Coroutine[Any, Any, CopyState]) -> None:
        """Wait for the reply, then send what else is due, until nothing is."""
        while True:
            try:
                self._sender.answered(await reply)
                self._last_failure = ""
            except FencedError as fenced:
                self._sender.fence()
                self._fail(str(fenced))
                return
            except (ActorError, ActorLostError, DeadlineError) as failure:
                self._last_failure = str(failure)
                log("binder", "the journal's copy does not answer", why=self._last_failure)
                await asyncio.sleep(RESEND_PAUSE_S)
            self._wake()
            try:
                message = self._sender.next_message()
                if message is None:
                    return
                reply = self._begin(message)
            except (CopyFencedError, OSError) as failure:
                self._fail(str(failure))
                return

    def _fail(self, why: str) -> None:
        self.failure = why
        self._halt(f"copy of the journal: {why}")
        self._wake()

    def _wake(self) -> None:
        """End the waits for confirmed steps; all waits if no step will be confirmed any more."""
        waiting: list[tuple[int, asyncio.Future[None]]] = []
        for wanted, future in self._waiting:
            if future.done():
                continue
            if self.failure or self._sender.confirmed >= wanted:
                future.set_result(None)
            else:
                waiting.append((wanted, future))
        self._waiting = waiting

    async def confirmed(self) -> None:
        """Return when the copy has everything that the journal has made durable by now.

        ActorLostError if it never will have: for callers, this binder is gone, and they find the
        next one. DeadlineError after `confirm_s`: nothing is lost, and they may send their message
        again.
        """
        wanted = self._sender.required
        self.start()
        if self._sender.confirmed < wanted and not self.failure:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((wanted, future))
            try:
                async with asyncio.timeout(self._confirm_s):
                    await future
            except TimeoutError:
                why = self._last_failure and f": {self._last_failure}"
                raise DeadlineError(
                    f"the copy of the journal did not confirm within {self._confirm_s:g} s{why}"
                ) from None
        if self.failure:
            raise ActorLostError(f"binder: {self.failure}")

    def pair_again(self) -> None:
        """Begin again with a new process of the copy, without waiting for the former one."""
        self.close()
        self._ref = None
        self._sender.pair_again()
        self.start()

    def close(self) -> None:
        """Send nothing more."""
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
