"""JournalCopies: where a run's journal is, and the promotion of its copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from roadstead.actors.interface import (
    ActorError,
    ActorLostError,
    DeadlineError,
    Ref,
    RunFailedError,
    Runtime,
)
from roadstead.actors.logs import log
from roadstead.actors.messages.journal_copy import PROMOTE
from roadstead.actors.names import JOURNAL_COPY
from roadstead.journal_copy import Promote, Promoted
from roadstead.run import RunPlan

TRIES = 3
"""How often the request to become the journal is sent to the copy."""


class JournalCopies:
    """The journal and its copy, for the supervisor.

    plan: of the next binder, with the folder that holds the journal. least_lsn: number of the last
    record that the journal must have.
    """

    def __init__(self, runtime: Runtime, plan: RunPlan) -> None:
        self.plan = plan
        self.least_lsn = 0
        self._runtime = runtime

    @property
    def has_copy(self) -> bool:
        settings = self.plan.settings
        return settings.journal is not None and settings.journal_copy is not None

    def loss(self) -> str:
        """Return how the journal was lost; "" if it is there, or has no copy."""
        return self._runtime.journal_lost() if self.has_copy else ""

    def text(self) -> str:
        """Return where the journal is, for messages."""
        node = self._runtime.journal_node() if self.has_copy else ""
        return f"{self.plan.settings.journal}{node and f' on {node}'}"

    async def promote(self, refs: Mapping[str, Ref], lost: str, *, epoch: int) -> None:
        """Make the copy the journal of a new binder with this epoch.

        From then on the copy refuses the old binder, which may still run, cut off from the network.
        RunFailedError if it is lost, too, or not complete.
        """
        timeout_s = self.plan.settings.deadlines.call_s
        promoted = Promoted(why="it does not answer")
        for _ in range(TRIES):
            try:
                promoted = await refs[JOURNAL_COPY].call(
                    PROMOTE, Promote(epoch), timeout_s=timeout_s
                )
                break
            except (ActorError, ActorLostError, DeadlineError) as failure:
                promoted = Promoted(why=str(failure))
        folder = self.plan.settings.journal_copy
        if promoted.why:
            raise RunFailedError(
                f"The journal is lost with its node ({lost}), and its copy in {folder} cannot "
                f"replace it: {promoted.why}. The run ends here; restore the journal's disk, and "
                "--resume continues it."
            )
        self.least_lsn = max(self.least_lsn, promoted.lsn)
        self.plan = replace(
            self.plan, settings=self.plan.settings.model_copy(update={"journal": folder})
        )
        self._runtime.move_journal()
        log("supervisor", "copy promoted", lsn=promoted.lsn, journal=self.text(), lost=lost)
