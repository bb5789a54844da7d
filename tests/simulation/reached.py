"""Coverage of simulated runs: transitions of the tables, refusals of the binder, faults on
messages.

"Sometimes" assertions: runs that never take a transition do not test it. `scripts/simulate.py
--reached` counts over many seeds and prints transitions that are never reached: a gap of the
scenarios, unless `UNREACHABLE` has the reason.
"""

from collections import Counter
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from roadstead.actors.runtime.simulated_network import Network
from roadstead.attempts.pods import TABLE as CYCLE
from roadstead.binder import commits
from roadstead.binder.pods import TABLE as BINDER
from roadstead.binder.pods import RejectCause
from roadstead.cache.pods import TABLE as CACHE
from roadstead.queue.queue_store import TABLE as QUEUE
from roadstead.transitions import TransitionTable

TABLES = (QUEUE, CACHE, BINDER, CYCLE)
FATES = ("lost", "duplicated", "slow", "cut off")

ENOUGH = 200
"""Number of messages of a kind of which some must have met each fate."""

UNREACHABLE = {
    "binder refuses halted": "the first failed flush ends the run",
    **dict.fromkeys(
        ("binder: tentative, update", "binder: tentative, evict", "binder: tentative, delete"),
        "the actor flushes before it takes the next message; the core's own tests have it",
    ),
}


@contextmanager
def counting(counts):
    """Count what is reached inside this context, by the names of `wanted` and of messages."""
    follow, note, rejected = TransitionTable.follow, Network.note, commits.Rejected

    def followed(self, name, state, event, history):
        arrow = follow(self, name, state, event, history)
        counts[f"{self.machine}: {state.value}, {event.value}"] += 1
        return arrow

    def noted(self, what, *parties):
        counts[f"message {what}"] += 1
        return note(self, what, *parties)

    def refused(uid, cause, *more):
        counts[f"binder refuses {cause.value}"] += 1
        return rejected(uid, cause, *more)

    with ExitStack() as stack:
        stack.enter_context(patch.object(TransitionTable, "follow", followed))
        stack.enter_context(patch.object(Network, "note", noted))
        stack.enter_context(patch.object(commits, "Rejected", refused))
        yield


def wanted(counts):
    """All expected names, given the kinds of messages that were sent."""
    for table in TABLES:
        yield from (f"{table.machine}: {state.value}, {event.value}" for state, event, _ in table)
    yield from (f"binder refuses {cause.value}" for cause in RejectCause)
    for kind in sorted(_kinds(counts)):
        yield from (f"message {kind} {fate}" for fate in FATES)


def _kinds(counts):
    """The kinds of messages that were sent often and do not belong to an observer."""
    sent = Counter()
    for name, count in counts.items():
        kind, _, fate = name.removeprefix("message ").rpartition(" ")
        if name.startswith("message ") and (fate == "sent" or kind.endswith(" cut")):
            sent[kind] += count
    faulty = {kind for kind in sent if any(counts.get(f"message {kind} {fate}") for fate in FATES)}
    return {kind for kind in faulty if sent[kind] >= ENOUGH}


def report(counts):
    """Lines for a person: how much of each group is reached, and everything that is not."""
    names = list(wanted(counts))
    missed = [name for name in names if not counts.get(name)]
    lines = [f"reached {len(names) - len(missed)} of {len(names)}"]
    for name in missed:
        reason = UNREACHABLE.get(name)
        lines.append(f"  never: {name}" + (f" ({reason})" if reason else ""))
    return lines


def gaps(counts):
    """The names that are not reached and have no reason."""
    return [each for each in wanted(counts) if not counts.get(each) and each not in UNREACHABLE]
