"""Status: the result of a plugin (upstream kube-scheduler/framework/interface.go)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Code(IntEnum):
    """Upstream's codes, in upstream's order (messages contain the numbers)."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def upstream_name(self) -> str:
        """The name that upstream prints, e.g. `UnschedulableAndUnresolvable`."""
        return "".join(part.capitalize() for part in self.name.split("_"))


@dataclass(frozen=True, slots=True)
class Status:
    """A code with its reasons. `plugin` is filled in by the framework."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_rejected(self) -> bool:
        """Whether it is one of the unschedulable codes: an expected refusal, not a failure."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})

SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Return that the node (in PreFilter: the pod) does not pass; removing pods could help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return that the node does not pass and removing pods cannot help: preemption skips it."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """Return an internal failure of the cycle, not a statement about the node."""
    return Status(Code.ERROR, reasons)
