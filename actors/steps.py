"""Drives the steps of core code over actors: each need is awaited, then the steps go on.

`roadstead/local/drive.py` does the same in one process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from typing import TypeVar

T = TypeVar("T")
NeedT = TypeVar("NeedT")


async def drive(
    steps: Generator[NeedT, object, T], meet: Callable[[NeedT], Awaitable[object]]
) -> T:
    """The result of steps whose needs are met one by one.

    What `meet` raises is raised where the need was; steps that do not expect it there end with it.
    """
    with closing(steps):
        answer: object = None
        failure: Exception | None = None
        while True:
            try:
                need = steps.send(answer) if failure is None else steps.throw(failure)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = failure = None
            try:
                answer = await meet(need)
            except Exception as raised:
                failure = raised
