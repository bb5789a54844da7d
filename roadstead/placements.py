"""Placements: which pod is on which node, and the node store that counts them.

Cache and binder both use it; only it changes their node store. A change returns `Delta`s, numbered
without gaps, from which a copy of the store can be kept in another process. `add_nodes` and
`bulk_place` use up numbers, but return no deltas.

A pod may be placed on an unknown node (its event was received first, or the node was removed before
its pods). Such pods are not counted until the node is added. Upstream keeps an imaginary
node for them (pkg/scheduler/backend/cache/cache.go, AddPod and RemoveNode).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts
from roadstead.nodes.known_nodes import KnownNodes
from roadstead.nodes.pods_by_node import PodsByNode
from roadstead.nodes.table import NodeTable

FEW_PODS = 8
"""Fewer pods are placed one by one: preparing a bulk operation would take longer."""


class NodeStore(Protocol):
    """Store of nodes and counts of their pods: the node table, behind `TableStore`."""

    @property
    def nodes(self) -> Mapping[str, NodeFacts]: ...

    def add_node(self, facts: NodeFacts) -> None: ...

    def add_nodes(self, nodes: NodeList) -> None: ...

    def update_node(self, facts: NodeFacts) -> None: ...

    def remove_node(self, name: str) -> None: ...

    def missing(self, names: Iterable[str]) -> set[str]:
        """Return those of the names that no node has."""
        ...

    def add_pod(self, node_name: str, facts: PodFacts, count: int = 1) -> None:
        """Count equal pods on a node. count: their number."""
        ...

    def add_pods(self, node_names: Sequence[str], pods: Sequence[PodFacts]) -> Sequence[str]:
        """Add one pod to each of the named nodes; return the store's own copies of the names."""
        ...

    def remove_pod(self, node_name: str, facts: PodFacts) -> None: ...

    def node_names(self) -> Collection[str]: ...


class TableStore:
    """A node table as a NodeStore, with facts of pods in place of their classes."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self.nodes = KnownNodes(self.table)

    def add_node(self, facts: NodeFacts) -> None:
        self.table.add_node(facts)

    def add_nodes(self, nodes: NodeList) -> None:
        self.table.add_nodes(nodes)

    def update_node(self, facts: NodeFacts) -> None:
        self.table.update_node(facts)

    def remove_node(self, name: str) -> None:
        self.table.remove_node(name)

    def missing(self, names: Iterable[str]) -> set[str]:
        return self.table.missing(names)

    def add_pod(self, node_name: str, facts: PodFacts, count: int = 1) -> None:
        self.table.add_pod(node_name, self.table.classes.pod_class(facts), count)

    def add_pods(self, node_names: Sequence[str], pods: Sequence[PodFacts]) -> Sequence[str]:
        rows, names = self.table.each_row(node_names), self.table.columns.names
        self.table.add_pods(rows, self.table.classes.pod_classes_of(pods))
        return [names[row] for row in rows]

    def remove_pod(self, node_name: str, facts: PodFacts) -> None:
        self.table.remove_pod(node_name, self.table.classes.pod_class(facts))

    def node_names(self) -> Collection[str]:
        return self.table.node_names()


class DeltaKind(StrEnum):
    """Kinds of changes. NOMINATE, WITHDRAW: begin and end of a pod's nomination to a node."""

    ADD_POD = "add_pod"
    REMOVE_POD = "remove_pod"
    ADD_NODE = "add_node"
    UPDATE_NODE = "update_node"
    REMOVE_NODE = "remove_node"
    NOMINATE = "nominate"
    WITHDRAW = "withdraw"


class Delta(NamedTuple):
    """One change of the store; `version` is one more than that of the previous delta.

    pod and uid are set for pods and nominations, node for ADD_NODE and UPDATE_NODE. A REMOVE_NODE
    follows a WITHDRAW for each nomination to the node, and a REMOVE_POD for each pod on it.
    """

    version: int
    kind: DeltaKind
    node_name: str
    uid: str = ""
    pod: PodFacts | None = None
    node: NodeFacts | None = None


class Placements:
    """Nodes, pods on nodes, nominations, and the store that counts the pods.

    version: number of the last change, as in `Delta`.
    nodes: those of the store, in the order in which they were added.
    nominated: UID → (nominated node, known or not; facts). Such pods are not counted; placing a pod
    ends its nomination.
    counted: number of pods that the store counts.
    """

    def __init__(self, store: NodeStore) -> None:
        assert not store.node_names(), "placements start with an empty store"
        self.store = store
        self.version = 0
        self.nodes = store.nodes
        self._pods = PodsByNode()
        self._node_of = self._pods.node_of
        self._facts_of: dict[str, PodFacts] = {}
        self.nominated: dict[str, tuple[str, PodFacts]] = {}
        self.counted = 0

    @property
    def uncounted(self) -> int:
        """The number of pods that are placed on unknown nodes."""
        return len(self) - self.counted

    def uncounted_pods(self) -> list[PodFacts]:
        """Return the pods that are placed on unknown nodes."""
        if not self.uncounted:
            return []
        unknown = [name for name in self._pods.nodes() if name not in self.nodes]
        return [facts for name in unknown for _, facts in self._pods_on(name)]

    def __len__(self) -> int:
        return len(self._node_of)

    def node_of(self, uid: str) -> str | None:
        """Return a pod's node, known or not; None if the pod is not placed."""
        return self._node_of.get(uid)

    def facts_of(self, uid: str) -> PodFacts:
        """Return the facts of a placed pod. KeyError for one that is not placed."""
        return self._facts_of[uid]

    def _pods_on(self, node_name: str) -> list[tuple[str, PodFacts]]:
        """Return the pods placed on a node, known or not, in the order of their placement."""
        return [(uid, self._facts_of[uid]) for uid in self._pods.on(node_name)]

    def add_node(self, facts: NodeFacts) -> list[Delta]:
        """Add a node with the pods placed on it while it was unknown; update a known one."""
        if facts.name in self.nodes:
            return self.update_node(facts)
        self.store.add_node(facts)
        deltas = [self._delta(DeltaKind.ADD_NODE, facts.name, node=facts)]
        if self.uncounted:
            placed = self._pods_on(facts.name)
            deltas += [self._count_pod(facts.name, uid, pod) for uid, pod in placed]
        return deltas + self._nominated_to(facts.name, DeltaKind.NOMINATE)

    def are_unknown(self, nodes: NodeList) -> bool:
        """Whether the nodes are new and distinct, and no pod is placed on or nominated to one."""
        names = set(nodes.names)
        if len(names) != len(nodes) or not self.nodes.keys().isdisjoint(names):
            return False
        nominated_to = {name for name, _ in self.nominated.values()}
        return nominated_to.isdisjoint(names) and not (
            self.uncounted and any(map(self._pods.on, names))
        )

    def add_nodes(self, nodes: NodeList) -> None:
        """Add new nodes (`are_unknown`) as `add_node` does, but return no deltas."""
        self.store.add_nodes(nodes)
        self.version += len(nodes)

    def update_node(self, facts: NodeFacts) -> list[Delta]:
        """Change a node's facts; add an unknown one. No delta if the facts are equal."""
        known = self.nodes.get(facts.name)
        if known is None:
            return self.add_node(facts)
        if known == facts:
            return []
        self.store.update_node(facts)
        return [self._delta(DeltaKind.UPDATE_NODE, facts.name, node=facts)]

    def remove_node(self, name: str) -> list[Delta]:
        """Remove a known node; its pods stay placed on it, but are no longer counted."""
        deltas = self._nominated_to(name, DeltaKind.WITHDRAW)
        deltas += [self._uncount_pod(name, uid, pod) for uid, pod in self._pods_on(name)]
        self.store.remove_node(name)
        return [*deltas, self._delta(DeltaKind.REMOVE_NODE, name)]

    def place(self, uid: str, node_name: str, facts: PodFacts) -> list[Delta]:
        """Place a pod on a node; it must not be placed yet."""
        assert uid not in self._node_of, f"{uid} is placed on {self._node_of[uid]} already"
        is_counted = node_name in self.nodes
        # First: if the store raises, nothing has changed.
        if is_counted:
            self.store.add_pod(node_name, facts)
        deltas = self.withdraw(uid)
        if is_counted:
            deltas.append(self._delta_of_counted(node_name, uid, facts))
        self._pods.add(uid, node_name)
        self._facts_of[uid] = facts
        return deltas

    def place_all(
        self, uids: Sequence[str], node_names: Sequence[str], facts: Sequence[PodFacts]
    ) -> list[Delta]:
        """Place distinct pods on nodes, as `place` does for each in this order."""
        pods = zip(uids, node_names, facts, strict=True)
        # With nominations, `place` may also return a WITHDRAW.
        if len(uids) < FEW_PODS or self.nominated:
            return [delta for pod in pods for delta in self.place(*pod)]
        version, kind = self.version, DeltaKind.ADD_POD
        missing = self.store.missing(node_names)
        self._place_all(uids, node_names, facts, missing)
        counted = pods if not missing else (pod for pod in pods if pod[1] not in missing)
        return [
            Delta(number, kind, name, uid, pod)
            for number, (uid, name, pod) in enumerate(counted, version + 1)
        ]

    def bulk_place(
        self, uids: Sequence[str], node_names: Sequence[str], facts: Sequence[PodFacts]
    ) -> Sequence[str]:
        """Place pods as `place_all` does, without deltas; return the names of their nodes.

        The names are the store's own objects if all nodes are known and no pod is nominated.
        """
        if not self.nominated:
            missing = self.store.missing(node_names)
            return self._place_all(uids, node_names, facts, missing)
        self.place_all(uids, node_names, facts)
        return [self._node_of[uid] for uid in uids]

    def _place_all(
        self,
        uids: Sequence[str],
        node_names: Sequence[str],
        facts: Sequence[PodFacts],
        missing: set[str],
    ) -> Sequence[str]:
        """Place pods while there are no nominations. missing: unknown nodes, not counted."""
        node_of, placed_before = self._node_of, len(self._node_of)
        for uid in node_of.keys() & uids:
            raise AssertionError(f"{uid} is placed on {node_of[uid]} already")
        if missing:
            known = [index for index, name in enumerate(node_names) if name not in missing]
            count = len(known)
            self.store.add_pods([node_names[i] for i in known], [facts[i] for i in known])
        else:
            # The names of a message are copies: keep the objects of the store, to share memory.
            node_names, count = self.store.add_pods(node_names, facts), len(uids)
        self._pods.add_all(uids, node_names)
        self._facts_of |= dict(zip(uids, facts, strict=True))
        assert len(node_of) == placed_before + len(uids), "a pod is placed twice at once"
        self.version += count
        self.counted += count
        return node_names

    def nominate(self, uid: str, node_name: str, facts: PodFacts) -> list[Delta]:
        """Nominate a pod to a node, instead of any other; nothing changes for a placed pod."""
        if uid in self._node_of or self.nominated.get(uid) == (node_name, facts):
            return []
        deltas = self.withdraw(uid)
        self.nominated[uid] = node_name, facts
        if node_name in self.nodes:
            deltas.append(self._delta(DeltaKind.NOMINATE, node_name, uid, facts))
        return deltas

    def withdraw(self, uid: str) -> list[Delta]:
        """End a pod's nomination; nothing changes without one."""
        node_name, facts = self.nominated.pop(uid, ("", None))
        if node_name not in self.nodes:
            return []
        return [self._delta(DeltaKind.WITHDRAW, node_name, uid, facts)]

    def withdraw_below(self, node_name: str, priority: int) -> list[Delta]:
        """End the nominations to a node of pods with lower priority."""
        lower = [
            uid
            for uid, (name, facts) in self.nominated.items()
            if name == node_name and facts.priority < priority
        ]
        return [delta for uid in lower for delta in self.withdraw(uid)]

    def remove_pod(self, uid: str) -> list[Delta]:
        """Remove a placed pod from its node."""
        node_name, facts = self._pods.pop(uid), self._facts_of.pop(uid)
        return [self._uncount_pod(node_name, uid, facts)] if node_name in self.nodes else []

    def replace(self, uid: str, node_name: str, facts: PodFacts) -> list[Delta]:
        """Change the facts or the node of a placed pod; no delta if both are equal."""
        before = self.facts_of(uid)
        if self._node_of[uid] == node_name and (before is facts or before == facts):
            return []
        return self.remove_pod(uid) + self.place(uid, node_name, facts)

    def snapshot(self) -> list[Delta]:
        """Return the whole store as deltas of the current version, to start a copy from."""
        nodes = [
            Delta(self.version, DeltaKind.ADD_NODE, name, node=facts)
            for name, facts in self.nodes.items()
        ]
        pods = [
            Delta(self.version, DeltaKind.ADD_POD, name, uid=uid, pod=self._facts_of[uid])
            for uid, name in self._node_of.items()
            if name in self.nodes
        ]
        nominated = [
            Delta(self.version, DeltaKind.NOMINATE, name, uid=uid, pod=facts)
            for uid, (name, facts) in self.nominated.items()
            if name in self.nodes
        ]
        return nodes + pods + nominated

    def compare(self, other: Placements) -> list[str]:
        """Return the differences of two placements, one line each; orders are not compared."""
        differences = []
        for name in sorted(self.nodes.keys() | other.nodes.keys()):
            if self.nodes.get(name) != other.nodes.get(name):
                differences.append(f"node {name}: facts differ or it is only on one side")
        for uid in sorted(self._node_of.keys() | other._node_of.keys()):
            node_name, other_name = self._node_of.get(uid), other._node_of.get(uid)
            if node_name != other_name:
                differences.append(f"pod {uid}: on {node_name}, not on {other_name}")
            elif self.facts_of(uid) != other.facts_of(uid):
                differences.append(f"pod {uid}: facts differ")
        return differences

    def validate(self) -> None:
        """Check that nodes of pods, pods of nodes, and facts agree."""
        assert self._facts_of.keys() == self._node_of.keys(), (
            "pods without a node, or without facts"
        )
        self._pods.validate()
        uncounted = sum(name not in self.nodes for name in self._node_of.values())
        assert uncounted == self.uncounted, "a pod is counted on an unknown node"

    def _nominated_to(self, node_name: str, kind: DeltaKind) -> list[Delta]:
        """Return a delta of this kind for each nomination to a node."""
        return [
            self._delta(kind, node_name, uid, facts)
            for uid, (name, facts) in self.nominated.items()
            if name == node_name
        ]

    def _count_pod(self, node_name: str, uid: str, facts: PodFacts) -> Delta:
        """Count a placed pod on a known node, in the store too; return the delta."""
        self.store.add_pod(node_name, facts)
        return self._delta_of_counted(node_name, uid, facts)

    def _delta_of_counted(self, node_name: str, uid: str, facts: PodFacts) -> Delta:
        """Count a pod that the store has counted already; return the delta."""
        self.counted += 1
        return self._delta(DeltaKind.ADD_POD, node_name, uid, facts)

    def _uncount_pod(self, node_name: str, uid: str, facts: PodFacts) -> Delta:
        self.store.remove_pod(node_name, facts)
        self.counted -= 1
        return self._delta(DeltaKind.REMOVE_POD, node_name, uid, facts)

    def _delta(
        self,
        kind: DeltaKind,
        node_name: str,
        uid: str = "",
        pod: PodFacts | None = None,
        node: NodeFacts | None = None,
    ) -> Delta:
        """Return the next delta, with the next number."""
        self.version += 1
        return Delta(self.version, kind, node_name, uid, pod, node)
