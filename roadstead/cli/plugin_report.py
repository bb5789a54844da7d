"""What is printed of plugins: the checks of one, and all that are known."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from roadstead.cli.options import Form
from roadstead.cli.plugin_choice import choose_plugins
from roadstead.cli.plugin_outcome import Outcome
from roadstead.cli.plugin_trial import Trial
from roadstead.cli.result_forms import print_json
from roadstead.config.intree import IN_TREE_POINTS, OPTIONAL_POINTS
from roadstead.config.model import default_config
from roadstead.framework.plugin import EXTENSION_POINTS, Plugin
from roadstead.framework.registry import extension_points
from roadstead.framework.user_plugins import installed_plugins, load_plugin_class
from roadstead.protocol.errors import InputError, cut_short, printable

_STYLES: Mapping[Outcome, str] = {
    Outcome.OK: "green",
    Outcome.WARNING: "yellow",
    Outcome.FAILED: "bold red",
}


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """origin: in-tree, or the dotted path. enabled: in the default configuration."""

    name: str
    origin: str
    points: tuple[str, ...]
    enabled: bool


def read_args(text: str | None) -> object:
    """Arguments as typed. InputError for what is not JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("is not JSON", field="--args", value=cut_short(text)) from error


def print_checks(path: str, trial: Trial, form: Form) -> None:
    """The checks as a table with a verdict, or as one JSON document."""
    kind, checks = trial.subject.kind, trial.checks
    if form == "json":
        about = {"plugin": kind.name, "path": path, "points": _in_order(kind), "fleet": trial.fleet}
        print_json(about | {"checks": [asdict(check) for check in checks]})
        return
    title = f"{kind.name} ({', '.join(_in_order(kind))}) on {printable(trial.fleet)}"
    grid = Grid(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    grid.add_column("check")
    grid.add_column("outcome")
    grid.add_column("cases", justify="right")
    grid.add_column("what", overflow="fold")
    for check in checks:
        style = _STYLES[check.outcome]
        cases = f"{check.cases:,}"
        grid.add_row(check.name, Text(check.outcome, style), cases, Text(printable(check.text)))
    console = Console()
    console.print(grid)
    console.print(_verdict([check.outcome for check in checks]))


def _verdict(outcomes: Sequence[Outcome]) -> str:
    failed, warned = (outcomes.count(each) for each in (Outcome.FAILED, Outcome.WARNING))
    if failed:
        return f"{failed} of {len(outcomes)} checks failed"
    if warned:
        return f"No check failed; {warned} warned (--strict: exit status 1)"
    return "All checks passed"


def known_plugins(paths: Sequence[str]) -> list[KnownPlugin]:
    """The in-tree plugins, the installed ones, and those of `paths`, in this order."""
    profile = default_config().profiles[0]
    enabled = {ref.name for point in EXTENSION_POINTS for ref in profile.at(point)}
    known = [
        KnownPlugin(name, "in-tree", _sorted(points), name in enabled)
        for name, points in {**IN_TREE_POINTS, **OPTIONAL_POINTS}.items()
    ]
    for path in installed_plugins().values():
        known.append(_of_user(load_plugin_class(path), path))
    kinds = choose_plugins(paths).kinds.values()
    return known + [_of_user(kind, path) for kind, path in zip(kinds, paths, strict=False)]


def _of_user(kind: type[Plugin], path: str) -> KnownPlugin:
    return KnownPlugin(kind.name, path, _in_order(kind), enabled=False)


def _in_order(kind: type[Plugin]) -> tuple[str, ...]:
    return _sorted(extension_points(kind))


def _sorted(points: Container[str]) -> tuple[str, ...]:
    return tuple(point for point in EXTENSION_POINTS if point in points)


def print_plugins(plugins: Sequence[KnownPlugin], form: Form) -> None:
    """As a table, or as one JSON document."""
    if form == "json":
        print_json({"plugins": [asdict(each) for each in plugins]})
        return
    grid = Grid(box=box.SIMPLE_HEAD)
    for title in ("plugin", "by default", "from", "extension points"):
        grid.add_column(title, overflow="fold")
    for each in plugins:
        default = "on" if each.enabled else "off"
        grid.add_row(each.name, default, Text(each.origin), ", ".join(each.points))
    Console().print(grid)
