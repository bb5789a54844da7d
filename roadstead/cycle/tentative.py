"""Tentative: placements on a scheduler's own table that the cache has not confirmed.

decided ──► record_decisions ──► the cache's changes confirm it
              └────► undo_unconfirmed removes it, if it was not assumed

A pod may be decided while it is on the table, where an earlier attempt of some scheduler placed it.
Either that attempt has ended, and the cache's removal of the pod has not arrived; or it has not
ended, and the new attempt will be refused. The pod is then removed from its row, and restored if
the batch does not place it, or if the new placement is undone and the cache's removal has still not
arrived. Victims, too, are removed, and their preemptor is nominated, before the cache reports it.

The table counts nominations by class; here they are stored by pod, because a placed pod ends its
own nomination and not that of another pod of its class. If the cache's nomination of a pod differs
from the one in its lease, the lease is right: the cache's nomination ends here (it is overruled)
when the pod is decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.framework.victims import Victim
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.residents import Resident
from roadstead.nodes.table import NodeTable


class Tentative:
    """Unconfirmed placements, evictions and nominations of one scheduler on its table.

    By UID, except the counts:
    _pods: placements that are not confirmed, (node, class).
    _nominated: nominations of the cache and of `preempt`, (node, class without nominated node).
    _ended_nominations: pods of `_nominated` whose nomination ended here; the table does not count
        it.
    _overruled: pods of `_ended_nominations` whose lease has another nomination, or none.
    _nomination_counts: (node, class) → number of nominations that did not end, as the table should
        count them.
    _unconfirmed_nominations: UIDs of nominations of `preempt` that the cache has not made yet.
    _removed, _victims: (node, resident) of pods that `remove_from_table` and `preempt` removed from
        their rows and that the cache still has. A resident is one pod on a node: its UID, key, time
        of start and class.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._pods: dict[str, tuple[str, PodClass]] = {}
        self._nominated: dict[str, tuple[str, PodClass]] = {}
        self._ended_nominations: set[str] = set()
        self._overruled: set[str] = set()
        self._nomination_counts: Counter[tuple[str, PodClass]] = Counter()
        self._removed: dict[str, tuple[str, Resident]] = {}
        self._unconfirmed_nominations: set[str] = set()
        self._victims: dict[str, tuple[str, Resident]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def nodes(self) -> set[str]:
        """Return the nodes whose rows have other pods than the cache has there."""
        removed = (node_name for node_name, _ in (*self._removed.values(), *self._victims.values()))
        return {*(node_name for node_name, _ in self._pods.values()), *removed}

    def remove_from_table(self, pods: Sequence[PodInCycle]) -> None:
        """Remove pods that are about to be decided from the table, until `record_decisions`.

        Unconfirmed placements are removed for good.
        """
        node_of = self._table.residents.node_of
        for uid in [pod.uid for pod in pods]:
            # Before the table is asked: the node of a placement may have been removed from it.
            if uid in self._pods:
                self._drop(uid, *self._pods.pop(uid))
                continue
            node_name = node_of(uid)
            if node_name is None:
                continue
            resident = self._table.residents.resident(uid)
            self._table.remove_pod(node_name, resident.pod_class, uid=uid)
            self._removed[uid] = node_name, resident
        for pod in pods if self._nominated else ():
            self._overrule(pod)

    def record_decisions(self, decisions: Sequence[Decision]) -> None:
        """Record the placements of a batch; restore pods that were removed and not placed."""
        for each in decisions:
            if each.node_name is not None:
                self._pods[each.pod.uid] = each.node_name, each.pod.pod_class
                if self._nominated or self._table.nominations:
                    self._end_nomination(each.pod)
        for uid in [uid for uid in self._removed if uid not in self._pods]:
            self._restore(*self._removed.pop(uid))

    def preempt(self, pod: PodInCycle, node_name: str, victims: Sequence[Victim]) -> bool:
        """Remove victims from a node and nominate a pod to it, ahead of the cache's changes.

        Returns False, with nothing changed, if the table would not show all consequences: the pod
        is nominated already, a pod of lower priority is nominated to the node, a victim has
        volumes, or the cache has not confirmed a victim on the node.
        """
        uids = [victim.uid for victim in victims]
        residents, is_on = self._table.residents, self._table.residents.is_on
        facts, nominated = pod.pod_class.facts, self._table.nominations.to(node_name)
        if pod.uid in self._nominated or facts.nominated_node_name:
            return False
        # A preemption also ends nominations of lower priority, which the table would not show
        # (decision 42).
        if any(other.facts.priority < facts.priority for other in nominated):
            return False
        if not all(is_on(node_name, uid) and uid not in self._pods for uid in uids):
            return False
        evicted = [residents.resident(uid) for uid in uids]
        if any(each.pod_class.facts.may_bind_claims for each in evicted):
            return False
        for each in evicted:
            self._table.remove_pod(node_name, each.pod_class, uid=each.uid)
            self._victims[each.uid] = node_name, each
        self.nominate(pod.uid, node_name, pod.pod_class)
        self._unconfirmed_nominations.add(pod.uid)
        return True

    def forget_removal(self, uid: str, node_name: str) -> bool:
        """Forget that a pod was removed from a node here; return whether it was.

        Called when the cache removes the pod from that node, too.
        """
        for removed in (self._removed, self._victims):
            if uid in removed and removed[uid][0] == node_name:
                del removed[uid]
                return True
        return False

    def node_removed(self, node_name: str) -> None:
        """Forget pods removed from a removed node: a new node of its name does not have them."""
        for removed in (self._removed, self._victims):
            for uid in [uid for uid, (name, _) in removed.items() if name == node_name]:
                del removed[uid]

    def confirm(
        self, uids: Sequence[str], node_names: Sequence[str], pod_classes: Sequence[PodClass]
    ) -> list[int]:
        """Confirm the cache's placements; return the indices of pods to be added to the table.

        The other pods are on these nodes already.
        """
        to_add: list[int] = []
        for uid in self._unconfirmed_nominations.intersection(uids):
            self._end_unconfirmed_nomination(uid)
        pop, is_on = self._pods.pop, self._table.residents.is_on
        for index, (uid, name, pod_class) in enumerate(
            zip(uids, node_names, pod_classes, strict=True)
        ):
            known = pop(uid, None)
            self._removed.pop(uid, None)
            self._victims.pop(uid, None)
            if known is not None and known == (name, pod_class) and is_on(name, uid):
                continue
            # The placement here is on another node, or the node was removed and added again.
            if known is not None:
                self._undo(uid, *known)
            to_add.append(index)
        return to_add

    def nominate(self, uid: str, node_name: str, pod_class: PodClass) -> None:
        """Apply the cache's nomination of a pod to a node."""
        nomination = node_name, self._table.as_nominated(pod_class)
        if uid in self._unconfirmed_nominations:
            if self._nominated[uid] == nomination:
                self._unconfirmed_nominations.discard(uid)
                return
            self._end_unconfirmed_nomination(uid)
        self._nominated[uid] = nomination
        self._nomination_counts[nomination] += 1
        self._table.nominate(node_name, pod_class)

    def withdraw(self, uid: str, node_name: str, pod_class: PodClass) -> None:
        """Apply the cache's end of a nomination, which may have ended here before."""
        nomination = self._nominated.pop(uid, None)
        self._unconfirmed_nominations.discard(uid)
        self._overruled.discard(uid)
        if uid in self._ended_nominations:
            self._ended_nominations.discard(uid)
            return
        if nomination is not None:
            self._uncount(nomination)
        self._table.withdraw(node_name, pod_class)

    def undo_unconfirmed(self) -> None:
        """Undo all entries that remain when the table has every change of the cache."""
        for uid, (node_name, pod_class) in self._pods.items():
            self._drop(uid, node_name, pod_class)
        self._pods.clear()
        for uid in self._overruled:
            self._reinstate(uid)
        self._overruled.clear()
        for removed in (self._removed, self._victims):
            for node_name, resident in removed.values():
                self._restore(node_name, resident)
            removed.clear()
        for uid in [*self._unconfirmed_nominations]:
            self._end_unconfirmed_nomination(uid)

    def _drop(self, uid: str, node_name: str, pod_class: PodClass) -> None:
        self._undo(uid, node_name, pod_class)
        if uid in self._ended_nominations:
            self._reinstate(uid)

    def _overrule(self, pod: PodInCycle) -> None:
        """End a nomination that differs from the pod's lease, until the next `undo_unconfirmed`."""
        nomination = self._nominated.get(pod.uid)
        if nomination is None:
            return
        is_wrong = nomination[0] != pod.pod_class.facts.nominated_node_name
        if is_wrong and pod.uid not in self._ended_nominations:
            self._ended_nominations.add(pod.uid)
            self._overruled.add(pod.uid)
            self._uncount(nomination)
            self._table.withdraw(*nomination)
        elif not is_wrong and pod.uid in self._overruled:
            self._overruled.discard(pod.uid)
            self._reinstate(pod.uid)

    def _reinstate(self, uid: str) -> None:
        """Restore the cache's nomination of a pod, which was ended here."""
        self._ended_nominations.discard(uid)
        self._nomination_counts[self._nominated[uid]] += 1
        self._table.nominate(*self._nominated[uid])

    def _end_unconfirmed_nomination(self, uid: str) -> None:
        """End a nomination that `preempt` made: the cache did not make it, or made another one."""
        self._unconfirmed_nominations.discard(uid)
        self._overruled.discard(uid)
        nomination = self._nominated.pop(uid)
        if uid in self._ended_nominations:
            self._ended_nominations.discard(uid)
            return
        self._uncount(nomination)
        self._table.withdraw(*nomination)

    def _uncount(self, nomination: tuple[str, PodClass]) -> None:
        """Reduce the count of a nomination by one."""
        self._nomination_counts[nomination] -= 1
        if not self._nomination_counts[nomination]:
            del self._nomination_counts[nomination]

    def _end_nomination(self, pod: PodInCycle) -> None:
        """End the nomination of a placed pod, and correct the table's counts.

        The batch withdrew one nomination of the pod's class from the node in its facts. If the
        cache had moved or ended the pod's nomination, this was another pod's, which is restored.
        """
        self._overruled.discard(pod.uid)
        nomination, named_node = (
            self._nominated.get(pod.uid),
            pod.pod_class.facts.nominated_node_name,
        )
        concerned = [(named_node, self._table.as_nominated(pod.pod_class))] if named_node else []
        if nomination is not None:
            if pod.uid not in self._ended_nominations:
                self._ended_nominations.add(pod.uid)
                self._uncount(nomination)
            concerned.append(nomination)
        for node_name, pod_class in dict.fromkeys(concerned):
            missing = self._nomination_counts[node_name, pod_class]
            missing -= self._table.nominations.to(node_name).get(pod_class, 0)
            if missing > 0:
                self._table.nominate(node_name, pod_class, missing)
            elif missing < 0:
                self._table.withdraw(node_name, pod_class)

    def _restore(self, node_name: str, resident: Resident) -> None:
        if self._table.has_node(node_name):
            uid, key, started_s, pod_class = resident
            self._table.add_pod(node_name, pod_class, uid=uid, key=key, started_s=started_s)

    def _undo(self, uid: str, node_name: str, pod_class: PodClass) -> None:
        if self._table.has_node(node_name) and self._table.residents.is_on(node_name, uid):
            self._table.remove_pod(node_name, pod_class, uid=uid)
