"""What is said of a pod that was not bound, in upstream's words.

Upstream: pkg/scheduler/schedule_one.go (schedulingCycle, handleSchedulingFailure).
"""

from __future__ import annotations

from dataclasses import replace

from roadstead.attempts.effects import RequeueReason, Verdict
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.preempting import CLEAR, conclude
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
) -> Verdict:
    """No node is feasible: PostFilter may help for the next time, and ends the message.

    post_filter: what it said, where it was asked already.
    Raises UnsupportedError, with the pod's name, where a plugin that is not there would be needed.
    """
    result = post_filter or conclude(profile, pod, diagnosis, TieBreak())
    suffix = "" if result.status.is_success else result.status.message
    verdict = _unschedulable(diagnosis, suffix, result.nominated_node)
    if result.chosen is None:
        return verdict
    return replace(verdict, victims=result.chosen.victims, preempting_plugin=result.status.plugin)


def refused_on_node(status: Status) -> Verdict:
    """Reserve or Permit refused the pod on the one node it was to go to."""
    diagnosis = Diagnosis(1)
    diagnosis.add(status, 1)
    return _unschedulable(diagnosis, "", CLEAR)


def refused_by(plugin: str, reason: str) -> Status:
    """A plugin refuses a pod that waits."""
    return Status(Code.UNSCHEDULABLE, (reason,), plugin)


def failed(message: str, plugin: str = "") -> Verdict:
    """The cycle failed, which says nothing of the pod: it is retried after backoff."""
    plugins = (plugin,) if plugin else ()
    return Verdict(RequeueReason.ERROR, message, plugins=plugins, nominated_node=CLEAR)


def conflict(message: str) -> Verdict:
    """Another one was faster: the pod goes back to the head of the queue, and nobody is told.

    Its place ended its nomination, for which the cache keeps no room any more; upstream clears it
    after every cycle that fails (clearNominatedNode in schedule_one.go).
    """
    return Verdict(RequeueReason.CONFLICT, message, nominated_node=CLEAR)


def _unschedulable(
    diagnosis: Diagnosis,
    suffix: str,
    nominated_node: str | None,
) -> Verdict:
    statuses = (diagnosis.pre_filter, *diagnosis.refused)
    pending = {each.plugin for each in statuses if each.code is Code.PENDING and each.plugin}
    return Verdict(
        RequeueReason.UNSCHEDULABLE,
        diagnosis.message(suffix),
        tuple(sorted(diagnosis.reasons().items())),
        diagnosis.plugins,
        tuple(sorted(pending)),
        nominated_node,
    )
