"""Drives what is decided in steps within one process, where nothing has to be waited for."""

from __future__ import annotations

from contextlib import closing
from typing import TypeVar

from roadstead.cycle.needs import CallExtenders, Need, Phase, Prepare, Steps

T = TypeVar("T")


def run_now(steps: Steps[T]) -> T:
    """The result of steps: extenders are called here, time stands still, nothing accelerates."""
    with closing(steps):
        answer: object = None
        while True:
            try:
                need = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = _met(need)


def _met(need: Need) -> object:
    match need:
        case CallExtenders(_, work):
            return work()
        case Prepare() | Phase():
            return None
    return 0.0
