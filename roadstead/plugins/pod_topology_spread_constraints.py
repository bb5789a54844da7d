"""The spread constraints of a pod, and the nodes and pods that they count.

A pod without constraints of its own has the profile's defaults, if a Service selects it or a
ReplicationController, ReplicaSet or StatefulSet owns it: the selector of the defaults is theirs.
For pods placed one after another, `count_within_skew` returns how many of the first keep their
constraints:

    domains of each constraint, counted once  ──►  for each pod: within maxSkew?  ──►  count it

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/{plugin,common}.go and
pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roadstead.config.plugin_args import PodTopologySpreadArgs
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts, SpreadConstraint
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.taints import tolerated
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows, Table
from roadstead.plugins.taint_toleration import HARD_EFFECTS

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"

MAX_TABLES = 4
"""Tables whose counts are cached; the least recently used is dropped."""
MAX_SELECTORS = 256
"""Selectors per table whose counts are cached; the least recently used is dropped."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One constraint with its effective selector; a `selector` of None matches nothing."""

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector matches a pod with these labels (in the right namespace)."""
        return self.selector is not None and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodSpread:
    """The constraints of a pod.

    needs_all_keys: nodes that lack a topology key of a soft constraint are not scored.
    hard_error, soft_error: upstream's text if a selector of such a constraint does not parse.
    """

    hard: tuple[Spread, ...] = ()
    soft: tuple[Spread, ...] = ()
    needs_all_keys: bool = True
    hard_error: str = ""
    soft_error: str = ""


NO_SPREAD = PodSpread()

SYSTEM_DEFAULTS = (
    SpreadConstraint(HOSTNAME, 3, SOFT, None, 1, "Honor", "Ignore", ()),
    SpreadConstraint(ZONE, 5, SOFT, None, 1, "Honor", "Ignore", ()),
)


class SpreadSource:
    """Finds the constraints of pods, from a profile's arguments, Services and controllers."""

    def __init__(self, args: PodTopologySpreadArgs, cluster: ClusterFacts) -> None:
        self._system = args.defaulting_type == "System"
        self._defaults = (
            SYSTEM_DEFAULTS
            if self._system
            else tuple(_default_constraint(each) for each in args.default_constraints)
        )
        self._services: dict[str, list[LabelSelector]] = {}
        # By the owner's (API version, kind), namespace and name.
        self._owners: dict[tuple[tuple[str, str], str, str], LabelSelector] = {}
        for each in cluster.selecting:
            if each.selector is None:
                continue
            if each.kind == "Service":
                self._services.setdefault(each.namespace, []).append(each.selector)
            else:
                version = "v1" if each.kind == "ReplicationController" else "apps/v1"
                self._owners[(version, each.kind), each.namespace, each.name] = each.selector

    def of(self, facts: PodFacts) -> PodSpread:
        """Return the constraints of a pod; NO_SPREAD without any."""
        if facts.spread_constraints:
            labels = dict(facts.labels)
            hard, hard_error = _own(facts.spread_constraints, HARD, labels)
            soft, soft_error = _own(facts.spread_constraints, SOFT, labels)
            return PodSpread(hard, soft, True, hard_error, soft_error)
        if not self._defaults:
            return NO_SPREAD
        selector = self.default_selector(facts)
        if not selector.requirements:
            return NO_SPREAD
        hard, soft = (
            tuple(_spread(c, selector) for c in self._defaults if c.when_unsatisfiable == kind)
            for kind in (HARD, SOFT)
        )
        return PodSpread(hard, soft, needs_all_keys=not self._system)

    def default_selector(self, facts: PodFacts) -> LabelSelector:
        """Return the joint selector of the pod's Services and controller; empty without any.

        Services select by labels; the controller is the one that owns the pod, whether or not its
        selector matches.
        """
        labels = dict(facts.labels)
        # As upstream: one label set for Services and ReplicationController, in which a later value
        # of a key replaces the earlier one; the controllers of apps/v1 add requirements to it.
        exact: dict[str, Requirement] = {}
        for service in self._services.get(facts.namespace, ()):
            if service.matches(labels):
                exact.update((each.key, each) for each in service.requirements)
        added: tuple[Requirement, ...] = ()
        if facts.owner is not None:
            kind = facts.owner.api_version, facts.owner.kind
            owner = self._owners.get((kind, facts.namespace, facts.owner.name))
            if owner is not None and facts.owner.kind == "ReplicationController":
                exact.update((each.key, each) for each in owner.requirements)
            elif owner is not None:
                added = owner.requirements
        return LabelSelector((*(exact[key] for key in sorted(exact)), *added))


def _default_constraint(manifest: Mapping[str, object]) -> SpreadConstraint:
    max_skew, min_domains = manifest["maxSkew"], manifest.get("minDomains", 1)
    assert isinstance(max_skew, int)
    assert isinstance(min_domains, int)
    return SpreadConstraint(
        topology_key=str(manifest["topologyKey"]),
        max_skew=max_skew,
        when_unsatisfiable=str(manifest["whenUnsatisfiable"]),
        selector=None,
        min_domains=min_domains,
        node_affinity_policy=str(manifest.get("nodeAffinityPolicy", "Honor")),
        node_taints_policy=str(manifest.get("nodeTaintsPolicy", "Ignore")),
        match_label_keys=(),
    )


def _own(
    constraints: Iterable[SpreadConstraint], kind: str, labels: Mapping[str, str]
) -> tuple[tuple[Spread, ...], str]:
    """Return a pod's own hard or soft constraints, and the first error among them."""
    chosen = [each for each in constraints if each.when_unsatisfiable == kind]
    error = next((each.error for each in chosen if each.error), "")
    if error:
        return (), error
    return tuple(_spread(each, each.effective_selector(labels)) for each in chosen), ""


def _spread(constraint: SpreadConstraint, selector: LabelSelector | None) -> Spread:
    return Spread(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        selector=selector,
        min_domains=constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def label_codes(table: Table, key: str) -> I32:
    """Return the codes of a label key: int32[row], -1 if a node lacks it."""
    return table._codes(table.columns.label(key).codes)


def with_all_keys(spreads: Iterable[Spread], table: Table) -> Bools:
    """Return which rows have the topology key of every constraint: bool[row]."""
    rows = np.ones(len(table), dtype=np.bool_)
    for key in {each.topology_key for each in spreads}:
        rows &= label_codes(table, key) >= 0
    return rows


def included(
    facts: PodFacts, spreads: Sequence[Spread], table: Table, rows: Bools
) -> tuple[Bools, ...]:
    """Return for each constraint those of `rows` that its node inclusion policies include."""
    fitting = rows
    if any(each.honors_affinity for each in spreads):
        fitting = rows & _fits_affinity(facts, table)
    tolerable = np.ones_like(rows)
    if any(each.honors_taints for each in spreads):
        tolerable = _tolerates(facts, table)
    return tuple(
        (fitting if each.honors_affinity else rows) & (tolerable if each.honors_taints else True)
        for each in spreads
    )


def _fits_affinity(facts: PodFacts, table: Table) -> Bools:
    matching = np.ones(len(table), dtype=np.bool_)
    for key, value in facts.node_selector:
        matching &= table.match(Requirement(key, "In", (value,)))
    if facts.required_node_terms is not None:
        any_term = np.zeros(len(table), dtype=np.bool_)
        for term in facts.required_node_terms:
            any_term |= table.match_term(term)
        matching &= any_term
    return matching


def _tolerates(facts: PodFacts, table: Table) -> Bools:
    by_set = [
        all(
            taint.effect not in HARD_EFFECTS or tolerated(taint, facts.tolerations)
            for taint in taints
        )
        for taints in table.taint_sets
    ]
    return np.array(by_set, dtype=np.bool_)[table.taint_codes]


def sum_by_value(table: Table, key: str, rows: Bools, amounts: I64) -> dict[str, int]:
    """Sum `amounts` over `rows` by label value; rows without the label count under "".

    As upstream, which reads a missing label as "", the value of a node that has the label empty.
    """
    values = table.columns.label(key).values.values
    codes = label_codes(table, key)[rows] + 1
    present = np.flatnonzero(np.bincount(codes))
    sums: list[int] = np.bincount(codes, weights=amounts[rows])[present].astype(np.int64).tolist()
    found = present.tolist()
    without = sums.pop(0) if found[:1] == [0] else None
    result = dict(zip([values[code - 1] for code in found if code], sums, strict=True))
    if without is not None:
        result[""] = result.get("", 0) + without
    return result


def amounts_by_row(table: Table, key: str, amounts: Mapping[str, int]) -> I64:
    """Return the amount of each row's label value: int64[row]; 0 without one."""
    values = table.columns.label(key).values
    codes = label_codes(table, key)
    by_code = np.zeros(len(values) + 1, dtype=np.int64)
    if len(codes) < len(amounts):
        listed = np.unique(codes[codes >= 0])
        names = values.values
        by_code[listed] = [amounts.get(names[code], 0) for code in listed.tolist()]
    else:
        # The last index is for rows without the key (code -1), and for values that no row has.
        positions = np.fromiter(map(values.find, amounts), np.intp, len(amounts))
        by_code[positions] = np.fromiter(amounts.values(), np.int64, len(amounts))
        by_code[-1] = 0
    return by_code[codes]


def apply_moves(
    pod: PodClass,
    spreads: Sequence[Spread],
    counts: tuple[dict[str, int], ...],
    row: Table,
    moves: Mapping[PodClass, int],
) -> tuple[dict[str, int], ...]:
    """Return the counts per constraint and topology value after `moves` on a row.

    Returns the same object if no selector matches a moved pod (or as many are added as removed).
    As upstream's updateWithPod, this counts terminating pods, and every pod for an empty selector;
    the first count (`MatchingPods`) does neither.
    """
    mine = {other: n for other, n in moves.items() if other.facts.namespace == pod.facts.namespace}
    added = [sum(n for other, n in mine.items() if s.matches(other.labels)) for s in spreads]
    if not any(added):
        return counts
    changed = []
    rows = included(pod.facts, spreads, row, with_all_keys(spreads, row))
    for spread, amount, of_each, counted in zip(spreads, added, counts, rows, strict=True):
        after = of_each
        if amount and counted[0]:
            value = row.columns.label(spread.topology_key).values.values[
                label_codes(row, spread.topology_key)[0]
            ]
            after = {**of_each, value: of_each.get(value, 0) + amount}
        changed.append(after)
    return tuple(changed)


@dataclass(slots=True)
class _CachedCounts:
    node_version: int
    version: int
    counts: I64


_CountsBySelector = OrderedDict[tuple[str, LabelSelector], _CachedCounts]


class MatchingPods:
    """Cached numbers of pods on each row that a selector matches; only changed rows are recounted.

    Terminating pods are counted only with `terminating`. As upstream, an empty selector, which
    matches every pod, counts none.
    """

    def __init__(self, *, terminating: bool = False) -> None:
        self._terminating = terminating
        self._tables: OrderedDict[NodeTable, _CountsBySelector] = OrderedDict()

    def on_rows(self, table: Table, namespace: str, selector: LabelSelector | None) -> I64:
        """Return the matching pods of a namespace: int64[row], read-only for callers."""
        if not is_counted(selector):
            return np.zeros(len(table), dtype=np.int64)
        assert selector is not None
        if not isinstance(table, NodeTable):
            return self._count(table, range(len(table)), namespace, selector)
        of_table = self._of_table(table)
        cached = of_table.get((namespace, selector))
        if cached is None or cached.node_version != table.node_version:
            counts = self._count(table, range(len(table)), namespace, selector)
            cached = of_table[namespace, selector] = _CachedCounts(
                table.node_version, table.version, counts
            )
        elif cached.version != table.version:
            rows = table.rows_changed_since(cached.version)
            cached.counts[rows] = self._count(table, rows.tolist(), namespace, selector)
            cached.version = table.version
        of_table.move_to_end((namespace, selector))
        if len(of_table) > MAX_SELECTORS:
            of_table.popitem(last=False)
        return cached.counts

    def _of_table(self, table: NodeTable) -> _CountsBySelector:
        of_table = self._tables.setdefault(table, OrderedDict())
        self._tables.move_to_end(table)
        if len(self._tables) > MAX_TABLES:
            self._tables.popitem(last=False)
        return of_table

    def _count(
        self, table: Table, rows: Sequence[int], namespace: str, selector: LabelSelector
    ) -> I64:
        """Count matching pods on some rows; each class is matched once."""
        pods = [table.pods(row) for row in rows]
        classes: Iterable[PodClass] = table.class_counts
        if len(pods) < len(table.class_counts):
            classes = set().union(*pods)
        matching = {
            pod_class
            for pod_class in classes
            if pod_class.facts.namespace == namespace
            and (self._terminating or not pod_class.facts.is_terminating)
            and selector.matches(pod_class.labels)
        }
        if not matching:
            return np.zeros(len(pods), dtype=np.int64)
        counts = [sum(map(on_row.__getitem__, on_row.keys() & matching)) for on_row in pods]
        return np.array(counts, dtype=np.int64)


def is_counted(selector: LabelSelector | None) -> bool:
    """Whether a selector counts any pods: it exists and is not empty."""
    return selector is not None and bool(selector.requirements)


OnNodes = Callable[[PodClass, Spread, Table], I64]
"""Returns how many pods on each row a constraint of a pod counts: int64[row]."""


class _Domains:
    """The domains of one constraint of a class, by label code, updated as pods are placed.

    counts: int64[code]. present: bool[code], the codes that some counted row has; only these are
    domains.
    """

    def __init__(self, spread: Spread, table: Table, counted: Bools, pods: I64) -> None:
        codes = label_codes(table, spread.topology_key)
        size = int(codes.max(initial=-1)) + 1
        self._spread = spread
        self._codes = codes
        self._counted = counted
        self.present = np.bincount(codes[counted], minlength=size) > 0
        weights = np.bincount(codes[counted], weights=pods[counted], minlength=size)
        self.counts = weights.astype(np.int64)
        self._is_enough = np.count_nonzero(self.present) >= spread.min_domains
        self._find_lowest()

    def _find_lowest(self) -> None:
        counts = self.counts[self.present]
        self._lowest = int(counts.min()) if len(counts) else 0
        self._at_lowest = int(np.count_nonzero(counts == self._lowest))

    def keeps_skew(self, row: int, own: int) -> bool:
        """Whether a pod keeps the skew on a row. own: 1 if the constraint counts the pod itself."""
        lowest = self._lowest if self._is_enough else 0
        return int(self.counts[self._codes[row]]) + own - lowest <= self._spread.max_skew

    def add(self, row: int) -> None:
        """Count a matching pod that is placed on a row."""
        if not self._counted[row]:
            return
        code = self._codes[row]
        before = int(self.counts[code])
        self.counts[code] = before + 1
        # The minimum changes only when the last domain that has it grows.
        if before == self._lowest:
            self._at_lowest -= 1
            if not self._at_lowest:
                self._find_lowest()


class _Class:
    """The hard constraints of a class: their domains, and which of them count the pod itself."""

    def __init__(
        self, pod: PodClass, hard: Sequence[Spread], table: Table, on_nodes: OnNodes
    ) -> None:
        self._keys = with_all_keys(hard, table)
        rows = included(pod.facts, hard, table, self._keys)
        self.domains = [
            _Domains(spread, table, counted, on_nodes(pod, spread, table))
            for spread, counted in zip(hard, rows, strict=True)
        ]
        self._own = [int(spread.matches(pod.labels)) for spread in hard]

    def keeps_skew(self, row: int) -> bool:
        if not self._keys[row]:
            return False
        pairs = zip(self.domains, self._own, strict=True)
        return all(each.keeps_skew(row, own) for each, own in pairs)


def count_within_skew(
    pods: Sequence[PodClass],
    rows: Rows,
    table: Table,
    hard_of: Mapping[PodClass, Sequence[Spread]],
    on_nodes: OnNodes,
) -> int:
    """Return how many of the first pods keep their constraints if placed on `rows` in this order.

    hard_of: by class, of all classes of the pods.
    """
    classes = {
        pod_class: _Class(pod_class, hard, table, on_nodes)
        for pod_class, hard in hard_of.items()
        if hard
    }
    counted_by = {
        pod_class: [
            domains
            for other, found in classes.items()
            for spread, domains in zip(hard_of[other], found.domains, strict=True)
            if other.facts.namespace == pod_class.facts.namespace
            and spread.matches(pod_class.labels)
        ]
        for pod_class in hard_of
    }
    for index, (pod_class, row) in enumerate(zip(pods, rows.tolist(), strict=True)):
        found = classes.get(pod_class)
        if found is not None and not found.keeps_skew(row):
            return index
        for domains in counted_by[pod_class]:
            domains.add(row)
    return len(pods)
