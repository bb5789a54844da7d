"""Calls to extenders from an actor: in a thread, unless the extenders run in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from roadstead.extenders.sequence import Extenders

T = TypeVar("T")


async def call_extenders(extenders: Extenders, work: Callable[[], T]) -> T:
    """Run work that calls extenders, without blocking the loop, and return its result.

    Extenders in this process answer at once; the time that they report is then slept on the loop's
    clock, which may be virtual.
    """
    if extenders.in_process is None:
        return await asyncio.to_thread(work)
    try:
        return work()
    finally:
        await asyncio.sleep(extenders.in_process.pop_time_s())
