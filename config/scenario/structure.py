"""The structure of a schema: the models, keys, types and texts of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from roadstead.config.scenario.values import DocumentedAs

Model = type[BaseModel]


def key_of(name: str, info: FieldInfo) -> str:
    """Return the key of a field in a document."""
    return info.alias or name


def fields_of(model: Model) -> Iterator[tuple[str, FieldInfo]]:
    """Yield (key, field), the model's own fields before inherited ones."""
    inherited = [
        name for base in model.__mro__[1:] for name in getattr(base, "__annotations__", ())
    ]
    own_names = [name for name in model.model_fields if name not in inherited]
    for name in (*own_names, *(each for each in model.model_fields if each not in own_names)):
        info = model.model_fields[name]
        yield key_of(name, info), info


def models_in(annotation: object) -> Iterator[Model]:
    """Yield the models that a value of a type may be, or may contain as items or values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from models_in(get_args(annotation)[0])
    else:
        for argument in get_args(annotation):
            yield from models_in(argument)


def documented_type(info: FieldInfo) -> str:
    """Return the words for a type in docs/scenario.md (`DocumentedAs`); "" if it has none."""
    for each in info.metadata:
        if isinstance(each, DocumentedAs):
            return each.text
    return _documented_type_in(info.annotation)


def _documented_type_in(annotation: object) -> str:
    if get_origin(annotation) is Annotated:
        _, *metadata = get_args(annotation)
        return next((each.text for each in metadata if isinstance(each, DocumentedAs)), "")
    if get_origin(annotation) in (Union, UnionType):
        parts = [_documented_type_in(part) for part in get_args(annotation) if part is not NoneType]
        return next((part for part in parts if part), "")
    return ""


def known_keys(model: Model, path: Sequence[str | int]) -> list[str]:
    """Return the keys that a document may have at a path, those of all choices together."""
    models = [model]
    for part in path:
        if isinstance(part, int):
            continue
        below_part: list[Model] = []
        for each in models:
            infos = [info for key, info in fields_of(each) if key == part]
            below_part += [
                model_below for info in infos for model_below in models_in(info.annotation)
            ]
        # A mapping of names to models has no field of that name.
        models = below_part or models
    return list(dict.fromkeys(key for each in models for key, _ in fields_of(each)))
