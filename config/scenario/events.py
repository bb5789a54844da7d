"""Schema of what happens to nodes in a scenario.

The docstrings of fields are the texts of docs/scenario.md.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, Tag, model_validator

from roadstead.config.scenario.fleet import GeneratedNodes
from roadstead.config.scenario.values import (
    DocumentedAs,
    LabelValue,
    Micros,
    NodeShare,
    PositiveMicros,
    one_of,
    tag,
)
from roadstead.config.settings_model import SettingsModel


class NodeChoice(SettingsModel):
    """Nodes that meet all given conditions; without a condition, all nodes."""

    zone: LabelValue = ""
    """Zone of the nodes: value of their label `topology.kubernetes.io/zone`."""

    names: Annotated[list[str], Field(max_length=100_000), DocumentedAs("names")] = Field(
        default=[]
    )
    """Names of the nodes."""

    selector: Annotated[dict[str, str], DocumentedAs("labels")] = Field(default={})
    """Labels of the nodes."""


class SomeNodes(NodeChoice):
    """Nodes that meet all given conditions, or some of them."""

    nodes: NodeShare | None = None
    """How many of the nodes that meet the conditions, chosen at random; by default all of them. A
    percentage is rounded up."""


class NodeTaint(SomeNodes):
    """Nodes, and the taint that they get."""

    key: Annotated[str, Field(min_length=1), DocumentedAs("label key")]
    """Key of the taint."""

    value: LabelValue = ""
    """Value of the taint."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """Effect of the taint on pods that do not tolerate it."""


class NodeFailures(NodeChoice):
    """Nodes, and how often they fail."""

    mtbf: PositiveMicros
    """Mean time of one node between the end of a repair and the next failure."""

    mttr: PositiveMicros
    """Mean time of a repair."""


class EventTime(SettingsModel):
    """Time of an event."""

    at: Micros | None = None
    """Time of the event; with `every`, of the first one. By default, `every`."""

    every: PositiveMicros | None = None
    """Interval of an event that repeats."""

    until: Micros | None = None
    """Time from which on an event that repeats does not occur; by default the horizon."""

    @model_validator(mode="after")
    def _check_time(self) -> Self:
        if self.at is None and self.every is None:
            raise ValueError("needs at or every")
        if self.until is not None and self.every is None:
            raise ValueError("until needs every")
        return self


class LastingEvent(EventTime):
    """An event that ends."""

    lasting: PositiveMicros | None = Field(default=None, alias="for")
    """Time after which the event is undone; by default never."""

    @model_validator(mode="after")
    def _check_lasting(self) -> Self:
        if self.lasting is not None and self.every is not None and self.lasting >= self.every:
            raise ValueError("for must be shorter than every")
        return self


class LoseEvent(LastingEvent):
    """Nodes fail: they stop, and so do their pods; see docs/node-life.md."""

    lose: SomeNodes
    """Nodes that fail. After `for` they are back, and with them the pods that were not evicted by
    then."""


class DrainEvent(LastingEvent):
    """Nodes are drained."""

    drain: SomeNodes
    """Nodes that are cordoned, and whose pods are evicted as far as disruption budgets allow. After
    `for` they are schedulable again."""


class CordonEvent(LastingEvent):
    """Nodes accept no more pods."""

    cordon: SomeNodes
    """Nodes that become unschedulable. After `for` they are schedulable again."""


class TaintEvent(LastingEvent):
    """Nodes get a taint."""

    taint: NodeTaint
    """Nodes, and their taint. After `for` it is removed. `NoExecute` evicts pods that do not
    tolerate it."""


class AddEvent(LastingEvent):
    """Nodes are added."""

    add: GeneratedNodes
    """Nodes that are added. After `for` they are drained and removed."""


class RemoveEvent(EventTime):
    """Nodes are removed."""

    remove: SomeNodes
    """Nodes that are deleted, with their pods."""


class FailuresEvent(SettingsModel):
    """Nodes fail at random."""

    nodes: NodeFailures
    """Exponentially distributed times of each node between failures and to repair."""


NodeEvent = Annotated[
    Annotated[LoseEvent, Tag(tag("lose"))]
    | Annotated[DrainEvent, Tag(tag("drain"))]
    | Annotated[CordonEvent, Tag(tag("cordon"))]
    | Annotated[TaintEvent, Tag(tag("taint"))]
    | Annotated[AddEvent, Tag(tag("add"))]
    | Annotated[RemoveEvent, Tag(tag("remove"))]
    | Annotated[FailuresEvent, Tag(tag("nodes"))],
    one_of("lose", "drain", "cordon", "taint", "add", "remove", "nodes"),
]
