"""Maximum sizes of the parts of `device`, as its type declares.

Upstream: dynamic-resource-allocation cel/compile.go (sizeEstimator, newCompiler, 1.34).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roadstead.cel.estimates import Estimate

Path = tuple[str, ...]
"""A variable and the fields below it; `@keys`, `@values` and `@items` mean those of all entries."""


@dataclass(frozen=True, slots=True)
class _DeclaredSize:
    """The declared size of a part of `device`.

    elements: maximum number of characters or entries. key, element: of a map.
    """

    elements: int
    fields: dict[str, _DeclaredSize] | None = None
    key: _DeclaredSize | None = None
    element: _DeclaredSize | None = None


_ATTRIBUTE: Final = _DeclaredSize(64)
_ENTRIES, _DOMAIN_CHARS, _ID_CHARS, _DRIVER_CHARS = 32, 63, 32, 63


def _domains(value: _DeclaredSize) -> _DeclaredSize:
    inner = _DeclaredSize(_ENTRIES, key=_DeclaredSize(_ID_CHARS), element=value)
    return _DeclaredSize(_ENTRIES, key=_DeclaredSize(_DOMAIN_CHARS), element=inner)


_DEVICE: Final = _DeclaredSize(
    0,
    fields={
        "driver": _DeclaredSize(_DRIVER_CHARS),
        "attributes": _domains(_ATTRIBUTE),
        "capacity": _domains(_DeclaredSize(0)),
        "allowMultipleAllocations": _DeclaredSize(1),
    },
)


def declared_size(path: Path) -> Estimate | None:
    """Return the size that a part of `device` may have, if it is declared."""
    if not path or path[0] != "device":
        return None
    current: _DeclaredSize | None = _DEVICE
    for name in path[1:]:
        assert current is not None
        if name in ("@items", "@values"):
            current = current.element
        elif name == "@keys":
            current = current.key
        elif current.fields is not None and name in current.fields:
            current = current.fields[name]
        else:
            # `.name` of a domain is an attribute; other fields are not declared.
            current = _ATTRIBUTE if current.element is _ATTRIBUTE else None
        if current is None:
            return None
    assert current is not None
    return Estimate(0, current.elements)
