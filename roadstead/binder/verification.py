"""Verifier: all hard filters of one pod for one node, on the binder's own table.

    verify ──► something is known of the class ──► a quick yes ──► Success
                        │ no                            │ no
                        └───────────────────────────────┴──► PreFilter, Filter over the one row

What a scheduler decided on may be old; what is committed is checked here, against authoritative
counts. Filters run over a view of the one row; a plugin that looks across nodes gets its summary
from the whole table. Of a class that comes again, what NODE facts say is kept for all rows, and
PreFilter's outcome as long as no pod came or went that it may depend on.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Summaries
from roadstead.framework.failures import filter_status, phase_failure
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import FilterPlugin, Plugin, Reads
from roadstead.framework.profile import Profile, concern, effects_of
from roadstead.nodes.columns import Bools
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import NodeTable, Table
from roadstead.protocol.status import SUCCESS, Code, Status, unresolvable

_NARROWED = unresolvable("node(s) didn't satisfy the plugins that narrow the nodes")

WORTHWHILE = 3
"""Pods of a class after which what NODE facts say is found for all rows at once."""

PODS_PER_KIND = 8
"""Where a batch has so many pods for each of its kinds, it is worthwhile for the rare ones, too."""

MAX_KNOWN = 4096
"""Classes of which something is kept; the one found longest ago is dropped."""


@dataclass(slots=True)
class _Known:
    """What was found of a class. inputs: what it depends on besides pods; changes: pods that came
    and went before. live: filters beyond NODE facts that are not skipped; passes: bool[row], what
    the others said, once that was found. harmless: kinds or classes (`Profile.kind_or_class`) that
    cannot change PreFilter's outcome. The two that are called alone leave plugins out that look at
    the table themselves.
    """

    inputs: tuple[int, Hashable]
    changes: int
    changes_alone: int
    summaries: Summaries
    status: Status
    state: CycleState
    named: frozenset[str]
    live: tuple[FilterPlugin, ...] = ()
    passes: Bools | None = None
    times: int = 0
    harmless: set[int] = field(default_factory=set)
    harmless_alone: set[int] = field(default_factory=set)


class Verifier:
    """Runs PreFilter and Filter for single nodes; PreFilter once per kind and summaries.

    What is known is kept by kind; by class where plugins may say something else of others.
    """

    def __init__(self, table: NodeTable, profiles: Mapping[str, Profile]) -> None:
        self._table = table
        self._profiles = profiles
        self._known: dict[Hashable, _Known] = {}

    def verify(self, facts: PodFacts, node_name: str) -> Status:
        """Success, or the first refusal. KeyError for an unknown node or profile."""
        try:
            return self._verify(facts, node_name)
        except PluginFailure as failure:
            return phase_failure("PreFilter", failure.status)

    def _verify(self, facts: PodFacts, node_name: str) -> Status:
        profile = self._profiles[facts.scheduler_name]
        info = self._table.classes.info(facts)
        row = self._table.row_of(node_name)
        known = self._known.get(_key_of(info, profile))
        if known is not None and self._holds(known, profile, info, alone=True):
            narrowed = bool(known.named) and node_name not in known.named
            if known.status.is_success and not narrowed and self._admits(known, profile, info, row):
                return SUCCESS
        known = self._pre_filtered(profile, info)
        if not known.status.is_success:
            return known.status
        if known.named and node_name not in known.named:
            return _NARROWED
        return _filtered(profile, info, known.state, self._table.view(np.array([row])))

    def verify_all(self, pods: Sequence[PodFacts], node_names: Sequence[str]) -> bool:
        """Whether `verify` would let all these pods to their nodes, each on top of those before.

        True only where that is found quickly; False says nothing. KeyError as `verify`.
        """
        if len(pods) == 1:
            # Columns of one row cost ten times what the row does.
            return self.verify(pods[0], node_names[0]).is_success
        try:
            return self._verify_all(pods, node_names)
        except PluginFailure:
            return False

    def _verify_all(self, pods: Sequence[PodFacts], node_names: Sequence[str]) -> bool:
        table = self._table
        infos = table.classes.infos_of(pods)
        rows = np.array(table.each_row(node_names), dtype=np.intp)
        keys: dict[PodInfo, Hashable] = {}
        first: dict[Hashable, PodInfo] = {}
        for info in dict.fromkeys(infos):
            keys[info] = _key_of(info, self._profiles[info.facts.scheduler_name])
            first.setdefault(keys[info], info)
        rows_of: dict[Hashable, list[int]] = {key: [] for key in first}
        for info, row in zip(infos, rows.tolist(), strict=True):
            rows_of[keys[info]].append(row)
        found: dict[Hashable, _Known] = {}
        worthwhile = WORTHWHILE if len(pods) < PODS_PER_KIND * len(first) else 1
        for key, info in first.items():
            known = self._known_of_all(info, len(rows_of[key]), worthwhile)
            if known is None or not self._is_open(known, info, first.values()):
                return False
            found[key] = known
        for key, its_rows in rows_of.items():
            passes = found[key].passes
            if passes is None or not passes[its_rows].all():
                return False
        plugins = {plugin: None for known in found.values() for plugin in known.live}
        return all(plugin.admits(infos, table, rows) for plugin in plugins)

    def _known_of_all(self, info: PodInfo, pods: int, worthwhile: int) -> _Known | None:
        """What is known of a class, for all rows, if there are pods enough to find it out."""
        profile = self._profiles[info.facts.scheduler_name]
        known = self._known.get(_key_of(info, profile))
        if known is None or not self._holds(known, profile, info, alone=True):
            if pods < worthwhile:
                return None
            known = self._pre_filtered(profile, info)
        known.times += pods
        if known.passes is None and known.times >= worthwhile and known.status.is_success:
            known.passes = _standing(profile, info, known.state, self._table)
        return known

    def _is_open(self, known: _Known, info: PodInfo, coming: Collection[PodInfo]) -> bool:
        """Whether all nodes that pass are open to a class, also when others have come."""
        if known.named or not known.status.is_success:
            return False
        profile = self._profiles[info.facts.scheduler_name]
        for other in coming:
            its_key = profile.kind_or_class(other)
            if its_key not in known.harmless_alone:
                plugins = _filtering(profile, alone=True)
                if concern(effects_of(plugins, other), info):
                    return False
                known.harmless_alone.add(its_key)
        return True

    def _admits(self, known: _Known, profile: Profile, info: PodInfo, row: int) -> bool:
        """A quick yes, from what is known of the class; a no says nothing."""
        known.times += 1
        if known.passes is None:
            if known.times < WORTHWHILE:
                return False
            known.passes = _standing(profile, info, known.state, self._table)
        rows = np.array([row], dtype=np.intp)
        admitted = (plugin.admits((info,), self._table, rows) for plugin in known.live)
        return bool(known.passes[row]) and all(admitted)

    def _pre_filtered(self, profile: Profile, info: PodInfo) -> _Known:
        """PreFilter's outcome, kept while what it depends on stays what it was."""
        key = _key_of(info, profile)
        known = self._known.get(key)
        if known is not None and self._holds(known, profile, info, alone=False):
            return known
        inputs = self._table.node_version, profile.known_state(info)
        changes = self._table.columns.changes
        found = {p.name: p.filter_summary(info, self._table) for p in profile.summarizes_filter}
        summaries = {name: summary for name, summary in found.items() if summary is not None}
        if known is not None and (known.inputs, known.summaries) == (inputs, summaries):
            known.changes = known.changes_alone = changes
            return known
        state = CycleState(len(self._table))
        state.filter_summaries.update(summaries)
        status, named = _pre_filter(profile, state, info)
        before = known
        known = _Known(inputs, changes, changes, summaries, status, state, named)
        known.live = _live(profile, state)
        if before is not None and before.inputs == inputs:
            # Of NODE facts nothing changed.
            known.times, known.passes = before.times, before.passes
        self._known.pop(key, None)
        self._known[key] = known
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return known

    def _holds(self, known: _Known, profile: Profile, info: PodInfo, *, alone: bool) -> bool:
        """Whether PreFilter would say the same.

        alone: or at least as far as plugins need it that do not look at the table themselves.
        """
        if known.inputs != (self._table.node_version, profile.known_state(info)):
            return False
        columns = self._table.columns
        seen, harmless = known.changes, known.harmless
        if alone:
            seen, harmless = known.changes_alone, known.harmless_alone
        for other, number in reversed(columns.class_changed.items()):
            if number <= seen:
                break
            its_key = profile.kind_or_class(other)
            if its_key not in harmless:
                plugins = _filtering(profile, alone=alone)
                if concern(effects_of(plugins, other), info):
                    return False
                harmless.add(its_key)
        if alone:
            known.changes_alone = columns.changes
        else:
            known.changes = columns.changes
        return True


def _key_of(info: PodInfo, profile: Profile) -> Hashable:
    """Equal for pods of which the same is known."""
    return (profile.scheduler_name, info.kind) if profile.has_kind(info) else info


def _filtering(profile: Profile, *, alone: bool) -> list[Plugin]:
    """Plugins whose PreFilter looks across nodes; alone: of which Filter needs it at all times."""
    filters = {*profile.filter, *profile.pre_filter}
    found = [p for p in profile.cross_node if p in filters]
    return [p for p in found if not _admits_alone(p)] if alone else found


def _admits_alone(plugin: Plugin) -> bool:
    """Whether a filter that looks across nodes gives a quick yes, for which it looks by itself."""
    overrides = getattr(type(plugin), "admits", FilterPlugin.admits) is not FilterPlugin.admits
    return overrides and plugin.reads is Reads.CLUSTER


def _live(profile: Profile, state: CycleState) -> tuple[FilterPlugin, ...]:
    """Filters that a quick yes must ask: beyond NODE facts, and at work."""
    return tuple(
        plugin
        for plugin in profile.filter
        if _admits_alone(plugin)
        or (plugin.reads is not Reads.NODE and plugin.name not in state.skip_filter)
    )


def _standing(profile: Profile, info: PodInfo, state: CycleState, table: NodeTable) -> Bools:
    """Which rows pass all filters that read NODE facts: bool[row]."""
    passes: Bools = np.ones(len(table), dtype=np.bool_)
    for plugin in profile.filter:
        if plugin.reads is Reads.NODE and plugin.name not in state.skip_filter:
            codes = plugin.filter(state, info, table).codes
            if codes is not None:
                passes &= codes == 0
    return passes


def _filtered(profile: Profile, info: PodInfo, state: CycleState, row: Table) -> Status:
    for plugin in profile.filter:
        if plugin.name in state.skip_filter:
            continue
        result = plugin.filter(state, info, row)
        if result.codes is not None and result.codes[0]:
            refused = result.statuses[int(result.codes[0]) - 1]
            return filter_status(plugin.name, refused)
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
            status = Status(result.status.code, result.status.reasons, plugin.name)
            is_failure = status.code is Code.ERROR
            return phase_failure("PreFilter", status) if is_failure else status, named
        elif result.node_names is not None:
            named = result.node_names if not named else named & result.node_names
            if not named:
                return unresolvable(
                    "node(s) didn't satisfy the plugins that narrow the nodes"
                ), named
    return SUCCESS, named
