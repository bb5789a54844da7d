"""What a journal says of the run that writes it."""

from __future__ import annotations

from dataclasses import dataclass

BEGUN, FINISHED, EPOCH = "begun", "finished", "epoch"
VOID = "void"


@dataclass(frozen=True, slots=True)
class RunMark:
    """A run began or ended; or an owner's epoch, or a token under which nothing will be
    committed any more, which stand in the record.

    digest: of the inputs and of all that decides placements, for BEGUN; for FINISHED,
    of the outcome that is kept beside the journal.
    """

    what: str
    digest: str = ""
