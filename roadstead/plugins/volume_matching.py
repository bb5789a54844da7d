"""VolumeMatching: for a pod's claims, which rows of a table have usable volumes, and why not.

The rules are those of `roadstead.storage.binding` for one node; a test compares the two.
Upstream: plugins/volumebinding/binder.go (FindPodVolumes).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.storage import ClaimFacts, NodeTerms, StorageClassFacts, VolumeFacts
from roadstead.nodes.columns import I32, Bools
from roadstead.nodes.table import Rows, Table
from roadstead.storage.binding import by_size, candidates, counts_capacity, may_provision
from roadstead.storage.claims import PodClaims
from roadstead.storage.state import StorageState

REASONS = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
"""Reasons to refuse a node, in upstream's order; bit i of a result stands for REASONS[i]."""

_UNREACHABLE, _NO_VOLUME, _NO_CAPACITY, _NO_SUCH_VOLUME = 1, 2, 4, 8
_NO_INDEX = np.iinfo(np.int32).max

VolumeByRow = NDArray[np.int32]
"""A volume per row, by index in a list or by number in `VolumeMatching`; _NO_INDEX for none."""


class VolumeMatching:
    """Compare claims with the rows of one table, as long as the storage state does not change.

    _numbers: volume name → its number here, so that volumes are compared as integers.
    """

    def __init__(self, storage: StorageState, table: Table) -> None:
        self._storage = storage
        self._table = table
        self._rows_by_terms: dict[NodeTerms, Bools] = {}
        self._numbers: dict[str, int] = {}

    def reason_bits(self, claims: PodClaims) -> I32:
        """Return bits for REASONS: int32[row]; 0 if the row satisfies all claims."""
        reasons: I32 = np.zeros(len(self._table), dtype=np.int32)
        self._check_bound(claims.bound, reasons)
        if claims.waiting:
            self._check_unbound(claims.waiting, reasons)
        return reasons

    def _check_bound(self, claims: Sequence[ClaimFacts], reasons: I32) -> None:
        """Check bound claims; a row gets the reason of the first missing or unreachable volume."""
        for claim in claims:
            volume = self._storage.volumes.get(claim.volume_name)
            if volume is None:
                reasons[reasons == 0] = _NO_SUCH_VOLUME
                return
            reasons[(reasons == 0) & ~self._rows_reaching(volume)] = _UNREACHABLE

    def _rows_reaching(self, volume: VolumeFacts) -> Bools:
        """Return the rows that reach a volume: bool[row].

        Nodes on which the volume's in-tree plugin is migrated to CSI are compared with the affinity
        of the migrated volume.
        """
        reached = self.rows_matching(volume.node_terms)
        if volume.in_tree not in self._storage.migrated_plugins:
            return reached
        migrated_reached = self.rows_matching(volume.migrated_terms)
        if np.array_equal(migrated_reached, reached):
            return reached
        migrated_nodes = self._storage.migrated_nodes(volume.in_tree)
        return np.where(
            [name in migrated_nodes for name in self._table.names], migrated_reached, reached
        )

    def rows_matching(self, terms: NodeTerms) -> Bools:
        """Return the rows whose labels satisfy any term; as upstream, node names do not count."""
        found = self._rows_by_terms.get(terms)
        if found is None:
            found = np.full(len(self._table), terms is None, dtype=np.bool_)
            for term in terms or ():
                if not term.error and (term.expressions or term.fields):
                    found |= self._rows_meeting_all(term.expressions)
            self._rows_by_terms[terms] = found
        return found

    def _rows_meeting_all(self, requirements: Sequence[Requirement]) -> Bools:
        matching = np.ones(len(self._table), dtype=np.bool_)
        for requirement in requirements:
            matching &= self._table.match(requirement)
        return matching

    def _check_unbound(self, claims: Sequence[ClaimFacts], reasons: I32) -> None:
        """Check claims that wait for their first consumer; provision where no volume is free.

        A claim with a selected node can be provisioned only there.
        """
        allowed = np.ones(len(self._table), dtype=np.bool_)
        names = self._table.names
        selected = [claim for claim in claims if claim.selected_node is not None]
        for claim in selected:
            allowed &= np.array([name == claim.selected_node for name in names], dtype=np.bool_)
        reasons[~allowed] |= _NO_VOLUME
        to_match = by_size(claim for claim in claims if claim.selected_node is None)
        unmatched = self._unmatched(to_match)
        to_provision = [(claim, allowed) for claim in selected]
        to_provision += [
            (claim, allowed & has_none) for claim, has_none in zip(to_match, unmatched, strict=True)
        ]
        self._check_provisions(to_provision, reasons)

    def _unmatched(self, claims: Sequence[ClaimFacts]) -> list[Bools]:
        """Return for each claim the rows without a free volume: bool[row] each.

        On each row, a claim uses the first volume that no earlier claim uses there.
        """
        # By earlier claim: the number of its volume on each row.
        used: list[VolumeByRow] = []
        unmatched = []
        for claim in claims:
            # reserved: the volume whose claimRef names the claim. free: else, those that fit it.
            reserved, free = candidates(self._storage, claim)
            if reserved is not None:
                # No other claim can have chosen it.
                free = [reserved]
            numbers = np.array([self._number(each) for each in free], dtype=np.int32)
            chosen = self._first_free(free, numbers, used if reserved is None else [])
            has_none = chosen == _NO_INDEX
            used_by_claim = np.full(len(chosen), _NO_INDEX, dtype=np.int32)
            used_by_claim[~has_none] = numbers[chosen[~has_none]]
            used.append(used_by_claim)
            unmatched.append(has_none)
        return unmatched

    def _number(self, volume: VolumeFacts) -> int:
        return self._numbers.setdefault(volume.name, len(self._numbers))

    def _first_free(
        self, free: Sequence[VolumeFacts], numbers: VolumeByRow, used: Sequence[VolumeByRow]
    ) -> VolumeByRow:
        """Return the index in `free` of the first volume that each row reaches: int32[row].

        _NO_INDEX for none. numbers: of the volumes in `free`. used: for each earlier claim, the
        number of the volume that it uses on each row. Volumes that require a single label value (as
        local ones) are looked up by it; other volumes are grouped by their terms.
        """
        by_key: dict[str, list[tuple[int, str]]] = {}
        groups: dict[NodeTerms, list[int]] = {}
        for index, volume in enumerate(free):
            label = self._storage.index.only_label(volume)
            if label is None:
                groups.setdefault(volume.node_terms, []).append(index)
            else:
                by_key.setdefault(label[0], []).append((index, label[1]))
        chosen: VolumeByRow = np.full(len(self._table), _NO_INDEX, dtype=np.int32)
        for key, members in by_key.items():
            self._choose_labelled(key, members, numbers, used, chosen)
        for terms, indices in groups.items():
            self._choose_in_group(
                np.flatnonzero(self.rows_matching(terms)), indices, numbers, used, chosen
            )
        return chosen

    def _choose_labelled(
        self,
        key: str,
        members: Sequence[tuple[int, str]],
        numbers: VolumeByRow,
        used: Sequence[VolumeByRow],
        chosen: VolumeByRow,
    ) -> None:
        """Choose among volumes that each require one value of a label.

        members: (index of a volume, its value). chosen: updated where a member comes first.
        """
        values, codes = self._table.label_values(key), self._table.label_codes(key)
        # -1 for a value that no node has; rows without the label, also -1, are left out below.
        code_of = [values.find(value) for _, value in members]
        # The volumes, sorted by the code of the value that each requires.
        required = np.array(code_of, dtype=np.int64)
        order = np.argsort(required, kind="stable")
        required = required[order]
        position = np.searchsorted(required, codes, side="left")
        end = np.where(codes >= 0, np.searchsorted(required, codes, side="right"), position)
        indices = np.array([index for index, _ in members], dtype=np.int32)[order]
        # Each row's volumes are at position..end. A pass tries one volume per row; for rows on
        # which this volume is used, the next pass tries the next volume.
        rows = np.flatnonzero(position < end)
        while len(rows):
            found = indices[position[rows]]
            are_used = _is_used(numbers[found], used, rows)
            free_rows = rows[~are_used]
            chosen[free_rows] = np.minimum(chosen[free_rows], found[~are_used])
            rows = rows[are_used]
            position[rows] += 1
            rows = rows[position[rows] < end[rows]]

    @staticmethod
    def _choose_in_group(
        rows: Rows,
        indices: Sequence[int],
        numbers: VolumeByRow,
        used: Sequence[VolumeByRow],
        chosen: VolumeByRow,
    ) -> None:
        """Choose among volumes that the same rows reach: the first that is not used on a row."""
        for index in indices:
            rows = rows[chosen[rows] > index]
            if not len(rows):
                return
            are_used = _is_used(numbers[index], used, rows)
            chosen[rows[~are_used]] = index
            rows = rows[are_used]

    def _check_provisions(
        self, to_provision: Sequence[tuple[ClaimFacts, Bools]], reasons: I32
    ) -> None:
        """Check provisioning; a row gets the reason of its first claim that cannot be provisioned.

        to_provision: each claim, and the rows on which a volume must be provisioned for it.
        """
        passing = np.ones(len(self._table), dtype=np.bool_)
        for claim, needed in to_provision:
            rows = needed & passing
            if not rows.any():
                continue
            storage_class = self._storage.classes.get(claim.storage_class)
            allowed = np.zeros(len(rows), dtype=np.bool_)
            if storage_class is not None and may_provision(storage_class):
                allowed = self._provisionable_rows(storage_class)
            reasons[rows & ~allowed] |= _NO_VOLUME
            rows &= allowed
            has_capacity = np.ones(len(rows), dtype=np.bool_)
            if storage_class is not None and rows.any():
                has_capacity = self._rows_with_capacity(storage_class, claim)
            reasons[rows & ~has_capacity] |= _NO_CAPACITY
            passing &= ~needed | (allowed & has_capacity)

    def _provisionable_rows(self, storage_class: StorageClassFacts) -> Bools:
        """Return the rows for which a class may provision volumes."""
        if not storage_class.allowed_topologies:
            return np.ones(len(self._table), dtype=np.bool_)
        allowed = np.zeros(len(self._table), dtype=np.bool_)
        for term in storage_class.allowed_topologies:
            if term and all(values for _, values in term):
                allowed |= self._rows_meeting_all(
                    [Requirement(key, "In", values) for key, values in term]
                )
        return allowed

    def _rows_with_capacity(self, storage_class: StorageClassFacts, claim: ClaimFacts) -> Bools:
        """Return the rows with enough free storage for a claim; all if it is not tracked."""
        if not counts_capacity(self._storage, storage_class, claim):
            return np.ones(len(self._table), dtype=np.bool_)
        has_capacity = np.zeros(len(self._table), dtype=np.bool_)
        selectors: set[LabelSelector] = {
            each.selector
            for each in self._storage.capacities.get(storage_class.name, ())
            if each.selector is not None
            and each.limit_bytes is not None
            and each.limit_bytes >= (claim.requested_bytes or 0)
        }
        for selector in selectors:
            has_capacity |= self._rows_meeting_all(selector.requirements)
        return has_capacity


def _is_used(numbers: VolumeByRow | np.int32, used: Sequence[VolumeByRow], rows: Rows) -> Bools:
    """Return on which of `rows` an earlier claim of the pod uses this volume: bool[k].

    numbers: one volume for all rows, or one for each.
    """
    are_used = np.zeros(len(rows), dtype=np.bool_)
    for each in used:
        are_used |= each[rows] == numbers
    return are_used
