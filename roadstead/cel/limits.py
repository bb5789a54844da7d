"""Maximum sizes of values: larger ones would cost more than a selector may.

Upstream counts the cost of a step when it is done; a list or text of this size would be refused
then. Here it is refused before it is created, so that no expression fills the memory.

Upstream: api resource/v1 CELSelectorExpressionMaxCost, CELSelectorExpressionMaxLength.
"""

from __future__ import annotations

from typing import Final

from roadstead.cel.errors import CelCostError

COST_MAX: Final = 1_000_000
"""Maximum cost of one evaluation."""

EXPRESSION_MAX_BYTES: Final = 10 * 1024
ITEMS_MAX: Final = COST_MAX
TEXT_MAX_CHARS: Final = 10 * COST_MAX
"""A string costs a tenth of its length whenever it is read."""


def check_items(count: int) -> None:
    """Raise CelCostError if this number of elements is too large for a list."""
    if count > ITEMS_MAX:
        raise CelCostError


def check_chars(count: int) -> None:
    """Raise CelCostError if this number of characters is too large for a string."""
    if count > TEXT_MAX_CHARS:
        raise CelCostError
