"""Tie-breaks: the choice among the best nodes.

Upstream chooses at random. Here each node gets a rank, a hash of seed, pod and node, which depends
neither on the order of rows, nor on the division of pods into batches, nor on the process: a seed
always gives the same placement. `first` chooses the bytewise smallest name, as in the recorded
decisions of kube-scheduler with which Roadstead is compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from roadstead.nodes.columns import name_hashes
from roadstead.nodes.table import NodeTable, Rows

TieBreakKind = Literal["random", "first"]

BUCKET_BITS = 12
"""Leading bits of a node's hash that form its bucket (`ranked`): 4096 buckets."""
LAST_BUCKET = (1 << BUCKET_BITS) - 1

_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class TieBreak:
    """Rule for the choice among nodes of equal score, and the seed of the hashes."""

    kind: TieBreakKind = "random"
    seed: int = 0

    def pod_hash(self, pod_key: str, number: int) -> int:
        """Return a 64-bit hash for one choice of a node for a pod.

        number: of the choice: 1, plus 1 for each chosen node that failed, so that choices differ.
        """
        text = f"{self.seed}/{number}/{pod_key}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def ranked(pod_hash: int, node_hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a pseudo-random rank for each node, different for each pod hash; the highest is first.

    Nodes are in buckets by the first 12 bits of their hash. Each pod hash orders the buckets in its
    own way; in a bucket, the rank is the finalizer of splitmix64 over pod hash xor node hash. So
    the first of many nodes is found bucket by bucket, without the ranks of all (`kernel/jit.py`).
    """
    mixed = node_hashes ^ np.uint64(pod_hash)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MULTIPLIER_1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MULTIPLIER_2
    mixed = mixed ^ (mixed >> np.uint64(31))
    ranks = _bucket_ranks(pod_hash, node_hashes >> np.uint64(64 - BUCKET_BITS))
    result: NDArray[np.uint64] = ranks << np.uint64(64 - BUCKET_BITS) | mixed >> np.uint64(
        BUCKET_BITS
    )
    return result


def _bucket_ranks(pod_hash: int, buckets: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each bucket's rank in the order of a pod hash, by two rounds of mixing.

    Five 12-bit parts of the pod hash parametrize the rounds. Among a few nodes, the probabilities
    of being first are equal to within some hundredths.
    """
    parts = [pod_hash >> shift & LAST_BUCKET for shift in range(0, 5 * BUCKET_BITS, BUCKET_BITS)]
    flipped_1, factor_1, added_2, factor_2, flipped_3 = (np.uint64(part) for part in parts)
    mask, half, one = np.uint64(LAST_BUCKET), np.uint64(BUCKET_BITS // 2), np.uint64(1)
    # Each step, as the product with an odd factor, maps the buckets one to one.
    rank = (buckets ^ flipped_1) * (factor_1 | one) & mask
    rank = rank ^ rank >> half
    rank = (rank + added_2) * (factor_2 | one) & mask
    return (rank ^ rank >> half) ^ flipped_3


def in_order(
    names: Sequence[str], pod_hash: int | None, hashes: NDArray[np.uint64] | None = None
) -> list[int]:
    """Return the indices of names, the highest rank for a pod hash first; None: bytewise.

    hashes: of the names, if they are known: uint64[name].
    """
    if pod_hash is None:
        return sorted(range(len(names)), key=lambda index: names[index].encode())
    hashes = name_hashes(names) if hashes is None else hashes
    order: list[int] = np.argsort(~ranked(pod_hash, hashes), kind="stable").tolist()
    return order


class Chooser:
    """Choose one of several rows of a table by a TieBreak.

    _ranks, _order: the last results of `name_ranks` and `order`; _ranks_of, _order_of: the table,
    and its version, that they are for.
    """

    __slots__ = ("_order", "_order_of", "_ranks", "_ranks_of", "tie_break")

    def __init__(self, tie_break: TieBreak) -> None:
        self.tie_break = tie_break
        self._ranks: Rows = np.zeros(0, dtype=np.intp)
        self._ranks_of: tuple[NodeTable, int] | None = None
        self._order: tuple[NDArray[np.uint64], Rows] | None = None
        self._order_of: tuple[NodeTable, int] | None = None

    def one_of(self, table: NodeTable, rows: Rows, pod_key: str, number: int) -> int:
        """Return one of `rows`: the same for the same set of nodes, in whatever order.

        pod_key, number: see `TieBreak.pod_hash`.
        """
        if len(rows) == 1:
            return int(rows[0])
        if self.tie_break.kind == "first":
            return int(rows[self.name_ranks(table)[rows].argmin()])
        pod_hash = self.tie_break.pod_hash(pod_key, number)
        return int(rows[ranked(pod_hash, table.columns.name_hash[rows]).argmax()])

    def name_ranks(self, table: NodeTable) -> Rows:
        """Return the position of each row's name among all names in bytewise order: int[row]."""
        if self._ranks_of is None or self._ranks_of != (table, table.rows_version):
            names = np.array([name.encode() for name in table.names], dtype=object)
            self._ranks = np.empty(len(names), dtype=np.intp)
            self._ranks[names.argsort()] = np.arange(len(names))
            self._ranks_of = (table, table.rows_version)
        return self._ranks

    def order(self, table: NodeTable) -> tuple[NDArray[np.uint64], Rows]:
        """Return the hash of each row's name, and the rows sorted by it, ascending.

        uint64[row], int[position]. For kind `first`, a number replaces the hash, the highest for
        the first name in bytewise order. The same arrays until nodes are added or removed.
        """
        if self._order is None or self._order_of != (table, table.rows_version):
            if self.tie_break.kind == "random":
                order = table.name_hashes.copy()
            else:
                ranks = self.name_ranks(table)
                order = (len(ranks) - ranks).astype(np.uint64)
            self._order = order, np.argsort(order, kind="stable")
            self._order_of = (table, table.rows_version)
        return self._order
