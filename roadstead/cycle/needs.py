"""Needs: requests of a scheduling cycle to its driver, which performs its I/O.

    cycle ── Need ──► driver ── answer ──► cycle ── Need ──► … ──► result

A cycle reads no clock and sends nothing: it is a generator that yields needs and receives their
answers. `actors/scheduler/driver.py` drives it over actors, `roadstead/local/drive.py` in one
process. An exception in place of an answer ends the cycle, which releases its table.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.scopes import Scope
from roadstead.extenders.sequence import Extenders
from roadstead.kernel.arrays import U64
from roadstead.kernel.best_rows import BestRows
from roadstead.protocol.errors import RoadsteadError

ResultT = TypeVar("ResultT")
"""What a generator of needs, or a function that calls extenders, returns."""


class CatchUpTimeoutError(RoadsteadError):
    """Changes of the cluster did not arrive in time: the batch begins again."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Apply to the table all changes up to the number in the cache's last answer. Answer: the time.

    is_again: the table caught up for the same batch before, so that metrics count one reading. The
    driver may raise CatchUpTimeoutError in place of the answer.
    """

    is_again: bool = False


@dataclass(frozen=True, slots=True)
class ApplyWaiting:
    """Apply the changes that were delayed until the end of a batch. Answer: the time."""


@dataclass(frozen=True, slots=True)
class ReadClock:
    """Read the clock. Answer: the time."""


READ_CLOCK = ReadClock()


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Wait for the end of a simulated latency. Answer: the time."""

    at_s: float


@dataclass(frozen=True, slots=True)
class YieldToMessages:
    """Let other tasks of the process run. Answer: the time."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Apply the cache's changes of claims, and choose whether the kernel decides a batch.

    pods: number of pods of the batch. Answer: the compiled kernel, or None.
    """

    pods: int


@dataclass(frozen=True, slots=True)
class ScoreClasses:
    """Let workers score the pods' classes for which the scope has no results. Answer: the time."""

    scope: Scope
    pods: Sequence[PodInCycle]


@dataclass(frozen=True, slots=True)
class ListBest:
    """Let workers list the best rows for pods, each the only one of its class in a batch.

    tie_break_hashes: uint64[pod]. Answer: `BestRows` of the current table, or None.
    """

    pods: Sequence[PodInCycle]
    tie_break_hashes: U64


@dataclass(frozen=True, slots=True)
class CallExtenders:
    """Run a function that calls extenders over HTTP. Answer: its result."""

    extenders: Extenders
    work: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Phase:
    """Begin a phase in the record of time spent; "" ends the last one. Answer: ignored."""

    name: str


TimeNeed: TypeAlias = (
    CatchUp | ApplyWaiting | ReadClock | WaitUntil | YieldToMessages | ScoreClasses
)
"""Needs whose answer is the time at which they were met."""

Need: TypeAlias = TimeNeed | Prepare | ListBest | CallExtenders | Phase
NeedGenerator: TypeAlias = Generator[Need, object, ResultT]
"""A generator that yields needs, receives their answers, and returns a result."""


def time_after(need: TimeNeed) -> NeedGenerator[float]:
    """Return the time at which a need is met."""
    answer = yield need
    assert isinstance(answer, float), f"{type(need).__name__} is answered with {answer!r}"
    return answer


def kernel_for_batch(pods: int) -> NeedGenerator[CompiledKernel | None]:
    """Return the compiled kernel for a batch that is about to begin."""
    answer = yield Prepare(pods)
    assert answer is None or isinstance(answer, CompiledKernel), f"{answer!r} is no kernel"
    return answer


def request_lists(need: ListBest) -> NeedGenerator[BestRows | None]:
    """Return the best rows that workers listed, or None."""
    answer = yield need
    assert answer is None or isinstance(answer, BestRows), f"{answer!r} lists nothing"
    return answer


def run_with_extenders(extenders: Extenders, work: Callable[[], ResultT]) -> NeedGenerator[ResultT]:
    """Return the result of a function that calls extenders."""
    answer = yield CallExtenders(extenders, work)
    return cast("ResultT", answer)
