"""Driver of a generator of core code on actors: each request that it yields is awaited.

`roadstead/local/drive.py` does the same in one process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from typing import TypeVar

T = TypeVar("T")
NeedT = TypeVar("NeedT")


async def drive(
    steps: Generator[NeedT, object, T], handle: Callable[[NeedT], Awaitable[object]]
) -> T:
    """Run `steps` to its end and return its result; `handle` answers each request that it yields.

    An exception from `handle` is raised inside `steps`, at the `yield` of the request.
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
                answer = await handle(need)
            except Exception as raised:
                failure = raised
