"""Guarded plugins: every call of a user's plugin is contained, and its answer checked.

    framework ──► guarded method ──► the plugin's own method ──► check ──► answer
                        ▲                      │ raises             │ wrong type, shape or dtype
                        └──── instead ◄────────┴─── PluginFailure ◄─┘

A guard replaces the methods of one instance; in-tree plugins are not guarded and pay nothing. Where
an answer can say Error, a failure becomes that answer and fails the pod's attempt, as upstream's
Error status does. Where it cannot, `PluginFailure` is raised to the phase. Advice on what may be
reused (`sign`, `affected_by`, …) falls back to the answer that is always right.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan
from typing import Any, TypeVar

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import Summary
from roadstead.framework.events import (
    EVERYTHING,
    Change,
    Hint,
    HintError,
    QueueingHint,
    RegisteredEvent,
)
from roadstead.framework.failures import phase_failure
from roadstead.framework.plugin import (
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    RemembersPods,
    ReservePlugin,
    ScorePlugin,
    SummarizesFilter,
    SummarizesScore,
)
from roadstead.framework.plugin_calls import CALLS, NotAskedError, PluginInterrupt
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.nodes.columns import I64
from roadstead.protocol.errors import UnsupportedError, cut_short
from roadstead.protocol.status import Code, Status

P = TypeVar("P", bound=Plugin)

MAX_TEXT = 300
"""Characters of what a plugin raised that are kept."""

_LOG = logging.getLogger("roadstead.plugins")


class WrongAnswerError(Exception):
    """What a plugin returned is not what its method must return."""


class PluginFailure(Exception):
    """A plugin raised, or returned what it must not. status: an Error under the plugin's name."""

    def __init__(self, point: str, status: Status) -> None:
        super().__init__(f'plugin "{status.plugin}" failed at {point}: {status.message}')
        self.point, self.status = point, status


Args = tuple[Any, ...]
Check = Callable[[object, Args], object]
Instead = Callable[[PluginFailure, Args], object]


@dataclass(frozen=True, slots=True)
class Contained:
    """How calls of one method are contained.

    point: how the method is named to people. check: returns the answer, or raises WrongAnswerError.
    instead: the answer that a failure becomes; None where the failure is raised.
    """

    base: type[Plugin]
    method: str
    point: str
    check: Check
    instead: Instead | None = None


def guard(plugin: P, *, is_strict: bool = False) -> P:
    """The plugin itself, with its methods contained.

    is_strict: every failure is raised, as where a plugin is tested.
    """
    replaced = {
        each.method: _guarded(
            plugin.name,
            replace(each, instead=None) if is_strict else each,
            getattr(plugin, each.method),
        )
        for each in CONTAINED
        if isinstance(plugin, each.base)
    }
    for name, method in replaced.items():
        # A plugin may be a frozen dataclass; what its class says of itself stays as it is.
        object.__setattr__(plugin, name, method)
    object.__setattr__(plugin, "is_guarded", True)
    return plugin


def _guarded(name: str, how: Contained, method: Callable[..., object]) -> Callable[..., object]:
    point, check, instead = how.point, how.check, how.instead

    def call(*args: object) -> object:
        try:
            return check(_watched(name, point, method, args), args)
        except (PluginFailure, UnsupportedError):
            # What this version lacks is refused for the whole run, whoever finds it out.
            raise
        except NotAskedError as why:
            failure = _failure(name, point, str(why))
        except PluginInterrupt:
            # It may have come just before the end of the call was noted.
            CALLS.clear()
            failure = _failure(name, point, f"did not return within {CALLS.limit_s:g} s")
        except WrongAnswerError as wrong:
            failure = _failure(name, point, str(wrong))
        except (Exception, SystemExit) as raised:
            failure = _failure(name, point, f"{type(raised).__name__}: {raised}")
        if instead is None:
            raise failure
        return instead(failure, args)

    return call


def _watched(name: str, point: str, method: Callable[..., object], args: Args) -> object:
    call = CALLS.enter(name, point, args)
    if call is None:
        return method(*args)
    try:
        return method(*args)
    except PluginInterrupt:
        call.is_delivered = True
        raise
    finally:
        CALLS.leave(call)


def _failure(name: str, point: str, text: str) -> PluginFailure:
    text = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
    failure = PluginFailure(point, Status(Code.ERROR, (text,), name))
    _LOG.info("%s", failure)
    return failure


def _wrong(answer: object, wanted: str) -> WrongAnswerError:
    return WrongAnswerError(f"returned {_shown(answer)}, want {wanted}")


def _shown(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"{answer.dtype}{list(answer.shape)}"
    return cut_short(answer)


def _status(answer: object, args: Args) -> Status:
    if not isinstance(answer, Status):
        raise _wrong(answer, "a Status")
    if not isinstance(answer.code, Code) or not isinstance(answer.reasons, tuple):
        raise _wrong(answer, "a Status of a Code and a tuple of texts")
    if not all(isinstance(reason, str) for reason in answer.reasons):
        raise _wrong(answer.reasons, "reasons that are texts")
    return answer


def _pre_filter_result(answer: object, args: Args) -> PreFilterResult:
    if not isinstance(answer, PreFilterResult):
        raise _wrong(answer, "a PreFilterResult")
    _status(answer.status, args)
    names = answer.node_names
    if names is not None and not (
        isinstance(names, frozenset) and all(isinstance(name, str) for name in names)
    ):
        raise _wrong(names, "node names as a frozenset of texts, or None")
    return answer


def _filter_result(answer: object, args: Args) -> FilterResult:
    if not isinstance(answer, FilterResult):
        raise _wrong(answer, "a FilterResult")
    if answer.codes is None:
        return answer
    codes = _whole_numbers(answer.codes, len(args[2]))
    for status in answer.statuses:
        _status(status, args)
    wrong = codes[(codes < 0) | (codes > len(answer.statuses))]
    if len(wrong):
        raise WrongAnswerError(f"returned code {wrong[0]}, want 0..{len(answer.statuses)}")
    return FilterResult(codes.astype(np.int32), tuple(answer.statuses))


def _whole_numbers(answer: object, rows: int) -> I64:
    """int64[rows]; anything else is refused, so that NaN and fractions are not cut in silence."""
    wanted = f"int64[{rows}]"
    if not isinstance(answer, np.ndarray) or answer.shape != (rows,):
        raise _wrong(answer, wanted)
    if answer.dtype.kind == "f" and np.isnan(answer).any():
        raise WrongAnswerError(f"returned NaN, want {wanted}")
    if answer.dtype.kind not in "iu" or answer.dtype == np.uint64:
        raise _wrong(answer, wanted)
    numbers: I64 = answer.astype(np.int64, copy=False)
    return numbers


def _scores(answer: object, args: Args) -> I64:
    """args: (state, pod, table)."""
    return _whole_numbers(answer, len(args[2]))


def _normalized(answer: object, args: Args) -> I64:
    """args: (state, pod, raw, extremes)."""
    return _whole_numbers(answer, len(args[2]))


def _post_filter_result(answer: object, args: Args) -> PostFilterResult:
    if not isinstance(answer, PostFilterResult):
        raise _wrong(answer, "a PostFilterResult")
    _status(answer.status, args)
    return answer


def _permission(answer: object, args: Args) -> tuple[Status, float]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise _wrong(answer, "a Status and seconds")
    status, timeout_s = answer
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
        raise _wrong(timeout_s, "seconds")
    return _status(status, args), timeout_s


def _filter_summary(answer: object, args: Args) -> Summary | None:
    if answer is not None and not isinstance(answer, Summary):
        raise _wrong(answer, "a Summary, or None")
    return answer


def _some_summary(answer: object, args: Args) -> Summary:
    if not isinstance(answer, Summary):
        raise _wrong(answer, "a Summary")
    return answer


def _nothing(answer: object, args: Args) -> None:
    return None


def _truth(answer: object, args: Args) -> bool:
    return bool(answer)


def _hashable(answer: object, args: Args) -> object:
    hash(answer)
    return answer


def _count(answer: object, args: Args) -> int | None:
    if answer is not None and not isinstance(answer, int):
        raise _wrong(answer, "a number of candidates, or None")
    return answer


def _sort_key(answer: object, args: Args) -> tuple[float | str, ...]:
    """A key that compares with every other one: each part behind the rank of its type."""
    if not isinstance(answer, tuple):
        raise _wrong(answer, "a tuple of numbers and texts")
    parts: list[float | str] = []
    for part in answer:
        if isinstance(part, str):
            parts += (1.0, part)
        elif isinstance(part, int | float) and not isnan(part):
            parts += (0.0, part)
        else:
            raise _wrong(part, "a number or a text")
    return tuple(parts)


def _events(answer: object, args: Args) -> tuple[RegisteredEvent, ...]:
    if not isinstance(answer, Sequence) or not all(isinstance(e, RegisteredEvent) for e in answer):
        raise _wrong(answer, "RegisteredEvents")
    return tuple(
        each if each.hint is None else replace(each, hint=_contained_hint(each.hint))
        for each in answer
    )


def _contained_hint(hint: Hint[object]) -> Hint[object]:
    def ask(pod: PodFacts, change: Change[object], cluster: ClusterFacts) -> QueueingHint:
        try:
            return hint(pod, change, cluster)
        except (Exception, SystemExit) as raised:
            # Upstream: a hint that fails queues the pod.
            raise HintError(f"{type(raised).__name__}: {raised}") from raised

    return ask


def _as_status(failure: PluginFailure, args: Args) -> Status:
    return failure.status


def _refuse_all(failure: PluginFailure, args: Args) -> FilterResult:
    return FilterResult.refuse(np.ones(len(args[2]), dtype=np.bool_), failure.status)


def _always(answer: object) -> Instead:
    return lambda failure, args: answer


CONTAINED = (
    Contained(PreEnqueuePlugin, "pre_enqueue", "PreEnqueue", _status, _as_status),
    Contained(QueueSortPlugin, "sort_key", "QueueSort", _sort_key, _always((inf,))),
    Contained(
        PreFilterPlugin,
        "pre_filter",
        "PreFilter",
        _pre_filter_result,
        lambda failure, args: PreFilterResult(failure.status),
    ),
    Contained(FilterPlugin, "filter", "Filter", _filter_result, _refuse_all),
    Contained(FilterPlugin, "admits", "admits", _truth, _always(False)),
    Contained(FilterPlugin, "admits_all", "admits_all", _truth, _always(False)),
    Contained(
        PostFilterPlugin,
        "post_filter",
        "PostFilter",
        _post_filter_result,
        lambda failure, args: PostFilterResult(phase_failure("PostFilter", failure.status)),
    ),
    Contained(PostFilterPlugin, "candidates_wanted", "PostFilter", _count, _always(None)),
    Contained(PreScorePlugin, "pre_score", "PreScore", _status, _as_status),
    Contained(ScorePlugin, "score", "Score", _scores),
    Contained(ScorePlugin, "normalize", "NormalizeScore", _normalized),
    Contained(ReservePlugin, "reserve", "Reserve", _status, _as_status),
    Contained(ReservePlugin, "unreserve", "Unreserve", _nothing),
    Contained(
        PermitPlugin,
        "permit",
        "Permit",
        _permission,
        lambda failure, args: (failure.status, 0.0),
    ),
    Contained(PreBindPlugin, "pre_bind", "PreBind", _status, _as_status),
    Contained(BindPlugin, "bind", "Bind", _status, _as_status),
    Contained(PostBindPlugin, "post_bind", "PostBind", _nothing),
    Contained(RemembersPods, "pod_gone", "pod_gone", _nothing),
    Contained(SummarizesFilter, "filter_summary", "filter_summary", _filter_summary),
    Contained(SummarizesFilter, "moved", "moved", _filter_summary),
    Contained(SummarizesFilter, "merged_filter", "merge", _some_summary),
    Contained(SummarizesScore, "score_summary", "score_summary", _filter_summary),
    Contained(SummarizesScore, "merged_score", "merge", _some_summary),
    Contained(SummarizesScore, "looks_at_feasible", "looks_at_feasible", _truth, _always(True)),
    Contained(
        EnqueueExtensions, "events_to_register", "events_to_register", _events, _always(EVERYTHING)
    ),
    Contained(Plugin, "sign", "sign", _hashable, _always(None)),
    # Equal to nothing: what was found of the pod is found again each time.
    Contained(Plugin, "known_state", "known_state", _hashable, lambda failure, args: object()),
    Contained(Plugin, "affected_by", "affected_by", _truth, _always(True)),
    Contained(Plugin, "filter_affected_by", "filter_affected_by", _truth, _always(True)),
    Contained(Plugin, "effect", "effect", _hashable, lambda failure, args: args[0]),
)
"""Every method of a user's plugin that the framework calls."""
