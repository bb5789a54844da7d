"""What a journal says of the run that writes it."""

from __future__ import annotations

from dataclasses import dataclass

BEGUN, RESUMED, FINISHED, EPOCH = "begun", "resumed", "finished", "epoch"


@dataclass(frozen=True, slots=True)
class RunMark:
    """A run began, went on or ended; or an owner's epoch, which stands in the record.

    digest: of the inputs and of all that decides placements, for BEGUN and RESUMED.
    """

    what: str
    digest: str = ""
