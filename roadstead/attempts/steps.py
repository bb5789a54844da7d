"""Run the plugins of a profile from Reserve to PostBind, for one pod and its node.

A user's plugin that fails ends the attempt of its pod, never the scheduler
(`roadstead.framework.guarded`).

Upstream: pkg/scheduler/framework/runtime/framework.go (RunReservePluginsReserve,
RunReservePluginsUnreserve, RunPermitPlugins, RunPreBindPlugins, RunBindPlugins,
RunPostBindPlugins).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.profile import Profile
from roadstead.protocol.status import SUCCESS, Code, Status, error

MAX_PERMIT_WAIT_S = 900.0
"""Upstream's maxTimeout of Permit."""

Target = tuple[PodIdentity, PodFacts, str]
"""Pod, facts, and name of the node: the arguments of every plugin from Reserve on."""


def reserve(profile: Profile, target: Target) -> Status:
    """Run Reserve; return the first status that is not Success, or Success."""
    for plugin in profile.reserve:
        status = _with_plugin(plugin.reserve(*target), plugin.name)
        if not status.is_success:
            return _final("Reserve", status)
    return SUCCESS


def unreserve(profile: Profile, target: Target) -> Iterator[str]:
    """Run all Unreserves in reverse order, also if no Reserve ran; yield messages of failures."""
    for plugin in reversed(profile.reserve):
        yield from _failure_messages("Unreserve", plugin.name, plugin.unreserve, target)


def permit(profile: Profile, target: Target) -> tuple[Status, dict[str, float]]:
    """Run Permit; return Success and the waits by plugin, or a refusal.

    A wait is in seconds, at most MAX_PERMIT_WAIT_S.
    """
    waits: dict[str, float] = {}
    for plugin in profile.permit:
        answer, wait_s = plugin.permit(*target)
        status = _with_plugin(answer, plugin.name)
        if status.code is Code.WAIT:
            # With the arguments in this order, NaN becomes a wait of 0 s.
            waits[plugin.name] = min(max(0.0, wait_s), MAX_PERMIT_WAIT_S)
        elif not status.is_success:
            return _final("Permit", status), {}
    return SUCCESS, waits


def pre_bind_and_bind(profile: Profile, target: Target) -> Status:
    """Run PreBind and Bind; after Success the pod is sent to the binder."""
    for pre_binding in profile.pre_bind:
        status = _with_plugin(pre_binding.pre_bind(*target), pre_binding.name)
        if not status.is_success:
            return _final("PreBind", status)
    for plugin in profile.bind:
        status = _with_plugin(plugin.bind(*target), plugin.name)
        if not status.is_skip:
            return _final("Bind", status)
    return error("no Bind plugin took the pod")


def post_bind(profile: Profile, target: Target) -> Iterator[str]:
    """Run PostBind for a bound pod; yield messages of failures."""
    for plugin in profile.post_bind:
        yield from _failure_messages("PostBind", plugin.name, plugin.post_bind, target)


def report_deletion(profile: Profile, target: Target) -> Iterator[str]:
    """Report a deleted pod to plugins that remember bound pods; yield messages of failures."""
    for plugin in profile.pod_deletion:
        method = plugin.pod_deleted
        yield from _failure_messages("the end of a pod for", plugin.name, method, target)


def _failure_messages(
    point: str, name: str, call: Callable[[PodIdentity, PodFacts, str], None], target: Target
) -> Iterator[str]:
    """Call a plugin at an extension point; yield a message if it fails."""
    try:
        call(*target)
    except PluginFailure as failure:
        yield f'running {point} plugin "{name}": {failure.status.message}'


def _with_plugin(status: Status, name: str) -> Status:
    return SUCCESS if status.is_success else Status(status.code, status.reasons, name)


def _final(point: str, status: Status) -> Status:
    """Return a success or a plugin's refusal as it is, anything else as an error.

    point: the extension point, for the message.
    """
    if status.is_success or status.is_rejected:
        return status
    what = status.message or status.code.upstream_name
    return error(f'running {point} plugin "{status.plugin}": {what}')
