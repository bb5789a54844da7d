"""The checker: every record of a journal in commit order, held against I1-I3, I7, I8 and I10.

A bind is checked on the cluster as the records before it describe it. Which rules a pod is under
follows from the filters of its profile; a journal that does not say is held to all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.facts.rules import Rules
from roadstead.invariants import affinity, node_rules, spread
from roadstead.invariants.world import World
from roadstead.journal.records import JournalRecord, RecordKind

Rule = Callable[[World, PodFacts, NodeFacts], Iterator[str]]

RULES: tuple[tuple[str, str, Rule], ...] = (
    ("I1", "NodeResourcesFit", node_rules.overfull),
    ("I1", "NodePorts", node_rules.port_taken),
    ("I2", "NodeName", node_rules.another_name),
    ("I2", "NodeUnschedulable", node_rules.unschedulable),
    ("I2", "TaintToleration", node_rules.tainted),
    ("I2", "NodeAffinity", node_rules.unwanted),
    ("I2", "VolumeRestrictions", node_rules.claim_shared),
    ("I2", "PodTopologySpread", spread.uneven),
    ("I2", "InterPodAffinity", affinity.lonely),
    ("I2", "InterPodAffinity", affinity.crowded),
)
"""(invariant, the filter plugin that stands for it, the rule)."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What does not hold. lsn: the record that broke it, 0 for what shows only at the end."""

    lsn: int
    invariant: str
    pod: str
    node: str
    text: str


@dataclass(slots=True)
class Checked:
    """What came of a journal. records: by kind. binds_checked: binds held against the rules."""

    records: Counter[str] = field(default_factory=Counter)
    binds_checked: int = 0
    violations: list[Violation] = field(default_factory=list)


class Checker:
    """Takes records in order; `finish` says what came of them."""

    def __init__(self) -> None:
        self.world = World()
        self.result = Checked()
        self._filters: dict[str, tuple[str, ...]] = {}
        self._node_of: dict[str, str] = {}
        self._ever_bound: set[str] = set()
        self._accepted: set[str] = set()
        self._tokens: dict[str, str] = {}
        self._epochs: dict[str, int] = {}
        self._bound_in_group: Counter[GroupKey] = Counter()
        self._least: dict[GroupKey, int] = {}
        self._last_lsn = 0

    def take(self, record: JournalRecord) -> None:
        """One record."""
        self.result.records[record.kind.value] += 1
        _TAKE[record.kind](self, record)
        # Records of a snapshot stand under the lsn of their commit, or 0 where there was none.
        if 0 < record.lsn <= self._last_lsn and record.kind is not RecordKind.LOAD:
            self._broken(record, "I7", f"record {record.lsn} comes after {self._last_lsn}")
        self._last_lsn = max(self._last_lsn, record.lsn)

    def finish(self) -> Checked:
        """After the last record: gangs are bound whole or not at all."""
        for key, bound in sorted(self._bound_in_group.items()):
            least = self._least.get(key, 0)
            if 0 < bound < least:
                name = "/".join(key)
                text = f"{bound} of at least {least} pods of group {name} were bound"
                self.result.violations.append(Violation(0, "I10", name, "", text))
        return self.result

    def _broken(self, record: JournalRecord, invariant: str, text: str) -> None:
        found = Violation(record.lsn, invariant, record.key, record.node_name, text)
        self.result.violations.append(found)

    def _cluster(self, record: JournalRecord) -> None:
        if isinstance(record.subject, Rules):
            self._filters = dict(record.subject.filters)
        else:
            assert isinstance(record.subject, ClusterFacts), f"record {record.lsn} has no cluster"
            self.world.cluster = record.subject
            for group in record.subject.pod_groups:
                if group.min_member is not None:
                    self._least[group.key] = group.min_member

    def _node(self, record: JournalRecord) -> None:
        assert isinstance(record.subject, NodeFacts), f"record {record.lsn} has no node"
        self.world.nodes[record.node_name] = record.subject

    def _node_gone(self, record: JournalRecord) -> None:
        self.world.nodes.pop(record.node_name, None)

    def _add(self, record: JournalRecord) -> None:
        self._accepted.add(record.uid)

    def _load(self, record: JournalRecord) -> None:
        before = self._node_of.get(record.uid)
        if before not in (None, record.node_name):
            self._broken(record, "I3", f"it is on {before} already")
            return
        self._settle(record)

    def _bind(self, record: JournalRecord) -> None:
        if record.uid in self._ever_bound:
            self._broken(record, "I3", "it was bound before")
        if self._accepted and record.uid not in self._accepted:
            self._broken(record, "I4", "it was never accepted")
        if record.token and self._tokens.setdefault(record.token, record.uid) != record.uid:
            self._broken(record, "I8", f"its token is that of {self._tokens[record.token]}")
        if record.epoch < self._epochs.get(record.owner, record.epoch):
            newest = self._epochs[record.owner]
            self._broken(record, "I8", f"{record.owner}: epoch {record.epoch} after {newest}")
        self._epochs[record.owner] = max(record.epoch, self._epochs.get(record.owner, 0))
        self._hold_to_the_rules(record)
        self._settle(record)

    def _hold_to_the_rules(self, record: JournalRecord) -> None:
        facts, node = record.facts, self.world.nodes.get(record.node_name)
        assert facts is not None, f"record {record.lsn} has no facts"
        self.result.binds_checked += 1
        if node is None:
            self._broken(record, "I2", "the node is not there")
            return
        filters = self._filters.get(facts.scheduler_name)
        for invariant, plugin, rule in RULES:
            if filters is None or plugin in filters:
                for text in rule(self.world, facts, node):
                    self._broken(record, invariant, text)

    def _settle(self, record: JournalRecord) -> None:
        assert record.facts is not None, f"record {record.lsn} has no facts"
        group = group_key(record.facts)
        if group is not None and record.uid not in self._ever_bound:
            self._bound_in_group[group] += 1
            membership = record.facts.pod_group
            if membership is not None and membership.min_member is not None:
                self._least.setdefault(group, membership.min_member)
        self._ever_bound.add(record.uid)
        self._node_of[record.uid] = record.node_name
        self.world.put(record.uid, record.node_name, record.facts)

    def _told(self, record: JournalRecord) -> None:
        """Of the run itself, or of claims: nothing to hold a bind against."""

    def _release(self, record: JournalRecord) -> None:
        node_name = self._node_of.pop(record.uid, None)
        if node_name is not None:
            self.world.take(record.uid, node_name)
        elif record.kind is RecordKind.EVICT:
            self._broken(record, "I3", "it is evicted and was not bound")


_TAKE: dict[RecordKind, Callable[[Checker, JournalRecord], None]] = {
    RecordKind.CLUSTER: Checker._cluster,
    RecordKind.NODE: Checker._node,
    RecordKind.NODE_GONE: Checker._node_gone,
    RecordKind.ADD: Checker._add,
    RecordKind.LOAD: Checker._load,
    RecordKind.BIND: Checker._bind,
    RecordKind.EVICT: Checker._release,
    RecordKind.DELETE: Checker._release,
    RecordKind.RUN: Checker._told,
    RecordKind.STORAGE: Checker._told,
}


def check(records: Iterable[JournalRecord]) -> Checked:
    """What came of all records of a journal."""
    checker = Checker()
    for record in records:
        checker.take(record)
    return checker.finish()
