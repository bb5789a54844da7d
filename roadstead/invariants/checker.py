"""The checker: every record of a journal, checked against the rules in commit order.

Which invariant is checked where: `docs/invariants.md`.

A bind is checked on the cluster as the records before it describe it. A pod is checked against the
rules of its profile's filters; if the journal does not name them, against all rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.invariants import affinity, node_rules, spread
from roadstead.invariants.claim_binding import ClaimBinding
from roadstead.invariants.evictions import EvictionChecks
from roadstead.invariants.history import PodHistory, TokenHistory
from roadstead.invariants.order import PendingOrder
from roadstead.invariants.world import World
from roadstead.journal.records import JournalRecord, RecordKind

Rule = Callable[[World, PodFacts, NodeFacts], Iterator[str]]

RULES: tuple[tuple[str, str, Rule], ...] = (
    ("I1", "NodeResourcesFit", node_rules.overfull),
    ("I1", "NodePorts", node_rules.port_in_use),
    ("I2", "NodeName", node_rules.other_node_name),
    ("I2", "NodeUnschedulable", node_rules.unschedulable),
    ("I2", "TaintToleration", node_rules.tainted),
    ("I2", "NodeAffinity", node_rules.unmatched_node_affinity),
    ("I2", "VolumeRestrictions", node_rules.claim_shared),
    ("I2", "VolumeRestrictions", node_rules.disk_shared),
    ("I2", "PodTopologySpread", spread.exceeded_skew),
    ("I2", "InterPodAffinity", affinity.unmet_affinity),
    ("I2", "InterPodAffinity", affinity.violated_anti_affinity),
)
"""(invariant, the filter plugin that enforces the rule, the rule)."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated invariant. lsn: of the record that violates it, 0 if found only at the end."""

    lsn: int
    invariant: str
    pod: str
    node: str
    text: str


@dataclass(slots=True)
class Checked:
    """The result for a journal. records, binds_checked: numbers of records by kind, and of binds.

    counts: of what violates no rule: `evictions`; evictions `beyond_budget`; `preemptors_waiting`,
    pods for which others were evicted, and which are pending at the end; `claims_bound`;
    `overtaken`, binds of a pod while an equal one waited longer or had a higher priority.
    """

    records: Counter[str] = field(default_factory=Counter)
    binds_checked: int = 0
    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class Checker:
    """Apply records in order; `finish` returns the result.

    world: the cluster as the records so far describe it. _filters: names of the filter plugins of a
    profile, by scheduler name. _bound_in_group: number of pods ever bound, by pod group.
    _min_members: how many pods of each group must be bound. _snapshot_groups: groups of pods whose
    binds a snapshot replaced by LOAD records. _removed_before_snapshot: number of pods that ended
    before a snapshot.
    """

    def __init__(self) -> None:
        self.world = World()
        self.result = Checked()
        self._filters: dict[str, tuple[str, ...]] = {}
        self._pods, self._tokens, self._order = PodHistory(), TokenHistory(), PendingOrder()
        self._claims, self._evictions = ClaimBinding(), EvictionChecks()
        self._bound_in_group: Counter[GroupKey] = Counter()
        self._min_members: dict[GroupKey, int] = {}
        self._snapshot_groups: set[GroupKey] = set()
        self._removed_before_snapshot = 0
        self._last_lsn = 0

    def apply(self, record: JournalRecord) -> None:
        """Apply and check one record."""
        self.result.records[record.kind.value] += 1
        # A commit is its binds and then the STORAGE records of their claims; after a pod that ended
        # follow the STORAGE records of its claims. Any other record ends these groups.
        if record.kind not in (RecordKind.BIND, RecordKind.STORAGE):
            self._report_all(self._claims.flush())
        if record.kind not in (RecordKind.DELETE, RecordKind.EVICT, RecordKind.STORAGE):
            self._report_all(self._claims.check_ended())
        _HANDLERS[record.kind](self, record)
        # In a snapshot, a LOAD has the lsn of the commit that bound the pod, and so the lsns may be
        # in any order; other records have 0.
        if 0 < record.lsn <= self._last_lsn and record.kind is not RecordKind.LOAD:
            self._report(record, "I7", f"record {record.lsn} follows {self._last_lsn}")
        self._last_lsn = max(self._last_lsn, record.lsn)

    def finish(self) -> Checked:
        """Check, after the last record, that gangs are all-or-nothing; return the result."""
        self._report_all(self._claims.flush())
        self._report_all(self._claims.check_ended())
        for key, bound in sorted(self._bound_in_group.items()):
            needed = self._min_members.get(key, bound)
            # The groups of pods that ended before a snapshot are unknown: any may have been of this
            # group.
            is_in_snapshot = key in self._snapshot_groups
            missing = needed - bound - (self._removed_before_snapshot if is_in_snapshot else 0)
            if missing > 0:
                name = "/".join(key)
                text = f"{bound} of at least {needed} pods of group {name} were bound"
                violation = Violation(lsn=0, invariant="I10", pod=name, node="", text=text)
                self.result.violations.append(violation)
        self._evictions.finish(self._pods.waiting())
        counts = {"overtaken": self._order.overtaken, "claims_bound": self._claims.bound}
        # A sum of Counters has no counts of 0.
        self.result.counts = Counter(counts) + self._evictions.counts
        return self.result

    def _report(self, record: JournalRecord, invariant: str, text: str) -> None:
        violation = Violation(record.lsn, invariant, record.key, record.node_name, text)
        self.result.violations.append(violation)

    def _report_findings(self, record: JournalRecord, findings: Iterable[tuple[str, str]]) -> None:
        for invariant, text in findings:
            self._report(record, invariant, text)

    def _report_all(self, findings: Iterable[tuple[JournalRecord, str, str]]) -> None:
        for record, invariant, text in findings:
            self._report(record, invariant, text)

    def _cluster(self, record: JournalRecord) -> None:
        if isinstance(record.subject, Rules):
            rules = record.subject
            self._filters = dict(rules.filters)
            # The feature gate DRAExtendedResource.
            self.world.leaves_to_devices = rules.extended_resource
            self._claims.devices.begin_rules(rules)
        else:
            assert isinstance(record.subject, ClusterFacts), f"record {record.lsn} has no cluster"
            self.world.cluster = record.subject
            self._claims.storage.begin(record.subject.storage)
            self._claims.devices.begin(record.subject.devices)
            self._evictions.begin(record.subject.budgets)
            for group in record.subject.pod_groups:
                if group.min_member is not None:
                    self._min_members[group.key] = group.min_member

    def _node(self, record: JournalRecord) -> None:
        assert isinstance(record.subject, NodeFacts), f"record {record.lsn} has no node"
        self.world.nodes[record.node_name] = record.subject

    def _node_gone(self, record: JournalRecord) -> None:
        self.world.nodes.pop(record.node_name, None)

    def _add(self, record: JournalRecord) -> None:
        findings = list(self._pods.add(record))
        self._report_findings(record, findings)
        if record.facts is None:
            return
        self._evictions.record_pod(record.uid, record.key, record.facts)
        if not record.node_name:
            self._order.wait(record.uid, record.facts)
        elif not findings:
            # An update of a pod on its node: its new facts count, without a check of the rules.
            self._remove_pod(record.uid, record.node_name)
            self.world.put(record.uid, record.node_name, record.facts)
            self._claims.storage.put(record.uid, record.node_name, record.facts)

    def _load(self, record: JournalRecord) -> None:
        """Apply a pod that was bound when the journal or snapshot began."""
        is_first = not self._pods.was_bound(record.uid)
        self._report_findings(record, self._tokens.commit(record))
        findings = list(self._pods.load(record))
        self._report_findings(record, findings)
        if not findings:
            self._put(record, is_first=is_first)

    def _bind(self, record: JournalRecord) -> None:
        is_first = not self._pods.was_bound(record.uid)
        before = self._pods.node_of.get(record.uid)
        self._report_findings(record, self._pods.bind(record))
        self._report_findings(record, self._tokens.commit(record))
        self._order.bind(record.uid)
        self._check_rules(record)
        if before:
            self._remove_pod(record.uid, before)
        self._put(record, is_first=is_first)

    def _check_rules(self, record: JournalRecord) -> None:
        """Check a bind against the rules of its profile's filters, before it is applied."""
        facts, node = record.facts, self.world.nodes.get(record.node_name)
        assert facts is not None, f"record {record.lsn} has no facts"
        self.result.binds_checked += 1
        if node is None:
            self._report(record, "I2", "the node is not there")
            return
        filters = self._filters.get(facts.scheduler_name)
        for invariant, plugin, rule in RULES:
            if filters is None or plugin in filters:
                for text in rule(self.world, facts, node):
                    self._report(record, invariant, text)
        self._report_all(self._claims.bind(record, node, filters))

    def _put(self, record: JournalRecord, *, is_first: bool) -> None:
        """Count a bound pod on its node. is_first: it was not bound before."""
        assert record.facts is not None, f"record {record.lsn} has no facts"
        group = group_key(record.facts)
        if group is not None and is_first:
            self._bound_in_group[group] += 1
            # A LOAD with a token replaces a bind of this run; a pod that ran before it has none.
            if record.kind is RecordKind.LOAD and record.token:
                self._snapshot_groups.add(group)
            membership = record.facts.pod_group
            if membership is not None and membership.min_member is not None:
                self._min_members.setdefault(group, membership.min_member)
        self._evictions.record_pod(record.uid, record.key, record.facts)
        self.world.put(record.uid, record.node_name, record.facts)
        if record.kind is RecordKind.LOAD:
            self._order.leave(record.uid)
            self._claims.storage.put(record.uid, record.node_name, record.facts)

    def _claims_bound(self, record: JournalRecord) -> None:
        self._report_all(self._claims.change(record))

    def _mark(self, record: JournalRecord) -> None:
        self._tokens.mark(record)

    def _release(self, record: JournalRecord) -> None:
        """Apply and check a deletion or an eviction."""
        # The STORAGE records that follow are of this pod's claims: check the last commit before.
        self._report_all(self._claims.flush())
        self._claims.end(record)
        node_name = self._pods.node_of.get(record.uid)
        self._report_findings(record, self._pods.release(record))
        self._order.leave(record.uid)
        if not record.lsn:
            self._removed_before_snapshot += 1
        if not node_name:
            return
        victim = self.world.pods[node_name][record.uid]
        if record.kind is RecordKind.EVICT:
            for text in self._evictions.evict(record.key, victim, record.owner):
                self._report(record, "I2", text)
        self._remove_pod(record.uid, node_name)

    def _remove_pod(self, uid: str, node_name: str) -> None:
        self.world.remove(uid, node_name)
        self._claims.storage.remove(uid, node_name)


_HANDLERS: dict[RecordKind, Callable[[Checker, JournalRecord], None]] = {
    RecordKind.CLUSTER: Checker._cluster,
    RecordKind.NODE: Checker._node,
    RecordKind.NODE_GONE: Checker._node_gone,
    RecordKind.ADD: Checker._add,
    RecordKind.LOAD: Checker._load,
    RecordKind.BIND: Checker._bind,
    RecordKind.EVICT: Checker._release,
    RecordKind.DELETE: Checker._release,
    RecordKind.RUN: Checker._mark,
    RecordKind.STORAGE: Checker._claims_bound,
}


def check(records: Iterable[JournalRecord]) -> Checked:
    """Return the result for all records of a journal."""
    checker = Checker()
    for record in records:
        checker.apply(record)
    return checker.finish()
