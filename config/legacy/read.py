"""Recognition of older documents, and their translation to v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from roadstead.config.decode import KIND, decode_as
from roadstead.config.errors import ConfigError, Problem
from roadstead.config.go_struct import API_VERSION, GoStruct
from roadstead.config.legacy.alpha import ALPHA, translate_alpha
from roadstead.config.legacy.beta import BETA2, BETA3, translate_beta2, translate_beta3
from roadstead.config.legacy.beta_schema import (
    AlphaConfiguration,
    Beta2Configuration,
    Beta3Configuration,
)
from roadstead.config.legacy.notes import Notes, TranslationNote
from roadstead.config.legacy.policy import translate_policy
from roadstead.config.legacy.policy_schema import Policy

Translate = Callable[[dict[str, Any], Any, Notes, list[Problem]], dict[str, Any]]
"""(document, decoded document, notes, problems) -> v1 document; adds to notes and problems."""


def _policy(
    document: dict[str, Any], policy: Policy, notes: Notes, problems: list[Problem]
) -> dict[str, Any]:
    notes.add("kind", f"Policy v1 → {KIND} ({API_VERSION})")
    return translate_policy(policy, notes, problems)


# By apiVersion and kind: the model of a document, and its translation.
_OLDER: Final[dict[tuple[object, object], tuple[type[GoStruct], Translate]]] = {
    ("v1", "Policy"): (Policy, _policy),
    (ALPHA, KIND): (AlphaConfiguration, translate_alpha),
    (BETA2, KIND): (Beta2Configuration, translate_beta2),
    (BETA3, KIND): (Beta3Configuration, translate_beta3),
}


def read_older(document: object, *, source: str) -> tuple[object, tuple[TranslationNote, ...]]:
    """Translate an older document to v1, with notes; any other document is returned as it is.

    Raises ConfigError: stage decode for the wrong shape, validate for parts without meaning in v1.
    """
    if not isinstance(document, dict):
        return document, ()
    version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str) or (version, kind) not in _OLDER:
        return document, ()
    model, translate = _OLDER[version, kind]
    config = decode_as(model, document, "", source)
    notes, problems = Notes(), list[Problem]()
    translated = translate(document, config, notes, problems)
    if problems:
        raise ConfigError("validate", problems, source=source)
    return translated, notes.all()
