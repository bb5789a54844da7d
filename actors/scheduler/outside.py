"""Calls to extenders from an actor: in a thread, unless they are answered in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from roadstead.extenders.chain import Extenders

T = TypeVar("T")


async def call_outside(extenders: Extenders, work: Callable[[], T]) -> T:
    """The result of work that calls extenders; the loop goes on meanwhile.

    Extenders of this process answer at once, and what they say that it took passes on the loop's
    clock, which may be virtual.
    """
    if extenders.in_process is None:
        return await asyncio.to_thread(work)
    try:
        return work()
    finally:
        await asyncio.sleep(extenders.in_process.take_spent_s())
