"""CacheCore: what is on which node, the pods of which a scheduler only assumes it included.

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
    CacheAnswer,
    Placement,
    PodEvent,
    PodRecord,
    PodState,
    Refusal,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts
from roadstead.placements import Delta, NodeStore
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import unresolvable

_OVER = unresolvable("the attempt was forgotten before this copy of it came")


class CacheCore(CacheStore):
    """Pods by state over a node store that it alone changes. The store starts empty."""

    def assume(self, batch: Sequence[Assumption], now_s: float) -> CacheAnswer:
        """Count pods on nodes ahead of their commit.

        Refused, pod by pod: one that is assumed by another attempt or added already (its scheduler
        lost a race), and a late copy of an attempt that was forgotten meanwhile. The same
        assumption again changes nothing.
        """
        deltas: list[Delta] = []
        refused: list[Refusal] = []
        news: dict[str, PodRecord] = {}
        here, ended = self.pods.here, self.pods.ended
        for item in batch:
            uid = item.uid
            if uid in news:
                deltas += self._count(news.values(), now_s)
                news = {}
            record = here.get(uid) or ended.get(uid)
            if record is not None and self._is_same(record, item):
                continue
            if record is not None and not TABLE.allows(record.state, PodEvent.ASSUME):
                refused.append(self._refuse(record, PodEvent.ASSUME))
                continue
            if self._forgotten and (uid, item.token) in self._forgotten:
                refused.append(Refusal(uid, _OVER))
                continue
            news[uid] = PodRecord(*item)
        deltas += self._count(news.values(), now_s)
        return CacheAnswer(tuple(deltas), tuple(refused))

    def forget(self, batch: Sequence[tuple[str, str]]) -> CacheAnswer:
        """Undo assumptions, given as (uid, token); rows are as if they had never been (I5).

        A pod that the cache does not hold is forgotten already. Refused: one that is confirmed, or
        assumed by another attempt.
        """
        deltas: list[Delta] = []
        refused: list[Refusal] = []
        for uid, token in batch:
            self._over(uid, token)
            record = self.pods.here.get(uid)
            if record is None:
                continue
            if record.state in UNCONFIRMED and record.token == token:
                self._go(record, PodEvent.FORGET)
                deltas += self.placements.lift(uid)
            else:
                refused.append(self._refuse(record, PodEvent.FORGET))
        return CacheAnswer(tuple(deltas), tuple(refused))

    def finish_binding(self, batch: Sequence[tuple[str, str]], now_s: float) -> CacheAnswer:
        """The binder has these (uid, token): from now they have `bind_s` to be confirmed.

        Pods that are confirmed or gone already are left alone; refused: another attempt's.
        """
        refused: list[Refusal] = []
        finished: dict[str, PodRecord] = {}
        for uid, token in batch:
            record = self.pods.here.get(uid)
            if record is None or record.state is PodState.ADDED:
                continue
            if record.token == token:
                finished[uid] = record
            else:
                refused.append(self._refuse(record, PodEvent.FINISH_BINDING))
        self._go_all(list(finished.values()), PodEvent.FINISH_BINDING, now_s + self.settings.bind_s)
        return CacheAnswer(refused=tuple(refused))

    def confirm(self, batch: Sequence[Placement]) -> list[Delta]:
        """The cluster shows pods on nodes: they are Added, wherever they were assumed.

        The same placement again changes nothing; other facts on the same node are an update.
        Raises IllegalTransitionError, with nothing changed, for an added pod on another node (I3).
        """
        self._check_no_move(batch)
        deltas: list[Delta] = []
        for item in batch:
            record = self.pods.find(item.uid)
            if record is None:
                record = PodRecord(item.uid, item.key, item.facts, item.node_name)
            if record.state is not PodState.ADDED:
                deltas += self._added(record, PodEvent.ADD, item.node_name, item.facts)
            elif record.facts != item.facts:
                deltas += self._added(record, PodEvent.UPDATE, item.node_name, item.facts)
        return deltas

    def confirm_assumed(self, uids: Iterable[str]) -> None:
        """The cluster shows pods as they are counted here; others are left alone."""
        records = (self.pods.here.get(uid) for uid in dict.fromkeys(uids))
        self._go_all([r for r in records if r is not None and r.state in UNCONFIRMED], PodEvent.ADD)

    def update_pod(self, uid: str, facts: PodFacts, node_name: str) -> list[Delta]:
        """A pod on a node changed; one that is assumed or expired is confirmed by that.

        Raises IllegalTransitionError, with nothing changed, for an unknown or deleted pod and for
        an added one on another node.
        """
        record = self.pods.known(uid, PodEvent.UPDATE)
        self._check_no_move([Placement(uid, record.key, facts, node_name)])
        return self._added(record, PodEvent.UPDATE, node_name, facts)

    def remove_pods(self, uids: Sequence[str]) -> list[Delta]:
        """Pods are gone from the cluster, assumed ones included; told twice, nothing changes.

        Raises IllegalTransitionError, with nothing changed, for a pod that was never there.
        """
        # Whoever is known may be removed, so that nothing raises once something is changed.
        records = [self.pods.known(uid, PodEvent.REMOVE) for uid in dict.fromkeys(uids)]
        deltas: list[Delta] = []
        for record in records:
            was_counted = record.state in COUNTED
            if record.token:
                self._over(record.uid, record.token)
            self._go(record, PodEvent.REMOVE)
            deltas += self.placements.lift(record.uid) if was_counted else []
        return deltas

    def nominate(
        self, uid: str, node_name: str, facts: PodFacts, *, preempts: bool = False
    ) -> list[Delta]:
        """A pod that waits is nominated to a node, or to none any more (""); told twice: nothing.

        preempts: it made room there, so that pods of lower priority lose their nominations to that
        node. A pod that is counted has no nomination.
        """
        placements = self.placements
        if not node_name:
            return placements.withdraw(uid)
        lower = placements.withdraw_below(node_name, facts.priority) if preempts else []
        return lower + placements.nominate(uid, node_name, facts)

    def withdraw(self, uids: Iterable[str]) -> list[Delta]:
        """Pods are nominated to no node any more; nothing changes for those that were not."""
        return [delta for uid in uids for delta in self.placements.withdraw(uid)]

    def expire(self, now_s: float) -> list[AskBinder]:
        """Assumptions whose time is over: ask the binder first (I6); `resolve` ends them."""
        asks: list[AskBinder] = []
        while (record := self._deadlines.first()) is not None and record.deadline_s <= now_s:
            self._go(record, PodEvent.ASK, now_s + self.settings.ask_again_s)
            asks.append(AskBinder(record.uid, record.key, record.token, record.node_name))
        return asks

    def resolve(self, words: Iterable[BinderAnswer]) -> CacheAnswer:
        """The binder's words on what `expire` asked: bound confirms the pod, None expires it.

        Refused, with nothing changed: a word on a pod or an attempt that is no longer asked about.
        """
        deltas: list[Delta] = []
        refused: list[Refusal] = []
        for word in words:
            record = self.pods.here.get(word.uid)
            if record is None or record.state is not PodState.ASKED or record.token != word.token:
                status = unresolvable(f"{word.uid}: the binder was not asked about this attempt")
                refused.append(Refusal(word.uid, status))
            elif word.node_name is None:
                self._go(record, PodEvent.EXPIRE)
                deltas += self.placements.lift(word.uid)
            else:
                deltas += self._added(record, PodEvent.ADD, word.node_name, record.facts)
        return CacheAnswer(tuple(deltas), tuple(refused))

    def add_node(self, facts: NodeFacts) -> list[Delta]:
        """A node appears, and with it the pods that were on it before; a known one is updated."""
        return self.placements.add_node(facts)

    def add_nodes(self, nodes: NodeList) -> bool:
        """Nodes appear at once, where nothing is known of any; whether they did."""
        if not self.placements.are_strangers(nodes):
            return False
        self.placements.add_nodes(nodes)
        return True

    def update_node(self, facts: NodeFacts) -> list[Delta]:
        """A node's own facts change; an unknown one is added."""
        return self.placements.update_node(facts)

    def remove_node(self, name: str) -> list[Delta]:
        """A node disappears; its pods are kept aside until they are removed or it comes back.

        Raises IllegalTransitionError for a node that is not there (upstream: an error).
        """
        if name not in self.placements.nodes:
            raise IllegalTransitionError(f"cache: node {name}: remove is not allowed: not there")
        return self.placements.remove_node(name)

    def rebuild(self, store: NodeStore) -> CacheCore:
        """A cache made anew, on an empty store, from what is known of nodes and pods."""
        fresh = CacheCore(store, self.settings)
        for facts in self.placements.nodes.values():
            fresh.add_node(facts)
        for record in self.pods.here.values():
            copy = PodRecord(record.uid, record.key, record.facts, record.node_name, record.token)
            copy.state, copy.history = record.state, record.history
            fresh.pods.restore([copy])
            fresh.placements.place(copy.uid, copy.node_name, copy.facts)
            if copy.state in UNCONFIRMED:
                fresh._deadlines.put([copy], record.deadline_s)
        return fresh

    def compare(self, other: CacheCore) -> list[str]:
        """What two caches say differently, one line each; empty when they agree.

        The way of the comparer of pkg/scheduler/backend/cache/debugger; who only assumes a pod
        and who has it confirmed differ.
        """
        found = self.placements.compare(other.placements)
        here, there = self.pods.here, other.pods.here
        for uid in sorted(here.keys() & there.keys()):
            ours, theirs = here[uid].state, there[uid].state
            if ours is not theirs:
                found.append(f"pod {uid}: {ours.value}, not {theirs.value}")
        return found

    def validate(self) -> None:
        """Check every invariant; raises AssertionError (O(pods): for tests and after recovery)."""
        self.placements.validate()
        self.pods.validate()
        here = self.pods.here
        for uid, record in here.items():
            assert self.placements.node_of(uid) == record.node_name, f"{uid} is elsewhere"
            assert self.placements.facts_of(uid) == record.facts, f"{uid} has other facts"
            unconfirmed = record.state in UNCONFIRMED
            assert (uid in self._deadlines) == unconfirmed, f"{uid}: deadline and state disagree"
        assert len(self.placements) == len(here), "a pod is counted and not known"
        trials = sum(record.state in UNCONFIRMED for record in here.values())
        assert len(self._deadlines) == trials, "a deadline is kept for nobody"

    def _go(self, record: PodRecord, event: PodEvent, deadline_s: float = 0.0) -> None:
        self._go_all((record,), event, deadline_s)

    def _go_all(
        self, records: Sequence[PodRecord], event: PodEvent, deadline_s: float = 0.0
    ) -> None:
        """The one mutator of states: deadlines follow; placements do not."""
        begun: list[PodRecord] = []
        for moved in self.pods.go_all(records, event):
            if moved.was in UNCONFIRMED:
                self._deadlines.take(moved.among(records))
            if moved.to in UNCONFIRMED:
                begun += moved.among(records)
        self._deadlines.put(begun, deadline_s)

    def _over(self, uid: str, token: str) -> None:
        """An attempt has ended: a copy of its assumption may still be on its way."""
        self._forgotten[uid, token] = None
        if len(self._forgotten) > self.settings.max_gone_remembered:
            self._forgotten.popitem(last=False)

    def _count(self, pods: Iterable[PodRecord], now_s: float) -> list[Delta]:
        """Assumes pods of which nothing forbids it."""
        records = list(pods)
        self.pods.continue_stories(records)
        self._go_all(records, PodEvent.ASSUME, now_s + self.settings.assume_s)
        uids, nodes = [each.uid for each in records], [each.node_name for each in records]
        return self.placements.place_all(uids, nodes, [each.facts for each in records])

    def _added(
        self, record: PodRecord, event: PodEvent, node_name: str, facts: PodFacts
    ) -> list[Delta]:
        was_counted = record.state in COUNTED
        self._go(record, event)
        record.node_name, record.facts = node_name, facts
        place = self.placements.replace if was_counted else self.placements.place
        return place(record.uid, node_name, facts)

    def _check_no_move(self, batch: Sequence[Placement]) -> None:
        """A pod that is added stays on its node (I3); also within one batch."""
        nodes: dict[str, str] = {}
        for item in batch:
            record = self.pods.here.get(item.uid)
            added = record is not None and record.state is PodState.ADDED
            node_name = record.node_name if record is not None and added else item.node_name
            node_name = nodes.setdefault(item.uid, node_name)
            if node_name != item.node_name:
                state, history = (record.state, record.history) if record else (PodState.ADDED, ())
                why = f"it is on {node_name}, not on {item.node_name}"
                raise TABLE.illegal(item.uid, state, PodEvent.ADD, history, why)

    @staticmethod
    def _is_same(record: PodRecord, item: Assumption) -> bool:
        return (
            record.state in UNCONFIRMED
            and (record.token, record.node_name) == (item.token, item.node_name)
            and record.facts == item.facts
        )

    def _refuse(self, record: PodRecord, event: PodEvent) -> Refusal:
        why = f"it is on {record.node_name} by {record.token or 'the cluster'}"
        return Refusal(record.uid, unresolvable(str(self.pods.illegal(record.uid, event, why))))
