"""Guarded plugins: failures of a user's plugin are caught, and its answers are checked.

    framework ──► guarded method ──► the plugin's own method ──► check ──► answer
                        ▲                      │ raises             │ wrong type, shape or dtype
                        └──── fallback ◄────────┴─── PluginFailure ◄─┘

A guard replaces the methods of one instance; in-tree plugins are not guarded and have no overhead.
If the answer of a method has a Status, a failure becomes an Error, which fails the pod's attempt,
as upstream's does. A failure of a method that only saves evaluations (`sign`, `effect`, …) becomes
the answer that saves none and is always correct. Otherwise (`score`, …) `PluginFailure` is raised
to the code that runs the extension point.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypeVar

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework import answer_checks as checked
from roadstead.framework.answer_checks import Args, WrongAnswerError, wrong
from roadstead.framework.events import (
    EVERYTHING,
    Hint,
    HintError,
    MayMatter,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
)
from roadstead.framework.failures import error_of_point
from roadstead.framework.plugin import (
    ON_ALL,
    BindPlugin,
    Effect,
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    PermitPlugin,
    Plugin,
    PodDeletionPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreparesScore,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from roadstead.framework.plugin_calls import (
    RUNNING_CALLS,
    PluginInterrupt,
    PluginSuspendedError,
    facts_of,
)
from roadstead.framework.plugin_source import (
    LOCATION_OF_SCORES,
    defined_at,
    function_at,
    raised_at,
    with_location,
)
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import Code, Status

PluginT = TypeVar("PluginT", bound=Plugin)
AnswerT = TypeVar("AnswerT")
"""The type of a checked answer."""

MAX_TEXT = 300
"""Maximum length of the text of a plugin's failure, in characters."""

_LOG = logging.getLogger("roadstead.plugins")


class PluginFailure(Exception):
    """A plugin raised an exception, or returned a value that it must not return.

    status: an Error under the plugin's name, with file and line. pod: its key, "" if the method
    received none. facts: of the pod, None if the method received none.
    """

    def __init__(self, point: str, status: Status, args: Args = ()) -> None:
        self.point, self.status, self.facts = point, status, facts_of(args)
        self.pod = next((each.key for each in args if isinstance(each, PodIdentity)), "")
        for_pod = f" for pod {self.pod}" if self.pod else ""
        super().__init__(f'plugin "{status.plugin}" failed at {point}{for_pod}: {status.message}')


Check = Callable[[object, Args], object]
"""(answer, arguments of the method) → the checked answer; see `answer_checks`."""
Fallback = Callable[[PluginFailure, Args], object]
"""(failure, arguments of the method) → the answer that replaces the missing one."""


@dataclass(frozen=True, slots=True)
class PluginOrigin:
    """The plugin whose function is called, for messages. module: where its class is defined.

    location: file and line of the function, "" if unknown.
    """

    name: str
    module: str
    location: str


@dataclass(frozen=True, slots=True)
class GuardedMethod:
    """Rules by which calls of one method are guarded.

    base: the base class of plugins that declares the method. point: the method's name in messages.
    check: returns the answer, or raises WrongAnswerError. fallback: returns the answer that a
    failure becomes; None if the failure is raised. guard_answer: (plugin, answer, whether failures
    are raised) → the answer, with guards around the functions that it contains (hints,
    `Effect.may_change`).
    """

    base: type[Plugin]
    method: str
    point: str
    check: Check
    fallback: Fallback | None = None
    guard_answer: Callable[[PluginOrigin, Any, bool], object] = lambda origin, answer, is_strict: (
        answer
    )


def guard(plugin: PluginT, *, is_strict: bool = False) -> PluginT:
    """Guard the methods of a plugin, and return it.

    is_strict: every failure is raised, as in tests of a plugin.
    """
    replaced = {
        each.method: _guarded(
            PluginOrigin(plugin.name, type(plugin).__module__, defined_at(plugin, each.method)),
            replace(each, fallback=None) if is_strict else each,
            getattr(plugin, each.method),
        )
        for each in GUARDED_METHODS
        if isinstance(plugin, each.base)
    }
    for name, method in replaced.items():
        # A plugin may be a frozen dataclass; its class is not changed.
        object.__setattr__(plugin, name, method)
    object.__setattr__(plugin, "is_guarded", True)
    if isinstance(plugin, ScorePlugin):
        # Scores are range-checked outside the guard (`out_of_range`), which names this location.
        final_method = "normalize" if plugin.normalizes else "score"
        LOCATION_OF_SCORES[plugin.name] = defined_at(plugin, final_method)
    return plugin


def _guarded(
    origin: PluginOrigin, guarded: GuardedMethod, method: Callable[..., object]
) -> Callable[..., object]:
    """Return a function that calls a plugin's method and checks its answer, see `GuardedMethod`."""
    point, check = guarded.point, guarded.check
    fallback, guard_answer = guarded.fallback, guarded.guard_answer

    def call(*args: object) -> object:
        try:
            answer = check(_call_with_deadline(origin.name, point, method, args), args)
            return guard_answer(origin, answer, fallback is None)
        except (PluginFailure, UnsupportedError):
            # A feature that this version lacks ends the run; it is no failure of the plugin.
            raise
        except BaseException as raised:
            failure = _failure(origin, point, _text_of(origin, raised), args)
        if fallback is None:
            raise failure
        return fallback(failure, args)

    return call


def _call_with_deadline(name: str, point: str, method: Callable[..., object], args: Args) -> object:
    """Call a method; a watchdog thread interrupts it after the deadline."""
    call = RUNNING_CALLS.enter(name, point, args)
    if call is None:
        # Another guarded method makes this call, and its deadline covers this one.
        return method(*args)
    try:
        return method(*args)
    except PluginInterrupt:
        call.interrupt_has_arrived = True
        raise
    finally:
        RUNNING_CALLS.leave(call)


def _text_of(origin: PluginOrigin, raised: BaseException) -> str:
    """Return text and line of an exception; re-raise one that is not a plugin's failure."""
    if isinstance(raised, PluginSuspendedError):
        return str(raised)
    if isinstance(raised, WrongAnswerError):
        return with_location(_cut(str(raised)), origin.location)
    if isinstance(raised, PluginInterrupt):
        # It may have been raised in `leave`, before that recorded the end of the call.
        RUNNING_CALLS.clear()
        text = f"did not return within {RUNNING_CALLS.limit_s:g} s"
    elif isinstance(raised, Exception | SystemExit):
        text = _cut(f"{type(raised).__name__}: {raised}")
    else:
        raise raised
    return with_location(text, raised_at(origin.module, raised) or origin.location)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _failure(origin: PluginOrigin, point: str, text: str, args: Args) -> PluginFailure:
    failure = PluginFailure(point, Status(Code.ERROR, (text,), origin.name), args)
    _LOG.info("%s", failure)
    return failure


def _with_guarded_effect(origin: PluginOrigin, effect: Effect, is_strict: bool) -> Effect:
    fallback = None if is_strict else _always(True)
    guarded = GuardedMethod(Plugin, "may_change", "effect", checked.truth_value, fallback)
    may_change = _guarded(origin, guarded, effect.may_change)
    return replace(effect, may_change=lambda pod: bool(may_change(pod)))


def _with_guarded_hints(
    origin: PluginOrigin, events: tuple[RegisteredEvent, ...], is_strict: bool
) -> tuple[RegisteredEvent, ...]:
    return tuple(
        replace(
            each,
            hint=None if each.hint is None else _guarded_hint(origin, each.hint),
            may_matter=None
            if each.may_matter is None
            else _guarded_predicate(origin, each.may_matter),
        )
        for each in events
    )


def _guarded_hint(origin: PluginOrigin, hint: Hint[object]) -> Hint[object]:
    origin = replace(origin, location=function_at(origin.module, hint))

    def check(answer: object, args: Args) -> QueueingHint:
        if not isinstance(answer, QueueingHint):
            raise wrong(answer, "a QueueingHint")
        return answer

    def call(pod: PodFacts, change: ObjectChange[object], cluster: ClusterFacts) -> QueueingHint:
        return _call_hint_function(origin, "QueueingHint", hint, check, (pod, change, cluster))

    return call


def _guarded_predicate(origin: PluginOrigin, may_matter: MayMatter) -> MayMatter:
    origin = replace(origin, location=function_at(origin.module, may_matter))

    def check(answer: object, args: Args) -> bool:
        if not isinstance(answer, bool):
            raise wrong(answer, "a bool")
        return answer

    def call(pod: PodFacts, assigned: PodFacts, cluster: ClusterFacts) -> bool:
        return _call_hint_function(
            origin, "may_matter", may_matter, check, (pod, assigned, cluster)
        )

    return call


def _call_hint_function(
    origin: PluginOrigin,
    point: str,
    function: Callable[..., object],
    check: Callable[[object, Args], AnswerT],
    args: Args,
) -> AnswerT:
    """Return the answer of a hint or `may_matter`; HintError for a failure: the pod is queued."""
    try:
        return check(_call_with_deadline(origin.name, point, function, args), args)
    except BaseException as raised:
        failure = _failure(origin, point, _text_of(origin, raised), args)
        raise HintError(failure.status.message) from raised


def _as_status(failure: PluginFailure, args: Args) -> Status:
    return failure.status


def _refuse_all(failure: PluginFailure, args: Args) -> FilterResult:
    # args: (state, pod, table).
    return FilterResult.refuse(np.ones(len(args[2]), dtype=np.bool_), failure.status)


def _always(answer: object) -> Fallback:
    return lambda failure, args: answer


GUARDED_METHODS = (
    GuardedMethod(PreEnqueuePlugin, "pre_enqueue", "PreEnqueue", checked.status, _as_status),
    # A checked key begins with 0 or 1: `(inf,)` is greater, so the pod is sorted last.
    GuardedMethod(QueueSortPlugin, "sort_key", "QueueSort", checked.sort_key, _always((inf,))),
    GuardedMethod(
        PreFilterPlugin,
        "pre_filter",
        "PreFilter",
        checked.pre_filter_result,
        lambda failure, args: PreFilterResult(failure.status),
    ),
    GuardedMethod(PreFilterPlugin, "with_pods_moved", "with_pods_moved", checked.anything),
    GuardedMethod(FilterPlugin, "filter", "Filter", checked.filter_result, _refuse_all),
    GuardedMethod(
        FilterPlugin, "count_passing", "count_passing", checked.passing_count, _always(0)
    ),
    GuardedMethod(
        PostFilterPlugin,
        "post_filter",
        "PostFilter",
        checked.post_filter_result,
        lambda failure, args: PostFilterResult(error_of_point("PostFilter", failure.status)),
    ),
    GuardedMethod(
        PostFilterPlugin, "dry_run_size", "PostFilter", checked.candidate_count, _always(None)
    ),
    GuardedMethod(PostFilterPlugin, "details", "details", checked.texts, _always(())),
    # PreScorePlugin, and plugins whose upstream Score reads the snapshot without a PreScore.
    GuardedMethod(PreparesScore, "pre_score", "PreScore", checked.status, _as_status),
    GuardedMethod(ScorePlugin, "score", "Score", checked.scores),
    GuardedMethod(ScorePlugin, "normalize", "NormalizeScore", checked.normalized),
    GuardedMethod(ReservePlugin, "reserve", "Reserve", checked.status, _as_status),
    GuardedMethod(ReservePlugin, "unreserve", "Unreserve", checked.nothing),
    GuardedMethod(
        PermitPlugin,
        "permit",
        "Permit",
        checked.permission,
        lambda failure, args: (failure.status, 0.0),
    ),
    GuardedMethod(PreBindPlugin, "pre_bind", "PreBind", checked.status, _as_status),
    GuardedMethod(BindPlugin, "bind", "Bind", checked.status, _as_status),
    GuardedMethod(PostBindPlugin, "post_bind", "PostBind", checked.nothing),
    GuardedMethod(PodDeletionPlugin, "pod_deleted", "pod_deleted", checked.nothing),
    GuardedMethod(
        EnqueueExtensions,
        "events_to_register",
        "events_to_register",
        checked.events,
        _always(EVERYTHING),
        _with_guarded_hints,
    ),
    GuardedMethod(Plugin, "sign", "sign", checked.hashable, _always(None)),
    # A new object equals no other: answers for the pod are computed again each time.
    GuardedMethod(
        Plugin, "state_version", "state_version", checked.hashable, lambda failure, args: object()
    ),
    GuardedMethod(
        Plugin, "effect", "effect", checked.effect, _always(ON_ALL), _with_guarded_effect
    ),
)
"""The methods of a user's plugin that are guarded."""
