"""Mutants that change no result, judged by hand: no run and no test could detect them.

Caches that save time or memory, texts that only a person reads, bounds that nothing can reach, and
values that are overwritten before they are read. One module per package, one `Same` per reason.
"""

from tests.mutation.equivalents import (
    attempts,
    binder,
    cache,
    cycle,
    invariants,
    journal,
    pod_store,
    queue,
    recovery,
    scheduler,
)
from tests.mutation.sites import Mutant

EQUIVALENTS: dict[tuple[str, str, str, str], str] = {
    (same.path, *change): same.why
    for room in (
        *(attempts, binder, cache, cycle, invariants, journal, pod_store, queue, recovery),
        scheduler,
    )
    for same in room.SAME
    for change in same.changes
}
"""(path, function, before, after) → why the result cannot differ."""


def why_equivalent(mutant: Mutant) -> str | None:
    """The reason why a mutant changes nothing; None where none is recorded."""
    return EQUIVALENTS.get((mutant.path, mutant.function, mutant.before, mutant.after))
