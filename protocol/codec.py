"""The wire format: envelopes, and frozen dataclasses as compact lists of plain data.

Input is not trusted: `plain_data` bounds it, and no name in a message selects a class to build.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from operator import attrgetter, countOf, itemgetter
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from roadstead.protocol.codec_memo import RepeatedValues, cached_encoder, repeats
from roadstead.protocol.errors import cut_short
from roadstead.protocol.plain_data import DEFAULT_LIMITS, CodecError, DecodeLimits, pack, unpack

VERSION = 1
T = TypeVar("T")
"""A dataclass of a message."""

_Coder = Callable[[Any], Any]
"""Function that encodes or decodes one value; raises CodecError."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """The frame of every message.

    kind: name of the called method; in an answer, "reply" or "error". seq: not used, always 0.
    token: name of the sender, not the token of an attempt, or "". epoch: the sender's; a receiver
    refuses an older one. A reply repeats seq, epoch and token.
    """

    kind: str
    seq: int
    epoch: int
    token: str
    body: object = None

    def encode(self) -> bytes:
        """Encode as msgpack; CodecError if the body is not plain data."""
        return pack([VERSION, self.kind, self.seq, self.epoch, self.token, self.body])

    @classmethod
    def decode(
        cls, data: bytes, limits: DecodeLimits = DEFAULT_LIMITS, *, typed: bool = False
    ) -> Envelope:
        """Decode an envelope; CodecError for another version or malformed bytes.

        typed: check only the size here, because the caller passes `body` to `from_wire`.
        """
        parts = unpack(data, limits, typed=typed)
        if type(parts) is not list or not parts:
            raise CodecError("not an envelope")
        # True and 1.0 equal 1 but are no version.
        if parts[0] != VERSION or type(parts[0]) is not int:
            raise CodecError(f"version {cut_short(parts[0])}: only {VERSION} is known")
        return cast("Envelope", _decoder(cast("Any", cls))(parts[1:]))


def to_wire(value: object) -> list[Any]:
    """Convert a dataclass to the list of its fields, nested ones likewise.

    Raises:
        CodecError: a float that is NaN or infinite.
        TypeError: a field of an unsupported type (a mistake in the class).
    """
    return cast("list[Any]", _encoder(cast("Any", type(value)))(value))


def to_message(value: object) -> list[Any]:
    """Convert as `to_wire`, but pack each value that messages repeat to bytes of its own.

    Such values are those of a class with `repeats_on_wire`. `from_wire` reads both forms. Not for
    files, whose readers expect a list of fields everywhere.
    """
    return cast("list[Any]", _encoder(cast("Any", type(value)), packs_repeated=True)(value))


def from_wire(cls: type[T], data: object) -> T:
    """Build a dataclass from the list that `to_wire` returned.

    Raises:
        CodecError: the data is no such list; the text names the field.
    """
    return cast("T", _decoder(cast("Any", cls))(data))


def _unchanged(value: object) -> object:
    return value


_SCALARS = (str, int, bool, bytes)
"""Types whose values msgpack encodes as they are."""


def _scalar_decoder(hint: type) -> _Coder:
    def decode(data: object) -> object:
        if type(data) is not hint:
            raise CodecError(f"want {hint.__name__}, got {cut_short(data)}")
        return data

    return decode


def _any_scalar_decoder(hints: tuple[object, ...]) -> _Coder:
    def decode(data: object) -> object:
        if type(data) not in hints:
            raise CodecError(f"want one of {len(hints)} plain types, got {cut_short(data)}")
        return data

    return decode


def _finite(value: object) -> object:
    """Encode or decode a float; an int is accepted as a float."""
    if type(value) is int:
        return float(value)
    if type(value) is not float or not math.isfinite(value):
        raise CodecError(f"want a finite number, got {cut_short(value)}")
    return value


def _optional_coder(inner: _Coder) -> _Coder:
    return lambda value: None if value is None else inner(value)


def _literal_decoder(allowed: tuple[object, ...]) -> _Coder:
    def decode(data: object) -> object:
        for each in allowed:
            if type(data) is type(each) and data == each:
                return each
        raise CodecError(f"want one of {allowed}, got {cut_short(data)}")

    return decode


def _enum_decoder(hint: type[Enum]) -> _Coder:
    members = {member.value: member for member in hint}

    def decode(data: object) -> object:
        if type(data) not in (str, int) or data not in members:
            raise CodecError(f"want a {hint.__name__}, got {cut_short(data)}")
        return members[data]

    return decode


def _sequence_decoder(inner: _Coder) -> _Coder:
    def decode(data: object) -> object:
        if type(data) is not list and type(data) is not tuple:
            raise CodecError(f"want a list, got {cut_short(data)}")
        return tuple([inner(each) for each in data])

    return decode


def _scalars_decoder(hint: type) -> _Coder:
    """Return the decoder of a sequence of one scalar type, without a call per element."""
    one_by_one = _sequence_decoder(_scalar_decoder(hint))

    def decode(data: object) -> object:
        if type(data) is list and (not data or countOf(map(type, data), hint) == len(data)):
            return tuple(data)
        return one_by_one(data)

    return decode


def _rows_decoder(hints: tuple[type, ...]) -> _Coder:
    """Return the decoder of a sequence of short lists of scalars, checked column by column."""
    one_by_one = _sequence_decoder(_fields_decoder(hints))

    def decode(data: object) -> object:
        if type(data) is list and not data:
            return ()
        if type(data) is list and set(map(type, data)) <= {list}:
            columns = zip(*data, strict=True) if set(map(len, data)) == {len(hints)} else ()
            types_by_column = [set(map(type, column)) for column in columns]
            if types_by_column and all(
                types <= {hint} for types, hint in zip(types_by_column, hints, strict=True)
            ):
                return tuple(map(tuple, data))
        return one_by_one(data)

    return decode


def _fields_decoder(hints: Sequence[object]) -> _Coder:
    """Return the decoder of a list of fixed length, which checks all scalars at once."""
    decoders = [_decoder(hint) for hint in hints]
    # By index in the list: the type of a scalar, which is decoded by a check of its type alone.
    scalars = {index: hint for index, hint in enumerate(hints) if hint in _SCALARS}
    others = [(index, coder) for index, coder in enumerate(decoders) if index not in scalars]
    # With a single index `itemgetter` returns no tuple, so that index is repeated.
    indices = [*scalars] if len(scalars) != 1 else [*scalars, *scalars]
    select_scalars = itemgetter(*indices) if indices else None
    scalar_types = tuple(scalars[index] for index in indices)

    def decode(data: object) -> object:
        if (type(data) is not list and type(data) is not tuple) or len(data) != len(hints):
            raise CodecError(f"want a list of {len(hints)}, got {cut_short(data)}")
        if select_scalars is not None and tuple(map(type, select_scalars(data))) != scalar_types:
            # The decoder of the first wrong element raises the error.
            return tuple([coder(each) for coder, each in zip(decoders, data, strict=True)])
        decoded = list(data)
        for index, coder in others:
            decoded[index] = coder(data[index])
        return tuple(decoded)

    return decode


def _map_coder(inner: _Coder) -> _Coder:
    def coder(data: object) -> object:
        if type(data) is not dict or not all(type(key) is str for key in data):
            raise CodecError(f"want a map of names, got {cut_short(data)}")
        return {key: inner(each) for key, each in data.items()}

    return coder


def _dataclass_decoder(cls: type) -> _Coder:
    names, hints = _field_hints(cls)
    decode_fields = _fields_decoder(hints)

    def decode(data: object) -> object:
        try:
            return cls(*decode_fields(data))
        except CodecError as error:
            raise CodecError(f"{_location(cls, names, data)}: {error}") from None

    return decode


def _location(cls: type, names: list[str], data: object) -> str:
    """Return class and field of the first refused value of a list, for the error's text."""
    if not isinstance(data, (list, tuple)) or len(data) != len(names):
        return cls.__name__
    _, hints = _field_hints(cls)
    refused = [
        name
        for name, hint, each in zip(names, hints, data, strict=True)
        if _is_refused(_decoder(hint), each)
    ]
    return ".".join([cls.__name__, *refused[:1]])


def _is_refused(decode: _Coder, data: object) -> bool:
    try:
        decode(data)
    except CodecError:
        return True
    return False


def _dataclass_encoder(cls: type, *, packs_repeated: bool) -> _Coder:
    names, hints = _field_hints(cls)
    coders = [
        (index, _encoder(hint, packs_repeated=packs_repeated)) for index, hint in enumerate(hints)
    ]
    to_encode = [(index, coder) for index, coder in coders if coder is not _unchanged]
    if len(names) < 2:
        # With a single name `attrgetter` returns no tuple.
        return lambda value: [coder(getattr(value, names[index])) for index, coder in coders]
    values_of = attrgetter(*names)

    def encode(value: object) -> object:
        encoded = [*values_of(value)]
        for index, coder in to_encode:
            encoded[index] = coder(encoded[index])
        return encoded

    return encode


def _field_hints(cls: type) -> tuple[list[str], list[object]]:
    hint_by_name = get_type_hints(cls)
    names = [field.name for field in fields(cast("Any", cls))]
    return names, [hint_by_name[name] for name in names]


def _optional_inner(hint: object) -> object | None:
    """Return X of `X | None`; None for any other type."""
    if get_origin(hint) not in (Union, UnionType):
        return None
    inner = [each for each in get_args(hint) if each is not NoneType]
    return inner[0] if len(inner) == 1 and NoneType in get_args(hint) else None


@cache
def _decoder(hint: object) -> _Coder:
    """Return the decoder of a type; TypeError if it has no wire format."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return _scalar_decoder(cast("type", hint))
    if hint is float:
        return _finite
    if hint is object:
        return _unchanged
    if origin is Literal:
        return _literal_decoder(arguments)
    if origin is tuple and arguments[-1:] == (Ellipsis,) and arguments[0] in _SCALARS:
        return _scalars_decoder(arguments[0])
    rows = get_args(arguments[0]) if origin is tuple and get_origin(arguments[0]) is tuple else ()
    if rows and arguments[1:] == (Ellipsis,) and set(rows) <= set(_SCALARS):
        return _rows_decoder(rows)
    if origin is tuple and arguments[-1:] == (Ellipsis,):
        return _sequence_decoder(_decoder(arguments[0]))
    if origin is tuple:
        return _fields_decoder(arguments)
    if origin is dict and arguments[0] is str:
        return _map_coder(_decoder(arguments[1]))
    inner = _optional_inner(hint)
    if inner is not None:
        return _optional_coder(_decoder(inner))
    if origin is UnionType and set(arguments) <= set(_SCALARS):
        return _any_scalar_decoder(arguments)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum_decoder(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _repeated(hint).decode if repeats(hint) else _dataclass_decoder(hint)
    raise TypeError(f"{hint} has no wire format")


@cache
def _encoder(hint: object, *, packs_repeated: bool = False) -> _Coder:
    """Return the encoder of a type. packs_repeated: as `to_message`, else as `to_wire`."""
    encoder_of = partial(_encoder, packs_repeated=packs_repeated)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is float:
        return _finite
    if origin is tuple:
        return _tuple_encoder(arguments, encoder_of)
    if origin is dict:
        return _map_coder(encoder_of(arguments[1]))
    inner = _optional_inner(hint)
    if inner is not None:
        coder = encoder_of(inner)
        return coder if coder is _unchanged else _optional_coder(coder)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda value: value.value
    if isinstance(hint, type) and is_dataclass(hint):
        if repeats(hint) and packs_repeated:
            return _repeated(hint).encode
        encode = _dataclass_encoder(hint, packs_repeated=packs_repeated)
        return cached_encoder(encode) if repeats(hint) else encode
    return _unchanged


@cache
def _repeated(hint: type) -> RepeatedValues:
    """Return the one coder of a class whose values messages repeat."""
    encode = _dataclass_encoder(hint, packs_repeated=True)
    return RepeatedValues(
        encode, _dataclass_decoder(hint), pack=pack, unpack=partial(unpack, typed=True)
    )


def _tuple_encoder(arguments: tuple[object, ...], encoder_of: Callable[[object], _Coder]) -> _Coder:
    coders = [encoder_of(each) for each in arguments if each is not Ellipsis]
    if all(coder is _unchanged for coder in coders):
        return _unchanged
    if arguments[-1] is Ellipsis:
        coder = coders[0]
        return lambda value: [coder(each) for each in value]
    return lambda value: [coder(each) for coder, each in zip(coders, value, strict=True)]
