"""Errors that end a simulated run, and the bounds of a scenario that raise one of them."""

from __future__ import annotations

from typing import Final

from roadstead.protocol.errors import RoadsteadError

MIB_BYTES: Final = 1 << 20


class LimitExceededError(RoadsteadError):
    """A run exceeds a bound of its scenario."""


class PartDiffersError(RoadsteadError):
    """A run was played again and gave other rows than in a part of a table that it wrote before.

    A part is one file of a table, see `tables.py`.
    """


def check_memory(limit_bytes: int, memory_bytes: int) -> None:
    """Raise LimitExceededError if the process uses more memory than it may."""
    if memory_bytes > limit_bytes:
        used, most = memory_bytes // MIB_BYTES, limit_bytes // MIB_BYTES
        raise LimitExceededError(
            f"the process uses {used:,} MiB, and may use {most:,} MiB (limits.memory_mib)"
        )
