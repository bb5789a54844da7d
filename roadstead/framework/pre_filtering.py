"""PreFilter of a profile, run for one pod class over all nodes.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.failures import error_of_point, nothing_left
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable
from roadstead.protocol.status import SUCCESS, Code, Status


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """The outcome of all PreFilter plugins together.

    state: the data that the plugins wrote. node_names: None for no restriction. restricted_by:
    sorted names of the plugins that restricted the nodes. unreached: plugins that did not run.
    state_version: the plugins' own state of the pod at that time (`Profile.state_version`).
    """

    status: Status
    skipped: tuple[str, ...]
    node_names: frozenset[str] | None
    restricted_by: tuple[str, ...]
    unreached: tuple[str, ...] = ()
    state: CycleState = field(default_factory=lambda: CycleState(-1), compare=False, repr=False)
    state_version: Hashable = field(default=None, repr=False)

    def is_same(self, other: PreFilterOutcome) -> bool:
        """Whether Filter would return the same after either; never after an Error."""
        if self.status.code is Code.ERROR:
            return False
        return self is other or (self == other and self.state.is_same(other.state))


NO_PRE_FILTER = PreFilterOutcome(SUCCESS, (), None, ())


def run_pre_filter(profile: Profile, pod: PodClass, table: NodeTable) -> PreFilterOutcome:
    """Run PreFilter; the plugins that return Skip are listed in the state."""
    state, state_version = CycleState(len(table)), profile.state_version(pod)
    rejection = SUCCESS
    names: frozenset[str] | None = None
    restricted_by: list[str] = []

    def outcome(status: Status, ran: int) -> PreFilterOutcome:
        skipped = tuple(sorted(state.skipped))
        unreached = tuple(plugin.name for plugin in profile.pre_filter[ran:])
        by = tuple(sorted(restricted_by))
        return PreFilterOutcome(status, skipped, names, by, unreached, state, state_version)

    for position, plugin in enumerate(profile.pre_filter):
        result = plugin.pre_filter(state, pod, table)
        status = Status(result.status.code, result.status.reasons, plugin.name)
        if status.is_skip:
            state.skipped.add(plugin.name)
        elif status.code is Code.UNSCHEDULABLE:
            # As upstream, the other plugins still run: one may be UnschedulableAndUnresolvable.
            rejection = status
        elif not status.is_success:
            if status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                status = error_of_point("PreFilter", status)
            # Upstream returns no result with this status, thus no node names.
            names, restricted_by = None, []
            return outcome(status, position + 1)
        elif result.node_names is not None:
            restricted_by.append(plugin.name)
            names = result.node_names if names is None else names & result.node_names
            if not names:
                return outcome(nothing_left(sorted(restricted_by)), position + 1)
    return outcome(rejection, len(profile.pre_filter))
