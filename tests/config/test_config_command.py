"""`roadstead config` as a user types it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from roadstead.cli.config_command import config_command
from roadstead.config.load import load_config
from roadstead.config.presets import load_preset, preset_text
from roadstead.config.reader import read_document


def run(*args: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(config_command, list(args), input=stdin)


def test_without_arguments_the_defaulted_default_is_printed_with_sorted_keys() -> None:
    result = run()

    document = yaml.safe_load(result.stdout)
    assert result.exit_code == 0
    assert document == load_preset("default").document
    assert list(document) == sorted(document)
    assert "- name: SchedulingGates\n        weight: 0\n" in result.stdout


def test_the_output_loads_as_the_same_configuration() -> None:
    for options in (["--preset", "gpu-binpack"], ["--preset", "spread", "--output-format", "json"]):
        again = load_config(run(*options).stdout, source="again")

        preset = load_preset(options[1]).config
        assert again.config == replace(preset, percentage_is_set=True)
        assert (preset.sampling_percentages(), again.config.sampling_percentages()) == (
            {},
            {"default-scheduler": 0},
        )


def test_texts_that_go_would_read_as_another_type_are_quoted() -> None:
    texts = ["y", "1e3", "0o7", "null", "1_0", "plain", "ä b", "*"]
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    body = f"profiles: [{{pluginConfig: [{{name: Mine, args: {json.dumps(texts)}}}]}}]\n"

    result = run("--config", "-", stdin=head + body)

    document = read_document(result.stdout, source="x")
    assert document == load_config(head + body, source="x").document
    assert '- "y"' in result.stdout
    assert "- ä b" in result.stdout


def test_effective_prints_a_table_in_the_order_of_a_cycle() -> None:
    result = run("--preset", "binpack", "--effective")

    lines = result.stdout.splitlines()
    assert lines[0] == "profile default-scheduler"
    assert lines[1] == "  preEnqueue  SchedulingGates"
    assert "  score       NodeResourcesFit (weight 5)" in lines
    assert "  permit      -" in lines
    assert lines[-1] == "  postBind    -"


def test_effective_as_json_equals_the_loaded_configuration() -> None:
    result = run("--effective", "--output-format", "json")

    assert json.loads(result.stdout) == load_preset("default").effective()


@pytest.mark.parametrize("dash", [False, True])
def test_the_configuration_is_read_from_a_file_or_standard_input(
    tmp_path: Path, dash: bool
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(preset_text("binpack"))
    options = ["--config", "-" if dash else str(path), "--output-format", "json"]

    result = run(*options, stdin=preset_text("binpack") if dash else None)

    assert json.loads(result.stdout) == load_preset("binpack").document


def test_an_invalid_configuration_exits_2_with_field_and_rule_on_standard_error() -> None:
    stdin = preset_text("default") + "percentageOfNodesToScore: 150\n"

    result = run("--config", "-", stdin=stdin)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        "standard input: percentageOfNodesToScore: 150: not in valid range [0-100]\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "nope"], "is not a preset"),
        (["--config", "/no/such/file"], "/no/such/file: cannot be read"),
        (["--preset", "default", "--config", "x"], "exclude each other"),
    ],
)
def test_a_missing_file_exits_2(options: list[str], message: str) -> None:
    result = run(*options)

    assert result.exit_code == 2
    assert message in result.stderr


def test_help_contains_examples() -> None:
    text = run("--help").stdout

    assert "roadstead config --preset binpack > mine.yaml" in text
    assert "exit" in text
