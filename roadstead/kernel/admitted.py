"""Classes as a kernel admits them: what is asked of it, and what it finds of each."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from roadstead.framework.evaluation import Evaluation, Summaries
from roadstead.kernel.lowering.lowerings import RowLowering
from roadstead.kernel.stills import Still
from roadstead.nodes.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class KernelClass:
    """A class of a batch, with what looks across nodes.

    evaluation: its own, or that of another class of its kind, which can tell all but its numbers.
    """

    evaluation: Evaluation
    pod: PodInfo
    filters: Summaries = field(default_factory=dict)
    scores: Summaries = field(default_factory=dict)

    def is_same(self, other: KernelClass) -> bool:
        """Whether both were made of the same objects."""
        mine, theirs = (
            (id(each.evaluation), id(each.filters), id(each.scores)) for each in (self, other)
        )
        return mine == theirs


@dataclass(frozen=True, slots=True)
class Model:
    """What covered classes with one evaluation share. index: its line among models.

    known: what plugins knew of them.
    """

    index: int
    first: KernelClass
    still: Still
    known: Hashable
    lowered: RowLowering


class Admitted(NamedTuple):
    """A covered class. line: its place in all arrays."""

    line: int
    each: KernelClass
    model: Model
