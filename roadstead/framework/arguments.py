"""Arguments of a user's plugin: a pydantic model, filled from `pluginConfig` and frozen.

    class Arguments(PluginArguments):
        max_pods: int = Field(default=100, ge=1)

    class FewPods(NodePlugin):
        name = "FewPods"
        arguments = Arguments

        def __init__(self, args: Arguments) -> None: ...

In a configuration the fields are written as Kubernetes writes them (`maxPods`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from roadstead.config.decode import validation_problems
from roadstead.config.errors import ConfigError, Problem
from roadstead.protocol.errors import cut_short

_TYPE_META = ("apiVersion", "kind")
_MISSING = "Field required"


class PluginArguments(BaseModel):
    """Base of the arguments of plugins: unknown fields are refused, values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)


ArgumentsT = TypeVar("ArgumentsT", bound=PluginArguments)


def parse_arguments(model: type[ArgumentsT], value: object, *, field: str) -> ArgumentsT:
    """Return the arguments for a value of a configuration, where None means no arguments.

    ConfigError with the path of every invalid field. field: the path of `value`.
    """
    document = {} if value is None else value
    if not isinstance(document, Mapping):
        problem = Problem(field, "must be a mapping", value=cut_short(value))
        raise ConfigError("decode", [problem])
    own = {each.alias for each in model.model_fields.values()}
    fields = {
        name: each for name, each in document.items() if name in own or name not in _TYPE_META
    }
    try:
        # Through JSON, where strict mode accepts a list for a tuple, but no string for a number.
        return model.model_validate_json(json.dumps(fields))
    except ValidationError as error:
        problems = map(_named, validation_problems(error, field))
        raise ConfigError("decode", problems) from None


def _named(problem: Problem) -> Problem:
    return Problem(problem.field, "is missing") if problem.rule == _MISSING else problem
