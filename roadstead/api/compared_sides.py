"""The two sides of a comparison on one scenario: a configuration and plugins each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roadstead.api.paired_runs import Comparison, RunGroup, compare_groups, sweep_runs
from roadstead.api.scenario_sweep import PreparedSweep
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.vary import CONFIG, PLUGIN, configs_of
from roadstead.lab.scenario_sweep import ScenarioSweep, SweepRow
from roadstead.protocol.errors import InputError, cut_short

NO_PLUGINS: Final = "no plugin"

Place = Callable[[str], Mapping[str, str]]
"""Returns the place of an argument (`a`, `b`) for an InputError: a flag, or a field."""


@dataclass(frozen=True, slots=True)
class Side:
    """A configuration, None for that of the scenario, and the plugins of this side alone.

    Plugins are named as for `--plugin`.
    """

    config: str | None
    plugins: tuple[str, ...] = ()

    def values(self, keys: Sequence[str]) -> dict[str, object]:
        """Return the values of the sweep at some of the keys `config` and `plugin`."""
        config = None if self.config is None else config_value(self.config)
        several = list(self.plugins) if len(self.plugins) > 1 else None
        found = {CONFIG: config, PLUGIN: several or (self.plugins[0] if self.plugins else None)}
        return {key: found[key] for key in keys}

    @property
    def name(self) -> str:
        """The name for display."""
        plugins = ", ".join(self.plugins)
        if self.config is None:
            return plugins or NO_PLUGINS
        return f"{self.config} with {plugins}" if plugins else self.config


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """Two sides, and the sweep that plays both."""

    a: Side
    b: Side
    planned: ScenarioSweep

    def compare(
        self, prepared: PreparedSweep, rows: Sequence[SweepRow]
    ) -> tuple[Comparison, tuple[RunGroup, RunGroup]]:
        """Compare the runs of the sweep that ended."""
        keys = [key for key, _ in self.planned.axes]
        a, b = (self._group(each, keys, prepared, rows) for each in (self.a, self.b))
        return compare_groups(a, b, prepared.inputs), (a, b)

    def _group(
        self, side: Side, keys: Sequence[str], prepared: PreparedSweep, rows: Sequence[SweepRow]
    ) -> RunGroup:
        values = side.values(keys)
        found = [row for row in rows if row.values == values]
        return RunGroup.of(side.name, sweep_runs(found, prepared.folder.output))


def sides_of(
    file: ScenarioFile, a: Side, b: Side, seeds: int | None, place: Place
) -> ComparedSides:
    """Return the sides and their sweep. InputError if they are equal, or one is missing."""
    for name, side, other in (("a", a, b), ("b", b, a)):
        if side.config is not None:
            continue
        if other.config is not None or not (a.plugins or b.plugins):
            problem = "is missing: name both configurations, plugins that differ, or a second run"
            raise InputError(problem, **place(name))
        # Sides that differ in plugins alone use the scenario's own configuration.
        if len(configs_of(file)) > 1:
            problem = "is missing: the scenario has several configurations"
            raise InputError(problem, **place(name))
    keys = [CONFIG] if a.config is not None else []
    if a.plugins != b.plugins:
        keys.append(PLUGIN)
    if not keys or a.values(keys) == b.values(keys):
        what = "configuration as" if a.config is not None else "plugin as"
        value = b.config if b.config is not None else ", ".join(b.plugins)
        raise InputError(f"is the same {what} A", **place("b"), value=cut_short(value))
    both = [side.values(keys) for side in (a, b)]
    axes = tuple((key, tuple(values[key] for values in both)) for key in keys)
    chosen = tuple(range(seeds)) if seeds is not None else tuple(file.scenario.seeds)
    planned = ScenarioSweep(file.scenario.metadata.name, axes, chosen, is_zipped=True)
    planned.check()
    return ComparedSides(a, b, planned)


def config_value(name: str) -> str:
    """Return a configuration as a value of `config`: a file is relative to the working folder."""
    return str(Path(name).resolve()) if Path(name).is_file() else name
