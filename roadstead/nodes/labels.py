"""Label columns: per key one code per row, so that a selector is evaluated on values, not nodes.

A requirement is evaluated once per distinct value of its key and gathered over the rows. Selectors
`In` and `NotIn` only look up the values that they list, so that a label with a value per node, as
the hostname, is not evaluated value by value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.nodes.interning import CodeInterner

MISSING = -1
"""The node lacks the key."""
OWN = -2
"""The value is the node's own name, which has no code yet (`LabelColumn.encode_own_names`)."""


class LabelColumn:
    """Codes of one label key: int32[capacity], `MISSING` where the node lacks the key.

    has_own: some rows may be `OWN`. `Columns.label` gives these their codes before it returns.
    """

    __slots__ = ("codes", "has_own", "values")

    def __init__(self, capacity: int) -> None:
        self.values: CodeInterner[str] = CodeInterner()
        self.codes: NDArray[np.int32] = np.full(capacity, MISSING, dtype=np.int32)
        self.has_own = False

    def encode_own_names(self, names: list[str]) -> None:
        """Replace `OWN` by codes of the names; only when a selector reads them, to save memory."""
        if not self.has_own:
            return
        rows = np.flatnonzero(self.codes == OWN)
        code = self.values.code
        self.codes[rows] = [code(names[row]) for row in rows.tolist()]
        self.has_own = False

    def grow(self, capacity: int) -> None:
        wider = np.full(capacity, MISSING, dtype=np.int32)
        wider[: len(self.codes)] = self.codes
        self.codes = wider


def match_requirement(
    requirement: Requirement, values: CodeInterner[str], codes: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return which rows satisfy a requirement. codes: int32[row], of its key → bool[row]."""
    absent = requirement.matches({})
    # In and NotIn look up their few values; other operators are evaluated for every value of the
    # key.
    if requirement.operator in ("In", "NotIn"):
        hit = np.zeros(len(values) + 1, dtype=np.bool_)
        for value in requirement.values:
            code = values.find(value)
            if code >= 0:
                hit[code] = True
        by_code = ~hit if requirement.operator == "NotIn" else hit
    else:
        by_code = np.empty(len(values) + 1, dtype=np.bool_)
        for code, value in enumerate(values.values):
            by_code[code] = requirement.matches({requirement.key: value})
    # `MISSING` is -1: rows without the key read the last entry.
    by_code[-1] = absent
    return by_code[codes]


def match_term(
    term: NodeSelectorTerm,
    match_label: Callable[[Requirement], NDArray[np.bool_]],
    names: list[str],
) -> NDArray[np.bool_]:
    """Return which rows satisfy a node selector term: bool[row]; no row if it is not parseable."""
    if term.error or not (term.expressions or term.fields):
        return np.zeros(len(names), dtype=np.bool_)
    result = np.ones(len(names), dtype=np.bool_)
    for requirement in term.expressions:
        result &= match_label(requirement)
    if term.fields:
        result &= match_fields(term, names)
    return result


def match_fields(term: NodeSelectorTerm, names: list[str]) -> NDArray[np.bool_]:
    """Return the rows whose metadata.name satisfies a term's field expressions: bool[row]."""
    result = np.ones(len(names), dtype=np.bool_)
    for field in term.fields:
        # One look-up per node in a set: a DaemonSet names a node for each of its pods.
        hit = {name for name in field.values if field.matches_field(name)}
        # The result for all names that the field does not list: that for a name of no node.
        miss = field.matches_field("\x00")
        values = set(field.values)
        wanted = [name in hit if name in values else miss for name in names]
        result &= np.array(wanted, dtype=np.bool_)
    return result
