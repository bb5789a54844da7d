"""Base of all API object models: camelCase keys, strict types, unknown fields ignored."""

from __future__ import annotations

import marshal
import math
from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from roadstead.protocol.quantity import Quantity, QuantityError, parse_quantity

T = TypeVar("T")
"""Element of a list in a manifest."""

NAME_MAX_CHARS = 253
_NUMBER_MAX_BITS = 4096
"""Longer JSON numbers are refused: conversion to text takes quadratic time."""

Name = Annotated[str, Field(min_length=1, max_length=NAME_MAX_CHARS)]
OptionalName = Annotated[str, Field(max_length=NAME_MAX_CHARS)]
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
NonNegativeInt64 = Annotated[int, Field(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Weight = Annotated[int, Field(ge=0, le=100)]
Port = Annotated[int, Field(ge=0, le=65535)]
_EMPTY_MAP: dict[str, Any] = {}


def empty_map() -> dict[str, Any]:
    """Return one empty dict, the value of every map field that a manifest leaves out.

    Models are frozen, so it is never changed.
    """
    return _EMPTY_MAP


StringMap = dict[str, str]
ListOf = Annotated[tuple[T, ...], Field(strict=False)]
"""A list of the manifest, kept as a tuple so that all absent lists are one object."""


def read_quantity(value: object) -> Quantity:
    """Read a non-negative quantity from a JSON string or number; a Quantity is returned as it is.

    Raises:
        PydanticCustomError: anything else, booleans, NaN and infinities included.
    """
    try:
        quantity = value if type(value) is Quantity else parse_quantity(_quantity_text(value))
    except QuantityError as error:
        message = 'is not a quantity (want e.g. "500m", "4", "2Gi")'
        raise PydanticCustomError("quantity", message) from error
    if quantity.unscaled < 0:
        raise PydanticCustomError("quantity_sign", "must not be negative")
    return quantity


def _quantity_text(value: object) -> str:
    if type(value) is str:
        return value.strip()
    if type(value) is int and value.bit_length() <= _NUMBER_MAX_BITS:
        return str(value)
    if type(value) is float and math.isfinite(value):
        return repr(value)
    # A text that `parse_quantity` refuses.
    return "?"


ResourceQuantity = Annotated[Quantity, PlainValidator(read_quantity), PlainSerializer(str)]
_RESOURCES: TypeAdapter[dict[str, Quantity]] = TypeAdapter(
    dict[Annotated[str, Field(strict=True)], ResourceQuantity]
)


def _read_resources(value: object) -> Mapping[str, Quantity]:
    """Read resource amounts.

    A dict of valid texts, the most frequent case, is read without pydantic, which takes four times
    as long.
    """
    if type(value) is dict:
        try:
            amounts = {key: parse_quantity(text) for key, text in value.items() if type(key) is str}
            if len(amounts) == len(value) and all(each.unscaled >= 0 for each in amounts.values()):
                return amounts
        except (QuantityError, TypeError, AttributeError):
            pass
    return _RESOURCES.validate_python(value, strict=True)


def _resource_texts(resources: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(value) for name, value in resources.items()}


Resources = Annotated[
    dict[str, Quantity], PlainValidator(_read_resources), PlainSerializer(_resource_texts)
]


def _only_text_or_number(value: object) -> object:
    if type(value) in (str, int):
        return value
    raise PydanticCustomError("int_or_string", "want a number or a percentage")


IntOrString = Annotated[int | str, BeforeValidator(_only_text_or_number)]


INTERNED_MAX_VALUES = 32768
"""Number of values of one field that are cached; a full cache is emptied."""


class _Interned:
    """Validator that reads equal values once and returns the same object for all of them.

    Pods of one template differ in few fields. Validating a value costs ten times as much as finding
    it here, and separate values for a hundred thousand pods would take a gigabyte. Keys are exact
    bytes, so that 1 does not equal True.
    """

    def __init__(self) -> None:
        # By marshalled value: the validated one.
        self._known: dict[bytes, object] = {}

    def __call__(self, value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            # From format 3 on, bytes depend on which parts of a value are one object.
            key = marshal.dumps(cast("Any", value), 2)
        except ValueError:
            return handler(value)
        validated = self._known.get(key)
        if validated is None:
            if len(self._known) >= INTERNED_MAX_VALUES:
                self._known.clear()
            validated = self._known[key] = handler(value)
        return validated


def interned() -> WrapValidator:
    """Mark a field whose value many objects have, as the containers of a Deployment's pods."""
    return WrapValidator(_Interned())


class ApiModel(BaseModel):
    """Base of the models of API objects and of the structs in them.

    Types are strict as in the API server: no number for a string, no boolean for a number. Fields
    that scheduling never reads are dropped unchecked.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        strict=True,
        frozen=True,
        extra="ignore",
    )

    @classmethod
    def read(cls, value: object) -> Self:
        """Validate plain data as a model. A null stands for an absent field, as in the API server.

        Nulls are removed only if validation fails: they are rare, and looking for them costs more
        than validating.

        Raises:
            pydantic.ValidationError: the data is not of this kind.
            RecursionError: the data is nested too deep.
        """
        try:
            return cls.model_validate(value, by_alias=True, by_name=False)
        except ValidationError:
            return cls.model_validate(without_nulls(value), by_alias=True, by_name=False)


def without_nulls(value: object) -> object:
    """Copy plain data without the keys of dicts whose value is null."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value
