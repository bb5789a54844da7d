"""Histories for the checker: records in order."""

from roadstead.facts.run_mark import RunMark
from roadstead.invariants.checker import check
from roadstead.journal import JournalRecord, RecordKind
from tests.builders import node, pod


class History:
    """Records in order; each method adds one."""

    def __init__(self):
        self.records = []

    def add(self, kind, uid="", node_name="", **more):
        record = JournalRecord(len(self.records) + 1, kind, uid, uid, node_name, **more)
        self.records.append(record)
        return self

    def node(self, facts):
        return self.add(RecordKind.NODE, facts.name, facts.name, subject=facts)

    def accept(self, uid, facts=None):
        return self.add(RecordKind.ADD, uid, facts=facts or pod(cpu=100))

    def bind(self, uid, node_name="n1", facts=None, token="", owner="s", epoch=1):
        return self.add(
            RecordKind.BIND,
            uid,
            node_name,
            token=token or f"t-{uid}",
            owner=owner,
            epoch=epoch,
            facts=facts or pod(cpu=100),
        )

    def evict(self, uid, preemptor, node_name="n1"):
        return self.add(RecordKind.EVICT, uid, node_name, owner=preemptor)

    def delete(self, uid, node_name=""):
        return self.add(RecordKind.DELETE, uid, node_name)

    def mark(self, what, **more):
        return self.add(RecordKind.RUN, subject=RunMark(what), **more)

    def broken(self):
        return [(each.invariant, each.lsn, each.text) for each in check(self.records).violations]


def started(**facts):
    return History().node(node("n1", **facts))
