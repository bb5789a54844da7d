"""Plans of scenarios, with the plugins of the user that their configurations name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from roadstead.api.plugin_choice import PLUGIN_OPTION, ChosenPlugins, choose_plugins
from roadstead.config.scenario.read import ScenarioFile, load_scenario
from roadstead.scenario.compile import compile_scenario, config_texts
from roadstead.simulator.scenario import CompiledScenario, SchedulerConfigText


def load_scenario_plan(
    path: Path, plugins: Sequence[str] = ()
) -> tuple[CompiledScenario, ChosenPlugins]:
    """Read and compile a scenario; return it with its plugins. Nothing of it has run.

    plugins: as for `--plugin`; installed ones are found by name. If the scenario has no
    configuration, the plugins are added to the default one. Raises InputError.
    """
    return plan_of(load_scenario(path), plugins)


def plan_of(
    file: ScenarioFile, plugins: Sequence[str] = (), directory: str = ""
) -> tuple[CompiledScenario, ChosenPlugins]:
    """Compile a scenario that was read, as `load_scenario_plan`.

    directory: of plugins that are not installed; by default the working directory.
    """
    configs = tuple(config_texts(file))
    text = "\n".join(each.text for each in configs)
    chosen = choose_plugins(plugins, text, directory)
    notes = []
    if chosen.types and not configs:
        configs = (SchedulerConfigText("plugins", PLUGIN_OPTION, chosen.as_config()),)
    else:
        notes = [
            f"Plugin {name} is not used: no configuration of the scenario names it."
            for name in chosen.unused_in(text)
        ]
    plan = compile_scenario(file, chosen.types, configs)
    return replace(plan, notes=(*plan.notes, *notes)), chosen
