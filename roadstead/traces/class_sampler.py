"""Random choice of a share of each class, chunk by chunk (stratified sampling).

The number of chosen members of a class differs from its exact share by less than one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class ClassSampler:
    """Choose a share of the members of each class; the same seed gives the same choice.

    Within a chunk the members are chosen at random. The share of a chunk is mostly no whole number:
    its fraction is added to the share of the next chunk.

    _fractions: float64[class], what is to be added for the next chunk.
    """

    def __init__(self, share: float, seed: int) -> None:
        self._share = share
        self._random = np.random.Generator(np.random.PCG64([seed]))
        self._fractions = np.empty(0)

    def choose(self, classes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return for each member whether it is chosen. classes: of the members of a chunk."""
        if not len(classes):
            return np.zeros(0, dtype=np.bool_)
        self._grow(int(classes.max()) + 1)
        # Of the chunk, by class: number of members, exact share, number of chosen members.
        counts = np.bincount(classes, minlength=len(self._fractions))
        exact = self._fractions + counts * self._share
        # 1e-9: 0.1 added ten times is less than one.
        chosen_counts = np.where(counts > 0, np.floor(exact + 1e-9), 0).astype(np.int64)
        self._fractions = np.where(counts > 0, exact - chosen_counts, self._fractions)
        # By class, and at random within a class: the first members of each class are chosen.
        order = np.lexsort((self._random.random(len(classes)), classes))
        starts = np.cumsum(counts) - counts
        position_in_class = np.empty(len(classes), dtype=np.int64)
        position_in_class[order] = np.arange(len(classes)) - starts[classes[order]]
        chosen: NDArray[np.bool_] = position_in_class < chosen_counts[classes]
        return chosen

    def _grow(self, classes: int) -> None:
        missing = classes - len(self._fractions)
        if missing > 0:
            # Random at first: with 0, a share below 1 would never choose the only pod of a class.
            self._fractions = np.concatenate([self._fractions, self._random.random(missing)])
