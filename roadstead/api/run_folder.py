"""The folder of a scenario's runs: what is where, and `run.json`, from which runs are repeated.

FOLDER/scenario.yaml           the scenario as it was played
FOLDER/run.json                runs, digests of all inputs, versions
FOLDER/inputs/                 copies of the inputs, see `roadstead.api.input_copies`
FOLDER/compare.json            with several configurations: their paired differences
FOLDER/NAME/TABLE/part-*       tables of one run
FOLDER/NAME/summary.json       its figures, such as numbers of pods; written last, so a run that
                               has it is finished

A run of `roadstead sweep --tables` is such a folder NAME, without the files of FOLDER.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from roadstead.config.files import read_bytes
from roadstead.config.scenario.read import ScenarioFile, SourceText, restored_scenario
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.result import InputDigest
from roadstead.simulator.summary import RunSummary

SCENARIO_FILE: Final = "scenario.yaml"
RECORD_FILE: Final = "run.json"
SUMMARY_FILE: Final = "summary.json"
REPORT_FILE: Final = "report.html"
COMPARISON_FILE: Final = "compare.json"
INPUTS_FOLDER: Final = "inputs"
DOCUMENT_FILE: Final = f"{INPUTS_FOLDER}/scenario.json"
"""The document of the scenario, with the keys that it inherits (`extends`)."""

UNFINISHED: Final = ".unfinished"
"""Suffix of a file that is being written."""

PODS: Final = "pods"
"""The table by which the folder of a run is recognized."""

MAX_RECORD_BYTES: Final = 16 << 20
MAX_SUMMARY_BYTES: Final = 1 << 28
"""Maximum sizes of files that are read, because a folder may be another user's."""

PLATFORM: Final = frozenset({"platform"})
"""Names in `RunRecord.versions` whose version does not affect results."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordedRun(_Record):
    """A run: its folder's name, its configuration ("default" for the included one), its seed."""

    name: str = Field(min_length=1, max_length=300, pattern=r"^[^/\x00]*[0-9]$")
    config: str
    seed: int


class StoredInput(_Record):
    """A file that the scenario names.

    place: path in its document, as fleet[0].trace. name: relative to the scenario's directory.
    copied_to: relative to the folder of the runs; "" if the file is too large to be copied.
    """

    place: str
    name: str
    copied_to: str = ""


class RunRecord(_Record):
    """The content of `run.json`.

    directory: of the scenario, relative to the folder. is_repeatable: playing a run again gives the
    same tables. inputs: name → SHA-256. files: all that the scenario names. versions: package →
    version.
    """

    format: int = Field(ge=1, le=1)
    directory: str
    is_repeatable: bool
    runs: tuple[RecordedRun, ...] = Field(min_length=1, max_length=100_000)
    inputs: dict[str, str]
    files: tuple[StoredInput, ...]
    plugins: tuple[str, ...] = ()
    versions: dict[str, str]


def write_record(folder: Path, record: RunRecord, scenario_text: str) -> None:
    """Write `scenario.yaml` and `run.json`. Raises InputError if they cannot be written."""
    replace_text(folder / SCENARIO_FILE, scenario_text)
    text = json.dumps(record.model_dump(mode="json"), indent=2)
    replace_text(folder / RECORD_FILE, f"{text}\n")


def replace_text(path: Path, text: str) -> None:
    """Write a file under another name, and rename it when it is complete. Raises InputError."""
    unfinished = path.with_suffix(UNFINISHED)
    try:
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from error


def write_summary(folder: Path, summary: RunSummary) -> None:
    """Write the `summary.json` of a run, which marks it as finished. Raises InputError."""
    replace_text(folder / SUMMARY_FILE, f"{json.dumps(summary.as_json(), indent=2)}\n")


def read_summary(folder: Path) -> RunSummary:
    """Read the `summary.json` of a run. Raises InputError if it is missing or wrong."""
    path = folder / SUMMARY_FILE
    content = read_bytes(path, MAX_SUMMARY_BYTES)
    try:
        summary = RunSummary.from_json(json.loads(content))
        if not isinstance(summary.config, str):
            raise TypeError
        if not all(isinstance(each, int) for each in (summary.seed, summary.horizon_us)):
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError("is no summary of a simulated run", source=str(path)) from error
    return summary


def read_record(folder: Path) -> RunRecord:
    """Read `run.json`. Raises InputError if it is missing or wrong."""
    path = folder / RECORD_FILE
    if not path.is_file():
        problem = "holds no simulated runs (roadstead simulate writes them)"
        raise InputError(problem if folder.is_dir() else "does not exist", source=str(folder))
    try:
        return RunRecord.model_validate_json(read_bytes(path, MAX_RECORD_BYTES))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        shown = cut_short(first["input"])
        raise InputError(first["msg"], source=str(path), field=field, value=shown) from None


def recorded_scenario(folder: Path, record: RunRecord) -> ScenarioFile:
    """Return the scenario of a folder, with the copies of its files.

    Files without a copy are where they were, relative to the folder. Raises InputError.
    """
    path = folder / SCENARIO_FILE
    text = read_bytes(path, MAX_RECORD_BYTES).decode("utf-8", errors="replace")
    directory = Path(os.path.normpath(folder / record.directory))
    stored: dict[str, list[Path]] = {}
    names: dict[Path, str] = {}
    for each in record.files:
        path_now = folder / each.copied_to if each.copied_to else directory / each.name
        if not each.copied_to and not path_now.is_file():
            digest = record.inputs.get(each.name, "unknown")
            problem = f"does not exist; it was too large for a copy in {folder} (SHA-256 {digest})"
            raise InputError(problem, source=str(path_now))
        stored.setdefault(each.place, []).append(path_now)
        names[path_now] = each.name
    main = SourceText(str(path), text, directory)
    return restored_scenario(_document(folder), main, stored, names)


def _document(folder: Path) -> dict[str, object]:
    path = folder / DOCUMENT_FILE
    try:
        document = json.loads(read_bytes(path, MAX_RECORD_BYTES))
    except (ValueError, RecursionError) as error:
        raise InputError("is no document of a scenario", source=str(path)) from error
    if not isinstance(document, dict):
        raise InputError("is no document of a scenario", source=str(path))
    return document


def check_inputs(
    folder: Path,
    record: RunRecord,
    inputs: Sequence[InputDigest],
    plugins: Sequence[str],
    versions: Mapping[str, str],
) -> None:
    """Raise InputError unless a run that is played now gives the results of the recorded one."""
    source = str(folder / RECORD_FILE)
    if not record.is_repeatable:
        problem = "decision_time: measured differs from run to run, so a run cannot be repeated"
        raise InputError(problem, source=source)
    now = {each.name: each.sha256 for each in inputs}
    for name in sorted(now.keys() | record.inputs.keys()):
        if now.get(name) != record.inputs.get(name):
            problem = "is not what the run was played with, so the run cannot be repeated"
            raise InputError(problem, source=source, field="inputs", value=f'"{name}"')
    if tuple(plugins) != record.plugins:
        names = " ".join(f"--plugin {each}" for each in record.plugins) or "no --plugin"
        problem = f"was played with {names}; give the same, since a folder names no code to run"
        raise InputError(problem, source=source, field="plugins")
    for name in sorted((versions.keys() | record.versions.keys()) - PLATFORM):
        recorded, present = record.versions.get(name, "none"), versions.get(name, "none")
        if recorded != present:
            problem = f"was {recorded} and is {present} here, so the run cannot be repeated exactly"
            raise InputError(problem, source=source, field=f"versions.{name}")


def run_folders(folder: Path) -> list[tuple[Path, RecordedRun]]:
    """Return the runs of a folder, or the one run if it is the folder of a run.

    Those that have no tables yet are left out. Raises InputError if there are none.
    """
    if (folder / PODS).is_dir() and not (folder / RECORD_FILE).exists():
        path = folder.absolute()
        if not (path.parent / RECORD_FILE).exists() and (folder / SUMMARY_FILE).exists():
            # A run of a sweep.
            summary = read_summary(folder)
            config, seed = summary.config, summary.seed
            # Not validated: the name is for display, and no record refers to it.
            return [(folder, RecordedRun.model_construct(name=path.name, config=config, seed=seed))]
        runs = read_record(path.parent).runs
        with_tables = [(folder, each) for each in runs if each.name == path.name]
    else:
        runs = read_record(folder).runs
        with_tables = [(folder / each.name, each) for each in runs if (folder / each.name).is_dir()]
    if not with_tables:
        raise InputError("has no run with tables yet", source=str(folder))
    return with_tables
