"""Verifier: all hard filters of one pod for one node, on the binder's own table.

What a scheduler decided on may be old; what is committed is checked here, against authoritative
counts. Filters run over a view of the one row; a plugin that looks across nodes gets its summary
from the whole table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Summaries
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import NodeTable, Table
from roadstead.protocol.status import SUCCESS, Status, unresolvable

_Inputs = tuple[Summaries, int, Hashable]
"""What PreFilter's outcome depends on: summaries, nodes, what plugins know beside them."""

_NARROWED = unresolvable("node(s) didn't satisfy the plugins that narrow the nodes")


class Verifier:
    """Runs PreFilter and Filter for single nodes; PreFilter once per class and summaries."""

    def __init__(self, table: NodeTable, profiles: Mapping[str, Profile]) -> None:
        self._table = table
        self._profiles = profiles
        self._states: dict[Hashable, tuple[_Inputs, Status, CycleState, frozenset[str]]] = {}

    def verify(self, facts: PodFacts, node_name: str) -> Status:
        """Success, or the first refusal. KeyError for an unknown node or profile."""
        profile = self._profiles[facts.scheduler_name]
        info = self._table.classes.info(facts)
        row = self._table.row_of(node_name)
        status, state, named = self._pre_filtered(profile, info)
        if not status.is_success:
            return status
        if named and node_name not in named:
            return _NARROWED
        return self._filtered(profile, info, state, self._table.view(np.array([row])))

    def _pre_filtered(
        self, profile: Profile, info: PodInfo
    ) -> tuple[Status, CycleState, frozenset[str]]:
        """PreFilter's outcome, kept while the summaries stay what they were."""
        found = {p.name: p.filter_summary(info, self._table) for p in profile.summarizes_filter}
        summaries = {name: summary for name, summary in found.items() if summary is not None}
        nodes = len(self._table)
        inputs = (summaries, nodes, profile.known_state(info))
        kept = self._states.get(info)
        if kept is not None and kept[0] == inputs:
            return kept[1:]
        state = CycleState(nodes)
        state.filter_summaries.update(summaries)
        status, named = _pre_filter(profile, state, info)
        self._states[info] = (inputs, status, state, named)
        return status, state, named

    def _filtered(self, profile: Profile, info: PodInfo, state: CycleState, row: Table) -> Status:
        for plugin in profile.filter:
            if plugin.name in state.skip_filter:
                continue
            result = plugin.filter(state, info, row)
            if result.codes is not None and result.codes[0]:
                refused = result.statuses[int(result.codes[0]) - 1]
                return Status(refused.code, refused.reasons, plugin.name)
        return SUCCESS


def _pre_filter(
    profile: Profile, state: CycleState, info: PodInfo
) -> tuple[Status, frozenset[str]]:
    """(first refusal or Success, node names that plugins narrow to; empty for all)."""
    named: frozenset[str] = frozenset()
    for plugin in profile.pre_filter:
        result = plugin.pre_filter(state, info)
        if result.status.is_skip:
            state.skip_filter.add(plugin.name)
        elif not result.status.is_success:
            return Status(result.status.code, result.status.reasons, plugin.name), named
        elif result.node_names is not None:
            named = result.node_names if not named else named & result.node_names
            if not named:
                return unresolvable(
                    "node(s) didn't satisfy the plugins that narrow the nodes"
                ), named
    return SUCCESS, named
