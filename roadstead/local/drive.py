"""Drivers of generators in one process, where each need is answered without waiting.

Such a generator, here called *steps*, yields needs, which its driver answers (`cycle.needs`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TypeVar

from roadstead.cycle.needs import CallExtenders, Need, NeedGenerator, Phase, Prepare

T = TypeVar("T")
NeedT = TypeVar("NeedT")


def drive(steps: Generator[NeedT, object, T], answer_need: Callable[[NeedT], object]) -> T:
    """Return the result of steps; `answer_need` answers their needs one by one.

    An exception of `answer_need` is raised in the steps, at the need; if they do not catch it, they
    end with it.
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
                answer = answer_need(need)
            except Exception as raised:
                failure = raised


def run_now(steps: NeedGenerator[T]) -> T:
    """Return the result of steps: extenders are called here, the time is 0, there is no kernel."""
    return drive(steps, _answer)


def _answer(need: Need) -> object:
    match need:
        case CallExtenders(_, work):
            return work()
        # The answer to `Prepare` is the kernel or None; that to `Phase`, a mark for measured times,
        # is ignored.
        case Prepare() | Phase():
            return None
    return 0.0
