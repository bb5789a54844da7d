"""PostFilter of a profile, which runs when no node is feasible.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from roadstead.facts.pod import PodFacts
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.post_filter_answers import PostFilterResult, PostFilterView, first_name
from roadstead.framework.profile import Profile
from roadstead.framework.victims import DryRunResult
from roadstead.protocol.status import SUCCESS, Code, Status


def dry_run_size(profile: Profile, pod: PodFacts, diagnosis: Diagnosis) -> int | None:
    """Return how many candidates plugins want from a dry run of preemption; None for no dry run."""
    failed = _view(diagnosis)
    wanted = (plugin.dry_run_size(pod, failed) for plugin in profile.post_filter)
    return max((each for each in wanted if each is not None), default=None)


def run_post_filter(
    profile: Profile,
    pod: PodFacts,
    diagnosis: Diagnosis,
    dry_run_result: DryRunResult | None = None,
    pick: Callable[[Sequence[str]], str] = first_name,
) -> PostFilterResult:
    """Return the first Success, UnschedulableAndUnresolvable or Error, or else all refusals joined.

    Unless it is Success, the caller appends its reasons to the pod's message. dry_run_result: of
    preemption, if a plugin requested a dry run. pick: chooses among equally good nodes.
    Raises UnsupportedError if a plugin does not support the pod.
    """
    failed = replace(_view(diagnosis), dry_run_result=dry_run_result, pick=pick)
    reasons: list[str] = []
    first_refusing = ""
    nominated: str | None = None
    # Of the last plugin that removed the allocation of a claim.
    deallocation = PostFilterResult(SUCCESS)
    for plugin in profile.post_filter:
        result = plugin.post_filter(pod, failed)
        status = Status(result.status.code, result.status.reasons, plugin.name)
        if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return replace(result, status=status)
        if not status.is_rejected:
            return PostFilterResult(Status(Code.ERROR, status.reasons, plugin.name))
        reasons += status.reasons
        first_refusing = first_refusing or plugin.name
        nominated = nominated if result.nominated_node is None else result.nominated_node
        if result.deallocated:
            deallocation = result
    # Only the last reason keeps its full stop. Upstream keeps them all, but with its own plugins
    # only the last reason has one.
    parts = [each.removesuffix(".") for each in reasons[:-1]] + reasons[-1:]
    joined = (", ".join(parts),) if parts else ()
    return PostFilterResult(
        Status(Code.UNSCHEDULABLE, joined, first_refusing),
        nominated,
        deallocated=deallocation.deallocated,
        deallocatable=deallocation.deallocatable,
    )


def refusal_details(profile: Profile, pod: PodFacts, diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return what plugins add, in an explanation, about the nodes that they refused."""
    failed = _view(diagnosis)
    return tuple(
        text
        for plugin in profile.post_filter
        if plugin.reads_refused_nodes
        for text in plugin.details(pod, failed)
    )


def _view(diagnosis: Diagnosis) -> PostFilterView:
    return PostFilterView(
        diagnosis.node_count,
        diagnosis.helpful(),
        diagnosis.pre_filter,
        diagnosis.unreached,
        diagnosis.lowest_priority,
        diagnosis.refused_nodes,
    )
