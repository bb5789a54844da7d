"""Maximum sizes of the parts of `device`, as its type declares.

Upstream: dynamic-resource-allocation cel/compile.go (sizeEstimator, newCompiler, 1.34).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roadstead.cel.estimates import Estimate

Path = tuple[str, ...]
"""A variable and the fields below it.

`@items` means any element of a list, `@indices` any index, `@keys` any key of a map, `@values` any
value.
"""


@dataclass(frozen=True, slots=True)
class _DeclaredSize:
    """The declared size of a part of `device`.

    maximum: number of characters or entries. key, value: the sizes of keys and values of a map.
    """

    maximum: int
    fields: dict[str, _DeclaredSize] | None = None
    key: _DeclaredSize | None = None
    value: _DeclaredSize | None = None


_ATTRIBUTE: Final = _DeclaredSize(64)
_ENTRIES, _DOMAIN_CHARS, _ID_CHARS, _DRIVER_CHARS = 32, 63, 32, 63


def _domains(value: _DeclaredSize) -> _DeclaredSize:
    inner = _DeclaredSize(_ENTRIES, key=_DeclaredSize(_ID_CHARS), value=value)
    return _DeclaredSize(_ENTRIES, key=_DeclaredSize(_DOMAIN_CHARS), value=inner)


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
            current = current.value
        elif name == "@keys":
            current = current.key
        elif current.fields is not None and name in current.fields:
            current = current.fields[name]
        else:
            # `.name` of a domain is an attribute; other fields are not declared.
            current = _ATTRIBUTE if current.value is _ATTRIBUTE else None
        if current is None:
            return None
    assert current is not None
    return Estimate(0, current.maximum)
