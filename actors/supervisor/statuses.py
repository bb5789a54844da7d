"""Statuses: requests the status of each actor, and words the error of one that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from roadstead.actors.interface import (
    NOTHING,
    TRANSCRIPT,
    ActorLostError,
    Announce,
    DeadlineError,
    Failure,
    Ref,
    RunFailedError,
    Runtime,
    clock_s,
    decode_failure,
    ignore_message,
)
from roadstead.actors.logs import log
from roadstead.actors.messages import STATUS, ActorStatus
from roadstead.actors.names import WORKER
from roadstead.actors.process_warnings import WarningLimit
from roadstead.actors.supervisor.plugin_processes import last_call_of
from roadstead.protocol.errors import InputError, RoadsteadError, UnsupportedError
from roadstead.run import RunPlan

SILENT_POLLS = 4
"""Unanswered status requests (`deadlines.call_s` each) after which a worker counts as lost."""

_SILENT = ActorStatus("has not answered yet")


class ActorGoneError(RunFailedError):
    """An actor is lost or silent; other actors may fail without it."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


class Statuses:
    """The statuses of the actors of a run, by name.

    last: the last known ones. _silent: status requests in a row that a worker did not answer.
    """

    def __init__(
        self,
        refs: Mapping[str, Ref],
        runtime: Runtime,
        plan: RunPlan,
        journal_text: Callable[[], str],
    ) -> None:
        """refs: to the present incarnations. journal_text: returns where the run's binds are
        recorded, as the end of a sentence.
        """
        self._refs = refs
        self._runtime = runtime
        self._plan = plan
        self._journal_text = journal_text
        self._silent: dict[str, int] = {}
        self._announce: Announce = ignore_message
        self._limit = WarningLimit()
        self.last: dict[str, ActorStatus] = {}

    def report_to(self, announce: Announce) -> None:
        """Send warnings of the actors' processes to this function, within `WarningLimit`."""
        self._announce = announce

    def report_left_out(self) -> None:
        """Report how many warnings were not shown."""
        for line in self._limit.left_out():
            self._announce(line)

    def _report(self, name: str, warnings: tuple[str, ...]) -> None:
        node = self._runtime.node_of(name)
        where = f"Warning on {node}" if node else "Warning"
        for line in self._limit.admitted((f"{where}: {each}" for each in warnings), clock_s()):
            self._announce(line)

    async def failures(
        self, timeout_s: float | None = None, return_when: str = asyncio.ALL_COMPLETED
    ) -> list[BaseException]:
        """Request the status of all actors; return the failures that are known in time."""
        status_calls = [asyncio.create_task(self.of(name)) for name in self._refs]
        try:
            done, _ = await asyncio.wait(status_calls, timeout=timeout_s, return_when=return_when)
        finally:
            for task in status_calls:
                task.cancel()
            await asyncio.gather(*status_calls, return_exceptions=True)
        failures = (task.exception() for task in status_calls if task in done)
        return [failure for failure in failures if failure is not None]

    async def of(self, name: str) -> ActorStatus:
        """Return the status of an actor. RunFailedError if it is lost or cannot continue."""
        timeout_s = self._plan.settings.deadlines.call_s
        try:
            status = await self._refs[name].call(STATUS, NOTHING, timeout_s=timeout_s)
        except (ActorLostError, DeadlineError) as failure:
            if isinstance(failure, DeadlineError) and self._count_silence(name):
                return self.last.get(name, _SILENT)
            raise ActorGoneError(self.error_text(name, str(failure)), name) from failure
        self._silent.pop(name, None)
        self.last[name] = status
        if status.warnings:
            self._report(name, status.warnings)
        if status.error:
            raise self._error_of_stopped(name, status)
        return status

    async def last_of(self, name: str) -> ActorStatus:
        """Return the status of an actor, or its last one if it is about to be replaced.

        RunFailedError if it cannot continue.
        """
        try:
            return await self.of(name)
        except ActorGoneError:
            return self.last.get(name, _SILENT)

    def _count_silence(self, name: str) -> bool:
        """Count a missed status request; return whether the actor, as a worker, gets more time."""
        if not name.startswith(WORKER):
            return False
        self._silent[name] = self._silent.get(name, 0) + 1
        log("supervisor", "a worker is silent", worker=name, looks=self._silent[name])
        return self._silent[name] < SILENT_POLLS

    def _error_of_stopped(self, name: str, status: ActorStatus) -> RoadsteadError:
        """Return the error of an actor: bad input as it is, anything else with its last status."""
        failed = decode_failure(name, Failure(status.error_kind, status.error, status.error_parts))
        if isinstance(failed, (InputError, UnsupportedError)):
            return failed
        node = self._runtime.node_of(name)
        where = f"{name} on {node}" if node else name
        return RunFailedError(self.error_text(name, f"{where} cannot continue: {status.error}"))

    def error_text(self, name: str, what: str) -> str:
        """Return the end of a run for this reason, with the last status of the actor."""
        last = self.last.get(name)
        did = f" It {last.text}." if last is not None else ""
        did += last_call_of(name, self._plan)
        # The transcript of the actor, if there is one, stays at the end.
        what, marker, transcript = what.partition(TRANSCRIPT)
        end = f"The run ends here; {self._journal_text()}."
        return f"{what}.{did} {end}{marker}{transcript}"
