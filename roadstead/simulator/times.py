"""Times of a simulated run: whole microseconds from the start of the scenario."""

from __future__ import annotations

from typing import Final

NEVER_US: Final = -1
"""In place of a time that does not occur, or of a duration without end."""

SECOND_US: Final = 1_000_000
HOUR_US: Final = 3_600 * SECOND_US
