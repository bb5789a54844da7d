"""Mutants that change no outcome, judged by hand: no run and no test could find them.

What is kept to save time or memory, texts that only a person reads, bounds that nothing can reach,
and values that are overwritten before they are read.
"""

EQUIVALENTS: dict[tuple[str, str, str, str], str] = {}
"""(path, function, before, after) → why nothing can differ."""


def why_equivalent(mutant) -> str | None:
    """Why a mutant changes no outcome; None where it should be found."""
    return EQUIVALENTS.get((mutant.path, mutant.function, mutant.before, mutant.after))
