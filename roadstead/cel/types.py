"""Static types of CEL.

Upstream: cel-go 0.26 common/types/types.go, checker/format.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Kinds of types. An opaque type may have parameters (optionals); a struct has fields; TYPE is the
# type of types, as of `int` in `type(x) == int`; PARAM is a type parameter.
PLAIN, LIST, MAP, OPAQUE, STRUCT, TYPE, PARAM = (
    "plain",
    "list",
    "map",
    "opaque",
    "struct",
    "type",
    "param",
)
_SHORT_NAMES = {
    "google.protobuf.Any": "any",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "null_type": "null",
    "error": "!error!",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A type. kind: one of the constants above.

    params: the type of the elements of a list, of keys and values of a map, of the value of an
    optional; for the type of a type, that type.
    """

    name: str
    kind: str = PLAIN
    params: tuple[Type, ...] = ()

    @property
    def is_dyn(self) -> bool:
        return self in (DYN, ANY)

    @property
    def is_dyn_or_error(self) -> bool:
        return self in (DYN, ANY, ERROR)

    @property
    def is_optional(self) -> bool:
        return self.kind == OPAQUE and self.name == "optional_type"

    def __str__(self) -> str:
        """Return the name as errors about the result of an expression spell it."""
        if self.kind == PARAM:
            return f"<{self.name}>"
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(str(param) for param in self.params)})"

    def formatted(self) -> str:
        """Return the name as the checker's errors spell it."""
        if not self.params:
            return _SHORT_NAMES.get(self.name, self.name) if self.kind == PLAIN else self.name
        return f"{self.name}({', '.join(param.formatted() for param in self.params)})"


DYN: Final = Type("dyn")
# A message of any type: what an attribute of a device is. It is checked like `dyn`.
ANY: Final = Type("google.protobuf.Any")
# The type of a node for which an issue was reported. Anything matches it: one issue is enough.
ERROR: Final = Type("error")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
DURATION: Final = Type("google.protobuf.Duration")
TIMESTAMP: Final = Type("google.protobuf.Timestamp")
BARE_TYPE: Final = Type("type", TYPE)
QUANTITY: Final = Type("kubernetes.Quantity", STRUCT)
SEMVER: Final = Type("kubernetes.Semver", STRUCT)
URL: Final = Type("kubernetes.URL", STRUCT)
FORMAT: Final = Type("kubernetes.NamedFormat", STRUCT)
IP: Final = Type("net.IP", OPAQUE)
CIDR: Final = Type("net.CIDR", OPAQUE)
DEVICE: Final = Type("kubernetes.DRADevice", STRUCT)

SCALARS: Final = frozenset({BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT})
"""Types whose values have size 1."""


def list_of(element: Type) -> Type:
    return Type("list", LIST, (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", MAP, (key, value))


def optional_of(content: Type) -> Type:
    return Type("optional_type", OPAQUE, (content,))


def type_of(content: Type) -> Type:
    return Type("type", TYPE, (content,))


def param(name: str) -> Type:
    return Type(name, PARAM)


NAMED_TYPES: Final[dict[str, Type]] = {
    **{t.name: t for t in (BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, UINT)},
    "list": list_of(param("A")),
    "map": map_of(param("A"), param("B")),
    "type": BARE_TYPE,
    "optional_type": optional_of(param("V")),
    "net.IP": IP,
    "net.CIDR": CIDR,
}
"""Types that an expression may name, as in `type(x) == int`."""

# By name in a declaration.
_NOTATION = {
    "dyn": DYN,
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "null": NULL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "quantity": QUANTITY,
    "semver": SEMVER,
    "url": URL,
    "format": FORMAT,
    "ip": IP,
    "cidr": CIDR,
}


@lru_cache(maxsize=256)
def read_type(text: str) -> Type:
    """Return the type that a declaration spells: `list(A)`, `map(A,B)`, `opt(V)`, `type(A)`."""
    name, _, inner = text.partition("(")
    if not inner:
        return _NOTATION[name] if name in _NOTATION else param(name)
    params, depth, start = [], 0, 0
    for at, char in enumerate(inner):
        depth += (char == "(") - (char == ")")
        if depth < 0 or (char == "," and depth == 0):
            params.append(read_type(inner[start:at]))
            start = at + 1
    if name == "list":
        return list_of(params[0])
    if name == "map":
        return map_of(params[0], params[1])
    return optional_of(params[0]) if name == "opt" else type_of(params[0])
