"""SchedulerCache: the cluster as schedulers see it: nodes, bound and assumed pods, claims.

    add, change, remove nodes, pods ──┐
    assume, nominate, finish attempts ┼──► ClusterState ──► Changes: deltas, nodes, claims, versions
    expire ──► (ask the binder) ──► resolve      └──► returned: pods whose resources are free again

A pod that is no longer counted, without an action of its scheduler, is returned; the caller reports
it to the queue, because waiting pods may fit now. Follows pkg/scheduler/backend/cache of upstream,
with claims and nominations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from roadstead.cache.attempt_ends import AttemptFinisher
from roadstead.cache.changes import Changes
from roadstead.cache.pods import AskBinder, Assumption, BinderAnswer, CacheState, PodOnNode
from roadstead.cache.row_versions import RowVersion
from roadstead.cache.state import ClusterState
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import Pod, identity_of, without_nomination
from roadstead.placements import Delta, DeltaKind, TableStore
from roadstead.revisions import newer_nodes
from roadstead.storage import StorageChange
from roadstead.storage.claim_messages import AttemptBindings

_NO_VOLUMES = "the volumes of its claims are in use"
_NO_DEVICES = "the devices of its claims are in use"


@dataclass(frozen=True, slots=True)
class AssumeOutcome:
    """Result of `assume`. refused: (token, reason). bound: bindings of the other pods' claims."""

    refused: tuple[tuple[str, str], ...]
    bound: tuple[AttemptBindings, ...]


@dataclass(frozen=True, slots=True)
class ResolveOutcome:
    """Result of `resolve`.

    late: number of answers on attempts that had ended before. freed: pods whose assumptions
    expired.
    """

    late: int
    freed: tuple[Pod, ...]


class SchedulerCache:
    """Change the state of a cluster, and send each change to `changes`, in order.

    Every call may be repeated or late: nothing is sent twice, and objects with a removal or change
    of a higher revision are skipped. Revision 0 means that the sender does not count revisions.
    """

    def __init__(self, state: ClusterState, changes: Changes) -> None:
        self.state = state
        self._core, self._volumes, self._changes = state.core, state.volumes, changes
        self._attempts = AttemptFinisher(state, changes)

    # Nodes and pods of the cluster.

    def add_nodes(self, nodes: NodeList, revision: int = 0) -> None:
        """Add nodes, or change known ones; the first nodes determine the partition of each zone."""
        state, core = self.state, self._core
        # Without nodes that were changed or removed with a higher revision.
        current = newer_nodes(nodes, revision, state.node_revisions)
        is_first = not core.placements.store.node_names()
        if core.add_nodes(current):
            state.partitioning.assign_all(current)
            self._changes.send_nodes(current)
            return
        if is_first:
            state.partitioning.assign_first(current)
        self._changes.send([delta for facts in current for delta in self._add_node(facts)])

    def _add_node(self, facts: NodeFacts) -> list[Delta]:
        self.state.partitioning.assign(facts)
        return self._core.add_node(facts)

    def remove_nodes(self, names: Sequence[str], revision: int = 0) -> list[Pod]:
        """Remove nodes; return their pods, which are not counted now: waiting pods may fit."""
        state, core = self.state, self._core
        # Without nodes that were added again with a higher revision.
        current = [name for name in names if state.node_revisions.apply_removal(name, revision)]
        known = [name for name in current if name in core.placements.nodes]
        deltas = [delta for name in known for delta in core.remove_node(name)]
        for name in known:
            state.partitioning.remove(name)
            state.versions.drop(name)
        self._changes.send(deltas)
        return [
            (identity_of(each.uid, core.key_of(each.uid)), each.pod)
            for each in deltas
            if each.kind is DeltaKind.REMOVE_POD and each.pod is not None
        ]

    def add_running(
        self,
        pods: Iterable[Pod],
        nodes: Iterable[str],
        revision: int = 0,
        started_s: Mapping[str, float] | None = None,
    ) -> None:
        """Count pods that run on nodes. started_s: start times by UID (seconds since 1970)."""
        placements = [
            PodOnNode(identity.uid, identity.key, without_nomination(facts), node)
            for (identity, facts), node in zip(pods, nodes, strict=True)
            if self.state.pod_revisions.apply_addition(identity.uid, revision)
        ]
        if started_s:
            uids = [each.uid for each in placements if each.uid in started_s]
            self.state.started_s.update((uid, started_s[uid]) for uid in uids)
        self._changes.send(self._core.confirm(placements))

    def update_running(self, pods: Iterable[Pod], nodes: Iterable[str], revision: int = 0) -> None:
        """Change pods on their nodes; pods that are no longer there are not added again."""
        deltas: list[Delta] = []
        for (identity, facts), node_name in zip(pods, nodes, strict=True):
            is_on_node = self._core.node_of(identity.uid) == node_name
            if is_on_node and self.state.pod_revisions.apply_addition(identity.uid, revision):
                deltas += self._core.update_pod(identity.uid, without_nomination(facts), node_name)
        self._changes.send(deltas)

    def remove_pods(self, uids: Iterable[str], revision: int = 0) -> None:
        """Remove pods from the counts and the nominations."""
        uids = self.state.pod_revisions.apply_removals(uids, revision)
        known = [uid for uid in uids if self._core.node_of(uid) is not None]
        self._changes.send([*self._core.remove_pods(known), *self._core.withdraw(uids)])
        self._release(uids)

    def _release(self, uids: Sequence[str]) -> None:
        """Free the claims of devices of pods that ended, and forget when they started."""
        if self.state.started_s:
            for uid in uids:
                self.state.started_s.pop(uid, None)
        start = len(self._volumes.log)
        self._volumes.release(uids)
        self._changes.send_storage(self._volumes.log[start:])

    # Attempts of schedulers.

    def assume(
        self, assumptions: Sequence[Assumption], now_s: float, *, bind_next: bool = False
    ) -> AssumeOutcome:
        """Count pods on nodes ahead of their commits, and bind their claims.

        bind_next: the scheduler sends the assumed pods to the binder at once, so `finish` of
        `finish_attempts` applies to them.
        """
        counted = self._core.assume(assumptions, now_s)
        self._changes.send(counted.deltas)
        token_of = {each.uid: each.token for each in assumptions} if counted.refused else {}
        refused = [(token_of[each.uid], each.status.message) for each in counted.refused]
        tokens = {token for token, _ in refused}
        # Pods with claims of volumes or devices.
        with_claims = [each for each in assumptions if each.facts.may_bind_claims]
        bound, unbindable = self._bind_claims(
            [each for each in with_claims if each.token not in tokens]
        )
        self._attempts.forget([(each.uid, each.token) for each in unbindable])
        # A refused pod without a node was assumed and deleted before: its scheduler will not send
        # a forget, so its claims are released here.
        self._attempts.release_claims(
            [each.uid for each in counted.refused if self._core.node_of(each.uid) is None]
        )
        refused += [
            (each.token, _NO_DEVICES if each.facts.device_claims else _NO_VOLUMES)
            for each in unbindable
        ]
        if bind_next:
            tokens = {token for token, _ in refused}
            finished = [(each.uid, each.token) for each in assumptions if each.token not in tokens]
            self._core.finish_binding(finished, now_s)
        return AssumeOutcome(tuple(refused), tuple(bound))

    def _bind_claims(
        self, assumed: Sequence[Assumption]
    ) -> tuple[list[AttemptBindings], list[Assumption]]:
        """Bind claims of assumed pods; return (bindings, pods whose claims cannot be bound)."""
        bound, unbindable = [], []
        start = len(self._volumes.log)
        for each in assumed:
            node = self._core.placements.nodes.get(each.node_name)
            reserved = self._volumes.assume(each.uid, each.facts, node)
            if reserved is None:
                unbindable.append(each)
            elif reserved.bindings or reserved.device_claims:
                bound.append(AttemptBindings(each.token, reserved.bindings, reserved.device_claims))
        self._changes.send_storage(self._volumes.log[start:])
        return bound, unbindable

    def finish_attempts(
        self,
        forget: Sequence[tuple[str, str]],
        finish: Sequence[tuple[str, str]],
        confirm: Sequence[str],
        rows: Iterable[RowVersion],
        now_s: float,
    ) -> list[Pod]:
        """Forget assumptions, finish or confirm their binding, and record versions of rows.

        forget, finish: (uid, token). confirm: UIDs. rows: from the binder's answers. Returned:
        forgotten pods that were deleted before: the queue learns here that they are gone.
        """
        freed = self._attempts.deleted(uid for uid, _ in forget)
        self._attempts.forget(forget)
        self._core.finish_binding(finish, now_s)
        # A pod that was evicted before its confirmation is not counted again.
        self._core.confirm_assumed(confirm)
        self._attempts.confirm_claims(confirm)
        # Skip versions of removed nodes: they must be sent if the node is added again.
        known = [(node, at) for node, at in rows if node in self._core.placements.nodes]
        self._changes.send_versions(self.state.versions.record(known))
        return freed

    def nominate(
        self,
        pods: Iterable[Pod],
        nodes: Iterable[str],
        preempts: Iterable[bool],
        gone: Iterable[str] = (),
    ) -> None:
        """Nominate waiting pods to nodes, or to none ("").

        preempts: for each pod, whether there are victims. gone: UIDs of the evicted victims.
        """
        gone = list(gone)
        known = [uid for uid in gone if self._core.state_of(uid) is not CacheState.INITIAL]
        deltas = self._core.remove_pods(known)
        for (identity, facts), node, has_victims in zip(pods, nodes, preempts, strict=True):
            if self.state.pod_revisions.is_gone(identity.uid):
                continue
            deltas += self._core.nominate(identity.uid, node, facts, preempts=has_victims)
        self._changes.send(deltas)
        # Also of victims whose assumption was forgotten before: the binder has ended their claims.
        self._release(gone)

    def deallocate(self, claims: Iterable[tuple[str, str]]) -> None:
        """Deallocate claims of devices (key, UID of the pod for which the binder did it)."""
        start = len(self._volumes.log)
        self._volumes.deallocate(claims)
        self._changes.send_storage(self._volumes.log[start:])

    def expire(self, now_s: float) -> list[AskBinder]:
        """Return commands to ask the binder; pass its answers to `resolve`."""
        return self._core.expire(now_s)

    def resolve(self, answers: Sequence[BinderAnswer]) -> ResolveOutcome:
        """Confirm or expire assumptions according to the binder's answers."""
        # Read the pods first: if many expire at once, the store may forget some of them.
        counted = [each.uid for each in answers if self._core.node_of(each.uid) is not None]
        pods = {uid: self._attempts.pod(uid) for uid in counted}
        applied = self._attempts.resolve(answers)
        late = {each.uid for each in answers} - {each.uid for each in applied}
        freed = tuple(pods[each.uid] for each in applied if each.node_name is None)
        return ResolveOutcome(len(late), freed)

    # Schedulers that were replaced. epoch: of the current incarnation of `owner`.

    def assumed_by(self, owner: str, epoch: int) -> list[str]:
        """Return the UIDs of the pods that a scheduler assumed before this epoch."""
        return [uid for uid, _ in self._attempts.of_earlier_epochs(owner, epoch)]

    def end_owner(self, owner: str, epoch: int, nodes: Mapping[str, str | None]) -> list[Pod]:
        """End a scheduler's attempts from before this epoch: confirm bound pods, forget others.

        nodes: node of each bound pod, by UID. Returned: forgotten pods that were deleted before.
        """
        orphans = self._attempts.of_earlier_epochs(owner, epoch)
        bound = {uid: node for uid, _ in orphans if (node := nodes.get(uid))}
        self._attempts.confirm(bound)
        ends = [(uid, token) for uid, token in orphans if uid not in bound]
        freed = self._attempts.deleted(uid for uid, _ in ends)
        self._attempts.forget(ends)
        return freed

    def orphaned_claims(self, owner: str, epoch: int) -> list[str]:
        """Return the UIDs of removed pods whose claims an earlier incarnation left bound."""
        return self._attempts.orphaned_claims(owner, epoch)

    def end_claims(self, owner: str, epoch: int, committed: set[str]) -> None:
        """End `orphaned_claims`. committed: keys of claims that commits bound; they stay bound."""
        self._attempts.end_claims(self.orphaned_claims(owner, epoch), committed)

    # Recovery and self-check.

    def load_storage(self, changes: Sequence[StorageChange]) -> None:
        """Apply changes of claims by commits from before this cache was created."""
        start = len(self._volumes.log)
        self._volumes.load(changes)
        self._changes.send_storage(self._volumes.log[start:])

    def merge_revisions(
        self,
        nodes: Iterable[tuple[str, int]],
        pods: Iterable[tuple[str, int]],
        gone: Iterable[str] = (),
    ) -> None:
        """Merge revisions of nodes and pods, so that messages of lower revisions are ignored.

        gone: UIDs of removed pods, whose nominations are ignored.
        """
        self.state.node_revisions.merge(nodes)
        self.state.pod_revisions.merge(pods, gone)

    def differences(self) -> list[str]:
        """Return the differences from a cache rebuilt from this one's state, one line each."""
        store = TableStore()
        rebuilt = self._core.rebuild(store)
        return self._core.compare(rebuilt) + self.state.table.differences(store.table)
