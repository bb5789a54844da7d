"""The reference of scenarios as Markdown, made from the schema: every key, type and default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Annotated, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Tag
from pydantic.fields import FieldInfo

from roadstead.config.scenario.distributions import FixedDuration
from roadstead.config.scenario.schema import Scenario
from roadstead.config.scenario.structure import Model, documented_type, fields_of, models_in
from roadstead.config.scenario.values import time_text
from roadstead.config.settings import Settings

_ELSEWHERE: Final[dict[Model, str]] = {Settings: "[configuration](configuration.md)"}
"""Models that another page describes."""

_HEADER: Final = ("| key | value | default | meaning |", "|---|---|---|---|")
_CHOICE_HEADER: Final = ("| key | with | value | default | meaning |", "|---|---|---|---|---|")


def reference_markdown() -> str:
    """Return the reference, one section for each part of the document."""
    return "\n".join(_Reference().section(Scenario, "")).rstrip() + "\n"


@dataclass(slots=True)
class _Reference:
    """The page, made by a walk of the schema, depth first.

    section_of: the path under which each model is described. If it occurs again, the page refers
    to this path.
    """

    section_of: dict[Model, str] = field(default_factory=dict)

    def section(self, model: Model, path: str) -> Iterator[str]:
        """Yield the lines for a mapping at a path, and for what is below it."""
        self.section_of[model] = path
        yield from (f"### `{path}`" if path else "### The document", "")
        if text := _docstring(model):
            yield from (text, "")
        yield from _HEADER
        for key, info in fields_of(model):
            yield f"| `{key}` | {self._cells(info)} |"
        yield ""
        for key, info in fields_of(model):
            yield from self._nested_sections(info, f"{path}.{key}" if path else key)

    def _choice(self, models: Sequence[Model], new: Sequence[Model], path: str) -> Iterator[str]:
        """Yield the lines for a mapping that has exactly one of some keys.

        A key that only some of the models have is listed with those. new: models without a
        section.
        """
        self.section_of |= dict.fromkeys(new, path)
        choices = [_keys_of(each)[0] for each in models]
        yield from (f"### `{path}`", "", f"Exactly one of {_listed(choices)}.", "")
        yield from _CHOICE_HEADER
        rows: dict[str, FieldInfo] = {}
        models_of: dict[str, list[str]] = {}
        for model in new:
            for key, info in fields_of(model):
                rows.setdefault(key, info)
                models_of.setdefault(key, []).append(_keys_of(model)[0])
        shown = [_keys_of(each)[0] for each in new]
        with_ = {
            key: "" if models_of[key] == [key] else _shorter_list(models_of[key], shown)
            for key in rows
        }
        # First the keys that identify a model, then those of few models, then those of many.
        for key in sorted(rows, key=lambda key: bool(with_[key]) * len(models_of[key])):
            yield f"| `{key}` | {with_[key]} | {self._cells(rows[key])} |"
        yield ""
        for key, info in rows.items():
            yield from self._nested_sections(info, f"{path}.{key}")

    def _nested_sections(self, info: FieldInfo, path: str) -> Iterator[str]:
        models = list(models_in(info.annotation))
        new = [each for each in models if each not in self.section_of and each not in _ELSEWHERE]
        path += _brackets(info)
        if new and _is_choice(info):
            yield from self._choice(models, new, path)
        elif new:
            yield from self.section(new[0], path)

    def _cells(self, info: FieldInfo) -> str:
        return f"{self._type(info)} | {_default(info)} | {_sentence(info)}"

    def _type(self, info: FieldInfo) -> str:
        text = documented_type(info) or _type_text(info.annotation)
        models = list(models_in(info.annotation))
        if not models:
            return text
        if models[0] in _ELSEWHERE:
            return f"{text}, see {_ELSEWHERE[models[0]]}"
        section = self.section_of.get(models[-1])
        return text if section is None else f"{text}, as `{section}`"


def _shorter_list(keys: Sequence[str], all_keys: Sequence[str]) -> str:
    """Return some of all keys in words: these keys, or "all but" the others if those are fewer."""
    others = [key for key in all_keys if key not in keys]
    if not others:
        return "any"
    return f"all but {_listed(others)}" if len(others) < len(keys) else _listed(keys)


def _docstring(model: Model) -> str:
    # A model without a docstring has that of its base.
    own = model.__dict__.get("__doc__") or ""
    return " ".join(own.split())


def _keys_of(model: Model) -> list[str]:
    """Return the keys of a model; the first one identifies it in a union."""
    return [key for key, _ in fields_of(model)]


def _brackets(info: FieldInfo) -> str:
    origins = {get_origin(part) for part in _parts(info.annotation)}
    return "[]" if list in origins else ".NAME" if dict in origins else ""


def _parts(annotation: object) -> Iterator[object]:
    """Yield the choices of a type, without the metadata of `Annotated`."""
    if get_origin(annotation) is Annotated:
        yield from _parts(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for part in get_args(annotation):
            yield from _parts(part)
    else:
        yield annotation


def _is_choice(info: FieldInfo) -> bool:
    """Whether a value is one of several models, by the key that it has."""
    return _has_tags(info.annotation)


def _has_tags(annotation: object) -> bool:
    arguments = get_args(annotation)
    if any(isinstance(each, Tag) for each in arguments[1:]):
        return True
    return any(_has_tags(each) for each in arguments)


def _type_text(annotation: object) -> str:
    parts = [part for part in _parts(annotation) if part is not NoneType]
    first = parts[0]
    if get_origin(first) is Literal:
        return _listed(
            [str(value).lower() if value is True else value for value in get_args(first)]
        )
    if get_origin(first) is list:
        return "list"
    if get_origin(first) is dict or any(models_in(first)):
        return "mapping"
    names = {int: "integer", float: "number", str: "text", bool: "true or false"}
    return next((text for kind, text in names.items() if first is kind), "mapping")


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.default
    if isinstance(value, FixedDuration):
        return f"`{time_text(value.fixed)}`"
    if value is None or isinstance(value, BaseModel):
        return "–"
    if value in ([], {}, ""):
        return "none"
    if isinstance(value, list):
        return f"`{len(value)}`" if value == list(range(len(value))) else f"`{value}`"
    if documented_type(info).startswith("time"):
        return f"`{time_text(value)}`"
    return f"`{value}`"


def _sentence(info: FieldInfo) -> str:
    return " ".join((info.description or "").split()).replace("|", "\\|")


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)
