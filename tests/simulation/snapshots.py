"""A snapshot contains all the state of the records before it: pods, nodes, claims, epochs, void
tokens.
"""

from dataclasses import dataclass, field

from roadstead.facts.run_mark import EPOCH, VOID, RunMark
from roadstead.journal import RecordKind

TOKENS_KEPT = 64
"""Number of void tokens that a binder remembers at least (`tests/simulation/limits.py`)."""


@dataclass
class Kept:
    """The state in records. pods: uid → (node, token, owner, epoch, facts), or None for a removed
    one. void: tokens in order. subjects: those other than nodes, in order.
    """

    pods: dict = field(default_factory=dict)
    nodes: dict = field(default_factory=dict)
    epochs: dict = field(default_factory=dict)
    void: dict = field(default_factory=dict)
    subjects: list = field(default_factory=list)

    @classmethod
    def of(cls, records):
        kept = cls()
        for record in records:
            kept._take(record)
        return kept

    def _take(self, record):
        kind, subject = record.kind, record.subject
        if kind is RecordKind.ADD and record.node_name:
            # Updated on its node.
            self.pods[record.uid] = (*self.pods[record.uid][:-1], record.facts)
        elif kind in (RecordKind.ADD, RecordKind.LOAD, RecordKind.BIND):
            by = record.token, record.owner, record.epoch if record.token else 0
            self.pods[record.uid] = (record.node_name, *by, record.facts)
            if record.token:
                self._fence(record)
        elif kind in (RecordKind.EVICT, RecordKind.DELETE):
            self.pods[record.uid] = None
        elif kind is RecordKind.NODE:
            self.nodes[record.node_name] = subject
        elif kind is RecordKind.NODE_GONE:
            self.nodes.pop(record.node_name, None)
        elif isinstance(subject, RunMark) and subject.what == EPOCH:
            self._fence(record)
        elif isinstance(subject, RunMark) and subject.what == VOID:
            # A token that was forgotten and is voided again counts from now on.
            self.void.pop(record.token, None)
            self.void[record.token] = None
        else:
            self.subjects.append(subject)

    def _fence(self, record):
        self.epochs[record.owner] = max(record.epoch, self.epochs.get(record.owner, 0))

    def lost(self, after, tokens=TOKENS_KEPT):
        """Return the state that a snapshot, from which `after` is built, does not contain.

        tokens: how many void ones must be kept.
        """
        for name in ("pods", "nodes"):
            before, now = getattr(self, name), getattr(after, name)
            changed = [each for each in before.keys() | now.keys() if _other(each, before, now)]
            if changed:
                yield f"I4: a snapshot changes {name} {sorted(changed)[:3]}"
        if behind := [own for own, e in self.epochs.items() if after.epochs.get(own, -1) < e]:
            yield f"I8: a snapshot forgets epochs of {sorted(behind)}"
        void = list(self.void)[-tokens:]
        if missing := [each for each in void if each not in after.void]:
            yield f"I6: a snapshot forgets void tokens {missing[:3]}"
        if self.subjects != after.subjects:
            yield "I9: a snapshot differs in claims, rules or the run"


def _other(name, before, now):
    return name not in before or name not in now or before[name] != now[name]
