"""Seeded choices within classes, chunk by chunk, that are off by less than one pod per class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Strata:
    """Choose a share of the members of each class.

    Of the members of a class seen so far, `share` are chosen, rounded up or down; the rest carries
    over to the next chunk. Within a chunk the choice is random; the same seed gives the same one.
    """

    def __init__(self, share: float, seed: int) -> None:
        self._share = share
        self._random = np.random.Generator(np.random.PCG64([seed]))
        self._carried = np.empty(0)

    def choose(self, classes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return for each member whether it is chosen. classes: of the members of a chunk."""
        if not len(classes):
            return np.zeros(0, dtype=np.bool_)
        self._grow(int(classes.max()) + 1)
        counts = np.bincount(classes, minlength=len(self._carried))
        wanted = self._carried + counts * self._share
        # 0.1 added ten times is less than one.
        quota = np.where(counts > 0, np.floor(wanted + 1e-9), 0).astype(np.int64)
        self._carried = np.where(counts > 0, wanted - quota, self._carried)
        order = np.lexsort((self._random.random(len(classes)), classes))
        starts = np.cumsum(counts) - counts
        rank = np.empty(len(classes), dtype=np.int64)
        rank[order] = np.arange(len(classes)) - starts[classes[order]]
        chosen: NDArray[np.bool_] = rank < quota[classes]
        return chosen

    def _grow(self, classes: int) -> None:
        missing = classes - len(self._carried)
        if missing > 0:
            # A random start: else no class of a single member would ever be chosen below 1.
            self._carried = np.concatenate([self._carried, self._random.random(missing)])
