"""Records of a journal about the run that writes it."""

from __future__ import annotations

from dataclasses import dataclass

BEGUN, FINISHED, EPOCH, VOID = "begun", "finished", "epoch", "void"
"""What a record is about: the start or end of a run, an owner's epoch, or a void token."""


@dataclass(frozen=True, slots=True)
class RunMark:
    """A record about the run. what: BEGUN, FINISHED, EPOCH or VOID.

    Epoch and token are fields of the journal record. Nothing is committed under a void token.
    digest: for BEGUN, of the inputs and of all that decides placements; for FINISHED, of the
    outcome, which is stored in a file next to the journal.
    """

    what: str
    digest: str = ""
