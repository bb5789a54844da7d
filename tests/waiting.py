"""Waiting in real time for another process, thread or task: polls a condition, with a bound."""

import asyncio
import time

PAUSE_S = 0.02
"""Pause of `until` between two polls: short beside the start of a process, which most tests await,
and long enough to leave the processor to what is awaited."""


def until(holds, timeout_s):
    """Poll a condition until it holds or the time is over; return whether it holds."""
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(PAUSE_S)
    return True


async def run_until(holds, timeout_s):
    """Run other tasks of the loop until a condition holds; TimeoutError if it never does."""
    async with asyncio.timeout(timeout_s):
        while not holds():
            await asyncio.sleep(0.001)
