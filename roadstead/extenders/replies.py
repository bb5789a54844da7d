"""Validating parsers of extenders' replies; each raises ExtenderError for an invalid one.

Upstream: staging/src/k8s.io/kube-scheduler/extender/v1/types.go. As in Go's decoder, keys match in
any case, null equals a missing field, unknown keys are ignored, and numbers must be integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from roadstead.extenders.caller import ExtenderError
from roadstead.protocol.errors import cut_short

T = TypeVar("T")
"""The Python class of a JSON type."""

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class FilterReply:
    """The result of a filter request.

    names: the nodes that passed, in the extender's order; None if the reply has no list of nodes.
    failed, unresolvable: node → reason; for a node in both, the latter counts. is_bare: the reply
    listed Node objects, not names; like upstream, these are scored as if they had no pods and no
    images.
    """

    names: tuple[str, ...] | None
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class MetaVictims:
    """UIDs of pods to be evicted from one node, and the number of PDB violations."""

    uids: tuple[str, ...]
    pdb_violations: int = 0


def read_filter(reply: object, *, names_first: bool) -> FilterReply:
    """Parse an ExtenderFilterResult. names_first: prefer NodeNames to Nodes (nodeCacheCapable)."""
    result = _object(reply, "the reply")
    _raise_error(result)
    names = _get(result, "NodeNames")
    nodes = _get(result, "Nodes")
    found: tuple[str, ...] | None = None
    is_bare = False
    if names_first and names is not None:
        found = tuple(_text(each, "NodeNames") for each in _list(names, "NodeNames"))
    elif nodes is not None:
        items = _list(_get(_object(nodes, "Nodes"), "items"), "Nodes.items")
        found, is_bare = tuple(_name_of(each) for each in items), True
    failed = _reasons(result, "FailedNodes")
    unresolvable = _reasons(result, "FailedAndUnresolvableNodes")
    return FilterReply(found, failed, unresolvable, is_bare)


def read_priorities(reply: object) -> list[tuple[str, int]]:
    """Parse a HostPriorityList as (node, score) pairs."""
    pairs = []
    for each in _list(reply, "the reply"):
        host = _object(each, "a host")
        name = _text(_get(host, "Host"), "Host")
        pairs.append((name, _integer(_get(host, "Score"), "Score")))
    return pairs


def read_binding(reply: object) -> None:
    """Parse an ExtenderBindingResult; ExtenderError with its error text, if it has one."""
    _raise_error(_object(reply, "the reply"))


def read_victims(reply: object) -> dict[str, MetaVictims]:
    """Parse an ExtenderPreemptionResult: node → victims; null for all or a node means none."""
    found = _get(_object(reply, "the reply"), "NodeNameToMetaVictims")
    by_node = _object(found, "NodeNameToMetaVictims")
    return {name: _victims(each) for name, each in by_node.items()}


def _victims(value: object) -> MetaVictims:
    victims = _object(value, "victims")
    pods = _list(_get(victims, "Pods"), "Pods")
    uids = tuple(_text(_get(_object(pod, "a victim"), "UID"), "UID") for pod in pods)
    violations = _get(victims, "NumPDBViolations")
    return MetaVictims(uids, _integer(violations, "NumPDBViolations"))


def _name_of(node: object) -> str:
    metadata = _object(_get(_object(node, "a node"), "metadata"), "metadata")
    return _text(_get(metadata, "name"), "metadata.name")


def _reasons(result: Mapping[str, object], key: str) -> dict[str, str]:
    reasons = _object(_get(result, key), key)
    return {name: _text(reason, key) for name, reason in reasons.items()}


def _raise_error(result: Mapping[str, object]) -> None:
    text = _text(_get(result, "Error"), "Error")
    if text:
        raise ExtenderError(text)


def _get(fields: Mapping[str, object], key: str) -> object:
    if key in fields:
        return fields[key]
    folded = key.casefold()
    return next((value for name, value in fields.items() if name.casefold() == folded), None)


def _as(kind: type[T], wanted: str, value: object, what: str) -> T:
    """Return a value of a type, and the type's zero value for null.

    wanted: the type's name in errors. what: the field's name in errors.
    """
    if value is None:
        return kind()
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _wrong(value, what, wanted)
    return value


_object = partial(_as, dict, "an object")
_list = partial(_as, list, "a list")
_text = partial(_as, str, "a string")


def _integer(number: object, what: str) -> int:
    value = _as(int, "a whole number", number, what)
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise _wrong(value, what, "a number of 64 bits")
    return value


def _wrong(value: object, what: str, wanted: str) -> ExtenderError:
    return ExtenderError(f"gave an invalid answer: {what}: {cut_short(value)} is not {wanted}")
