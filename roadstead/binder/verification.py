"""Verifier: all hard filters of one pod for one node, on the binder's own table.

    verify ──► results are cached for the class ──► the quick check passes ──► Success
                        │ no                            │ no
                        └───────────────────────────────┴──► PreFilter, Filter over the one row

The quick check is the plugins' own `count_passing`: how many of the first pods of a sequence pass,
each on top of those before it, without PreFilter.

A scheduler may have decided on an old state; every commit is checked here, against authoritative
counts. PreFilter reads the whole table, filters read a view of the one row. For a class that
recurs, the results of filters that read only NODE facts (labels, taints and the like, not the pods
on the node) are cached for all rows, and PreFilter's outcome as long as it is valid: with equal
inputs (versions of the nodes' facts and of the plugins' own state), and no pod added or removed
that it may depend on (`framework.validity`).

A pod with device claims may be evaluated by a substitute: a class with equal answers that pods with
differently named claims share (`Profile.substitute`). In a batch DynamicResources' Filter is not
called for it: binding its claims checks more (docs/decisions/0061).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
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

MIN_PODS_TO_CACHE = 3
"""Pods of a class after which the filters that read NODE facts run once for all rows."""

PODS_PER_SHAPE = 8
"""Average number of pods of a shape in a batch from which these filters run at its first pod."""

MAX_CACHED = 4096
"""Maximum number of cached results; the oldest is dropped."""

BindClaims = Callable[[int], bool]
"""Binds the claims of the pod at an index of a batch; returns whether that was possible."""


@dataclass(slots=True)
class _CachedResults:
    """Cached results of a class or shape.

    validity: of PreFilter's outcome. quick_validity: of the outcome if only quick checks use it; it
    ends less often. Plugins with a quick check read the current table, so only pods that affect the
    other plugins end it, and it depends on fewer inputs (`lasting_inputs_of`). quick_filters: see
    `_quick_filters`. passes: bool[row], the rows that pass the filters that read NODE facts, once
    computed. uses: number of pods that were evaluated by these results.
    """

    outcome: PreFilterOutcome
    validity: Validity
    quick_validity: Validity
    quick_filters: tuple[FilterPlugin, ...] = ()
    passes: Bools | None = None
    uses: int = 0

    def allows(self, node_name: str) -> bool:
        """Whether PreFilter's result includes a node."""
        return self.outcome.node_names is None or node_name in self.outcome.node_names


class Verifier:
    """Run PreFilter and Filter for single nodes; PreFilter once per shape as long as it is valid.

    Results are cached by shape; by class if plugins may answer differently for classes of a shape.
    """

    def __init__(self, table: NodeTable, profiles: Mapping[str, Profile]) -> None:
        self._table = table
        self._profiles = profiles
        self._cached: dict[Hashable, _CachedResults] = {}
        # By profile: plugins whose PreFilter or Filter looks across nodes, and those of them that
        # have no quick check (`count_passing`).
        self._cross_node_filters = {
            name: _cross_node_filters(each) for name, each in profiles.items()
        }
        self._without_quick_check = {
            name: [plugin for plugin in plugins if not _has_quick_check(plugin)]
            for name, plugins in self._cross_node_filters.items()
        }
        # A pod passes their Filter on each node on which the devices that were allocated for it are
        # still free, and that is checked when its claims are bound.
        self._implied_by_claims: set[Plugin] = {
            plugin
            for profile in profiles.values()
            for plugin in profile.reserve
            if plugin.binds_devices
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
        cached = self._cached.get(_key_of(pod_class, profile))
        if cached is not None and self._is_valid(cached, profile, pod_class, quick=True):
            passed = cached.outcome.status.is_success and cached.allows(node_name)
            if passed and self._passes_quick_check(cached, profile, pod_class, row):
                return SUCCESS
        cached = self._pre_filtered(profile, pod_class)
        if not cached.outcome.status.is_success:
            return cached.outcome.status
        if not cached.allows(node_name):
            return excluded_status(cached.outcome.restricted_by)
        return _filter_row(
            profile, pod_class, cached.outcome.state, self._table.view(np.array([row]))
        )

    def verify_prefix(
        self,
        pods: Sequence[PodFacts],
        node_names: Sequence[str],
        bind_claims: BindClaims | None = None,
    ) -> int:
        """Return how many of the first pods `verify` would pass, each on top of those before it.

        It may return fewer: the pod after them need not be refused, `verify` decides on it.
        bind_claims: called in order for the passing pods with claims. Without it the batch ends at
        the first pod with claims, otherwise at the first such pod without a substitute. Raises
        KeyError as `verify`.
        """
        if len(pods) == 1:
            # Columns of one row cost ten times what the row does.
            passes = self.verify(pods[0], node_names[0]).is_success
            if passes and pods[0].may_bind_claims:
                passes = bind_claims is not None and bind_claims(0)
            return int(passes)
        pod_classes, evaluated = self._classes_of(pods, binds_claims=bind_claims is not None)
        rows = np.array(self._table.each_row(node_names), dtype=np.intp)
        count, plugins = self._count_by_shape(evaluated, rows)
        distinct = dict.fromkeys(evaluated)
        # Their answers change as claims are bound (`runs_per_pod`), so they are called pod by pod,
        # after the claims of the pods before.
        per_pod = [each for each in plugins if any(map(each.runs_per_pod, distinct))]
        for plugin in plugins:
            if count and plugin not in per_pod:
                count = plugin.count_passing(evaluated[:count], self._table, rows[:count])
        if bind_claims is None or evaluated is pod_classes:
            return count
        called_per_pod = [each for each in per_pod if each not in self._implied_by_claims]
        for index in range(count):
            pod_class, row = evaluated[index], rows[index : index + 1]
            for plugin in called_per_pod:
                if not plugin.count_passing((pod_class,), self._table, row):
                    return index
            if pod_classes[index].facts.may_bind_claims and not bind_claims(index):
                return index
        return count

    def _profile_of(self, pod_class: PodClass) -> Profile:
        return self._profiles[pod_class.facts.scheduler_name]

    def _classes_of(
        self, pods: Sequence[PodFacts], *, binds_claims: bool
    ) -> tuple[list[PodClass], list[PodClass]]:
        """Return the classes of the first pods, and the classes by which these are evaluated.

        Both lists end at the first pod with claims that has no substitute; unless `binds_claims`,
        at the first pod with claims. Without claims, both are the same list.
        """
        classes = self._table.classes
        own_classes = classes.pod_classes_of(pods)
        # Most batches have no claims, and few classes.
        if not any(each.facts.may_bind_claims for each in dict.fromkeys(own_classes)):
            return own_classes, own_classes
        evaluated = own_classes
        for index, pod_class in enumerate(own_classes):
            if not pod_class.facts.may_bind_claims:
                continue
            profile = self._profile_of(pod_class)
            substitute = profile.substitute(pod_class, classes) if binds_claims else None
            if substitute is None:
                return own_classes[:index], evaluated[:index]
            if evaluated is own_classes:
                evaluated = own_classes.copy()
            evaluated[index] = substitute
        return own_classes, evaluated

    def _count_by_shape(
        self, pod_classes: Sequence[PodClass], rows: Rows
    ) -> tuple[int, list[FilterPlugin]]:
        """Return how many of the first pods pass by cached results, and the filters still to call.

        The filters are those of the quick checks; the caller calls them for the counted pods.
        """
        # Keys are those of cached results: of a shape, or of a class.
        keys: dict[PodClass, Hashable] = {}
        first_class: dict[Hashable, PodClass] = {}
        for pod_class in dict.fromkeys(pod_classes):
            keys[pod_class] = _key_of(pod_class, self._profile_of(pod_class))
            first_class.setdefault(keys[pod_class], pod_class)
        positions_of: dict[Hashable, list[int]] = {key: [] for key in first_class}
        for index, pod_class in enumerate(pod_classes):
            positions_of[keys[pod_class]].append(index)
        count, plugins = len(pod_classes), dict[FilterPlugin, None]()
        min_pods = MIN_PODS_TO_CACHE if count < PODS_PER_SHAPE * len(first_class) else 1
        for key, pod_class in first_class.items():
            positions = positions_of[key]
            cached = self._results_for_all_rows(pod_class, len(positions), min_pods)
            if cached is None or not self._stays_feasible(cached, pod_class, first_class.values()):
                count = min(count, positions[0])
                continue
            count = min(count, _first_not_passing(cached.passes, rows, positions, count))
            plugins.update(dict.fromkeys(cached.quick_filters))
        return count, list(plugins)

    def _results_for_all_rows(
        self, pod_class: PodClass, pods: int, min_pods: int
    ) -> _CachedResults | None:
        """Return the results of a class for all rows; compute them only for enough pods."""
        profile = self._profiles[pod_class.facts.scheduler_name]
        cached = self._cached.get(_key_of(pod_class, profile))
        if cached is None or not self._is_valid(cached, profile, pod_class, quick=True):
            if pods < min_pods:
                return None
            cached = self._pre_filtered(profile, pod_class)
        cached.uses += pods
        if cached.passes is None and cached.uses >= min_pods and cached.outcome.status.is_success:
            cached.passes = _static_mask(profile, pod_class, cached.outcome.state, self._table)
        return cached

    def _stays_feasible(
        self, cached: _CachedResults, pod_class: PodClass, batch: Collection[PodClass]
    ) -> bool:
        """Whether all passing nodes stay feasible for a class when the batch's pods are added.

        batch: one class of each shape in the batch. Plugins with a quick check count these pods.
        """
        # `verify_prefix` does not compare nodes with those that PreFilter named.
        if cached.outcome.node_names is not None or not cached.outcome.status.is_success:
            return False
        profile = self._profiles[pod_class.facts.scheduler_name]
        plugins = self._without_quick_check[profile.scheduler_name]
        return not any(
            cached.quick_validity.is_changed_by(each, profile, plugins, pod_class) for each in batch
        )

    def _passes_quick_check(
        self, cached: _CachedResults, profile: Profile, pod_class: PodClass, row: int
    ) -> bool:
        """Whether the quick check passes, from cached results; False does not mean refused."""
        cached.uses += 1
        if cached.passes is None:
            if cached.uses < MIN_PODS_TO_CACHE:
                return False
            cached.passes = _static_mask(profile, pod_class, cached.outcome.state, self._table)
        rows = np.array([row], dtype=np.intp)
        passing = (
            plugin.count_passing((pod_class,), self._table, rows) for plugin in cached.quick_filters
        )
        return bool(cached.passes[row]) and all(passing)

    def _pre_filtered(self, profile: Profile, pod_class: PodClass) -> _CachedResults:
        """Return PreFilter's outcome, cached until something that it depends on changes."""
        key = _key_of(pod_class, profile)
        cached = self._cached.get(key)
        # The failure of a plugin is not cached: the next pod calls it again.
        has_failed = cached is not None and cached.outcome.status.code is Code.ERROR
        if (
            cached is not None
            and not has_failed
            and self._is_valid(cached, profile, pod_class, quick=False)
        ):
            return cached
        inputs = inputs_of(self._table, profile, pod_class)
        changes = self._table.columns.changes
        outcome = run_pre_filter(profile, pod_class, self._table)
        same_inputs = cached is not None and cached.validity.inputs == inputs
        if cached is not None and same_inputs and outcome.is_same(cached.outcome):
            cached.validity.changes = cached.quick_validity.changes = changes
            return cached
        before = cached
        quick_inputs = lasting_inputs_of(self._table, profile, pod_class)
        same_facts = before is not None and before.quick_validity.inputs == quick_inputs
        cached = _CachedResults(outcome, Validity(inputs, changes), Validity(quick_inputs, changes))
        cached.quick_filters = _quick_filters(profile, outcome.state)
        if before is not None and same_facts:
            # NODE facts did not change, so the rows that pass are still valid.
            cached.uses, cached.passes = before.uses, before.passes
        self._cached.pop(key, None)
        self._cached[key] = cached
        if len(self._cached) > MAX_CACHED:
            del self._cached[next(iter(self._cached))]
        return cached

    def _is_valid(
        self, cached: _CachedResults, profile: Profile, pod_class: PodClass, *, quick: bool
    ) -> bool:
        """Whether PreFilter's outcome is valid; with `quick`, the part that quick checks need."""
        validity, plugins, inputs = (
            (cached.quick_validity, self._without_quick_check, lasting_inputs_of)
            if quick
            else (cached.validity, self._cross_node_filters, inputs_of)
        )
        if validity.inputs != inputs(self._table, profile, pod_class):
            return False
        return validity.holds(self._table, profile, plugins[profile.scheduler_name], pod_class)


def _key_of(pod_class: PodClass, profile: Profile) -> Hashable:
    """Return the key of cached results: equal for pods with the same results."""
    return (profile.scheduler_name, pod_class.shape) if profile.has_shape(pod_class) else pod_class


def _cross_node_filters(profile: Profile) -> list[Plugin]:
    """Return the plugins whose PreFilter or Filter looks across nodes."""
    filters = {*profile.filter, *profile.pre_filter}
    return [plugin for plugin in profile.cross_node if plugin in filters]


def _has_quick_check(plugin: Plugin) -> bool:
    """Whether a plugin looks across nodes and has a quick check that reads the table itself."""
    inherited = FilterPlugin.count_passing
    overrides = getattr(type(plugin), "count_passing", inherited) is not inherited
    return overrides and plugin.reads is Reads.CLUSTER


def _quick_filters(profile: Profile, state: CycleState) -> tuple[FilterPlugin, ...]:
    """Return the filters whose `count_passing` the quick check calls: those beyond NODE facts.

    Filters that PreFilter skipped are left out, unless they read the table themselves.
    """
    return tuple(
        plugin
        for plugin in profile.filter
        if _has_quick_check(plugin)
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
            # Code 0: the row passes. None: all rows pass.
            if codes is not None:
                passes &= codes == 0
    return passes


def _first_not_passing(passes: Bools | None, rows: Rows, positions: list[int], default: int) -> int:
    """Return the first position in `rows` whose row does not pass; `default` if all pass."""
    if passes is None:
        return positions[0]
    passing = passes[rows[positions]]
    return default if passing.all() else positions[int(passing.argmin())]


def _filter_row(profile: Profile, pod_class: PodClass, state: CycleState, row: Table) -> Status:
    """Run Filter on a view of one row; return Success or the first refusal."""
    for plugin in profile.filter:
        if plugin.name in state.skipped:
            continue
        result = plugin.filter(state, pod_class, row)
        # Code n of a row: it is refused with the n-th status.
        if result.codes is not None and result.codes[0]:
            refused = result.statuses[int(result.codes[0]) - 1]
            return filter_status(plugin.name, refused)
    return SUCCESS
