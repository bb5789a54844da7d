"""The outcome of one check of `roadstead plugin test`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from roadstead.cli.plugin.samples import SampleFleet
from roadstead.framework.guarded import PluginFailure


class CheckOutcome(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its outcome. cases: number of comparisons."""

    name: str
    outcome: CheckOutcome
    text: str
    cases: int = 0


def failed_check(name: str, fleet: SampleFleet, failure: Exception, cases: int = 0) -> Check:
    """A check that ended with a failure of the plugin; names the pod if it is known."""
    text = str(failure)
    if not isinstance(failure, PluginFailure):
        text = f"it raises {type(failure).__name__}: {failure}"
    elif failure.facts is not None and not failure.pod:
        text += f", for {fleet.describe_pod(failure.facts)}"
    return Check(name, CheckOutcome.FAILED, fleet.labelled(text), cases)
