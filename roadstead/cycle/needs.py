"""Needs: what a scheduling cycle asks of its driver, and the steps in which it does.

    cycle ── Need ──► driver ── answer ──► cycle ── Need ──► … ──► result

A cycle reads no clock and sends nothing: it is a generator of needs, and goes on with the answer to
each. `actors/scheduler/driver.py` drives it over actors, `roadstead/local/drive.py` in one process.
What a driver raises instead of an answer ends the cycle, which leaves its table free.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from roadstead.cycle.batch import Accelerator, PodInCycle
from roadstead.cycle.scopes import Scope
from roadstead.extenders.chain import Extenders
from roadstead.kernel.arrays import U64
from roadstead.kernel.lists import BestRows
from roadstead.protocol.errors import RoadsteadError

T = TypeVar("T")


class UnsettledError(RoadsteadError):
    """Changes of the cluster do not come in time: the batch begins anew."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The table is to hold every change that the scheduler was answered about. Answer: the time.

    is_again: only what ended since it caught up for the same batch. The driver may raise
    UnsettledError instead.
    """

    is_again: bool = False


@dataclass(frozen=True, slots=True)
class ApplyWaiting:
    """Changes that waited for the end of a batch are to be applied. Answer: the time."""


@dataclass(frozen=True, slots=True)
class ReadClock:
    """Answer: the time."""


READ_CLOCK = ReadClock()


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing is to be decided before a time, which simulated latency takes. Answer: the time."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Others may run. Answer: the time."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """A batch of so many pods is about to begin: claims are to be up to date.

    Answer: the accelerator to decide it with, or None.
    """

    pods: int


@dataclass(frozen=True, slots=True)
class ScoreClasses:
    """Workers may score those classes of pods that are new to a scope. Answer: the time."""

    scope: Scope
    pods: Sequence[PodInCycle]


@dataclass(frozen=True, slots=True)
class ListBest:
    """Workers may list the best rows for pods, each the only one of its class in a batch.

    draws: uint64[pod]. Answer: `BestRows` of the table as it stands, or None.
    """

    pods: Sequence[PodInCycle]
    draws: U64


@dataclass(frozen=True, slots=True)
class CallExtenders:
    """Work that calls extenders over HTTP. Answer: its result."""

    extenders: Extenders
    work: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Phase:
    """The time from here on is spent on something else; "" ends the last phase. Answer: any."""

    name: str


TimeNeed: TypeAlias = CatchUp | ApplyWaiting | ReadClock | WaitUntil | Pause | ScoreClasses
"""Those that are answered with the time once they are met."""

Need: TypeAlias = TimeNeed | Prepare | ListBest | CallExtenders | Phase
Steps: TypeAlias = Generator[Need, object, T]
"""Needs, one after another, and a result."""


def time_after(need: TimeNeed) -> Steps[float]:
    """The time once a need is met."""
    answer = yield need
    assert isinstance(answer, float), f"{type(need).__name__} is answered with {answer!r}"
    return answer


def accelerator_for(pods: int) -> Steps[Accelerator | None]:
    """The accelerator for a batch that is about to begin."""
    answer = yield Prepare(pods)
    assert answer is None or isinstance(answer, Accelerator), f"{answer!r} accelerates nothing"
    return answer


def listed_by(need: ListBest) -> Steps[BestRows | None]:
    """The best rows for pods, as far as workers listed them."""
    answer = yield need
    assert answer is None or isinstance(answer, BestRows), f"{answer!r} lists nothing"
    return answer


def called(extenders: Extenders, work: Callable[[], T]) -> Steps[T]:
    """The result of work that calls extenders."""
    answer = yield CallExtenders(extenders, work)
    return cast("T", answer)
