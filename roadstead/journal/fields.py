"""The schema of a journal file: record kinds, classes of facts, names of their fields.

Facts are written as lists of their fields, in the order of their class. Each file names the classes
and fields that it was written with, so that a later release, whose classes have more fields, can
read it: a field that the file lacks has its default. A field, class or record kind that this
release does not know is refused by name, because to ignore it could be to ignore a constraint. A
field of an earlier release that this one no longer has is *retired*: it must be empty.

A new field therefore needs a default that means the same as its absence, and a field whose meaning
changes needs another name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import get_args, get_origin, get_type_hints

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.run_mark import RunMark
from roadstead.journal.records import RecordKind
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.errors import RoadsteadError, cut_short
from roadstead.protocol.plain_data import DecodeLimits, pack, unpack

Facts = PodFacts | NodeFacts | ClusterFacts | Rules | RunMark | BoundClaims
FACTS: tuple[type[Facts], ...] = (PodFacts, NodeFacts, ClusterFacts, Rules, RunMark, BoundClaims)

_LIMITS = DecodeLimits(max_bytes=1 << 20, max_items=1 << 16, max_depth=8)
"""Bounds for a schema, far above its size."""

_Adapter = Callable[[object], object]
"""Converts decoded data with the fields of a file to data with this release's fields."""

_RETIRED = {("PodFacts", "resource_claims")}
"""Retired fields: (class, field). Earlier releases decided only pods in which they are empty."""


class FieldsError(RoadsteadError):
    """A file has fields, facts or records that this release does not know, or lacks a field."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The schema of a file.

    kinds, facts: names of record kinds and classes of facts; records refer to them by index.
    classes: (class, names of its fields).
    """

    kinds: tuple[str, ...]
    facts: tuple[str, ...]
    classes: tuple[tuple[str, tuple[str, ...]], ...]

    def encode(self) -> bytes:
        return pack(to_wire(self))

    @classmethod
    def decode(cls, data: bytes) -> Fields:
        """Decode a schema. CodecError if the bytes are not one."""
        return from_wire(cls, unpack(data, _LIMITS))


@cache
def present_fields() -> Fields:
    """Return the schema that this release writes."""
    classes: dict[str, tuple[str, ...]] = {}
    hints: list[object] = list(FACTS)
    while hints:
        hint = hints.pop()
        hints += get_args(hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            if hint.__name__ not in classes:
                hints += get_type_hints(hint).values()
            classes[hint.__name__] = tuple(each.name for each in dataclasses.fields(hint))
    return Fields(
        tuple(each.value for each in RecordKind),
        tuple(each.__name__ for each in FACTS),
        tuple(sorted(classes.items())),
    )


class FactsBuilder:
    """Build facts of this release from the lists of a file. FieldsError if it cannot.

    kinds: the record kinds of the file, by number. len(): the number of its classes of facts.
    """

    def __init__(self, written: Fields) -> None:
        class_of = {each.__name__: each for each in FACTS}
        self._facts = [class_of[each] for each in _all_known("facts", written.facts, class_of)]
        kind_of = {each.value: each for each in RecordKind}
        self.kinds = [kind_of[each] for each in _all_known("records", written.kinds, kind_of)]
        classes = dict(written.classes)
        self._adapters = [_adapter(each, classes) for each in self._facts]

    def __len__(self) -> int:
        return len(self._facts)

    def build(self, number: int, data: object) -> Facts:
        """Build facts of the file's class `number`; CodecError if the data does not fit it."""
        adapt = self._adapters[number]
        return from_wire(self._facts[number], data if adapt is None else adapt(data))


@cache
def builder_of(written: Fields) -> FactsBuilder:
    """Return the builder for a schema. FieldsError if this release cannot read it."""
    return FactsBuilder(written)


def _all_known(what: str, names: tuple[str, ...], known: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names. FieldsError if one is not known."""
    for name in names:
        if name not in known:
            raise FieldsError(f"{what} of the kind {cut_short(name)} are not known to this release")
    return names


def _adapter(hint: object, fields_of: Mapping[str, tuple[str, ...]]) -> _Adapter | None:
    """Return the adapter for values of a type; None if its fields in the file are those of today.

    hint: the type, as annotated. fields_of: names of the fields of each class in the file.
    """
    arguments = get_args(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _class_adapter(hint, fields_of)
    if get_origin(hint) is tuple and arguments[-1:] != (Ellipsis,):
        adapters = [_adapter(each, fields_of) for each in arguments]
        return _list_adapter(adapters) if any(adapters) else None
    needed = [adapter for each in arguments if (adapter := _adapter(each, fields_of)) is not None]
    if not needed:
        return None
    # The type is `X | None` or `tuple[X, ...]`, because facts have no other unions: of its
    # arguments, only X needs an adapter.
    (adapt,) = needed
    if get_origin(hint) is tuple:
        return lambda data: [adapt(each) for each in data] if isinstance(data, list) else data
    return lambda data: None if data is None else adapt(data)


def _list_adapter(adapters: list[_Adapter | None]) -> _Adapter:
    """Return an adapter of a list, each element by its own adapter; other data stay unchanged."""

    def adapt(data: object) -> object:
        if not isinstance(data, list) or len(data) != len(adapters):
            return data
        pairs = zip(adapters, data, strict=True)
        return [each if adapter is None else adapter(each) for adapter, each in pairs]

    return adapt


def _class_adapter(cls: type, fields_of: Mapping[str, tuple[str, ...]]) -> _Adapter | None:
    """Return the adapter from a class's fields in the file to its fields in this release."""
    names = [each.name for each in dataclasses.fields(cls)]
    in_file = fields_of.get(cls.__name__, tuple(names))
    retired = {name for name in in_file if (cls.__name__, name) in _RETIRED}
    for name in in_file:
        if name not in names and name not in retired:
            raise FieldsError(
                f"{cls.__name__} has a field {cut_short(name)}, which is not known to this release"
            )
    hints = get_type_hints(cls)
    adapters = [None if name in retired else _adapter(hints[name], fields_of) for name in in_file]
    if list(in_file) == names and not any(adapters):
        return None
    missing = {name: _default(cls, name) for name in names if name not in in_file}
    adapt_values = _list_adapter(adapters)

    def adapt(data: object) -> object:
        values = adapt_values(data)
        # The decoder refuses data of another shape.
        if not isinstance(values, list) or len(values) != len(in_file):
            return data
        value_of = missing | dict(zip(in_file, values, strict=True))
        for name in retired:
            # A field that no release reads any more may be dropped only if it is empty.
            if value_of[name]:
                raise FieldsError(f"{cls.__name__} has {cut_short(name)}, which is not read")
        return [value_of[name] for name in names]

    return adapt


def _default(cls: type, name: str) -> object:
    """Return a field's default as decoded data. FieldsError if it has none."""
    field = next(each for each in dataclasses.fields(cls) if each.name == name)
    value: object
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        raise FieldsError(f"{cls.__name__} lacks the field {name}, which this release needs")
    return to_wire(value) if dataclasses.is_dataclass(value) else value
