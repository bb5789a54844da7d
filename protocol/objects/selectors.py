"""Label selectors, node selectors and what holds them (meta/v1 and core/v1).

Operators stay plain strings: an unknown one is not a type error but a parse error that upstream
reports lazily, in its own words (see `roadstead.facts.selectors`).
"""

from __future__ import annotations

from pydantic import Field

from roadstead.protocol.objects.base import Int32, Manifest


class SelectorRequirement(Manifest):
    """`key operator values`; absent values are told from empty ones, as upstream's messages do."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Manifest):
    """metav1.LabelSelector: an empty one matches everything, an absent one nothing."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: list[SelectorRequirement] = Field(default_factory=list)


class NodeSelectorTerm(Manifest):
    """Expressions over labels and over fields (`metadata.name`), all of which must hold."""

    match_expressions: list[SelectorRequirement] = Field(default_factory=list)
    match_fields: list[SelectorRequirement] = Field(default_factory=list)


class NodeSelector(Manifest):
    """Terms of which one must match; without terms it matches nothing."""

    node_selector_terms: list[NodeSelectorTerm] = Field(default_factory=list)


class PreferredSchedulingTerm(Manifest):
    """A weighted node selector term."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()
