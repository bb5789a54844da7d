"""`roadstead.Scenario`: a fleet over time, as the commands read it from a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from roadstead.api.config_source import Document, document_text
from roadstead.api.scenario_entries import (
    Duration,
    Entry,
    Fleet,
    Object,
    Workload,
    without_none,
)
from roadstead.api.scenario_plan import plan_of
from roadstead.config.errors import ConfigError
from roadstead.config.scenario.read import (
    ScenarioFile,
    SourceText,
    load_scenario,
    read_scenario,
)
from roadstead.config.scenario.schema import API_VERSION, KIND
from roadstead.config.scenario.vary import PLUGIN, vary
from roadstead.config.scenario.vary import SOURCE as VARY_SOURCE
from roadstead.config.yaml_text import yaml_text
from roadstead.protocol.errors import InputError
from roadstead.scenario.summary import ScenarioSummary, summarize

SOURCE: Final = "scenario"
"""Name of a scenario that is not read from a file, in errors."""

CHANGED: Final = ", changed"
"""End of the name of a scenario that `with_values` returned, in errors."""


class Scenario:
    """A fleet, the pods that arrive, and the events of its nodes. It never changes.

    Arguments are the keys of docs/scenario.md; one that is left out has its default. name,
    description: of `metadata`. fleet, workload: entries, or mappings as in the document. Names of
    files are relative to the working directory. Raises InputError, which names the key.
    """

    __slots__ = ("_file",)

    def __init__(
        self,
        name: str,
        *,
        fleet: Iterable[Fleet | Object],
        workload: Iterable[Workload | Object] | None = None,
        events: Iterable[Object] | None = None,
        shapes: Mapping[str, Object] | None = None,
        trace_gpus: Literal["amount", "devices"] | None = None,
        scheduler: Object | None = None,
        controllers: Object | None = None,
        decision_time: Duration | None = None,
        start_delay: str | None = None,
        termination_grace: str | None = None,
        horizon: str | None = None,
        sample: str | None = None,
        seeds: int | Sequence[int] | None = None,
        limits: Object | None = None,
        description: str | None = None,
    ) -> None:
        keys = without_none(
            fleet=fleet,
            workload=workload,
            events=events,
            shapes=shapes,
            trace_gpus=trace_gpus,
            scheduler=scheduler,
            controllers=controllers,
            decision_time=decision_time,
            start_delay=start_delay,
            termination_grace=termination_grace,
            horizon=horizon,
            sample=sample,
            seeds=seeds,
            limits=limits,
        )
        metadata = without_none(name=name, description=description)
        required = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}
        self._file = _read_mapping({**required, **keys})

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Scenario:
        """Read a scenario from its file. Raises InputError with file, line and key."""
        return _of_file(load_scenario(Path(os.fspath(path))))

    def __repr__(self) -> str:
        scenario = self._file.scenario
        seeds = len(scenario.seeds)
        return f"<Scenario {self.name}: {seeds:,} seed{'s' if seeds > 1 else ''}>"

    @property
    def name(self) -> str:
        """The name in `metadata`."""
        return self._file.scenario.metadata.name

    def document(self) -> dict[str, object]:
        """Return the document, with the keys of the scenarios that it extends."""
        return _document_of(self._file)

    def to_yaml(self) -> str:
        """Return `document` as YAML, for a file in the scenario's directory.

        Names of files in it are relative to that directory. Raises InputError if the scenario
        extends one in another directory, to which the names of files in its keys are relative.
        """
        # The file of this scenario, and by key the file that has the key: this one, or an extended
        # one.
        main = self._file.main
        for key, origin in self._file.origins.items():
            if origin.directory.resolve() != main.directory.resolve():
                problem = f"is from {origin.source}, to which the files that it names are relative"
                raise InputError(problem, source=main.source, field=key)
        return yaml_text(self.document(), sort_keys=False)

    def with_values(self, values: Mapping[str, object]) -> Scenario:
        """Return a scenario with other values at some keys, which are those of `sweep`.

        For example `{"seeds": 3, "workload.tasks.arrivals": {"every": "1m"}, "config": "binpack"}`.
        Raises InputError for a key that does not exist, with similar names, or a wrong value.
        """
        if PLUGIN in values:
            problem = "is no key of a scenario: name plugins where it is played"
            raise InputError(problem, source=SOURCE, field=PLUGIN)
        plain = json.loads(document_text(_plain_mapping(values), SOURCE))
        try:
            file = _without_lines(lambda: vary(self._file, plain))
        except InputError as error:
            if error.source != VARY_SOURCE:
                raise
            raise InputError(error.rule, source=SOURCE, field=error.field) from None
        return _of_file(_with_text(file, f"{file.main.source.removesuffix(CHANGED)}{CHANGED}"))

    def check(self, plugin: str | Sequence[str] = ()) -> ScenarioSummary:
        """Read all files that it names, and return its figures, as `roadstead scenario check`.

        plugin: as for `simulate`. Nothing is played. Raises InputError.
        """
        names = (plugin,) if isinstance(plugin, str) else tuple(plugin)
        return summarize(plan_of(self._file, names)[0])


ScenarioSource: TypeAlias = "Document | Scenario"
"""A scenario: its path, its content as a mapping, or a `Scenario`."""


def scenario_file(scenario: ScenarioSource) -> ScenarioFile:
    """Read a scenario. Raises InputError.

    In a mapping, names of files are relative to the working directory.
    """
    if isinstance(scenario, Scenario):
        return scenario._file
    if isinstance(scenario, Mapping):
        return _read_mapping(scenario)
    return load_scenario(Path(os.fspath(scenario)))


def _of_file(file: ScenarioFile) -> Scenario:
    scenario = object.__new__(Scenario)
    scenario._file = file
    return scenario


def _read_mapping(document: Mapping[str, object]) -> ScenarioFile:
    """Read a scenario from its content; names of files are relative to the working directory."""
    text = document_text(_plain_mapping(document), SOURCE)
    directory = Path.cwd()
    file = _without_lines(lambda: read_scenario(text, source=SOURCE, directory=directory))
    return _with_text(file, SOURCE)


def _without_lines(read: Callable[[], ScenarioFile]) -> ScenarioFile:
    """Return what `read` returns; its errors name no line, since the user has not seen the text."""
    try:
        return read()
    except ConfigError as error:
        problems = [replace(each, line=0) for each in error.problems]
        raise ConfigError(error.stage, problems, source=error.source) from None


def _with_text(file: ScenarioFile, source: str) -> ScenarioFile:
    """Return a scenario whose own text is its document as YAML. source: its name in errors."""
    main = SourceText(source, yaml_text(_document_of(file), sort_keys=False), file.main.directory)
    origins = {key: main if origin is file.main else origin for key, origin in file.origins.items()}
    return replace(file, main=main, origins=origins)


def _document_of(file: ScenarioFile) -> dict[str, object]:
    """Return the whole document of a scenario: it extends no other, but has its keys."""
    document: dict[str, object] = json.loads(json.dumps(dict(file.document)))
    document.pop("extends", None)
    return document


def _plain_mapping(values: Mapping[str, object]) -> dict[str, object]:
    return {key: _plain(value) for key, value in values.items()}


def _plain(value: object) -> object:
    """Return a value with its entries as mappings, and any other iterable as a list."""
    if isinstance(value, Entry):
        return value.document()
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    return value
