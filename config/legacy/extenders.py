"""Extenders of a Policy in the form of v1.

Upstream: LegacyExtender of kube-scheduler/config/v1/legacy_types.go. Its fields were read in any
case (BindVerb, TLSConfig), one was spelled `enableHttps`, and `httpTimeout` was a number of
nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from roadstead.config.durations import Duration
from roadstead.config.errors import Problem, malformed
from roadstead.config.go_struct import GoStruct
from roadstead.config.legacy.notes import Notes
from roadstead.config.schema import ExtenderTLSConfig, V1Extender

_INT64: Final = range(-(2**63), 2**63)


def v1_extenders(extenders: Iterable[Any], notes: Notes, problems: list[Problem]) -> list[Any]:
    """Translate the extenders to v1; one that is not a mapping is kept as it is."""
    return [_v1(each, f"extenders[{i}]", notes, problems) for i, each in enumerate(extenders)]


def _v1(extender: Any, path: str, notes: Notes, problems: list[Problem]) -> Any:  # noqa: ANN401
    if not isinstance(extender, dict):
        return extender
    renamed = _with_v1_names(extender, V1Extender, path, notes)
    if isinstance(renamed.get("tlsConfig"), dict):
        where = f"{path}.tlsConfig"
        renamed["tlsConfig"] = _with_v1_names(renamed["tlsConfig"], ExtenderTLSConfig, where, notes)
    timeout = renamed.get("httpTimeout")
    if timeout is None:
        return renamed
    where = f"{path}.httpTimeout"
    if isinstance(timeout, bool) or not isinstance(timeout, int) or timeout not in _INT64:
        problems.append(malformed(where, timeout, "must be an integer: nanoseconds, in a Policy"))
        return renamed
    renamed["httpTimeout"] = str(Duration(timeout))
    notes.add(where, f"{timeout} (nanoseconds) → {renamed['httpTimeout']}")
    return renamed


def _with_v1_names(
    mapping: dict[str, Any], model: type[GoStruct], path: str, notes: Notes
) -> dict[str, Any]:
    """Return the mapping with known keys in v1's spelling; unknown ones stay, and are refused."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    spelling = {name.lower(): name for name in names}
    result: dict[str, Any] = {}
    for key, value in mapping.items():
        v1_name = spelling.get(key.lower(), key)
        if v1_name != key:
            notes.add(f"{path}.{key}", f"→ {v1_name}")
        result[v1_name] = value
    return result
