"""Label selectors and node selector terms, compiled.

Upstream: apimachinery/pkg/labels/selector.go, apimachinery/pkg/apis/meta/v1/helpers.go
(LabelSelectorAsSelector) and component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """`operator`: In, NotIn, Exists, DoesNotExist, Gt, Lt. `values` sorted and unique."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A conjunction; no requirements match everything. (None, not this, matches nothing.)"""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """One term of a node selector: label expressions and field expressions (metadata.name) ANDed.

    `error` is upstream's parse error, text included; such a term matches nothing and is reported
    lazily. A term with neither expressions nor fields matches nothing.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    error: str = ""

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        raise NotImplementedError
