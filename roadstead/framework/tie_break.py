"""Which of the best nodes is taken.

Upstream draws at random. Here the draw is a hash of seed, pod and node, so that it depends neither
on the order in which shards answer, nor on how pods are cut into batches, nor on the process:
one seed is one placement. `first` takes the bytewise smallest name, as the recorded sequences do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from roadstead.nodes.columns import name_hash
from roadstead.nodes.table import NodeTable, Rows

TieBreakKind = Literal["random", "first"]

_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class TieBreak:
    """How to choose among equals, and the seed of the draw."""

    kind: TieBreakKind = "random"
    seed: int = 0

    def draw(self, pod_key: str, attempt: int) -> int:
        """64 bits for one attempt of one pod."""
        text = f"{self.seed}/{attempt}/{pod_key}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def ranked(draw: int, node_hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A pseudo-random rank for each node: the finalizer of splitmix64 over draw xor node hash."""
    mixed = node_hashes ^ np.uint64(draw)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MULTIPLIER_1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MULTIPLIER_2
    result: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return result


def in_order(names: Sequence[str], draw: int | None) -> list[int]:
    """Places of names in the order of a draw, its first choice first; bytewise for no draw."""
    if draw is None:
        return sorted(range(len(names)), key=lambda place: names[place].encode())
    hashes = np.array([name_hash(name) for name in names], dtype=np.uint64)
    places: list[int] = np.argsort(~ranked(draw, hashes), kind="stable").tolist()
    return places


class Chooser:
    """Takes one of several rows of a table by a TieBreak."""

    __slots__ = ("_ranks", "_ranks_of", "tie_break")

    def __init__(self, tie_break: TieBreak) -> None:
        self.tie_break = tie_break
        self._ranks: Rows = np.zeros(0, dtype=np.intp)
        self._ranks_of: tuple[NodeTable, int] | None = None

    def one_of(self, table: NodeTable, rows: Rows, pod_key: str, attempt: int) -> int:
        """One row of `rows`, the same for the same set of nodes whatever its order."""
        if len(rows) == 1:
            return int(rows[0])
        if self.tie_break.kind == "first":
            return int(rows[self.name_ranks(table)[rows].argmin()])
        draw = self.tie_break.draw(pod_key, attempt)
        return int(rows[ranked(draw, table.columns.name_hash[rows]).argmax()])

    def name_ranks(self, table: NodeTable) -> Rows:
        """Each row's place among all names in bytewise order: int[row]."""
        if self._ranks_of is None or self._ranks_of != (table, table.node_version):
            names = np.array([name.encode() for name in table.names], dtype=object)
            self._ranks = np.empty(len(names), dtype=np.intp)
            self._ranks[names.argsort()] = np.arange(len(names))
            self._ranks_of = (table, table.node_version)
        return self._ranks
