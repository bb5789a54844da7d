"""PreFilter of a profile, run for one class of pods.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins).
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.failures import nothing_left, phase_failure
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_info import PodInfo
from roadstead.protocol.status import SUCCESS, Code, Status


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """What PreFilter as a whole said.

    node_names: None for no restriction. narrowed_by: sorted names of plugins that narrowed.
    """

    status: Status
    skipped: tuple[str, ...]
    node_names: frozenset[str] | None
    narrowed_by: tuple[str, ...]
    unreached: tuple[str, ...] = ()


def run_pre_filter(
    profile: Profile, state: CycleState, pod: PodInfo, failure: Status | None = None
) -> PreFilterOutcome:
    """What PreFilter says; plugins that say Skip are noted in the state.

    failure: why a plugin found no summary, which fails the phase before it begins.
    """
    if failure is not None:
        return _outcome(profile, state, phase_failure("PreFilter", failure), None, [], 0)
    rejection = SUCCESS
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    for position, plugin in enumerate(profile.pre_filter):
        result = plugin.pre_filter(state, pod)
        status = Status(result.status.code, result.status.reasons, plugin.name)
        if status.is_skip:
            state.skip_filter.add(plugin.name)
        elif status.code is Code.UNSCHEDULABLE:
            rejection = status
        elif not status.is_success:
            if status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                status = phase_failure("PreFilter", status)
            return _outcome(profile, state, status, None, [], position + 1)
        elif result.node_names is not None:
            narrowed_by.append(plugin.name)
            names = result.node_names if names is None else names & result.node_names
            if not names:
                status = nothing_left(sorted(narrowed_by))
                return _outcome(profile, state, status, names, narrowed_by, position + 1)
    return _outcome(profile, state, rejection, names, narrowed_by, len(profile.pre_filter))


def _outcome(
    profile: Profile,
    state: CycleState,
    status: Status,
    names: frozenset[str] | None,
    narrowed_by: list[str],
    ran: int,
) -> PreFilterOutcome:
    skipped = tuple(sorted(state.skip_filter))
    unreached = tuple(plugin.name for plugin in profile.pre_filter[ran:])
    return PreFilterOutcome(status, skipped, names, tuple(sorted(narrowed_by)), unreached)
