"""A binder's state as plain tables, and the same state from a journal's records one by one.

`PlainBinder` is the state that `shadow_binder` compares with the core. `replayed` builds it from
the records that `plain_journal` read: no runs, no columns, no transition tables.
"""

import dataclasses
from collections import OrderedDict

from roadstead.binder.pods import AppendJournal, Bound

PENDING, TENTATIVE, BOUND, DELETED = "pending", "tentative", "bound", "deleted"
COUNTED = (TENTATIVE, BOUND)
NOBODY = (0, "", 0)


@dataclasses.dataclass(eq=False)
class Pod:
    """A pod that is present, or was lately. came_by: the kind of the record that bound it, if it
    was recovered.
    """

    uid: str
    key: str
    facts: object
    state: str = PENDING
    node: str = ""
    token: str = ""
    owner: str = ""
    epoch: int = 0
    lsn: int = 0
    version: int = 0
    came_by: str = ""

    @property
    def bound(self):
        return Bound(self.uid, self.node, self.lsn, self.version)

    @property
    def facts_but_version(self):
        """All but the version, which a recovery counts from the start."""
        return (self.state, self.key, self.node, self.token, self.owner, self.epoch, self.lsn)


class PlainBinder:
    """nodes, pods, gone: by name and UID. rows: see `changed`. tokens: (request, decision or None).

    listed: uid → node of the pods bound here, in the order of their acknowledgements.
    """

    def __init__(self, settings):
        self.settings = settings
        self.nodes, self.pods, self.gone = {}, {}, OrderedDict()
        self.epochs, self.voided, self.tokens = {}, OrderedDict(), OrderedDict()
        self.rows, self.listed, self.notes, self.subjects = {}, {}, [], []
        self.last_lsn = self.flushed_lsn = 0
        self.unflushed = []

    def find(self, uid):
        return self.pods.get(uid) or self.gone.get(uid)

    def leaves(self, pod):
        pod.state = DELETED
        self.pods.pop(pod.uid, None)
        self.gone[pod.uid] = pod
        if len(self.gone) > self.settings.max_gone_remembered:
            self.gone.popitem(last=False)

    def comes(self, pod):
        self.gone.pop(pod.uid, None)
        self.pods[pod.uid] = pod

    def changed(self, node, lsn, owner=""):
        """Record the row's last change, its owner, and the last change by another owner."""
        last, by, other = self.rows.get(node, NOBODY)
        self.rows[node] = lsn, owner, (other if owner and owner == by else last)

    def missed(self, node, owner, read_version):
        last, by, other = self.rows.get(node, NOBODY)
        return (other if by == owner else last) > read_version

    def void(self, token):
        self.voided[token] = None
        if len(self.voided) > self.settings.max_tokens:
            self.voided.popitem(last=False)

    def fence(self, owner, epoch):
        self.epochs[owner] = max(epoch, self.epochs.get(owner, epoch))

    def remember(self, token, request, decision):
        self.tokens[token] = request, decision

    def forget_oldest(self):
        while len(self.tokens) > self.settings.max_tokens:
            oldest, (_, decision) = next(iter(self.tokens.items()))
            if decision is None:
                return
            del self.tokens[oldest]

    def counted_on(self, is_counted):
        """Count the pods on nodes, known or removed, whose facts satisfy a predicate."""
        here = (each for each in self.pods.values() if each.state in COUNTED)
        return sum(is_counted(each.facts) for each in here)


def replayed(records, settings):
    """A binder that has these records flushed, and the tokens of its last binds.

    Facts stay as they are in the file.
    """
    binder, binds = PlainBinder(settings), []
    for record in records:
        _replay(binder, binds, *record)
    binder.flushed_lsn = binder.last_lsn
    kept = [
        (place, token)
        for place, (uid, token) in enumerate(reversed(binds))
        if (pod := binder.find(uid)) and pod.token == token
    ]
    # The last `max_tokens` binds must all be known; earlier ones may be.
    recent = {token for place, token in kept if place < settings.max_tokens}
    return binder, recent, {token for _, token in kept}


def _replay(binder, binds, lsn, kind, uid, key, node, token, owner, epoch, facts):
    binder.last_lsn = max(binder.last_lsn, lsn)
    if kind in ("evict", "delete"):
        pod = binder.find(uid) or Pod(uid, key, facts)
        if pod.state in COUNTED:
            binder.changed(pod.node, lsn)
        binder.listed.pop(uid, None)
        binder.notes.append((uid, key, node, owner))
        binder.leaves(pod)
    elif kind == "add":
        pod = binder.pods.get(uid) or Pod(uid, key, facts)
        pod.facts = facts
        if not node:
            binder.comes(pod)
        elif lsn:
            binder.changed(node, lsn)
    elif kind in ("bind", "load"):
        pod = binder.pods.get(uid) or Pod(uid, key, facts)
        pod.state, pod.node, pod.facts, pod.lsn = BOUND, node, facts, lsn
        pod.came_by = kind
        binder.comes(pod)
        if token:
            pod.token, pod.owner, pod.epoch = token, owner, epoch
            binder.fence(owner, epoch)
            binder.listed[uid] = node
            binds.append((uid, token))
            if binder.settings.checks_versions:
                binder.changed(node, lsn, owner)
    elif kind == "node":
        if node in binder.nodes:
            binder.changed(node, lsn)
        binder.nodes[node] = facts
    elif kind == "node_gone":
        if lsn or node in binder.nodes:
            del binder.nodes[node]
            binder.changed(node, lsn)
    elif facts == EPOCH_MARK:
        binder.fence(owner, epoch)
    elif facts == VOID_MARK:
        binder.void(token)
    else:
        binder.subjects.append(facts)


def _mark(what):
    # A list of two texts: the subject, and no digest.
    return "RunMark", b"\x92" + bytes([0xA0 + len(what)]) + what.encode() + b"\xa0"


EPOCH_MARK, VOID_MARK = _mark("epoch"), _mark("void")


def listed(batch):
    return list(batch) if hasattr(batch, "__next__") else batch


def journaled(records):
    records = tuple(records)
    return [AppendJournal(records)] if records else []


def nodes_to_compare(name, here, there):
    """The core's nodes and the expected nodes after a call.

    A table builds each node object on request: after calls that do not concern nodes only names are
    compared.
    """
    if "node" in name:
        return dict(here), there
    return list(here), list(there)


def short(here, there):
    return f"{str(here)[:300]}, not {str(there)[:300]}"
