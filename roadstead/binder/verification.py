"""Verifier: all hard filters of one pod for one node, on the binder's own table.

    verify ──► something is known of the class ──► a quick yes ──► Success
                        │ no                            │ no
                        └───────────────────────────────┴──► PreFilter, Filter over the one row

What a scheduler decided on may be old; what is committed is checked here, against authoritative
counts. PreFilter looks at the whole table, and filters at a view of the one row. Of a class that
comes again, what NODE facts say is kept for all rows, and PreFilter's outcome as long as no pod
came or went that it may depend on.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.diagnosis import excluded_status
from roadstead.framework.failures import filter_status
from roadstead.framework.plugin import FilterPlugin, Plugin, Reads
from roadstead.framework.pre_filtering import PreFilterOutcome, run_pre_filter
from roadstead.framework.profile import Profile
from roadstead.framework.validity import Validity, inputs_of
from roadstead.nodes.columns import Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows, Table
from roadstead.protocol.status import SUCCESS, Code, Status

WORTHWHILE = 3
"""Pods of a class after which what NODE facts say is found for all rows at once."""

PODS_PER_SHAPE = 8
"""Where a batch has so many pods for each of its kinds, it is worthwhile for the rare ones, too."""

MAX_KNOWN = 4096
"""Classes of which something is kept; the one found longest ago is dropped."""


@dataclass(slots=True)
class _Known:
    """What was found of a class.

    live: filters beyond NODE facts that are not skipped; passes: bool[row], what the others said,
    once that was found. whole: until when PreFilter's outcome holds. alone: until when it holds at
    least as far as plugins need it that do not look at the table themselves.
    """

    outcome: PreFilterOutcome
    whole: Validity
    alone: Validity
    live: tuple[FilterPlugin, ...] = ()
    passes: Bools | None = None
    times: int = 0

    def names(self, node_name: str) -> bool:
        """Whether PreFilter leaves a node in."""
        return self.outcome.node_names is None or node_name in self.outcome.node_names


class Verifier:
    """Runs PreFilter and Filter for single nodes; PreFilter once per kind, until it changes.

    What is known is kept by kind; by class where plugins may say something else of others.
    """

    def __init__(self, table: NodeTable, profiles: Mapping[str, Profile]) -> None:
        self._table = table
        self._profiles = profiles
        self._known: dict[Hashable, _Known] = {}
        # By profile: what PreFilter and Filter say across nodes, and for what of it there is no
        # quick yes.
        self._filtering = {name: _filtering(each) for name, each in profiles.items()}
        self._unadmitted = {
            name: [plugin for plugin in plugins if not _admits_alone(plugin)]
            for name, plugins in self._filtering.items()
        }

    def verify(self, facts: PodFacts, node_name: str) -> Status:
        """Success, or the first refusal. KeyError for an unknown node or profile."""
        profile = self._profiles[facts.scheduler_name]
        info = self._table.classes.info(facts)
        row = self._table.row_of(node_name)
        known = self._known.get(_key_of(info, profile))
        if known is not None and self._holds(known, profile, info, alone=True):
            passed = known.outcome.status.is_success and known.names(node_name)
            if passed and self._admits(known, profile, info, row):
                return SUCCESS
        known = self._pre_filtered(profile, info)
        if not known.outcome.status.is_success:
            return known.outcome.status
        if not known.names(node_name):
            return excluded_status(known.outcome.narrowed_by)
        return _filtered(profile, info, known.outcome.state, self._table.view(np.array([row])))

    def verify_first(self, pods: Sequence[PodFacts], node_names: Sequence[str]) -> int:
        """How many of the first pods `verify` would let to their nodes, on top of those before.

        As many as are found quickly: `verify` must be asked about the pod behind them. KeyError as
        `verify`.
        """
        if len(pods) == 1:
            # Columns of one row cost ten times what the row does.
            return int(self.verify(pods[0], node_names[0]).is_success)
        table = self._table
        infos = table.classes.infos_of(pods)
        rows = np.array(table.each_row(node_names), dtype=np.intp)
        keys: dict[PodClass, Hashable] = {}
        first: dict[Hashable, PodClass] = {}
        for info in dict.fromkeys(infos):
            keys[info] = _key_of(info, self._profiles[info.facts.scheduler_name])
            first.setdefault(keys[info], info)
        places_of: dict[Hashable, list[int]] = {key: [] for key in first}
        for place, info in enumerate(infos):
            places_of[keys[info]].append(place)
        number, plugins = len(pods), dict[FilterPlugin, None]()
        worthwhile = WORTHWHILE if len(pods) < PODS_PER_SHAPE * len(first) else 1
        for key, info in first.items():
            places = places_of[key]
            known = self._known_of_all(info, len(places), worthwhile)
            if known is None or not self._is_open(known, info, first.values()):
                number = min(number, places[0])
                continue
            number = min(number, _first_outside(known.passes, rows, places, number))
            plugins.update(dict.fromkeys(known.live))
        for plugin in plugins:
            if number:
                number = plugin.admits(infos[:number], table, rows[:number])
        return number

    def _known_of_all(self, info: PodClass, pods: int, worthwhile: int) -> _Known | None:
        """What is known of a class, for all rows, if there are pods enough to find it out."""
        profile = self._profiles[info.facts.scheduler_name]
        known = self._known.get(_key_of(info, profile))
        if known is None or not self._holds(known, profile, info, alone=True):
            if pods < worthwhile:
                return None
            known = self._pre_filtered(profile, info)
        known.times += pods
        if known.passes is None and known.times >= worthwhile and known.outcome.status.is_success:
            known.passes = _standing(profile, info, known.outcome.state, self._table)
        return known

    def _is_open(self, known: _Known, info: PodClass, coming: Collection[PodClass]) -> bool:
        """Whether all nodes that pass are open to a class, also when others have come."""
        if known.outcome.node_names is not None or not known.outcome.status.is_success:
            return False
        profile = self._profiles[info.facts.scheduler_name]
        plugins = self._unadmitted[profile.scheduler_name]
        return not any(known.alone.is_changed_by(each, profile, plugins, info) for each in coming)

    def _admits(self, known: _Known, profile: Profile, info: PodClass, row: int) -> bool:
        """A quick yes, from what is known of the class; a no says nothing."""
        known.times += 1
        if known.passes is None:
            if known.times < WORTHWHILE:
                return False
            known.passes = _standing(profile, info, known.outcome.state, self._table)
        rows = np.array([row], dtype=np.intp)
        admitted = (plugin.admits((info,), self._table, rows) for plugin in known.live)
        return bool(known.passes[row]) and all(admitted)

    def _pre_filtered(self, profile: Profile, info: PodClass) -> _Known:
        """PreFilter's outcome, kept while what it depends on stays what it was."""
        key = _key_of(info, profile)
        known = self._known.get(key)
        has_failed = known is not None and known.outcome.status.code is Code.ERROR
        if known is not None and not has_failed and self._holds(known, profile, info, alone=False):
            return known
        inputs = inputs_of(self._table, profile, info)
        changes = self._table.columns.changes
        outcome = run_pre_filter(profile, info, self._table)
        has_inputs = known is not None and known.whole.inputs == inputs
        if known is not None and has_inputs and outcome.is_same(known.outcome):
            known.whole.changes = known.alone.changes = changes
            return known
        before = known
        known = _Known(outcome, Validity(inputs, changes), Validity(inputs, changes))
        known.live = _live(profile, outcome.state)
        if before is not None and has_inputs:
            # Of NODE facts nothing changed.
            known.times, known.passes = before.times, before.passes
        self._known.pop(key, None)
        self._known[key] = known
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return known

    def _holds(self, known: _Known, profile: Profile, info: PodClass, *, alone: bool) -> bool:
        """Whether PreFilter would say the same, or with `alone` what is needed of it."""
        validity, plugins = (
            (known.alone, self._unadmitted) if alone else (known.whole, self._filtering)
        )
        if validity.inputs != inputs_of(self._table, profile, info):
            return False
        return validity.holds(self._table, profile, plugins[profile.scheduler_name], info)


def _key_of(info: PodClass, profile: Profile) -> Hashable:
    """Equal for pods of which the same is known."""
    return (profile.scheduler_name, info.shape) if profile.has_shape(info) else info


def _filtering(profile: Profile) -> list[Plugin]:
    """Plugins whose PreFilter or Filter looks across nodes."""
    filters = {*profile.filter, *profile.pre_filter}
    return [plugin for plugin in profile.cross_node if plugin in filters]


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
        or (plugin.reads is not Reads.NODE and plugin.name not in state.skipped)
    )


def _standing(profile: Profile, info: PodClass, state: CycleState, table: NodeTable) -> Bools:
    """Which rows pass all filters that read NODE facts: bool[row]."""
    passes: Bools = np.ones(len(table), dtype=np.bool_)
    for plugin in profile.filter:
        if plugin.reads is Reads.NODE and plugin.name not in state.skipped:
            codes = plugin.filter(state, info, table).codes
            if codes is not None:
                passes &= codes == 0
    return passes


def _first_outside(passes: Bools | None, rows: Rows, places: list[int], otherwise: int) -> int:
    """The first of some places whose row does not pass."""
    if passes is None:
        return places[0]
    passing = passes[rows[places]]
    return otherwise if passing.all() else places[int(passing.argmin())]


def _filtered(profile: Profile, info: PodClass, state: CycleState, row: Table) -> Status:
    for plugin in profile.filter:
        if plugin.name in state.skipped:
            continue
        result = plugin.filter(state, info, row)
        if result.codes is not None and result.codes[0]:
            refused = result.statuses[int(result.codes[0]) - 1]
            return filter_status(plugin.name, refused)
    return SUCCESS
