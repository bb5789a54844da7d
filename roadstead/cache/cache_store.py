"""CacheStore: the cache's records of pods, and functions that read them."""

from __future__ import annotations

from collections import OrderedDict

from roadstead.cache.deadlines import AssumeDeadlines
from roadstead.cache.pods import (
    COUNTED,
    TABLE,
    UNCONFIRMED,
    CacheCounts,
    CacheEvent,
    CacheRecord,
    CacheSettings,
    CacheState,
    PodOnNode,
)
from roadstead.facts.pod import PodFacts
from roadstead.placements import Delta, NodeStore, Placements
from roadstead.pod_store import PodStore


class CacheStore:
    """The counted pods, and the last pods that were counted before.

    pods: their records, by UID: `pods.present` those of counted pods, `pods.ended` the last others.
    placements: the same counted pods by node, and the store that counts them. _forgotten: (uid,
    token) of the last ended attempts, oldest first; values are None.
    """

    def __init__(self, store: NodeStore, settings: CacheSettings | None = None) -> None:
        self.settings = settings or CacheSettings()
        self.placements = Placements(store)
        ended = (CacheState.EXPIRED, CacheState.DELETED)
        self.pods: PodStore[CacheRecord, CacheState, CacheEvent] = PodStore(
            TABLE, CacheState.INITIAL, COUNTED, ended, self.settings.max_gone_remembered
        )
        self._forgotten: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._deadlines = AssumeDeadlines()

    @property
    def version(self) -> int:
        """The version of the last delta; it only increases (I7 in docs/invariants.md)."""
        return self.placements.version

    def state_of(self, uid: str) -> CacheState:
        """Return a pod's state; INITIAL for an unknown or forgotten pod."""
        return self.pods.state_of(uid)

    def node_of(self, uid: str) -> str | None:
        """Return the node of a counted pod, even if the node is not known; None for any other."""
        return self.placements.node_of(uid)

    def key_of(self, uid: str) -> str:
        """Return namespace/name of a pod that is or was counted; its UID for any other."""
        record = self.pods.find(uid)
        return uid if record is None else record.key

    def token_of(self, uid: str) -> str:
        """Return the token of a pod's last assumption; "" if it was never assumed."""
        return record.token if (record := self.pods.find(uid)) else ""

    def facts_of(self, uid: str) -> PodFacts:
        """Return the facts of a pod that is or was counted. KeyError for any other."""
        record = self.pods.find(uid)
        if record is None:
            raise KeyError(uid)
        return record.facts

    def unconfirmed(self) -> list[CacheRecord]:
        """Return the unconfirmed pods in the order of their assumption; do not change them."""
        return [record for record in self.pods.present.values() if record.state in UNCONFIRMED]

    def placement_of(self, uid: str) -> PodOnNode:
        """Return the placement of a counted pod. KeyError for a pod that is not counted."""
        record = self.pods.present[uid]
        return PodOnNode(uid, record.key, record.facts, record.node_name)

    def counts(self) -> CacheCounts:
        """Return the numbers of nodes and pods."""
        unconfirmed = len(self._deadlines)
        present = self.pods.present
        asked = sum(present[uid].state is CacheState.ASKED for uid in self._deadlines)
        return CacheCounts(
            nodes=len(self.placements.nodes),
            assumed=unconfirmed - asked,
            asked=asked,
            added=len(present) - unconfirmed,
            on_unknown_nodes=self.placements.uncounted,
        )

    def snapshot(self) -> list[Delta]:
        """Return nodes and counted pods as deltas of the current version, for a new worker."""
        return self.placements.snapshot()
