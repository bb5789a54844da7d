"""CycleState: what the plugins of one scheduling cycle hand to one another and to themselves."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Summary(Protocol):
    """What a plugin found across all nodes for a class of pods: a frozen dataclass.

    Where there is nothing to say, the plugin answers None.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]


class CycleState:
    """Values by key, usually a plugin's name. One per class of pods and evaluation.

    node_count: all nodes.
    filter_summaries, score_summaries: by plugin; absent for nothing.
    skip_filter, skip_score: plugins whose PreFilter or PreScore said Skip.
    """

    __slots__ = (
        "_values",
        "filter_summaries",
        "node_count",
        "score_summaries",
        "skip_filter",
        "skip_score",
    )

    def __init__(self, node_count: int) -> None:
        self.node_count = node_count
        self._values: dict[str, object] = {}
        self.filter_summaries: dict[str, Summary] = {}
        self.score_summaries: dict[str, Summary] = {}
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()

    def write(self, key: str, value: object) -> None:
        self._values[key] = value

    def has(self, key: str) -> bool:
        """Whether somebody wrote it."""
        return key in self._values

    def read(self, key: str, kind: type[T]) -> T:
        """The value under `key`. KeyError if nobody wrote it, TypeError if it is another kind."""
        value = self._values[key]
        if not isinstance(value, kind):
            raise TypeError(f"state {key!r} holds {type(value).__name__}, not {kind.__name__}")
        return value
