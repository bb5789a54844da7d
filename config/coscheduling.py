"""Arguments of Coscheduling as written.

Upstream: kubernetes-sigs/scheduler-plugins, apis/config/v1/types.go (CoschedulingArgs).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from roadstead.config.errors import Problem, invalid
from roadstead.config.go_struct import Int64
from roadstead.config.schema_args import Args

PERMIT_WAIT_S: Final = 60
"""Time that Permit waits by default."""
PERMIT_WAIT_MAX_S: Final = 900
"""Upstream's bound of the time that Permit may wait."""


class V1CoschedulingArgs(Args):
    """Arguments of Coscheduling."""

    permit_waiting_time_seconds: Int64 | None = None


def validate_coscheduling(path: str, args: V1CoschedulingArgs) -> Iterator[Problem]:
    """Yield a problem if Permit cannot wait for this time."""
    wait_s = args.permit_waiting_time_seconds
    if wait_s is not None and not 0 < wait_s <= PERMIT_WAIT_MAX_S:
        rule = f"not in valid range [1, {PERMIT_WAIT_MAX_S}]"
        yield invalid(f"{path}.permitWaitingTimeSeconds", wait_s, rule)
