"""CacheCore: nodes and the pods on them, including pods that schedulers only assume.

States, arrows and rules: the diagram in `roadstead.cache`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.cache.cache_store import CacheStore
from roadstead.cache.pods import (
    COUNTED,
    TABLE,
    UNCONFIRMED,
    AskBinder,
    Assumption,
    BinderAnswer,
    CacheEvent,
    CacheRecord,
    CacheResult,
    CacheState,
    PodOnNode,
    RefusedItem,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts
from roadstead.placements import Delta, NodeStore
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import unresolvable

_ATTEMPT_ENDED = unresolvable("the attempt was forgotten before this copy of it was received")


class CacheCore(CacheStore):
    """State machine of counted pods; only it changes its node store, which starts empty."""

    def assume(self, batch: Sequence[Assumption], now_s: float) -> CacheResult:
        """Count pods on nodes ahead of their commit.

        Refused, pod by pod: a pod that another attempt assumed or that is added (the scheduler lost
        a race), and a late copy of an assumption that was forgotten. An equal assumption changes
        nothing.
        """
        deltas: list[Delta] = []
        refused: list[RefusedItem] = []
        # By UID: pods that pass all checks, to count together.
        accepted: dict[str, CacheRecord] = {}
        present, ended = self.pods.present, self.pods.ended
        for item in batch:
            uid = item.uid
            if uid in accepted:
                # Count the earlier items first, so that this one is checked against them.
                deltas += self._count(accepted.values(), now_s)
                accepted = {}
            record = present.get(uid) or ended.get(uid)
            if record is not None and self._is_same(record, item):
                continue
            if record is not None and not TABLE.allows(record.state, CacheEvent.ASSUME):
                refused.append(self._refusal(record, CacheEvent.ASSUME))
                continue
            if self._forgotten and (uid, item.token) in self._forgotten:
                refused.append(RefusedItem(uid, _ATTEMPT_ENDED))
                continue
            accepted[uid] = CacheRecord(*item)
        deltas += self._count(accepted.values(), now_s)
        return CacheResult(tuple(deltas), tuple(refused))

    def forget(self, batch: Sequence[tuple[str, str]]) -> CacheResult:
        """Undo assumptions (uid, token); each frees what it used (I5 in docs/invariants.md).

        A pod that is not counted is ignored. Refused: a pod that is confirmed, or assumed by
        another attempt.
        """
        deltas: list[Delta] = []
        refused: list[RefusedItem] = []
        for uid, token in batch:
            self._remember_ended(uid, token)
            record = self.pods.present.get(uid)
            if record is None:
                continue
            if record.state in UNCONFIRMED and record.token == token:
                self._apply(record, CacheEvent.FORGET)
                deltas += self.placements.remove_pod(uid)
            else:
                refused.append(self._refusal(record, CacheEvent.FORGET))
        return CacheResult(tuple(deltas), tuple(refused))

    def finish_binding(self, batch: Sequence[tuple[str, str]], now_s: float) -> CacheResult:
        """Set deadlines `bind_s` from now for attempts (uid, token) that the binder is to receive.

        Pods that are confirmed or not counted are ignored; pods of another attempt are refused.
        """
        refused: list[RefusedItem] = []
        finished: dict[str, CacheRecord] = {}
        for uid, token in batch:
            record = self.pods.present.get(uid)
            if record is None or record.state is CacheState.ADDED:
                continue
            if record.token == token:
                finished[uid] = record
            else:
                refused.append(self._refusal(record, CacheEvent.FINISH_BINDING))
        self._apply_all(
            list(finished.values()), CacheEvent.FINISH_BINDING, now_s + self.settings.bind_s
        )
        return CacheResult(refused=tuple(refused))

    def confirm(self, batch: Sequence[PodOnNode]) -> list[Delta]:
        """Add pods that the cluster shows on nodes, wherever they were assumed.

        An equal placement changes nothing; different facts on the same node are an update.
        Raises IllegalTransitionError, with nothing changed, for an added pod on another node (I3).
        """
        self._check_no_move(batch)
        deltas: list[Delta] = []
        for item in batch:
            record = self.pods.find(item.uid)
            if record is None:
                record = CacheRecord(item.uid, item.key, item.facts, item.node_name)
            if record.state is not CacheState.ADDED:
                deltas += self._place(record, CacheEvent.ADD, item.node_name, item.facts)
            elif record.facts != item.facts:
                deltas += self._place(record, CacheEvent.UPDATE, item.node_name, item.facts)
        return deltas

    def confirm_assumed(self, uids: Iterable[str]) -> None:
        """Add assumed pods on the nodes where they are counted; ignore other pods."""
        records = (self.pods.present.get(uid) for uid in dict.fromkeys(uids))
        self._apply_all(
            [r for r in records if r is not None and r.state in UNCONFIRMED], CacheEvent.ADD
        )

    def update_pod(self, uid: str, facts: PodFacts, node_name: str) -> list[Delta]:
        """Change a pod on a node; that confirms an assumed or expired pod.

        Raises IllegalTransitionError, with nothing changed, for an unknown or deleted pod, and for
        an added pod on another node.
        """
        record = self.pods.require(uid, CacheEvent.UPDATE)
        self._check_no_move([PodOnNode(uid, record.key, facts, node_name)])
        return self._place(record, CacheEvent.UPDATE, node_name, facts)

    def remove_pods(self, uids: Sequence[str]) -> list[Delta]:
        """Remove pods that were deleted, also assumed ones; a repeated removal changes nothing.

        Raises IllegalTransitionError, with nothing changed, for an unknown pod.
        """
        # Look all pods up first: every known pod may be removed, so nothing raises after a change.
        records = [self.pods.require(uid, CacheEvent.REMOVE) for uid in dict.fromkeys(uids)]
        deltas: list[Delta] = []
        for record in records:
            was_counted = record.state in COUNTED
            if record.token:
                self._remember_ended(record.uid, record.token)
            self._apply(record, CacheEvent.REMOVE)
            deltas += self.placements.remove_pod(record.uid) if was_counted else []
        return deltas

    def nominate(
        self, uid: str, node_name: str, facts: PodFacts, *, preempts: bool = False
    ) -> list[Delta]:
        """Nominate a waiting pod to a node, or to none (""). No delta if nothing changes.

        preempts: the pod has victims there, so pods of lower priority lose their nominations to
        that node. A counted pod has no nomination.
        """
        placements = self.placements
        if not node_name:
            return placements.withdraw(uid)
        lower = placements.withdraw_below(node_name, facts.priority) if preempts else []
        return lower + placements.nominate(uid, node_name, facts)

    def withdraw(self, uids: Iterable[str]) -> list[Delta]:
        """End the nominations of pods; nothing changes for pods without one."""
        return [delta for uid in uids for delta in self.placements.withdraw(uid)]

    def expire(self, now_s: float) -> list[AskBinder]:
        """Return commands to ask the binder about assumptions past their deadline (I6)."""
        asks: list[AskBinder] = []
        while (record := self._deadlines.first()) is not None and record.deadline_s <= now_s:
            self._apply(record, CacheEvent.ASK, now_s + self.settings.ask_again_s)
            asks.append(AskBinder(record.uid, record.key, record.token, record.node_name))
        return asks

    def resolve(self, answers: Iterable[BinderAnswer]) -> CacheResult:
        """Apply the binder's answers to `expire`: confirm a bound pod, expire any other.

        Refused, with nothing changed: an answer on a pod or an attempt that is no longer ASKED.
        """
        deltas: list[Delta] = []
        refused: list[RefusedItem] = []
        for answer in answers:
            record = self.pods.present.get(answer.uid)
            if (
                record is None
                or record.state is not CacheState.ASKED
                or record.token != answer.token
            ):
                status = unresolvable(f"{answer.uid}: the binder was not asked about this attempt")
                refused.append(RefusedItem(answer.uid, status))
            elif answer.node_name is None:
                self._apply(record, CacheEvent.EXPIRE)
                deltas += self.placements.remove_pod(answer.uid)
            else:
                deltas += self._place(record, CacheEvent.ADD, answer.node_name, record.facts)
        return CacheResult(tuple(deltas), tuple(refused))

    def add_node(self, facts: NodeFacts) -> list[Delta]:
        """Add a node, and count the pods that are on it already; update a known node."""
        return self.placements.add_node(facts)

    def add_nodes(self, nodes: NodeList) -> bool:
        """Add nodes in one step if all are new (`are_unknown`); return whether they were."""
        if not self.placements.are_unknown(nodes):
            return False
        self.placements.add_nodes(nodes)
        return True

    def update_node(self, facts: NodeFacts) -> list[Delta]:
        """Change the facts of a node; add an unknown node."""
        return self.placements.update_node(facts)

    def remove_node(self, name: str) -> list[Delta]:
        """Remove a node; its pods are counted again only if it is added again.

        Raises IllegalTransitionError for an unknown node (upstream: an error).
        """
        if name not in self.placements.nodes:
            raise IllegalTransitionError(f"cache: node {name}: remove is not allowed: not there")
        return self.placements.remove_node(name)

    def rebuild(self, store: NodeStore) -> CacheCore:
        """Return a new cache with the same nodes and pods, built on an empty store."""
        fresh = CacheCore(store, self.settings)
        for facts in self.placements.nodes.values():
            fresh.add_node(facts)
        for record in self.pods.present.values():
            copy = CacheRecord(record.uid, record.key, record.facts, record.node_name, record.token)
            copy.state, copy.history = record.state, record.history
            fresh.pods.restore([copy])
            fresh.placements.place(copy.uid, copy.node_name, copy.facts)
            if copy.state in UNCONFIRMED:
                fresh._deadlines.put([copy], record.deadline_s)
        return fresh

    def compare(self, other: CacheCore) -> list[str]:
        """Return the differences between two caches, one line each; empty if they are equal.

        As the comparer of pkg/scheduler/backend/cache/debugger; an assumed and a confirmed pod
        differ.
        """
        differences = self.placements.compare(other.placements)
        present, others = self.pods.present, other.pods.present
        for uid in sorted(present.keys() & others.keys()):
            ours, theirs = present[uid].state, others[uid].state
            if ours is not theirs:
                differences.append(f"pod {uid}: {ours.value}, not {theirs.value}")
        return differences

    def validate(self) -> None:
        """Check every invariant; raises AssertionError (O(pods): for tests and after recovery)."""
        self.placements.validate()
        self.pods.validate()
        present = self.pods.present
        for uid, record in present.items():
            assert self.placements.node_of(uid) == record.node_name, f"{uid} is elsewhere"
            assert self.placements.facts_of(uid) == record.facts, f"{uid} has other facts"
            unconfirmed = record.state in UNCONFIRMED
            assert (uid in self._deadlines) == unconfirmed, f"{uid}: deadline and state disagree"
        assert len(self.placements) == len(present), "a pod is counted and not known"
        count = sum(record.state in UNCONFIRMED for record in present.values())
        assert len(self._deadlines) == count, "a deadline is of no unconfirmed pod"

    def _apply(self, record: CacheRecord, event: CacheEvent, deadline_s: float = 0.0) -> None:
        self._apply_all((record,), event, deadline_s)

    def _apply_all(
        self, records: Sequence[CacheRecord], event: CacheEvent, deadline_s: float = 0.0
    ) -> None:
        """Apply an event to records, and update deadlines, but not placements."""
        with_deadline: list[CacheRecord] = []
        # Each move is of some of the records, from one state (`was`) to another (`to`).
        for moved in self.pods.apply_all(records, event):
            if moved.was in UNCONFIRMED:
                self._deadlines.remove(moved.select(records))
            if moved.to in UNCONFIRMED:
                with_deadline += moved.select(records)
        self._deadlines.put(with_deadline, deadline_s)

    def _remember_ended(self, uid: str, token: str) -> None:
        """Remember an ended attempt: a late copy of its assumption may still be received."""
        self._forgotten[uid, token] = None
        if len(self._forgotten) > self.settings.max_gone_remembered:
            self._forgotten.popitem(last=False)

    def _count(self, pods: Iterable[CacheRecord], now_s: float) -> list[Delta]:
        """Assume pods that were checked by `assume`."""
        records = list(pods)
        # A pod that ended before continues from that state, and its errors show what happened then.
        self.pods.inherit_histories(records)
        self._apply_all(records, CacheEvent.ASSUME, now_s + self.settings.assume_s)
        uids, nodes = [each.uid for each in records], [each.node_name for each in records]
        return self.placements.place_all(uids, nodes, [each.facts for each in records])

    def _place(
        self, record: CacheRecord, event: CacheEvent, node_name: str, facts: PodFacts
    ) -> list[Delta]:
        """Apply an event after which the pod is ADDED, and count it on the node."""
        was_counted = record.state in COUNTED
        self._apply(record, event)
        record.node_name, record.facts = node_name, facts
        place = self.placements.replace if was_counted else self.placements.place
        return place(record.uid, node_name, facts)

    def _check_no_move(self, batch: Sequence[PodOnNode]) -> None:
        """Raise if an added pod would move to another node (I3), also within one batch."""
        nodes: dict[str, str] = {}
        for item in batch:
            record = self.pods.present.get(item.uid)
            is_added = record is not None and record.state is CacheState.ADDED
            node_name = record.node_name if record is not None and is_added else item.node_name
            node_name = nodes.setdefault(item.uid, node_name)
            if node_name != item.node_name:
                state, history = (
                    (record.state, record.history) if record else (CacheState.ADDED, ())
                )
                why = f"it is on {node_name}, not on {item.node_name}"
                raise TABLE.illegal(item.uid, state, CacheEvent.ADD, history, why)

    @staticmethod
    def _is_same(record: CacheRecord, item: Assumption) -> bool:
        """Whether this assumption was applied before and is still unconfirmed."""
        return (
            record.state in UNCONFIRMED
            and (record.token, record.node_name) == (item.token, item.node_name)
            and record.facts == item.facts
        )

    def _refusal(self, record: CacheRecord, event: CacheEvent) -> RefusedItem:
        why = f"it is on {record.node_name} by {record.token or 'the cluster'}"
        return RefusedItem(record.uid, unresolvable(str(self.pods.illegal(record.uid, event, why))))
