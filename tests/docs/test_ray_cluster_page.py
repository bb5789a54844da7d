"""Names in `docs/ray-cluster.md` exist: options, settings, files and messages."""

import re
from pathlib import Path

import click
import pytest

from roadstead.actors.metrics import METRICS
from roadstead.actors.runtime import ray_placement
from roadstead.actors.runtime.ray_placement import PlacementConstraints, RayNode, Unplaceable, place
from roadstead.api.launcher import open_launcher
from roadstead.cli.main import build_cli
from roadstead.config.ray import RayOptions
from roadstead.config.settings import load_settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ray-cluster.md").read_text()
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|-- |-m )(roadstead .*?)(?: +#.*)?$", re.MULTILINE)
COMMANDS = [command for block in BLOCKS for command in COMMAND.findall(block)]


def options_of(words):
    """Return the names of the options of the command with which the arguments begin."""
    command = build_cli(open_launcher)
    words = iter(words)
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), next(words))
    return {name for each in command.params for name in each.opts}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_has_its_options(command):
    words = command.split()[1:]
    used = {word for word in words if word.startswith("-")}

    assert used <= options_of(words)


def test_commands_that_join_a_cluster_are_those_of_the_page():
    line = next(each for each in PAGE.splitlines() if each.startswith("`--ray-address` is"))
    runs = ("schedule", "explain", "bench", "demo", "cluster check")
    names = (*runs, "stress", "sweep", "compare")
    joining = [name for name in names if "--ray-address" in options_of(name.split())]

    assert re.findall(r"`([a-z][a-z ]+)`", line.replace("`--ray-address`", "")) == joining


def test_settings_of_the_page_can_be_loaded():
    texts = [block for block in BLOCKS if block.startswith("# roadstead.yaml")]

    loaded = [load_settings(text) for text in texts]

    assert loaded[0].ray.labels["control"] == {"topology.kubernetes.io/zone": "zone-a"}
    assert loaded[1].deadlines.start_s == 900
    assert len(loaded) == 2


def test_the_table_of_settings_is_complete():
    rows = re.findall(r"^\| `ray\.(\w+)` \|", PAGE, re.MULTILINE)

    assert rows == list(RayOptions.model_fields)


def test_the_table_of_metrics_is_that_of_the_metrics():
    rows = re.findall(r"^\| `(roadstead_\w+)` \| (\w+) \| (\w+) \| (.+) \|$", PAGE, re.MULTILINE)

    assert rows == [(each.full_name, each.kind, each.unit, each.description) for each in METRICS]


def test_the_labels_of_single_metrics_are_named():
    for each in METRICS:
        if each.label:
            assert f"`{each.full_name}` `{each.label}`" in PAGE.replace("` also has `", "` `")


def test_files_and_links_of_the_page_exist():
    files = re.findall(r"`(config/deploy/[\w.-]+)`", PAGE)
    links = re.findall(r"\]\((?!http|#)([\w./-]+)", PAGE)

    assert [path for path in files if not (ROOT / path).is_file()] == []
    assert [path for path in links if not (ROOT / "docs" / path).is_file()] == []
    assert {path.name for path in (ROOT / "config" / "deploy").iterdir()} == {
        Path(path).name for path in files
    }
    assert "(docs/ray-cluster.md)" in (ROOT / "README.md").read_text()


def test_the_example_of_waiting_is_the_message_of_a_run():
    full = RayNode("2", "h2", "10.0.0.2", 1, cpus=4.0, free_cpus=0.0)

    found = place(["scheduler-0"], [full], PlacementConstraints(), {})

    assert isinstance(found, Unplaceable)
    assert f"Waiting for the Ray cluster: {found.reason}.\n" in PAGE
    assert ray_placement.role_of("scheduler-0") == "scheduler"
