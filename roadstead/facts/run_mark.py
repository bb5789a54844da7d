"""What a journal says of the run that writes it."""

from __future__ import annotations

from dataclasses import dataclass

BEGUN, RESUMED, FINISHED, EPOCH = "begun", "resumed", "finished", "epoch"
VOID = "void"


@dataclass(frozen=True, slots=True)
class RunMark:
    """A run began, went on or ended; or an owner's epoch, or a token under which nothing will be
    committed any more, which stand in the record.

    digest: of the inputs and of all that decides placements, for BEGUN and RESUMED.
    """

    what: str
    digest: str = ""
