"""The sweep of a `roadstead stress`: a preset, a file, flags; later ones override earlier ones.

A study is what is run: a model of the literature (`roadstead.lab.studies`), or the product. It has
parameters, of which a sweep sets some and varies others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from roadstead.lab.presets import PRESETS
from roadstead.lab.studies import MODEL_STUDIES, Study
from roadstead.lab.sweep import MAX_SEEDS, Sweep, make_sweep
from roadstead.protocol.errors import InputError, cut_short

FILE_KEYS: Final = ("title", "study", "engine", "vary", "set", "seeds")
FILE_MAX_BYTES: Final = 1 << 20
PRODUCT: Final = "product"
"""The study of Roadstead itself; the others are models of the literature."""

PARAMETER_OF_FLAG: Final[Mapping[str, Mapping[str, str]]] = {
    "omega": {
        "schedulers": "batch_schedulers",
        "staleness": "staleness_s",
        "decision-time": "service_job_s",
    },
    "extra-slots": {"staleness": "sync_gap_s"},
    "policies": {"staleness": "sync_gap_s", "mode": "policy", "load": "phases"},
    PRODUCT: {"staleness": "staleness_s", "decision-time": "decision_job_s"},
}
"""Study → flag → parameter, where the names differ; `roadstead stress --list` explains these."""


@dataclass(frozen=True, slots=True)
class SweepDefinition:
    """The definition of a sweep.

    study: what is run. engine: how (`model`, `virtual`, `inline`, `ray`); "" for the study's
    default. vary: parameter → its values, of which every combination is run. set: parameter → its
    value in all runs. seeds: number of runs of a combination, with first_seed and the numbers after
    it. source: of the definition, for errors.
    """

    title: str = ""
    study: str = "omega"
    engine: str = ""
    vary: Mapping[str, Sequence[object]] = field(default_factory=dict)
    set: Mapping[str, object] = field(default_factory=dict)
    seeds: int = 3
    first_seed: int = 0
    source: str = "flags"


def preset_definition(name: str) -> SweepDefinition:
    """Return the sweep of a preset. Raises InputError for an unknown one."""
    preset = PRESETS.get(name)
    if preset is None:
        raise InputError(
            f"is none of {', '.join(PRESETS)}", source="--preset", value=cut_short(name)
        )
    return SweepDefinition(
        preset.title,
        preset.study,
        preset.engine,
        preset.vary,
        preset.set,
        preset.seeds,
        source=f"preset {name}",
    )


def file_definition(path: Path) -> SweepDefinition:
    """Read a sweep from a YAML or JSON file. Raises InputError for wrong content."""
    from roadstead.config.reader import read_document

    source = str(path)
    try:
        with path.open("rb") as file:
            content = file.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=source) from error
    if len(content) > FILE_MAX_BYTES:
        raise InputError(f"is longer than {FILE_MAX_BYTES:,} bytes", source=source)
    document = read_document(content, source=source)
    if not isinstance(document, dict):
        raise InputError(f"must be a mapping with {', '.join(FILE_KEYS)}", source=source)
    _check_keys(document, source)
    seeds = document.get("seeds", 3)
    if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds <= MAX_SEEDS:
        rule = f"must be a whole number from 1 to {MAX_SEEDS}"
        raise InputError(rule, source=source, field="seeds", value=cut_short(str(seeds)))
    return SweepDefinition(
        str(document.get("title", "")),
        str(document.get("study", "omega")),
        str(document.get("engine", "")),
        _lists(document.get("vary", {}), source),
        _mapping(document.get("set", {}), "set", source),
        seeds,
        source=source,
    )


def _check_keys(document: Mapping[object, object], source: str) -> None:
    for key in document:
        if key not in FILE_KEYS:
            raise InputError(
                f"is none of {', '.join(FILE_KEYS)}", source=source, field=cut_short(str(key))
            )


def _mapping(value: object, name: str, source: str) -> dict[str, object]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InputError("must be a mapping from parameters to values", source=source, field=name)
    return value


def _lists(value: object, source: str) -> dict[str, Sequence[object]]:
    lists: dict[str, Sequence[object]] = {}
    for name, values in _mapping(value, "vary", source).items():
        if not isinstance(values, list):
            raise InputError("must be a list of values", source=source, field=f"vary.{name}")
        lists[name] = values
    return lists


def with_flags(
    definition: SweepDefinition, pairs: Iterable[tuple[str, str]], flags: Mapping[str, str | None]
) -> SweepDefinition:
    """Apply `NAME=V,…` pairs and named flags: one value is set, several are swept.

    A parameter that the definition already sweeps keeps its position; the first one is the x axis.
    """
    vary, constants = dict(definition.vary), dict(definition.set)
    names = PARAMETER_OF_FLAG.get(definition.study, {})
    from_flags = [(names.get(flag, flag), text) for flag, text in flags.items() if text is not None]
    for name, text in (*pairs, *from_flags):
        values = [each.strip() for each in text.split(",")]
        constants.pop(name, None)
        if len(values) > 1:
            vary[name] = values
        else:
            vary.pop(name, None)
            constants[name] = values[0]
    return replace(definition, vary=vary, set=constants)


def split_pair(text: str) -> tuple[str, str]:
    """Split `NAME=V,…` into NAME and the values. Raises InputError."""
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise InputError(
            "must be NAME=VALUE or NAME=VALUE,VALUE,…", source="--vary", value=cut_short(text)
        )
    return name, values


def study_of(definition: SweepDefinition, product: Study | None) -> Study:
    """Return the definition's study. Raises InputError for an unknown one.

    product: the study of Roadstead itself, on the inputs of this call.
    """
    if definition.study == PRODUCT and product is not None:
        return product
    study = MODEL_STUDIES.get(definition.study)
    if study is None:
        known = ", ".join((*MODEL_STUDIES, PRODUCT))
        raise InputError(
            f"is none of {known}",
            source=definition.source,
            field="study",
            value=cut_short(definition.study),
        )
    return study


def sweep_of(definition: SweepDefinition, study: Study) -> Sweep:
    """Make and check the sweep."""
    seeds = range(definition.first_seed, definition.first_seed + definition.seeds)
    return make_sweep(
        study,
        definition.vary,
        definition.set,
        list(seeds),
        source=definition.source,
        title=definition.title,
    )
