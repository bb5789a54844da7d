"""After a failed cycle: PostFilter, and the dry run that preemption needs first.

    failed ──► dry_run_to_make ──► DryRun ──► dry run ──► post_filter_result ──► node, victims
                      └────────── no plugin wants one ──────────^

A dry run finds the nodes on which the pod would fit without pods of lower priority, and the victims
there (upstream's DryRunPreemption). The caller makes it and sends its candidates to extenders.
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.cycle.batch import PodInCycle
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.post_filter import dry_run_size, run_post_filter
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak, in_order
from roadstead.framework.victims import DryRun, DryRunResult
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS

CLEARED_NOMINATION = ""
"""The nomination of a pod after a failure without PostFilter: none."""


def dry_run_to_make(
    profile: Profile, pod: PodInCycle, diagnosis: Diagnosis, tie_break: TieBreak
) -> DryRun | None:
    """Return the dry run to make before PostFilter; None if no plugin wants one.

    A cluster without nodes needs none, because PostFilter does not run.
    """
    if not diagnosis.node_count:
        return None
    number = dry_run_size(profile, pod.pod_class.facts, diagnosis)
    return None if number is None else DryRun(number, _pod_hash(pod, tie_break))


def post_filter_result(
    profile: Profile,
    pod: PodInCycle,
    diagnosis: Diagnosis,
    tie_break: TieBreak,
    dry_run_result: DryRunResult | None = None,
) -> PostFilterResult:
    """Run PostFilter. dry_run_result: the result of the dry run.

    Raises UnsupportedError, with the pod's name, if a plugin does not support it.
    """
    # Upstream runs no PostFilter if the cluster has no nodes.
    if not (profile.post_filter and diagnosis.node_count):
        return PostFilterResult(SUCCESS, CLEARED_NOMINATION)
    pod_hash = _pod_hash(pod, tie_break)

    def pick(names: Sequence[str]) -> str:
        return names[in_order(names, pod_hash)[0]]

    try:
        return run_post_filter(profile, pod.pod_class.facts, diagnosis, dry_run_result, pick)
    except UnsupportedError as missing:
        name = f'Pod "{pod.key}"'
        raise UnsupportedError(missing.plugin, name, missing.field) from missing


def _pod_hash(pod: PodInCycle, tie_break: TieBreak) -> int | None:
    return None if tie_break.kind == "first" else tie_break.pod_hash(pod.key, pod.tie_break_number)
