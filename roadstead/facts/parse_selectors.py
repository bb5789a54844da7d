"""Validation and compilation of the selectors of manifests, with upstream's error texts.

Upstream: apimachinery/pkg/labels/selector.go (NewRequirement), apimachinery/pkg/util/validation,
apimachinery/pkg/apis/meta/v1/helpers.go and component-helpers .../nodeaffinity/nodeaffinity.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from roadstead.config.errors import go_json
from roadstead.facts.quoting import go_quote
from roadstead.facts.selectors import (
    OPERATORS,
    LabelSelector,
    NodeSelectorTerm,
    Requirement,
    join_errors,
    parse_int64,
)
from roadstead.protocol import objects
from roadstead.protocol.names import label_value_errors, qualified_name_errors

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_FIELD_OPERATORS = ("In", "NotIn")


class SelectorError(ValueError):
    """A label selector that upstream would not parse; the text is upstream's."""


def parse_label_selector(manifest: objects.LabelSelector | None) -> LabelSelector | None:
    """Compile a label selector (metav1.LabelSelectorAsSelector).

    None matches nothing, an empty selector everything.

    Raises:
        SelectorError: upstream's text for the first requirement that does not parse.
    """
    if manifest is None:
        return None
    # Most selectors have one label: equal ones share a cached object, without a second validation.
    if not manifest.match_expressions and len(manifest.match_labels) == 1:
        return _selector_of_label(*next(iter(manifest.match_labels.items())))
    requirements = [
        _valid_requirement(key, "In", [value])
        for key, value in sorted(manifest.match_labels.items())
    ]
    for expression in manifest.match_expressions:
        if expression.operator not in _LABEL_OPERATORS:
            quoted = go_quote(expression.operator)
            raise SelectorError(f"{quoted} is not a valid label selector operator")
        requirements.append(
            _valid_requirement(expression.key, expression.operator, expression.values or None)
        )
    return LabelSelector(tuple(sorted(requirements, key=_order)))


def parse_node_selector(manifest: objects.NodeSelector) -> tuple[NodeSelectorTerm, ...]:
    """Compile a required node selector; a term that does not parse contains its errors."""
    return tuple(
        parse_node_selector_term(term, f"nodeSelectorTerms[{index}].")
        for index, term in enumerate(manifest.node_selector_terms)
    )


def parse_preferred_terms(
    manifests: Sequence[objects.PreferredSchedulingTerm],
) -> tuple[tuple[int, NodeSelectorTerm], ...]:
    """Compile to (weight, term); a term of weight 0, which upstream does not parse, stays empty."""
    return tuple(
        (
            each.weight,
            parse_node_selector_term(each.preference, f"[{index}].")
            if each.weight
            else NodeSelectorTerm(),
        )
        for index, each in enumerate(manifests)
    )


def parse_node_selector_term(manifest: objects.NodeSelectorTerm, path: str) -> NodeSelectorTerm:
    """Compile one term; `path` is the prefix of errors, e.g. `nodeSelectorTerms[0].` or `[0].`."""
    errors: list[str] = []
    expressions: list[Requirement] = []
    for index, each in enumerate(manifest.match_expressions):
        found = _expression_errors(each, f"{path}matchExpressions[{index}].")
        errors += found
        if not found:
            expressions.append(_requirement(each.key, each.operator, each.values or ()))
    for index, each in enumerate(manifest.match_fields):
        errors += _field_errors(each, f"{path}matchFields[{index}].")
    fields = [
        _requirement(each.key, each.operator, each.values or ()) for each in manifest.match_fields
    ]
    if errors:
        # The fields stay: PreFilter selects node names by them even if the term does not parse.
        return NodeSelectorTerm((), _canonical(fields), join_errors(errors), tuple(errors))
    return NodeSelectorTerm(_canonical(expressions), _canonical(fields))


def requirement_errors(
    key: str, operator: str, values: Sequence[str] | None, path: str = ""
) -> list[str]:
    """Return the errors that labels.NewRequirement reports, in its order."""
    broken_rules = qualified_name_errors(key)
    errors = []
    if broken_rules:
        errors.append(f"{path}key: Invalid value: {go_quote(key)}: {'; '.join(broken_rules)}")
    errors += _value_count_errors(operator, values, f"{path}values")
    for index, value in enumerate(values or ()):
        broken_rules = label_value_errors(value)
        if broken_rules:
            where = f"{path}values[{index}][{key}]"
            errors.append(f"{where}: Invalid value: {go_quote(value)}: {'; '.join(broken_rules)}")
    return errors


def _value_count_errors(operator: str, values: Sequence[str] | None, path: str) -> list[str]:
    count = len(values or ())
    invalid = f"{path}: Invalid value: {go_json(values)}:"
    if operator in ("In", "NotIn"):
        rule = "for 'in', 'notin' operators, values set can't be empty"
        return [] if count else [f"{invalid} {rule}"]
    if operator in ("Exists", "DoesNotExist"):
        rule = "values set must be empty for exists and does not exist"
        return [f"{invalid} {rule}"] if count else []
    rule = "for 'Gt', 'Lt' operators, exactly one value is required"
    errors = [] if count == 1 else [f"{invalid} {rule}"]
    return errors + [
        f"{path}[{index}]: Invalid value: {go_quote(value)}: "
        "for 'Gt', 'Lt' operators, the value must be an integer"
        for index, value in enumerate(values or ())
        if parse_int64(value) is None
    ]


def _expression_errors(each: objects.SelectorRequirement, path: str) -> list[str]:
    if each.operator not in OPERATORS:
        return [_not_supported(each.operator, path, OPERATORS)]
    return requirement_errors(each.key, each.operator, each.values, path)


def _field_errors(each: objects.SelectorRequirement, path: str) -> list[str]:
    if each.operator not in _FIELD_OPERATORS:
        return [_not_supported(each.operator, path, _FIELD_OPERATORS)]
    if len(each.values or ()) == 1:
        return []
    return [f"{path}values: Invalid value: {go_json(each.values)}: must have one element"]


def _not_supported(operator: str, path: str, supported: Iterable[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in supported)
    return f"{path}operator: Unsupported value: {go_quote(operator)}: supported values: {listed}"


def _valid_requirement(key: str, operator: str, values: Sequence[str] | None) -> Requirement:
    """Compile a requirement; SelectorError if it is not valid."""
    errors = requirement_errors(key, operator, values)
    if errors:
        raise SelectorError(join_errors(errors))
    return _requirement(key, operator, values or ())


@lru_cache(maxsize=4096)
def _selector_of_label(key: str, value: str) -> LabelSelector:
    return LabelSelector((_valid_requirement(key, "In", [value]),))


def _requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    return Requirement(key, operator, tuple(sorted(set(values))))


def _canonical(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=_order))


def _order(requirement: Requirement) -> tuple[str, str, tuple[str, ...]]:
    return (requirement.key, requirement.operator, requirement.values)
