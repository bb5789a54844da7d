"""Compiled label selectors and node selector terms.

Upstream: apimachinery/pkg/labels/selector.go, apimachinery/pkg/apis/meta/v1/helpers.go
(LabelSelectorAsSelector) and component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
`roadstead.facts.parse_selectors` compiles them from manifests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

_INTEGER = re.compile(r"[+-]?[0-9]{1,32}", re.ASCII)
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def parse_int64(text: str) -> int | None:
    """Parse as Go's `strconv.ParseInt(text, 10, 64)`; None on an error."""
    if not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if _INT64_MIN <= value <= _INT64_MAX else None


def _is_in(labels: Mapping[str, str], key: str, values: tuple[str, ...]) -> bool:
    return key in labels and labels[key] in values


def _is_not_in(labels: Mapping[str, str], key: str, values: tuple[str, ...]) -> bool:
    return key not in labels or labels[key] not in values


def _exists(labels: Mapping[str, str], key: str, values: tuple[str, ...]) -> bool:
    return key in labels


def _does_not_exist(labels: Mapping[str, str], key: str, values: tuple[str, ...]) -> bool:
    return key not in labels


def _difference_sign(labels: Mapping[str, str], key: str, values: tuple[str, ...]) -> int:
    """Return the sign of label minus wanted value; 0 also if either is not an integer."""
    label, wanted = parse_int64(labels.get(key, "")), parse_int64("".join(values[:1]))
    if label is None or wanted is None:
        return 0
    return (label > wanted) - (label < wanted)


def _is_greater(labels: Mapping[str, str], key: str, values: tuple[str, ...]) -> bool:
    return _difference_sign(labels, key, values) > 0


def _is_less(labels: Mapping[str, str], key: str, values: tuple[str, ...]) -> bool:
    return _difference_sign(labels, key, values) < 0


_MATCHERS: dict[str, Callable[[Mapping[str, str], str, tuple[str, ...]], bool]] = {
    "In": _is_in,
    "NotIn": _is_not_in,
    "Exists": _exists,
    "DoesNotExist": _does_not_exist,
    "Gt": _is_greater,
    "Lt": _is_less,
}
OPERATORS = tuple(_MATCHERS)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement. operator: In, NotIn, Exists, DoesNotExist, Gt, Lt. values: sorted, unique."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet the requirement; a missing key meets only NotIn and DoesNotExist."""
        return _MATCHERS[self.operator](labels, self.key, self.values)

    def matches_field(self, node_name: str) -> bool:
        """Whether a node's fields meet the requirement (In or NotIn); an unknown field is ""."""
        field = node_name if self.key == "metadata.name" else ""
        return (field in self.values) == (self.operator == "In")


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all match. Without any it matches everything; no selector, nothing."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """One term of a node selector: label expressions and field expressions (metadata.name) ANDed.

    error: upstream's parse error; such a term matches nothing, and only its evaluation reports the
    error. errors: the single errors that `error` joins, for an error text of several terms
    (`selector_error`). A term with neither expressions nor fields matches nothing.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    error: str = ""
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        if self.error or not (self.expressions or self.fields):
            return False
        if not all(requirement.matches(labels) for requirement in self.expressions):
            return False
        # As upstream, fields of a node without a name are not compared.
        return not node_name or all(field.matches_field(node_name) for field in self.fields)


def join_errors(errors: Iterable[str]) -> str:
    """Join errors as Go's `errors.Aggregate`: each once, in brackets if there are several."""
    unique = list(dict.fromkeys(errors))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]" if unique else ""


def selector_error(terms: Iterable[NodeSelectorTerm]) -> str:
    """Return upstream's joined error of all terms that do not parse; "" if every term parses."""
    return join_errors(error for term in terms for error in term.errors)
