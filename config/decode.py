"""Decoding of a text as the models of `config.schema`: the stage `decode`.

Upstream: the codec with strict decoding (apimachinery/pkg/runtime/serializer) and
DecodeNestedObjects of kube-scheduler/config/v1/types.go for the arguments of in-tree plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from roadstead.config.errors import ConfigError, Problem, malformed
from roadstead.config.go_struct import API_VERSION, GoStructT
from roadstead.config.reader import join_path, read_document
from roadstead.config.schema import KubeSchedulerConfiguration, KubeSchedulerProfile, PluginConfig
from roadstead.config.schema_args import ARGS_MODELS, Args

KIND: Final = "KubeSchedulerConfiguration"

# By pydantic's type of an error: the rule that the value breaks.
_RULES: Final = {
    "extra_forbidden": "unknown field",
    "string_type": "must be a text (put it in quotes)",
    "bool_type": "must be true or false",
    "int_type": "must be an integer",
    "float_type": "must be a number",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
}
# Fields whose values are never shown.
_SECRET: Final = frozenset({"keyData"})
# By pydantic's name of a bound: the words for it in a rule.
_LIMITS: Final = {"le": "at most", "ge": "at least", "gt": "above"}
# By bound of an integer type of Go: its bits.
_INTEGER_BITS: Final[dict[object, int]] = {2**31 - 1: 32, -(2**31): 32, 2**63 - 1: 64, -(2**63): 64}


def decode(text: str | bytes, *, source: str) -> KubeSchedulerConfiguration:
    """Read one KubeSchedulerConfiguration; raises ConfigError(stage="decode")."""
    return decode_document(read_document(text, source=source), source=source)


def decode_document(
    document: object, *, source: str, args_models: Mapping[str, type[Args]] = ARGS_MODELS
) -> KubeSchedulerConfiguration:
    """Decode plain values as `decode`. args_models: plugin → model of its arguments."""
    _check_type(document, source)
    config = decode_as(KubeSchedulerConfiguration, document, "", source)
    problems: list[Problem] = []
    profiles = [
        _with_typed_args(profile, args_models, f"profiles[{i}]", problems)
        for i, profile in enumerate(config.profiles or ())
    ]
    if problems:
        raise ConfigError("decode", problems, source=source)
    return config.model_copy(update={"profiles": profiles})


def _check_type(document: object, source: str) -> None:
    # value: None for a missing field, which the error does not show.
    def refusal(field: str, rule: str, value: object) -> ConfigError:
        problem = Problem(field, rule) if value is None else malformed(field, value, rule)
        return ConfigError("decode", [problem], source=source)

    if document is not None and not isinstance(document, dict):
        raise refusal("", f"must be a mapping of kind {KIND}", document)
    mapping = document or {}
    kind, version = mapping.get("kind"), mapping.get("apiVersion")
    if not kind:
        raise refusal("kind", f"is missing (want {KIND})", None)
    if not version:
        raise refusal("apiVersion", f"is missing (want {API_VERSION})", None)
    if version != API_VERSION:
        raise refusal("apiVersion", f"is not a version that we read (want {API_VERSION})", version)
    if kind != KIND:
        raise refusal("kind", f"is not a kind that we read (want {KIND})", kind)


def _with_typed_args(
    profile: KubeSchedulerProfile,
    models: Mapping[str, type[Args]],
    path: str,
    problems: list[Problem],
) -> KubeSchedulerProfile:
    if not profile.plugin_config:
        return profile
    typed = [
        _decode_args(config, models.get(config.name), f"{path}.pluginConfig[{i}]", problems)
        for i, config in enumerate(profile.plugin_config)
    ]
    return profile.model_copy(update={"plugin_config": typed})


def _decode_args(
    config: PluginConfig, model: type[Args] | None, path: str, problems: list[Problem]
) -> PluginConfig:
    if model is None:
        return config
    args = {} if config.args is None else config.args
    type_problem = _wrong_args_type(config.name, args, f"{path}.args")
    if type_problem is not None:
        problems.append(type_problem)
        return config
    try:
        typed = decode_as(model, args, f"{path}.args", "")
    except ConfigError as refused:
        problems.extend(refused.problems)
        return config
    known_type = {"api_version": API_VERSION, "kind": f"{config.name}Args"}
    return config.model_copy(update={"args": typed.model_copy(update=known_type)})


def _wrong_args_type(name: str, args: object, path: str) -> Problem | None:
    """Return why arguments cannot be those of a plugin, by their apiVersion and kind."""
    if not isinstance(args, dict):
        return malformed(path, args, f"must be a mapping ({name}Args)")
    version, kind = args.get("apiVersion"), args.get("kind")
    # Go's ParseGroupVersion reads "/" as no version, like an absent field.
    if version and version not in (API_VERSION, "/"):
        return malformed(f"{path}.apiVersion", version, f"must be {API_VERSION}")
    if kind and kind != f"{name}Args":
        return malformed(f"{path}.kind", kind, f"must be {name}Args, the arguments of {name}")
    return None


def decode_as(model: type[GoStructT], data: object, path: str, source: str) -> GoStructT:
    """Decode plain values as a model; ConfigError(stage="decode") with fields below `path`."""
    try:
        return model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError("decode", validation_problems(error, path), source=source) from None


def validation_problems(error: ValidationError, path: str) -> list[Problem]:
    """Translate pydantic's errors to problems, each with its field below `path`."""
    # A value of the wrong type stops Go's decoder; unknown fields are reported after it.
    ordered = sorted(
        error.errors(include_url=False), key=lambda detail: detail["type"] == "extra_forbidden"
    )
    return [_problem(detail, path) for detail in ordered]


def _problem(error: ErrorDetails, path: str) -> Problem:
    field, rule = join_path(path, error["loc"]), rule_of(error)
    # No part of a private key may be in an error.
    if error["loc"] and error["loc"][-1] in _SECRET:
        return Problem(field, rule)
    return malformed(field, error["input"], rule)


def rule_of(error: ErrorDetails) -> str:
    """Return the rule that a value breaks, as it follows the value in an error text."""
    if error["type"] in _RULES:
        return _RULES[error["type"]]
    context = error.get("ctx", {})
    if error["type"] == "literal_error":
        return f"must be {context['expected']}"
    for key, message in _LIMITS.items():
        if key in context:
            bits = _INTEGER_BITS.get(context[key])
            too_big = f"does not fit into a {bits}-bit integer"
            return too_big if bits else f"must be {message} {context[key]}"
    return error["msg"].removeprefix("Value error, ")
