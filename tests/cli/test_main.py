"""The command group: useful help, a version, and no heavy imports before they are needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import roadstead
from roadstead.cli.main import build_cli
from roadstead.cli.options import PRESETS
from roadstead.config.presets import list_presets
from roadstead.config.settings import Settings
from tests.cli.conftest import Run
from tests.cli.plain_launcher import PlainLauncher

README = Path(__file__).parents[2] / "README.md"
COMMANDS = [
    "demo",
    "schedule",
    "explain",
    "fit",
    "grow",
    "drain",
    "trace",
    "scenario",
    "simulate",
    "why",
    "query",
    "sweep",
    "compare",
    "bench",
    "check",
    "stress",
    "config",
    "plugin",
    "cluster",
]


def test_help_names_every_command_and_the_first_steps(run: Run) -> None:
    result = run("--help")

    assert result.exit_code == 0
    commands = re.findall(r"^  ([\w-]+)  ", result.output.partition("Commands:")[2], re.M)
    assert commands == COMMANDS, "add the command to COMMANDS in this module"
    assert "roadstead schedule --cluster nodes.yaml --pods app/" in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_lists_each_command(name: str) -> None:
    section = README.read_text().partition("`roadstead COMMAND --help` lists")[2]
    block = re.findall(r"^```\n(.*?)^```", section, re.M | re.S)[0]
    listed = re.findall(r"\broadstead ([\w-]+)", block)

    assert name in listed, f"add `roadstead {name}` to the list of commands in README.md"


@pytest.mark.parametrize(
    ("words", "word", "shown"),
    [("roadstead sch", "1", "plain,schedule\n"), ("roadstead shedule ", "2", None)],
    ids=["a command", "after an unknown command"],
)
def test_shells_can_complete(
    monkeypatch: pytest.MonkeyPatch, words: str, word: str, shown: str | None
) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", word)
    monkeypatch.setenv("_ROADSTEAD_COMPLETE", "bash_complete")

    result = CliRunner().invoke(build_cli(PlainLauncher), prog_name="roadstead")

    assert shown in (None, result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")


def test_an_unknown_command_gets_a_suggestion(run: Run) -> None:
    like, unlike = run("shedule"), run("zzz")

    assert (like.exit_code, unlike.exit_code) == (2, 2)
    assert "No such command 'shedule'. Did you mean 'schedule'?" in like.stderr
    assert "No such command 'zzz'." in unlike.stderr


def test_a_short_flag_prints_help_as_well(run: Run) -> None:
    assert run("demo", "-h").output == run("demo", "--help").output


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version").output == f"roadstead {roadstead.__version__}\n"


@pytest.mark.parametrize("args", [["nonsense"], ["schedule", "--nonsense"], ["explain"]])
def test_wrong_usage_exits_2_and_mentions_help(run: Run, args: list[str]) -> None:
    result = run(*args)

    assert result.exit_code == 2
    assert "--help" in result.stderr
    assert result.stdout == ""


def test_help_shows_actual_defaults_and_presets(run: Run) -> None:
    text = " ".join(run("schedule", "--help").output.split())

    for name in ("seed", "schedulers", "batch"):
        assert re.search(rf"--{name} N .*?\[default: {getattr(Settings(), name)}\]", text)
    assert re.search(rf"--workers N\|auto .*?\[default: {Settings().workers}\]", text)
    assert re.search(r"--partitions N .*?\[default: one for each scheduler, at least 2\]", text)
    parts = [Settings(mode="partitioned", schedulers=count).partition_count for count in (1, 2, 5)]
    assert parts == [2, 2, 5]
    assert ", ".join(list_presets()) == PRESETS
    assert (Settings().runtime, Settings().tie_break) == ("ray", "random")


@pytest.mark.parametrize(
    ("args", "unwanted"),
    [
        (["--help"], ["rich", "numpy", "pydantic", "yaml", "roadstead.run"]),
        (["schedule", "--help"], ["rich", "numpy", "pydantic", "yaml", "roadstead.run"]),
        (["config", "--help"], ["rich", "numpy", "pydantic", "yaml", "roadstead.run"]),
        (
            ["demo", "--nodes", "2", "--pods", "2", "--format", "json"],
            ["rich", "yaml", "arro3", "ray", "roadstead.protocol.objects"],
        ),
    ],
)
def test_a_command_loads_only_what_it_needs(args: list[str], unwanted: list[str]) -> None:
    program = f"""
import sys
from roadstead.cli.main import build_cli
from roadstead.cli import session

class Idle:
    def prepare(self, settings, log_dir):
        pass

    def run(self, inputs, plan, progress):
        from roadstead.run import RunOutcome
        return RunOutcome((), (), 1.0, {{}})

    def finish(self, plan):
        pass

build_cli(Idle)({args!r}, standalone_mode=False)
print([name for name in {unwanted!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.stderr.splitlines()[-1] == "[]"
    assert done.returncode == 0
