"""A run in a notebook has a thread of its own, and ends when the notebook is interrupted."""

import asyncio
import os
import signal

import pytest

from roadstead.actors.runs.event_loops import run_in_thread


def test_the_thread_returns_its_result():
    async def work():
        return 7

    assert run_in_thread(work()) == 7


def test_the_thread_returns_its_failure():
    async def work():
        raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        run_in_thread(work())


def test_an_interrupt_cancels_the_work_and_waits_for_its_end():
    ended = []

    async def work():
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_in_thread(work())
    assert ended == [True]
