"""Amounts for which the compiled scores are exact.

A score multiplies an amount by 100. In Go and NumPy, a larger product wraps around, and a node's
score may then be out of range, which is an error of the pod. Compiled code reports no error of a
row: the plugins decide as long as a node or pod has such amounts.
"""

from __future__ import annotations

import numpy as np

from roadstead.framework.plugin import MAX_NODE_SCORE
from roadstead.nodes.columns import I64

INEXACT_AMOUNTS = "large amounts"
"""Why the kernel does not decide a pod."""

AMOUNT_MAX = (2**63 - 1) // MAX_NODE_SCORE
"""Largest amount of a node, and of the pods on it: 82 PiB of memory."""


def are_inexact(amounts: I64) -> bool:
    """Whether an amount is above AMOUNT_MAX, or negative: a sum that wrapped around."""
    return bool(amounts.astype(np.uint64).max(initial=0) > AMOUNT_MAX)
