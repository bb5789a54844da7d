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

Origin = Callable[[str], Mapping[str, str]]
"""Returns the origin of an argument (`a`, `b`) for an InputError: `source`, and `field` if any."""


@dataclass(frozen=True, slots=True)
class Side:
    """A configuration, None for that of the scenario, and the plugins of this side alone.

    Plugins are named as for `--plugin`.
    """

    config: str | None
    plugins: tuple[str, ...] = ()

    def values(self, keys: Sequence[str]) -> dict[str, object]:
        """Return the values of this side at `keys`: `config`, `plugin` or both."""
        config = None if self.config is None else config_value(self.config)
        several = list(self.plugins) if len(self.plugins) > 1 else None
        values = {CONFIG: config, PLUGIN: several or (self.plugins[0] if self.plugins else None)}
        return {key: values[key] for key in keys}

    @property
    def name(self) -> str:
        """The name for display."""
        plugins = ", ".join(self.plugins)
        if self.config is None:
            return plugins or NO_PLUGINS
        return f"{self.config} with {plugins}" if plugins else self.config


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """Two sides, and the sweep that plays both: two combinations of the keys `config`, `plugin`."""

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
        of_side = [row for row in rows if row.values == values]
        return RunGroup.of(side.name, sweep_runs(of_side, prepared.folder.output))


def sides_of(
    file: ScenarioFile, a: Side, b: Side, seeds: int | None, origin: Origin
) -> ComparedSides:
    """Return the sides and their sweep. InputError if they are equal, or one is missing."""
    for name, side, other in (("a", a, b), ("b", b, a)):
        if side.config is not None:
            continue
        if other.config is not None or not (a.plugins or b.plugins):
            problem = "is missing: name both configurations, plugins that differ, or a second run"
            raise InputError(problem, **origin(name))
        # Sides that differ in plugins alone use the scenario's own configuration.
        if len(configs_of(file)) > 1:
            problem = "is missing: the scenario has several configurations"
            raise InputError(problem, **origin(name))
    keys = [CONFIG] if a.config is not None else []
    if a.plugins != b.plugins:
        keys.append(PLUGIN)
    if not keys or a.values(keys) == b.values(keys):
        what = "configuration as" if a.config is not None else "plugin as"
        value = b.config if b.config is not None else ", ".join(b.plugins)
        raise InputError(f"is the same {what} A", **origin("b"), value=cut_short(value))
    both = [side.values(keys) for side in (a, b)]
    axes = tuple((key, tuple(values[key] for values in both)) for key in keys)
    chosen = tuple(range(seeds)) if seeds is not None else tuple(file.scenario.seeds)
    # Zipped: A has the first value of each key, B the second; other combinations are not played.
    planned = ScenarioSweep(file.scenario.metadata.name, axes, chosen, is_zipped=True)
    planned.check()
    return ComparedSides(a, b, planned)


def config_value(name: str) -> str:
    """Return a configuration as a value of `config`: a file is relative to the working folder."""
    return str(Path(name).resolve()) if Path(name).is_file() else name
