"""`roadstead demo`: a fleet from a seed is scheduled and summarized."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.trace_file import trace_digest
from tests.cli.conftest import Run
from tests.cli.plain_launcher import PlainLauncher

TINY = ("demo", "--nodes", 8, "--pods", 30)


def test_the_summary_has_placements_utilization_and_phases(run: Run) -> None:
    result = run(*TINY)

    assert result.exit_code == 0
    first = result.stdout.splitlines()[0]
    assert first.endswith("of 30 pods on 8 nodes (generated, seed 0)")
    for part in ("pods/s", "Utilization per zone", "Where the time went", "read inputs"):
        assert part in result.stdout


def test_pending_pods_are_shown_with_reasons_and_counts(run: Run) -> None:
    result = run("demo", "--nodes", 1, "--pods", 300)

    assert "Why pods are pending" in result.stdout
    assert "Insufficient cpu" in result.stdout


@pytest.mark.parametrize(
    ("options", "nodes", "pods"),
    [([], 2000, 10_000), (["--small"], 200, 1000), (["--small", "--pods", "5"], 200, 5)],
)
def test_sizes_have_defaults_that_flags_override(
    run: Run, launcher: PlainLauncher, monkeypatch: pytest.MonkeyPatch, options: list[str],
    nodes: int, pods: int,
) -> None:  # fmt: skip
    sizes: list[tuple[int, int]] = []
    original = generate_fleet

    def generated(nodes: int, pods: int, seed: int) -> object:
        sizes.append((nodes, pods))
        return original(2, 2, seed)

    monkeypatch.setattr("roadstead.fleet.generate.generate_fleet", generated)

    assert run("demo", *options).exit_code == 0
    assert sizes == [(nodes, pods)]


def test_the_seed_determines_the_fleet_and_the_ties(run: Run, launcher: PlainLauncher) -> None:
    run(*TINY, "--seed", 7, "--runtime", "inline", "--log", "logs")

    assert launcher.plan.settings.seed == 7
    assert launcher.plan.settings.runtime == "inline"
    assert launcher.plan.log_dir == str(Path("logs").resolve())
    assert list(launcher.inputs.pending) == list(generate_fleet(8, 30, 7).pods())
    assert launcher.plan.cluster.namespaces == generate_fleet(8, 30, 7).namespaces


def test_a_settings_file_applies_and_flags_override_it(
    run: Run, launcher: PlainLauncher, tmp_path: Path
) -> None:
    text = "seed: 5\nbatch: 64\nschedulers: 2\nray: {cpus_per_process: 0.5}\n"
    file = tmp_path / "roadstead.yaml"
    file.write_text(text)

    result = run(*TINY, "--settings", file, "--seed", 7, "--output", tmp_path / "out")

    assert result.exit_code == 0, result.stderr
    settings = launcher.plan.settings
    assert (settings.seed, settings.batch, settings.scheduler_count) == (7, 64, 2)
    assert settings.ray.cpus_per_process == 0.5
    document = json.loads((tmp_path / "out" / "run.json").read_text())
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert {"name": str(file), "sha256": digest} in document["inputs"]


def test_a_settings_file_that_is_missing_is_an_error(run: Run, tmp_path: Path) -> None:
    result = run(*TINY, "--settings", tmp_path / "none.yaml")

    assert result.exit_code == 2
    assert "none.yaml" in result.stderr


def test_json_is_one_document_on_standard_output(run: Run) -> None:
    result = run(*TINY, "--format", "json")

    document = json.loads(result.stdout)
    assert document["placed"] + document["pending"] == 30
    assert document["nodes"] == 8
    assert list(document["timings_s"]) == ["read inputs", "start actors", "schedule"]
    assert document["elapsed_s"] >= document["timings_s"]["read inputs"]


def test_progress_is_printed_on_standard_error(run: Run) -> None:
    result = run(*TINY, "--format", "json")

    assert "scheduling" in result.stderr
    assert "of 30 pods" in result.stderr


def test_the_output_describes_how_to_reproduce_it(run: Run, tmp_path: Path) -> None:
    result = run(*TINY, "--seed", 3, "--output", tmp_path / "out")

    document = json.loads((tmp_path / "out" / "run.json").read_text())
    assert result.exit_code == 0
    assert document["command"][:2] == ["roadstead", "demo"]
    assert document["seed"] == 3
    assert document["inputs"] == [
        {"name": "generated, seed 3", "sha256": trace_digest(generate_fleet(8, 30, 3))}
    ]
    assert f"Written to {tmp_path / 'out'}" in result.stderr
    assert "write output" in result.stdout


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--nodes", "0"], "0 is not in the range"),
        (["--pods", "99999999999"], "is not in the range"),
        (["--pods", "many"], "is not a valid integer range"),
        (["--seed", "-1"], "flags: seed: -1"),
        (["--runtime", "cloud"], "'cloud' is not one of"),
    ],
)
def test_flags_out_of_range_are_refused_before_anything_runs(
    run: Run, options: list[str], text: str
) -> None:
    result = run("demo", *options)

    assert result.exit_code == 2
    assert text in result.stderr
    assert result.stdout == ""
