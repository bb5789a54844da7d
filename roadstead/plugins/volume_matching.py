"""VolumeMatching: a pod's claims against all rows of a table at once.

The same rules as `roadstead.storage.binding` has them for one node; a test holds the two equal.
Upstream: plugins/volumebinding/binder.go (FindPodVolumes).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.csi_migration import moves_topology
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.storage import ClaimFacts, NodeTerms, StorageClassFacts, VolumeFacts
from roadstead.nodes.columns import I32, Bools
from roadstead.nodes.table import Table
from roadstead.storage.binding import by_size, candidates, counts_capacity, may_provision
from roadstead.storage.claims import PodClaims
from roadstead.storage.state import StorageState

REASONS = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
"""What may be wrong with a node, in upstream's order; bit i of an answer stands for REASONS[i]."""

_UNREACHED, _NO_VOLUME, _NO_SPACE, _NO_SUCH_VOLUME = 1, 2, 4, 8
_NOTHING = np.iinfo(np.int32).max

_Taken = tuple[dict[str, int], NDArray[np.int32]]
"""Volumes that fit a claim, by their place, and the place chosen on each row: int32[row]."""


class VolumeMatching:
    """One table and the storage of one moment."""

    def __init__(self, storage: StorageState, table: Table) -> None:
        self._storage = storage
        self._table = table
        self._reached: dict[NodeTerms, Bools] = {}

    def what_is_wrong(self, claims: PodClaims) -> I32:
        """Bits for REASONS: int32[row]; 0 where all claims can be had."""
        wrong: I32 = np.zeros(len(self._table), dtype=np.int32)
        self._check_bound(claims.bound, wrong)
        if claims.waiting:
            self._check_waiting(claims.waiting, wrong)
        return wrong

    def _check_bound(self, claims: Sequence[ClaimFacts], wrong: I32) -> None:
        """The first volume that is missing or out of reach speaks for its row."""
        for claim in claims:
            volume = self._storage.volumes.get(claim.volume_name)
            if volume is None:
                wrong[wrong == 0] = _NO_SUCH_VOLUME
                return
            wrong[(wrong == 0) & ~self._reach_bound(volume)] = _UNREACHED

    def _reach_bound(self, volume: VolumeFacts) -> Bools:
        """Rows that reach a volume, as its CSI driver has it where the node has moved to that."""
        reached = self.reaching(volume.node_terms)
        if volume.in_tree not in self._storage.migrated_plugins:
            return reached
        moved = np.array([self._has_moved(name, volume.in_tree) for name in self._table.names])
        return np.where(moved, self.reaching(volume.migrated_terms), reached)

    def _has_moved(self, node_name: str, plugin: str) -> bool:
        node = self._storage.csi_nodes.get(node_name)
        return node is not None and moves_topology(plugin, node.migrated)

    def reaching(self, terms: NodeTerms) -> Bools:
        """Rows whose labels satisfy any of the terms; node names do not count, as upstream."""
        found = self._reached.get(terms)
        if found is None:
            found = np.full(len(self._table), terms is None, dtype=np.bool_)
            for term in terms or ():
                if not term.error and (term.expressions or term.fields):
                    found |= self._all_of(term.expressions)
            self._reached[terms] = found
        return found

    def _all_of(self, requirements: Sequence[Requirement]) -> Bools:
        matching = np.ones(len(self._table), dtype=np.bool_)
        for requirement in requirements:
            matching &= self._table.match(requirement)
        return matching

    def _check_waiting(self, claims: Sequence[ClaimFacts], wrong: I32) -> None:
        placeable = np.ones(len(self._table), dtype=np.bool_)
        names = self._table.names
        given = [claim for claim in claims if claim.selected_node is not None]
        for claim in given:
            placeable &= np.array([name == claim.selected_node for name in names], dtype=np.bool_)
        wrong[~placeable] |= _NO_VOLUME
        searching = by_size(claim for claim in claims if claim.selected_node is None)
        unmatched = self._unmatched(searching)
        needs = [(claim, placeable) for claim in given]
        needs += [
            (claim, placeable & lacks) for claim, lacks in zip(searching, unmatched, strict=True)
        ]
        self._check_provisions(needs, wrong)

    def _unmatched(self, claims: Sequence[ClaimFacts]) -> list[Bools]:
        """For each claim the rows on which it finds no volume; a volume serves one claim."""
        taken: list[_Taken] = []
        found = []
        for claim in claims:
            volumes = self._storage.volumes_of_class(claim.storage_class)
            own, free = candidates(volumes, claim)
            if own is not None:
                free = [own]
            chosen = self._smallest(free, taken if own is None else [])
            taken.append(({volume.name: index for index, volume in enumerate(free)}, chosen))
            found.append(chosen == _NOTHING)
        return found

    def _smallest(self, free: Sequence[VolumeFacts], taken: Sequence[_Taken]) -> NDArray[np.int32]:
        """Index into `free` of the first volume that each row reaches, or _NOTHING.

        Volumes with the same terms are looked at together: only the first that is not taken by an
        earlier claim counts on a row.
        """
        chosen: NDArray[np.int32] = np.full(len(self._table), _NOTHING, dtype=np.int32)
        groups: dict[NodeTerms, list[int]] = {}
        for index, volume in enumerate(free):
            groups.setdefault(volume.node_terms, []).append(index)
        for terms, members in groups.items():
            rows = np.flatnonzero(self.reaching(terms))
            for index in members:
                rows = rows[chosen[rows] > index]
                if not len(rows):
                    break
                busy = _taken_on(free[index].name, taken, rows)
                chosen[rows[~busy]] = index
                rows = rows[busy]
        return chosen

    def _check_provisions(self, needs: Sequence[tuple[ClaimFacts, Bools]], wrong: I32) -> None:
        """Volumes to be made: the first claim for which none can be made speaks for its row."""
        open_rows = np.ones(len(self._table), dtype=np.bool_)
        for claim, lacking in needs:
            rows = lacking & open_rows
            if not rows.any():
                continue
            found = self._storage.classes.get(claim.storage_class)
            allowed = np.zeros(len(rows), dtype=np.bool_)
            if found is not None and may_provision(found):
                allowed = self._allowing(found)
            wrong[rows & ~allowed] |= _NO_VOLUME
            rows &= allowed
            roomy = np.ones(len(rows), dtype=np.bool_)
            if found is not None and rows.any():
                roomy = self._roomy(found, claim)
            wrong[rows & ~roomy] |= _NO_SPACE
            open_rows &= ~lacking | (allowed & roomy)

    def _allowing(self, found: StorageClassFacts) -> Bools:
        """Rows for which a class may make volumes."""
        if not found.allowed_topologies:
            return np.ones(len(self._table), dtype=np.bool_)
        allowed = np.zeros(len(self._table), dtype=np.bool_)
        for term in found.allowed_topologies:
            if term and all(values for _, values in term):
                allowed |= self._all_of([Requirement(key, "In", values) for key, values in term])
        return allowed

    def _roomy(self, found: StorageClassFacts, claim: ClaimFacts) -> Bools:
        """Rows near which a driver that publishes its free storage has enough for a claim."""
        if not counts_capacity(self._storage, found, claim):
            return np.ones(len(self._table), dtype=np.bool_)
        roomy = np.zeros(len(self._table), dtype=np.bool_)
        selectors: set[LabelSelector] = {
            each.selector
            for each in self._storage.capacities.get(found.name, ())
            if each.selector is not None
            and each.limit_bytes is not None
            and each.limit_bytes >= (claim.requested_bytes or 0)
        }
        for selector in selectors:
            roomy |= self._all_of(selector.requirements)
        return roomy


def _taken_on(name: str, taken: Sequence[_Taken], rows: NDArray[np.intp]) -> Bools:
    """Where an earlier claim of the pod has chosen a volume: bool[rows]."""
    busy = np.zeros(len(rows), dtype=np.bool_)
    for index_of, chosen in taken:
        if name in index_of:
            busy |= chosen[rows] == index_of[name]
    return busy
