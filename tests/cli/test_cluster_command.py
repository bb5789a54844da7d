"""`roadstead cluster`: the checked nodes as a table and as JSON, and packing."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from roadstead.cli.main import build_cli
from roadstead.report.ray_nodes import CheckedNode
from tests.cli.plain_launcher import PlainLauncher

WELL = CheckedNode(
    "h1", "10.0.0.1", 4.0, 2.5, {"zone": "a"}, "3.11", "0.1.0", "compiled", sees_journal=True
)
BARE = replace(
    WELL, name="h2", address="10.0.0.2", sees_journal=None, problem="Roadstead is not there"
)
LATE = replace(WELL, name="h3", address="10.0.0.3", sees_journal=False, clock_s=-300.0)


class ClusterLauncher(PlainLauncher):
    """A launcher that answers the check with given nodes, and keeps the settings."""

    def __init__(self, *nodes):
        self.nodes = nodes

    def check_cluster(self, settings):
        self.settings = settings
        return "10.0.0.1:6379", self.nodes


def run(launcher, *arguments):
    return CliRunner().invoke(build_cli(lambda: launcher), ["cluster", *map(str, arguments)])


def test_healthy_nodes_are_reported_as_such():
    launcher = ClusterLauncher(WELL)

    result = run(launcher, "check", "--ray-address", "auto", "--journal", "j")

    assert result.exit_code == 0, result.output
    assert "1 of 1 nodes can run Roadstead, 2.5 CPUs free" in result.output
    assert "2.5 of 4" in result.output
    assert "seen" in result.output
    assert launcher.settings.ray.address == "auto"


def test_a_settings_file_of_an_inline_run_does_not_hinder_the_check(tmp_path):
    settings = tmp_path / "roadstead.yaml"
    settings.write_text("runtime: inline\n")

    result = run(ClusterLauncher(WELL), "check", "--ray-address", "h:1", "--settings", settings)

    assert result.exit_code == 0, result.output


def test_texts_of_nodes_do_not_control_the_terminal():
    odd = replace(BARE, name="h\x1b[2J", kernel="no\x07", problem="lost \x1b[1A")

    result = run(ClusterLauncher(odd), "check", "--ray-address", "h:1")

    assert not any(char in result.output for char in "\x1b\x07")
    assert r"h\x1b[2J (10.0.0.2): lost \x1b[1A." in result.output


def test_problems_and_wrong_clocks_are_named_below_the_table():
    result = run(ClusterLauncher(WELL, BARE, LATE), "check", "--ray-address", "h:1")

    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert "h2 (10.0.0.2): Roadstead is not there." in lines
    assert "h3 (10.0.0.3): its clock is 300 s behind, as in its logs." in lines


def test_json_has_every_field():
    result = run(ClusterLauncher(WELL, BARE), "check", "--ray-address", "h:1", "--format", "json")

    found = json.loads(result.output)
    assert found["address"] == "10.0.0.1:6379"
    assert [node["problem"] for node in found["nodes"]] == ["", "Roadstead is not there"]
    assert found["nodes"][0]["labels"] == {"zone": "a"}


@pytest.mark.parametrize("address", ["ray://h:1", "h", "http://h:8265"])
def test_a_wrong_address_is_refused(address):
    result = run(ClusterLauncher(WELL), "check", "--ray-address", address)

    assert result.exit_code == 2
    assert "ray.address" in result.output


def test_pack_reports_the_written_files(tmp_path):
    output = tmp_path / "env.yaml"

    result = run(ClusterLauncher(), "pack", "-o", str(output), "--without-packages")

    assert result.exit_code == 0, result.output
    assert output.exists()
    assert "the runtime environment" in result.output
