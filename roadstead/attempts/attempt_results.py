"""Results of attempts that ended without a bind, with upstream's messages.

Upstream: pkg/scheduler/schedule_one.go (schedulingCycle, handleSchedulingFailure).
"""

from __future__ import annotations

from dataclasses import replace

from roadstead.attempts.commands import AttemptResult, RequeueCause
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.preempting import CLEARED_NOMINATION, post_filter_result
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.protocol.status import Code, Status


def no_node(
    profile: Profile,
    pod: PodInCycle,
    diagnosis: Diagnosis,
    post_filter: PostFilterResult | None = None,
) -> AttemptResult:
    """Return the result for a pod without a feasible node, with the result of PostFilter.

    post_filter: the result of PostFilter, if it ran already. It may nominate a node, choose victims
    there, or name a claim of devices that loses its allocation (`deallocates`). Raises
    UnsupportedError, with the pod's name, if a plugin does not support it.
    """
    # No tie-break is needed: if preemption has candidates, PostFilter ran in the cycle already.
    result = post_filter or post_filter_result(profile, pod, diagnosis, TieBreak())
    suffix = "" if result.status.is_success else result.status.message
    attempt_result = _unschedulable(diagnosis, suffix, result.nominated_node)
    attempt_result = replace(attempt_result, deallocates=result.deallocated)
    if result.chosen is None:
        return attempt_result
    victims, plugin = result.chosen.victims, result.status.plugin
    return replace(attempt_result, victims=victims, preempting_plugin=plugin)


def refused_on_node(status: Status) -> AttemptResult:
    """Return the result for a pod that Reserve or Permit refused on its chosen node."""
    diagnosis = Diagnosis(1)
    diagnosis.add(status, 1)
    return _unschedulable(diagnosis, "", CLEARED_NOMINATION)


def refused_by(plugin: str, reason: str) -> Status:
    """Return the status of a plugin's refusal of a waiting pod."""
    return Status(Code.UNSCHEDULABLE, (reason,), plugin)


def failed(message: str, plugin: str = "") -> AttemptResult:
    """Return the result for a pod whose cycle failed: it is retried after backoff."""
    plugins = (plugin,) if plugin else ()
    return AttemptResult(
        RequeueCause.ERROR, message, plugins=plugins, nominated_node=CLEARED_NOMINATION
    )


def conflict(message: str) -> AttemptResult:
    """Return the result for a lost race: the pod returns to the head of activeQ.

    The placement ended the pod's nomination, and the cache reserves no space for the pod any more.
    As upstream after every failed cycle, the queue clears the nomination, too (clearNominatedNode
    in schedule_one.go).
    """
    return AttemptResult(RequeueCause.CONFLICT, message, nominated_node=CLEARED_NOMINATION)


def _unschedulable(
    diagnosis: Diagnosis,
    suffix: str,
    nominated_node: str | None,
) -> AttemptResult:
    """Return the result for a rejected pod. suffix: the end of the message."""
    statuses = (diagnosis.pre_filter, *diagnosis.refused)
    pending = {each.plugin for each in statuses if each.code is Code.PENDING and each.plugin}
    return AttemptResult(
        RequeueCause.UNSCHEDULABLE,
        diagnosis.message(suffix),
        tuple(sorted(diagnosis.reasons().items())),
        diagnosis.plugins,
        tuple(sorted(pending)),
        nominated_node,
    )
