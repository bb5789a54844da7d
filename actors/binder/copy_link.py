"""CopyLink: sends the journal's steps (file operations) to its copy; replies wait for them.

The binder first pairs with the copy (CopyBegin), which then refuses earlier binders.

RecordedDisk ── before each sync: send ──► CopyLink ── one message at a time ──► journal copy
reply of the binder ── wait_confirmed ──► waits until the copy has what the journal has

A RecordedDisk is the journal's disk: it numbers its steps for the CopySender, which makes the
messages. `required` and `confirmed` are such numbers: of the last step that the copy must have, and
of the last step that it reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from roadstead.actors.interface import ActorLostError, DeadlineError, FencedError, Ref
from roadstead.actors.logs import log
from roadstead.actors.messages.journal_copy import BEGIN_COPY, WRITE_COPY
from roadstead.journal_copy import (
    CopyBegin,
    CopyFencedError,
    CopySender,
    CopyState,
    CopyWrite,
)
from roadstead.protocol.errors import RoadsteadError

RESEND_S = 5.0
"""Time without an answer after which a message is sent again; the copy may receive it twice."""

RESEND_PAUSE_S = 0.1
"""Pause before a message is sent again after an error."""


class CopyLink:
    """The binder's connection to the copy of its journal.

    find: looks up the actor of the copy. halt: called with the reason when the binder must not
    acknowledge anything any more: another binder uses the copy, or a file of the journal cannot be
    read. failure: that reason, or "".
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
        # (number of the last step that must be confirmed, future of the waiting reply)
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def send(self) -> None:
        """Send the next message if one is due and none is under way. Does nothing before `start`.

        On Ray the message is sent before this returns, so that the disk of the copy works while the
        caller syncs its own.
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
        """Allow messages, from now on; call it in the actor's running event loop."""
        self._loop = asyncio.get_running_loop()
        self.send()

    def _begin(self, message: CopyBegin | CopyWrite) -> Coroutine[Any, Any, CopyState]:
        """Send a message (on Ray at once, else when the result is awaited); return the reply."""
        if self._ref is None:
            self._ref = self._find()
        if isinstance(message, CopyBegin):
            return self._ref.begin(BEGIN_COPY, message, timeout_s=RESEND_S)
        return self._ref.begin(WRITE_COPY, message, timeout_s=RESEND_S)

    async def _send_all(self, reply: Coroutine[Any, Any, CopyState]) -> None:
        """Wait for the reply and send the next message, until none is due."""
        while True:
            try:
                self._sender.answered(await reply)
                self._last_failure = ""
            except FencedError as fenced:
                self._sender.fence()
                self._fail(str(fenced))
                return
            except RoadsteadError as failure:
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
        """Wake the replies whose steps are confirmed; after a failure all of them."""
        waiting: list[tuple[int, asyncio.Future[None]]] = []
        for wanted, future in self._waiting:
            if future.done():
                continue
            if self.failure or self._sender.confirmed >= wanted:
                future.set_result(None)
            else:
                waiting.append((wanted, future))
        self._waiting = waiting

    async def wait_confirmed(self) -> None:
        """Return when the copy has everything that the journal has made durable by now.

        ActorLostError if it never will: callers then regard this binder as lost, and look up its
        replacement. DeadlineError after `confirm_s`: nothing is lost, and they may resend.
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
        """Pair with a new process of the copy; ignore replies of the former one."""
        self.close()
        self._ref = None
        self._sender.pair_again()
        self.start()

    def close(self) -> None:
        """Send nothing more."""
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
