"""Reading of scenario files: YAML or JSON, `extends`, and errors with file, line, path and rule."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from roadstead.config.decode import rule_of
from roadstead.config.errors import ConfigError, Problem, malformed
from roadstead.config.files import MAX_TEXT_BYTES, read_text
from roadstead.config.lines import line_of
from roadstead.config.reader import KeyPath, join_path, read_document
from roadstead.config.scenario.schema import API_VERSION, KIND, Scenario
from roadstead.config.scenario.structure import known_keys
from roadstead.protocol.errors import InputError, cut_short

EXTENDS_MAX: Final = 10
"""Number of scenarios that may extend each other in a chain."""

_TYPE_ERRORS: Final = frozenset(
    {"string_type", "dict_type", "list_type", "int_type", "model_type", "dataclass_type"}
)
"""Types of the error that a value is not of one type of a union. It is left out if there are errors
below the value: then the value is meant for another type of the union."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """One file of a scenario. directory: relative names of files in it start there."""

    source: str
    text: str
    directory: Path


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario. origins: by top-level key, the file in which the key is written.

    main: the file that was read first; it may extend others. named_files: path in the document,
    such as `fleet[0].trace` → file that it names, in the order of the calls of `existing_file`.
    copies: path in the document → copies in the folder of a run, which are read instead of the
    files that the document names; several only for the manifests of a fleet. original_names:
    copy → name of the original file.
    """

    scenario: Scenario
    document: Mapping[str, object]
    main: SourceText
    origins: Mapping[str, SourceText] = field(default_factory=dict)
    named_files: dict[str, Path] = field(default_factory=dict, compare=False)
    copies: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    original_names: Mapping[Path, str] = field(default_factory=dict)

    def origin(self, path: Sequence[str | int]) -> SourceText:
        """Return the file in which a path is written."""
        return self.origins.get(str(path[0]), self.main) if path else self.main

    def file(self, path: Sequence[str | int], name: str) -> Path:
        """Return the file that a value names, relative to the file that contains the value."""
        return self.origin(path).directory / name

    def existing_file(self, path: Sequence[str | int], name: str) -> Path:
        """Return the file that a value names, and record it. InputError if there is none."""
        key = join_path("", path)
        existing = self.copies[key][0] if key in self.copies else self.file(path, name)
        if problem := _file_problem(existing):
            raise self.error(path, problem, name)
        self.named_files[key] = existing
        return existing

    def name_of(self, path: Path) -> str:
        """Return the name of a file that the scenario names, relative to its directory."""
        return self.original_names.get(path) or os.path.relpath(path, self.main.directory)

    def place(self, path: Sequence[str | int]) -> str:
        """Return file, line and path of a value, for errors of values below it."""
        origin = self.origin(path)
        line = line_of(origin.text, path)
        return f"{origin.source}: line {line}: {join_path('', path)}"

    def error(self, path: Sequence[str | int], rule: str, value: object = None) -> InputError:
        """Return the error of a value that breaks a rule. value: None shows none."""
        shown = None if value is None else cut_short(value)
        origin = self.origin(path)
        problem = Problem(join_path("", path), rule, value=shown, line=line_of(origin.text, path))
        return ConfigError("validate", [problem], source=origin.source)


def load_scenario(path: Path) -> ScenarioFile:
    """Read a scenario and those that it extends.

    Raises:
        InputError: a file that cannot be read, is no scenario, or extends itself; a ConfigError
            names every wrong key.
    """
    document, origins, main = _read_file(path, ())
    return _validated(document, origins, main)


def read_scenario(
    text: str, *, source: str, directory: Path, max_bytes: int = MAX_TEXT_BYTES
) -> ScenarioFile:
    """Read a scenario from a text. Raises as `load_scenario`."""
    main = SourceText(source, text, directory)
    return _validated(*_with_extended(_scenario_document(main, max_bytes), main, ()), main)


def restored_scenario(
    document: dict[str, object],
    main: SourceText,
    copies: Mapping[str, Sequence[Path]],
    original_names: Mapping[Path, str],
) -> ScenarioFile:
    """Return the scenario of a run's folder. document: with all keys of those that it extends.

    main, copies, original_names: as in `ScenarioFile`. Raises as `load_scenario`.
    """
    file = _validated(document, {}, main)
    return replace(file, copies=copies, original_names=original_names)


_Merged = tuple[dict[str, object], dict[str, SourceText]]
"""(document, file in which each of its keys is written)."""


def _read_file(path: Path, extended_by: tuple[Path, ...]) -> tuple[*_Merged, SourceText]:
    main = SourceText(str(path), read_text(path, MAX_TEXT_BYTES), path.parent)
    return *_with_extended(_scenario_document(main), main, (*extended_by, path.resolve())), main


def _with_extended(
    document: dict[str, object], main: SourceText, chain: tuple[Path, ...]
) -> _Merged:
    """Add the keys of the scenario that a document extends.

    chain: the file of the document, after those that extend it, directly or not.
    """
    origins = dict.fromkeys(document, main)
    name = document.get("extends")
    if not isinstance(name, str) or not name or "\0" in name:
        return document, origins
    extended = main.directory / name
    rule = _file_problem(extended)
    if not rule and extended.resolve() in chain:
        rule = "extends itself" if extended.resolve() == chain[-1] else "extends this file again"
    elif not rule and len(chain) >= EXTENDS_MAX:
        rule = f"is the end of a chain of more than {EXTENDS_MAX} scenarios"
    if rule:
        line = line_of(main.text, ["extends"])
        problem = Problem("extends", rule, value=cut_short(name), line=line)
        raise ConfigError("decode", [problem], source=main.source)
    extended_document, extended_origins, _ = _read_file(extended, chain)
    return extended_document | document, extended_origins | origins


def _file_problem(path: Path) -> str:
    """Return why a path is no file; empty if it is one."""
    # Unlike these functions, methods of Path raise OSError for a name that is too long.
    if os.path.isfile(path):
        return ""
    return "is not a file" if os.path.exists(path) else "does not exist"


def _scenario_document(main: SourceText, max_bytes: int = MAX_TEXT_BYTES) -> dict[str, object]:
    document = read_document(main.text, source=main.source, max_bytes=max_bytes)
    problem = None
    if not isinstance(document, dict):
        rule = f"must be a mapping of kind {KIND}"
        is_empty = document is None
        problem = Problem("", f"is empty; {rule}") if is_empty else malformed("", document, rule)
    elif document.get("kind") != KIND:
        problem = _type_problem("kind", document.get("kind"), KIND)
    elif document.get("apiVersion") != API_VERSION:
        problem = _type_problem("apiVersion", document.get("apiVersion"), API_VERSION)
    if problem is not None:
        line = line_of(main.text, [problem.field]) if problem.field else 0
        raise ConfigError("decode", [replace(problem, line=line)], source=main.source)
    assert isinstance(document, dict)
    return document


def _type_problem(field: str, value: object, wanted: str) -> Problem:
    if value is None:
        return Problem(field, f"is missing (want {wanted})")
    return malformed(field, value, f"is not known (want {wanted})")


def _validated(
    document: dict[str, object], origins: dict[str, SourceText], main: SourceText
) -> ScenarioFile:
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as error:
        problems_by_source = _problems(error, document, origins, main)
        source = problems_by_source[0][0]
        problems = [problem for each, problem in problems_by_source if each == source]
        raise ConfigError("decode", problems, source=source) from None
    return ScenarioFile(scenario, document, main, origins)


def _problems(
    error: ValidationError,
    document: Mapping[str, object],
    origins: Mapping[str, SourceText],
    main: SourceText,
) -> list[tuple[str, Problem]]:
    """Return (file, problem) for each error, in the order of the documents' lines."""
    details = error.errors(include_url=False)
    paths = [_path_in(document, each) for each in details]
    # Paths below which there is an error.
    above = {path[:length] for path in paths for length in range(len(path))}
    problem_at: dict[KeyPath, tuple[str, Problem]] = {}
    for each, path in zip(details, paths, strict=True):
        # The errors below this path belong to the type of the union that is meant.
        fits_worse = each["type"] in _TYPE_ERRORS and path in above
        if path in problem_at or fits_worse:
            continue
        origin = origins.get(str(path[0]), main) if path else main
        line = line_of(origin.text, path)
        problem_at[path] = origin.source, replace(_problem(each, path), line=line)
    return sorted(problem_at.values(), key=lambda each: (each[0] != main.source, each[1].line))


def _path_in(document: object, error: ErrorDetails) -> KeyPath:
    """Return the location of an error without the names of the choices of unions."""
    path: list[str | int] = []
    value: Any = document
    for part in error["loc"]:
        if _has(value, part):
            value = value[part]
        elif error["type"] != "missing" or part != error["loc"][-1]:
            continue
        path.append(part)
    return tuple(path)


def _has(value: object, part: str | int) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _problem(error: ErrorDetails, path: KeyPath) -> Problem:
    rule, value = rule_of(error), error["input"]
    if error["type"] == "missing":
        return Problem(join_path("", path), "is missing")
    if error["type"] == "extra_forbidden":
        rule += _suggestion(path)
    elif error["type"] == "too_short" and not error["input"]:
        return Problem(join_path("", path), "is empty")
    elif error["type"] == "value_error" and isinstance(value, dict):
        # The rule names the keys; the mapping as a value would add nothing.
        return Problem(join_path("", path), rule)
    return malformed(join_path("", path), value, rule)


def _suggestion(path: KeyPath) -> str:
    close = get_close_matches(str(path[-1]), known_keys(Scenario, path[:-1]), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
