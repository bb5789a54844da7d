"""Base of the schemas: a Go struct as its YAML or JSON is decoded and printed.

Decoding is strict, as upstream's: an unknown field is refused, a null leaves a field as it is,
numbers and strings are never converted to each other, integers have the bounds of their Go type.
Upstream: apimachinery/pkg/runtime/serializer/json (strict), sigs.k8s.io/json.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from roadstead.config.durations import Duration, parse_duration


class GoStruct(BaseModel):
    """One Go struct. Field defaults are Go's zero values; None is a nil pointer or slice.

    never_omitted: names of fields that Go prints even if they are empty (without `omitempty`).
    refuses_null: keys in the document, in camelCase, that may be absent, but not null.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
    )
    never_omitted: ClassVar[frozenset[str]] = frozenset()
    refuses_null: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _zero_values_for_null(cls, data: Any) -> Any:  # noqa: ANN401  (any JSON comes in)
        """Remove the nulls of known fields, which then have their zero values."""
        if data is None:
            return {}
        if not isinstance(data, dict) or None not in data.values():
            return data
        # An unknown key stays, so that it is refused.
        nullable = {
            field.alias or name for name, field in cls.model_fields.items()
        } - cls.refuses_null
        return {
            key: value for key, value in data.items() if value is not None or key not in nullable
        }


def _zero_for_null(zero: object) -> BeforeValidator:
    return BeforeValidator(lambda value: zero if value is None else value)


def _duration(value: object) -> object:
    if value is None:
        # Refused: Go, too, parses a null here as an empty text.
        return parse_duration("")
    if not isinstance(value, str):
        raise ValueError('must be a text with a unit, e.g. "15s"')
    return parse_duration(value)


def _float32(value: float) -> float:
    """Return the shortest decimal of the nearest 32-bit float, as Go prints it."""
    with np.errstate(over="ignore"):
        nearest = np.float32(value)
    if not np.isfinite(nearest):
        raise ValueError("is beyond the range of a 32-bit float")
    return float(str(nearest))


def _base64(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not base64") from None
    return base64.b64encode(data).decode("ascii")


Str: TypeAlias = Annotated[str, _zero_for_null("")]
Bool: TypeAlias = Annotated[bool, _zero_for_null(False)]
Int32: TypeAlias = Annotated[int, Field(ge=-(2**31), le=2**31 - 1), _zero_for_null(0)]
Int64: TypeAlias = Annotated[int, Field(ge=-(2**63), le=2**63 - 1), _zero_for_null(0)]
Float32: TypeAlias = Annotated[float, AfterValidator(_float32), _zero_for_null(0.0)]
Base64: TypeAlias = Annotated[str, AfterValidator(_base64), _zero_for_null("")]
GoDuration: TypeAlias = Annotated[Duration, BeforeValidator(_duration)]

GoStructT = TypeVar("GoStructT", bound=GoStruct)
"""The model of a struct."""

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
"""apiVersion of the documents that the schemas describe."""


def to_document(value: object) -> Any:  # noqa: ANN401  (a JSON document comes out)
    """Convert a model to the document that Go would print, without the zero values Go omits."""
    if isinstance(value, GoStruct):
        fields = type(value).model_fields
        return {
            field.alias or name: to_document(getattr(value, name))
            for name, field in fields.items()
            if name in value.never_omitted or not _is_omitted(getattr(value, name), field.default)
        }
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [to_document(item) for item in value]
    # Go prints 50.0 as 50.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _is_omitted(value: object, zero: object) -> bool:
    # Go's "omitempty" of a plain field applies only to an empty value whose zero is not None; where
    # the zero is None the field is a pointer, and a pointer to 0 or "" is printed.
    if value is None or value in ([], {}):
        return True
    return zero is not None and not isinstance(value, (GoStruct, Duration)) and value == zero


def with_sorted_keys(value: Any) -> Any:  # noqa: ANN401  (JSON in, JSON out)
    """Return a JSON value with the keys of every mapping sorted, as Go prints mappings."""
    if isinstance(value, dict):
        return {key: with_sorted_keys(value[key]) for key in sorted(value)}
    return [with_sorted_keys(item) for item in value] if isinstance(value, list) else value
