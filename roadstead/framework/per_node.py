"""The per-node form for plugin authors: `filter(pod, node) -> Status`, `score(pod, node) -> int`.

    class FewPods(NodePlugin):
        name = "FewPods"

        def score(self, pod: PodClass, node: NodeView) -> int:
            return max(0, 100 - node.pod_count)

`adapt` turns such a class into a table plugin that calls it once per row. This form is slow; a
plugin whose speed matters is better written over the table.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.answer_checks import WrongAnswerError
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import FilterPlugin, FilterResult, Plugin, Reads, ScorePlugin
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.errors import cut_short
from roadstead.protocol.status import Status

if TYPE_CHECKING:
    from roadstead.framework.arguments import PluginArguments


class NodeView:
    """One node of a table: its facts and its pods."""

    __slots__ = ("_row", "_table")

    def __init__(self, table: Table, row: int) -> None:
        self._table, self._row = table, row

    @property
    def facts(self) -> NodeFacts:
        return self._table.facts(self._row)

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def labels(self) -> Mapping[str, str]:
        return dict(self.facts.labels)

    @property
    def pod_count(self) -> int:
        return int(self._table.pod_count[self._row])

    @property
    def pods(self) -> Mapping[PodClass, int]:
        """The pod classes on the node and the number of pods of each."""
        return self._table.pods(self._row)

    def allocatable(self, resource: str) -> int:
        """Return the allocatable amount of a resource, cpu in milli-CPU; 0 if there is none."""
        return int(self._table.allocatable(self._table.resource_code(resource))[self._row])

    def requested(self, resource: str) -> int:
        """Return the amount of a resource that the pods on the node request."""
        return int(self._table.requested(self._table.resource_code(resource))[self._row])


class NodePlugin:
    """Base of per-node plugins: override `filter`, `score`, or both.

    reads: what the answers depend on besides the pod. The default covers all that a NodeView
    offers; declare less if the plugin reads less.
    """

    name: ClassVar[str]
    reads: ClassVar[Reads] = Reads.NODE_AND_PODS
    arguments: ClassVar[type[PluginArguments] | None] = None
    shares_by_shape: ClassVar[bool] = False
    """See `Plugin.shares_by_shape`."""

    def filter(self, pod: PodClass, node: NodeView) -> Status:
        """Return Success if the node can take the pod, or a refusal."""
        raise AssertionError("not overridden, never called")

    def score(self, pod: PodClass, node: NodeView) -> int:
        """Return how good the node is: 0..100."""
        raise AssertionError("not overridden, never called")

    def sign(self, pod: PodFacts) -> Hashable | None:
        """Return the hashable part of the pod that is read; None: evaluate each pod separately."""
        return None


class _Adapted(Plugin):
    """A table plugin that calls the methods of a per-node plugin."""

    def __init__(self, wrapped: NodePlugin) -> None:
        self.wrapped = wrapped

    def sign(self, pod: PodFacts) -> Hashable | None:
        return self.wrapped.sign(pod)


class _AdaptedFilter(_Adapted, FilterPlugin):
    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        code_of: dict[Status, int] = {}
        codes = np.zeros(len(table), dtype=np.int32)
        for row in range(len(table)):
            node = NodeView(table, row)
            status = self.wrapped.filter(pod, node)
            if not isinstance(status, Status):
                raise _wrong(status, "a Status", node)
            if not status.is_success:
                codes[row] = code_of.setdefault(status, len(code_of) + 1)
        return FilterResult(codes, tuple(code_of))


class _AdaptedScore(_Adapted, ScorePlugin):
    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        scores = (self._score(pod, NodeView(table, row)) for row in range(len(table)))
        return np.fromiter(scores, np.int64, len(table))

    def _score(self, pod: PodClass, node: NodeView) -> int:
        score = self.wrapped.score(pod, node)
        # NumPy would truncate fractions silently.
        if isinstance(score, bool) or not isinstance(score, int | np.integer):
            raise _wrong(score, "an int", node)
        return int(score)


def _wrong(answer: object, wanted: str, node: NodeView) -> WrongAnswerError:
    return WrongAnswerError(f"returned {cut_short(answer)} for node {node.name}, want {wanted}")


class _AdaptedBoth(_AdaptedFilter, _AdaptedScore):
    pass


def adapt(plugin_class: type[NodePlugin]) -> type[Plugin]:
    """Return the table plugin for a per-node class. TypeError if it overrides no method."""
    filters, scores = (
        getattr(plugin_class, method) is not getattr(NodePlugin, method)
        for method in ("filter", "score")
    )
    if not (filters or scores):
        raise TypeError(f"{plugin_class.__name__} overrides neither filter nor score")
    base = _AdaptedBoth if filters and scores else _AdaptedFilter if filters else _AdaptedScore

    def init(self: _Adapted, *args: object, **keywords: object) -> None:
        _Adapted.__init__(self, plugin_class(*args, **keywords))

    members: dict[str, object] = {
        "name": plugin_class.name,
        "reads": plugin_class.reads,
        "arguments": plugin_class.arguments,
    }
    # By it, failures name the author's file.
    members["__module__"] = plugin_class.__module__
    # Not by `getattr`: a declaration of a base class does not count (`Plugin.shares_by_shape`).
    members["shares_by_shape"] = vars(plugin_class).get("shares_by_shape", False)
    adapted = type(
        plugin_class.__name__,
        (base,),
        {**members, "__init__": init, "__doc__": plugin_class.__doc__},
    )
    # `factory_of` reads from it which of `args` and `handle` the constructor takes.
    adapted.__signature__ = inspect.signature(plugin_class)  # type: ignore[attr-defined]
    return adapted
