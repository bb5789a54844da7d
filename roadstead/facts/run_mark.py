"""Run marks: records of a journal about the run that writes it, not about a pod or node."""

from __future__ import annotations

from dataclasses import dataclass

BEGUN, FINISHED, EPOCH, VOID = "begun", "finished", "epoch", "void"
"""What a record is about: the start or end of a run, an owner's epoch, or a void token."""


@dataclass(frozen=True, slots=True)
class RunMark:
    """The start or end of a run, a scheduler's epoch, or a void token.

    Epoch and token are fields of the journal record. Nothing is committed under a void token.

    what: one of the four constants. digest: for BEGUN, of the run's inputs and configuration, by
    which a restarted run recognizes its own journal; for FINISHED, of the file with the run's
    outcome, which is next to the journal.
    """

    what: str
    digest: str = ""
