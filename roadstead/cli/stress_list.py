"""`roadstead stress --list`: presets, studies and the parameters that can be set or swept.

A preset is an included sweep; a study is what a sweep runs, a model or the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from roadstead.api.product_runs import DEFAULT_FLEET, SCENARIOS
from roadstead.cli.stress_options import FLAGS
from roadstead.cli.stress_plan import PARAMETER_OF_FLAG, PRODUCT
from roadstead.cli.stress_product import PARAMETERS
from roadstead.lab.presets import PRESETS
from roadstead.lab.studies import MODEL_STUDIES, Parameter, Value
from roadstead.report.text_table import Cells, Column, print_table, text_column

PRODUCT_TEXT = "the product's actors on a scenario, or on --cluster, --pods or --trace"
WORKLOAD = Parameter(
    "workload",
    DEFAULT_FLEET,
    "the demo's fleet or a scenario",
    choices=(DEFAULT_FLEET, *SCENARIOS),
)


def print_list(console: Console) -> None:
    """Print every preset, every study, then the parameters of each study."""
    presets: list[Cells] = [
        [name, preset.study, ", ".join(preset.vary), str(preset.seeds), preset.title]
        for name, preset in PRESETS.items()
    ]
    columns = [
        *map(text_column, ("preset", "study", "varies")),
        Column("seeds"),
        text_column("title"),
    ]
    print_table(console, "Presets (--preset NAME)", columns, presets)
    studies = {each.name: (each.text, each.parameters) for each in MODEL_STUDIES.values()}
    studies[PRODUCT] = PRODUCT_TEXT, (WORKLOAD, *PARAMETERS)
    rows: list[Cells] = [[name, what] for name, (what, _) in studies.items()]
    print_table(
        console, "Studies (--study NAME)", [text_column("study"), text_column("description")], rows
    )
    for name, (_, parameters) in studies.items():
        _print_parameters(console, name, parameters)


def _print_parameters(console: Console, study: str, parameters: Sequence[Parameter]) -> None:
    rows: list[Cells] = [
        [each.name, flag_of(study, each.name), _shown(each.default), _values(each), each.text]
        for each in parameters
    ]
    columns = list(map(text_column, ("parameter", "flag", "default", "values", "meaning")))
    print_table(console, f"Parameters of --study {study}", columns, rows)


def _values(parameter: Parameter) -> str:
    if parameter.choices:
        return ", ".join(parameter.choices)
    return f"{_shown(parameter.low)} to {_shown(parameter.high)}"


def _shown(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"


def flag_of(study: str, parameter: str) -> str:
    """The flag of a parameter, or --vary, which accepts every parameter."""
    return next(_flags_of(study, parameter), "--vary")


def _flags_of(study: str, parameter: str) -> Iterator[str]:
    named = PARAMETER_OF_FLAG.get(study, {})
    return (f"--{flag}" for flag in FLAGS if named.get(flag, flag) == parameter)
