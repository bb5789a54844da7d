"""Checks of the values that plugins' methods return: one function per type of answer.

A check returns the answer, some of them in the type that the framework computes with, or raises
WrongAnswerError. args: the arguments of the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np

from roadstead.framework.events import RegisteredEvent
from roadstead.framework.plugin import Effect, FilterResult, PreFilterResult
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.nodes.columns import I64
from roadstead.protocol.errors import cut_short
from roadstead.protocol.status import Code, Status

Args = tuple[Any, ...]
"""The arguments of a plugin's method, without `self`."""


class WrongAnswerError(Exception):
    """A plugin's method returned a value that it must not return."""


def wrong(answer: object, wanted: str) -> WrongAnswerError:
    """Return the error of an answer. wanted: what the method must return."""
    return WrongAnswerError(f"returned {shown(answer)}, want {wanted}")


def shown(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"{answer.dtype}{list(answer.shape)}"
    return cut_short(answer)


def status(answer: object, args: Args) -> Status:
    if not isinstance(answer, Status):
        raise wrong(answer, "a Status")
    if not isinstance(answer.code, Code) or not isinstance(answer.reasons, tuple):
        raise wrong(answer, "a Status of a Code and a tuple of texts")
    if not all(isinstance(reason, str) for reason in answer.reasons):
        raise wrong(answer.reasons, "reasons that are texts")
    return answer


def pre_filter_result(answer: object, args: Args) -> PreFilterResult:
    if not isinstance(answer, PreFilterResult):
        raise wrong(answer, "a PreFilterResult")
    status(answer.status, args)
    names = answer.node_names
    if names is not None and not (
        isinstance(names, frozenset) and all(isinstance(name, str) for name in names)
    ):
        raise wrong(names, "node names as a frozenset of texts, or None")
    return answer


def filter_result(answer: object, args: Args) -> FilterResult:
    """Check a result of Filter. args: (state, pod, table)."""
    if not isinstance(answer, FilterResult):
        raise wrong(answer, "a FilterResult")
    if answer.codes is None:
        return answer
    codes = integers(answer.codes, len(args[2]))
    for each in answer.statuses:
        status(each, args)
    unknown = codes[(codes < 0) | (codes > len(answer.statuses))]
    if len(unknown):
        raise WrongAnswerError(f"returned code {unknown[0]}, want 0..{len(answer.statuses)}")
    return FilterResult(codes.astype(np.int32), tuple(answer.statuses))


def integers(answer: object, rows: int) -> I64:
    """Return the answer as int64[rows]; NaN and fractions are refused instead of truncated."""
    wanted = f"int64[{rows}]"
    if not isinstance(answer, np.ndarray) or answer.shape != (rows,):
        raise wrong(answer, wanted)
    if answer.dtype.kind == "f" and np.isnan(answer).any():
        raise WrongAnswerError(f"returned NaN, want {wanted}")
    if answer.dtype.kind not in "iu" or answer.dtype == np.uint64:
        raise wrong(answer, wanted)
    numbers: I64 = answer.astype(np.int64, copy=False)
    return numbers


def scores(answer: object, args: Args) -> I64:
    """Check raw scores. args: (state, pod, table)."""
    return integers(answer, len(args[2]))


def normalized(answer: object, args: Args) -> I64:
    """Check normalized scores. args: (state, pod, raw, extremes)."""
    return integers(answer, len(args[2]))


def post_filter_result(answer: object, args: Args) -> PostFilterResult:
    if not isinstance(answer, PostFilterResult):
        raise wrong(answer, "a PostFilterResult")
    status(answer.status, args)
    return answer


def texts(answer: object, args: Args) -> tuple[str, ...]:
    """Check the details that an explanation adds."""
    if not isinstance(answer, tuple) or not all(isinstance(each, str) for each in answer):
        raise wrong(answer, "a tuple of texts")
    return answer


def permission(answer: object, args: Args) -> tuple[Status, float]:
    """Check an answer of Permit."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise wrong(answer, "a Status and seconds")
    result, timeout_s = answer
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
        raise wrong(timeout_s, "seconds")
    return status(result, args), timeout_s


def anything(answer: object, args: Args) -> object:
    return answer


def nothing(answer: object, args: Args) -> None:
    """Accept and drop any value, for a method that should return None."""
    return None


def truth_value(answer: object, args: Args) -> bool:
    """Return any value as a bool; raises what the conversion raises."""
    return bool(answer)


def hashable(answer: object, args: Args) -> object:
    hash(answer)
    return answer


def effect(answer: object, args: Args) -> Effect:
    if not isinstance(answer, Effect):
        raise wrong(answer, "an Effect")
    hash(answer)
    return answer


def candidate_count(answer: object, args: Args) -> int | None:
    """Check how many candidates a dry run of preemption should find."""
    if answer is None:
        return None
    if isinstance(answer, bool) or not isinstance(answer, int) or answer < 0:
        raise wrong(answer, "a number of candidates, or None")
    return answer


def passing_count(answer: object, args: Args) -> int:
    """Check an answer of `count_passing`. args: (pods, table, rows)."""
    if isinstance(answer, bool) or not isinstance(answer, int):
        raise wrong(answer, "how many of the first pods are admitted")
    if not 0 <= answer <= len(args[0]):
        raise wrong(answer, f"a number from 0 to {len(args[0])}, the number of pods")
    return answer


def sort_key(answer: object, args: Args) -> tuple[float | str, ...]:
    """Return a key that can be compared with any other key.

    Each part is preceded by a rank of its type, so that texts are never compared with numbers.
    """
    if not isinstance(answer, tuple):
        raise wrong(answer, "a tuple of numbers and texts")
    parts: list[float | str] = []
    for part in answer:
        if isinstance(part, str):
            parts += (1.0, part)
        elif isinstance(part, int | float) and not isnan(part):
            parts += (0.0, part)
        else:
            raise wrong(part, "a number or a text")
    return tuple(parts)


def events(answer: object, args: Args) -> tuple[RegisteredEvent, ...]:
    if isinstance(answer, Sequence) and all(isinstance(each, RegisteredEvent) for each in answer):
        return tuple(answer)
    raise wrong(answer, "RegisteredEvents")
