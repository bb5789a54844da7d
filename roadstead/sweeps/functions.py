"""The functions that tasks of sweeps run, by name: a task selects one of this table, and no other.

An entry is `MODULE:NAME` of a function that receives the shared input of a sweep and returns the
function of one task. It is imported by name because most of them are above this package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.plain_data import DecodeLimits, pack, unpack
from roadstead.sweeps.tasks import Plain

RunTask: TypeAlias = Callable[[Mapping[str, Plain]], Plain]
"""Run one task. RoadsteadError if it fails. The result depends on the two inputs alone."""

FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model": "roadstead.lab.studies:model_runs",
        "product": "roadstead.api.product_runs:product_runs",
        "scenario": "roadstead.api.scenario_runs:scenario_runs",
    }
)

LIMITS: Final = DecodeLimits(max_bytes=1 << 30, max_depth=64)
"""Limits of the inputs and the result of a task."""

_prepared: dict[tuple[str, bytes], RunTask] = {}
"""The function of this process's last sweep, by name and digest of the shared input."""


def run_task(function: str, shared: bytes, task: bytes) -> bytes:
    """Run a task on packed inputs and return its packed result.

    Raises InputError for a function that is not in the table, CodecError for inputs or a result
    that are not plain data, and what the function raises.
    """
    return pack(_prepare(function, shared)(_mapping(task)))


def _prepare(function: str, shared: bytes) -> RunTask:
    """Return the function of one task; the shared input is decoded once for a process."""
    key = function, hashlib.sha256(shared).digest()
    run = _prepared.get(key)
    if run is None:
        path = FUNCTIONS.get(function)
        if path is None:
            problem = f"is none of {', '.join(FUNCTIONS)}"
            raise InputError(problem, source="sweep", field="function", value=cut_short(function))
        _prepared.clear()
        run = _prepared[key] = resolve_name(path)(_mapping(shared))
    return run


def _mapping(data: bytes) -> Mapping[str, Plain]:
    mapping = unpack(data, LIMITS)
    if not isinstance(mapping, dict):
        raise InputError(
            "must be a mapping", source="sweep", field="task", value=cut_short(mapping)
        )
    return cast("Mapping[str, Plain]", mapping)


def read_result(data: bytes) -> Plain:
    """Return a result that `run_task` returned. CodecError if it is not plain data."""
    return cast("Plain", unpack(data, LIMITS))
