"""The base of all API object models: camelCase keys, strict types, unknown fields let through."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

NAME_MAX_CHARS = 253

Name = Annotated[str, Field(min_length=1, max_length=NAME_MAX_CHARS)]
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Bytes = Annotated[int, Field(ge=0, le=2**63 - 1)]
Port = Annotated[int, Field(ge=0, le=65535)]


class Manifest(BaseModel):
    """A part of an API object.

    Types are strict as in the API server: no number stands for a string, no boolean for a number.
    Fields that scheduling never reads are dropped without a look.
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
        """A model of plain data. A null stands for an absent field, as in the API server.

        Nulls are rare and looking for them costs more than validating, so they are looked for only
        where validation fails.

        Raises:
            pydantic.ValidationError: the data is not of this kind.
            RecursionError: the data is nested absurdly deep.
        """
        try:
            return cls.model_validate(value, by_alias=True, by_name=False)
        except ValidationError:
            return cls.model_validate(without_nulls(value), by_alias=True, by_name=False)


def without_nulls(value: object) -> object:
    """A copy of plain data without the keys of dicts whose value is null."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value
