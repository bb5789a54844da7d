"""One reason why some mutants of a module change no result."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Same:
    """changes: (function, before, after) of each mutant."""

    path: str
    why: str
    changes: tuple[tuple[str, str, str], ...]
