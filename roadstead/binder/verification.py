"""Verifier: all hard filters of one pod for one node, on the binder's own table.

    verify ──► results are cached for the class ──► the quick check passes ──► Success
                        │ no                            │ no
                        └───────────────────────────────┴──► PreFilter, Filter over the one row

A scheduler may have decided on an old state; every commit is checked here, against authoritative
counts. PreFilter reads the whole table, filters read a view of the one row. For a class that
recurs, the results of filters that read NODE facts are cached for all rows, and PreFilter's outcome
as long as no pod was added or removed that it may depend on.
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
from roadstead.framework.validity import Validity, inputs_of, lasting_inputs_of
from roadstead.nodes.columns import Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows, Table
from roadstead.protocol.status import SUCCESS, Code, Status

WORTHWHILE = 3
"""Pods of a class after which the filters that read NODE facts run once for all rows."""

PODS_PER_SHAPE = 8
"""With this many pods per shape in a batch, or more, they run for a shape's first pod already."""

MAX_KNOWN = 4096
"""Maximum number of cached results; the oldest is dropped."""


@dataclass(slots=True)
class _CachedResults:
    """Cached results of a class or shape.

    quick_filters: see `_quick_filters`. passes: bool[row], the rows that pass the filters that read
    NODE facts, once computed. validity: of PreFilter's outcome. quick_validity: its validity for
    the plugins that do not read the table themselves. times: how many pods used it.
    """

    outcome: PreFilterOutcome
    validity: Validity
    quick_validity: Validity
    quick_filters: tuple[FilterPlugin, ...] = ()
    passes: Bools | None = None
    times: int = 0

    def names(self, node_name: str) -> bool:
        """Whether PreFilter's result includes a node."""
        return self.outcome.node_names is None or node_name in self.outcome.node_names


class Verifier:
    """Runs PreFilter and Filter for single nodes; PreFilter once per shape, until it changes.

    Results are cached by shape; by class if plugins may answer differently for classes of a shape.
    """

    def __init__(self, table: NodeTable, profiles: Mapping[str, Profile]) -> None:
        self._table = table
        self._profiles = profiles
        self._known: dict[Hashable, _CachedResults] = {}
        # By profile: plugins whose PreFilter or Filter looks across nodes, and those of them that
        # have no quick check (`count_passing`).
        self._filtering = {name: _filtering(each) for name, each in profiles.items()}
        self._unadmitted = {
            name: [plugin for plugin in plugins if not _admits_from_table(plugin)]
            for name, plugins in self._filtering.items()
        }

    def verify(self, facts: PodFacts, node_name: str) -> Status:
        """Return Success, or the first refusal. KeyError for an unknown node or profile."""
        profile = self._profiles[facts.scheduler_name]
        pod_class = self._table.classes.pod_class(facts)
        substitute = profile.substitute(pod_class, self._table.classes)
        if substitute is not None and self._verify(profile, substitute, node_name).is_success:
            return SUCCESS
        # A refusal may name objects that the substitute does not name.
        return self._verify(profile, pod_class, node_name)

    def _verify(self, profile: Profile, pod_class: PodClass, node_name: str) -> Status:
        row = self._table.row_of(node_name)
        known = self._known.get(_key_of(pod_class, profile))
        if known is not None and self._is_valid(known, profile, pod_class, quick=True):
            passed = known.outcome.status.is_success and known.names(node_name)
            if passed and self._admits(known, profile, pod_class, row):
                return SUCCESS
        known = self._pre_filtered(profile, pod_class)
        if not known.outcome.status.is_success:
            return known.outcome.status
        if not known.names(node_name):
            return excluded_status(known.outcome.narrowed_by)
        return _filtered(profile, pod_class, known.outcome.state, self._table.view(np.array([row])))

    def verify_first(self, pods: Sequence[PodFacts], node_names: Sequence[str]) -> int:
        """Return how many of the first pods `verify` would pass, each on top of those before.

        It may return fewer: the pod after them need not be refused, `verify` decides on it. Raises
        KeyError as `verify`.
        """
        if len(pods) == 1:
            # Columns of one row cost ten times what the row does.
            return int(self.verify(pods[0], node_names[0]).is_success)
        table = self._table
        pod_classes = table.classes.pod_classes_of(pods)
        rows = np.array(table.each_row(node_names), dtype=np.intp)
        keys: dict[PodClass, Hashable] = {}
        first: dict[Hashable, PodClass] = {}
        for pod_class in dict.fromkeys(pod_classes):
            keys[pod_class] = _key_of(pod_class, self._profiles[pod_class.facts.scheduler_name])
            first.setdefault(keys[pod_class], pod_class)
        positions_of: dict[Hashable, list[int]] = {key: [] for key in first}
        for index, pod_class in enumerate(pod_classes):
            positions_of[keys[pod_class]].append(index)
        number, plugins = len(pods), dict[FilterPlugin, None]()
        worthwhile = WORTHWHILE if len(pods) < PODS_PER_SHAPE * len(first) else 1
        for key, pod_class in first.items():
            positions = positions_of[key]
            known = self._results_for_all_rows(pod_class, len(positions), worthwhile)
            if known is None or not self._stays_feasible(known, pod_class, first.values()):
                number = min(number, positions[0])
                continue
            number = min(number, _first_not_passing(known.passes, rows, positions, number))
            plugins.update(dict.fromkeys(known.quick_filters))
        for plugin in plugins:
            if number:
                number = plugin.count_passing(pod_classes[:number], table, rows[:number])
        return number

    def _results_for_all_rows(
        self, pod_class: PodClass, pods: int, worthwhile: int
    ) -> _CachedResults | None:
        """Return the results of a class for all rows; compute them only for enough pods."""
        profile = self._profiles[pod_class.facts.scheduler_name]
        known = self._known.get(_key_of(pod_class, profile))
        if known is None or not self._is_valid(known, profile, pod_class, quick=True):
            if pods < worthwhile:
                return None
            known = self._pre_filtered(profile, pod_class)
        known.times += pods
        if known.passes is None and known.times >= worthwhile and known.outcome.status.is_success:
            known.passes = _static_mask(profile, pod_class, known.outcome.state, self._table)
        return known

    def _stays_feasible(
        self, known: _CachedResults, pod_class: PodClass, coming: Collection[PodClass]
    ) -> bool:
        """Whether all passing nodes stay feasible for a class when the other pods are added.

        coming: a class of each shape of the batch.
        """
        # `verify_first` does not compare nodes with those that PreFilter named.
        if known.outcome.node_names is not None or not known.outcome.status.is_success:
            return False
        profile = self._profiles[pod_class.facts.scheduler_name]
        plugins = self._unadmitted[profile.scheduler_name]
        return not any(
            known.quick_validity.is_changed_by(each, profile, plugins, pod_class) for each in coming
        )

    def _admits(
        self, known: _CachedResults, profile: Profile, pod_class: PodClass, row: int
    ) -> bool:
        """Whether the quick check passes, from cached results; False does not mean refused."""
        known.times += 1
        if known.passes is None:
            if known.times < WORTHWHILE:
                return False
            known.passes = _static_mask(profile, pod_class, known.outcome.state, self._table)
        rows = np.array([row], dtype=np.intp)
        admitted = (
            plugin.count_passing((pod_class,), self._table, rows) for plugin in known.quick_filters
        )
        return bool(known.passes[row]) and all(admitted)

    def _pre_filtered(self, profile: Profile, pod_class: PodClass) -> _CachedResults:
        """Return PreFilter's outcome, cached until something that it depends on changes."""
        key = _key_of(pod_class, profile)
        known = self._known.get(key)
        # The failure of a plugin is not cached: the next pod calls it again.
        has_failed = known is not None and known.outcome.status.code is Code.ERROR
        if (
            known is not None
            and not has_failed
            and self._is_valid(known, profile, pod_class, quick=False)
        ):
            return known
        inputs = inputs_of(self._table, profile, pod_class)
        changes = self._table.columns.changes
        outcome = run_pre_filter(profile, pod_class, self._table)
        has_inputs = known is not None and known.validity.inputs == inputs
        if known is not None and has_inputs and outcome.is_same(known.outcome):
            known.validity.changes = known.quick_validity.changes = changes
            return known
        before = known
        quick_inputs = lasting_inputs_of(self._table, profile, pod_class)
        has_facts = before is not None and before.quick_validity.inputs == quick_inputs
        known = _CachedResults(outcome, Validity(inputs, changes), Validity(quick_inputs, changes))
        known.quick_filters = _quick_filters(profile, outcome.state)
        if before is not None and has_facts:
            # NODE facts did not change, so the rows that pass are still valid.
            known.times, known.passes = before.times, before.passes
        self._known.pop(key, None)
        self._known[key] = known
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return known

    def _is_valid(
        self, known: _CachedResults, profile: Profile, pod_class: PodClass, *, quick: bool
    ) -> bool:
        """Whether PreFilter's outcome is valid; with `quick`, the part that quick checks need."""
        validity, plugins, inputs = (
            (known.quick_validity, self._unadmitted, lasting_inputs_of)
            if quick
            else (known.validity, self._filtering, inputs_of)
        )
        if validity.inputs != inputs(self._table, profile, pod_class):
            return False
        return validity.holds(self._table, profile, plugins[profile.scheduler_name], pod_class)


def _key_of(pod_class: PodClass, profile: Profile) -> Hashable:
    """Return a key that is equal for pods with the same results."""
    return (profile.scheduler_name, pod_class.shape) if profile.has_shape(pod_class) else pod_class


def _filtering(profile: Profile) -> list[Plugin]:
    """Return the plugins whose PreFilter or Filter looks across nodes."""
    filters = {*profile.filter, *profile.pre_filter}
    return [plugin for plugin in profile.cross_node if plugin in filters]


def _admits_from_table(plugin: Plugin) -> bool:
    """Whether a plugin looks across nodes and has a quick check that reads the table itself."""
    inherited = FilterPlugin.count_passing
    overrides = getattr(type(plugin), "count_passing", inherited) is not inherited
    return overrides and plugin.reads is Reads.CLUSTER


def _quick_filters(profile: Profile, state: CycleState) -> tuple[FilterPlugin, ...]:
    """Return the filters whose `count_passing` the quick check calls: those beyond NODE facts.

    Skipped ones are left out, unless they read the table themselves.
    """
    return tuple(
        plugin
        for plugin in profile.filter
        if _admits_from_table(plugin)
        or (plugin.reads is not Reads.NODE and plugin.name not in state.skipped)
    )


def _static_mask(
    profile: Profile, pod_class: PodClass, state: CycleState, table: NodeTable
) -> Bools:
    """Return which rows pass all filters that read NODE facts: bool[row]."""
    passes: Bools = np.ones(len(table), dtype=np.bool_)
    for plugin in profile.filter:
        if plugin.reads is Reads.NODE and plugin.name not in state.skipped:
            codes = plugin.filter(state, pod_class, table).codes
            if codes is not None:
                passes &= codes == 0
    return passes


def _first_not_passing(
    passes: Bools | None, rows: Rows, positions: list[int], otherwise: int
) -> int:
    """Return the first of some indices whose row does not pass; `otherwise` if all pass."""
    if passes is None:
        return positions[0]
    passing = passes[rows[positions]]
    return otherwise if passing.all() else positions[int(passing.argmin())]


def _filtered(profile: Profile, pod_class: PodClass, state: CycleState, row: Table) -> Status:
    for plugin in profile.filter:
        if plugin.name in state.skipped:
            continue
        result = plugin.filter(state, pod_class, row)
        if result.codes is not None and result.codes[0]:
            refused = result.statuses[int(result.codes[0]) - 1]
            return filter_status(plugin.name, refused)
    return SUCCESS
