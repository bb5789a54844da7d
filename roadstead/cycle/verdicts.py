"""What is said of a pod that was not bound, in upstream's words.

Upstream: pkg/scheduler/schedule_one.go (schedulingCycle, handleSchedulingFailure).
"""

from __future__ import annotations

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.effects import RequeueReason, Verdict
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.plugin import PostFilterResult
from roadstead.framework.post_filter import run_post_filter
from roadstead.framework.profile import Profile
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS, Code, Status, error

CLEAR = ""
"""The nomination of a pod after any failure that PostFilter has no say in."""


def no_node(profile: Profile, pod: PodInCycle, diagnosis: Diagnosis) -> Verdict:
    """No node is feasible: PostFilter may help for the next time, and ends the message.

    Raises UnsupportedError, with the pod's name, where a plugin that is not there would be needed.
    """
    result = PostFilterResult(SUCCESS, CLEAR)
    # Upstream has no PostFilter where the cluster has no nodes.
    if profile.post_filter and diagnosis.node_count:
        try:
            result = run_post_filter(profile, pod.info.facts, diagnosis)
        except UnsupportedError as missing:
            name = f'Pod "{pod.key}"'
            raise UnsupportedError(missing.plugin, name, missing.field) from missing
        except Exception as failure:
            text = f"running PostFilter plugins: {type(failure).__name__}: {failure}"
            result = PostFilterResult(error(text))
    suffix = "" if result.status.is_success else result.status.message
    return _unschedulable(diagnosis, suffix, result.nominated_node)


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
    """Another one was faster: the pod goes back to the head of the queue, and nobody is told."""
    return Verdict(RequeueReason.CONFLICT, message)


def _unschedulable(diagnosis: Diagnosis, suffix: str, nominated_node: str | None) -> Verdict:
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
