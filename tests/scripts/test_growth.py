"""The script that measures how speed grows."""

import json
import subprocess

import pytest

RESULT = {"commit": "abc", "results": [{"pods_per_s": 1234.0, "peak_bytes": 5}]}


@pytest.fixture
def growth(scripts):
    return scripts("growth")


@pytest.fixture
def ran(monkeypatch):
    """Return the list of run commands, all of which succeed."""
    commands = []

    def run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, json.dumps(RESULT), "")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_each_point_of_an_axis_is_run_once_and_drawn(ran, tmp_path, capsys, growth):
    assert growth.main([str(tmp_path), "--only", "classes"]) == 0
    first = len(ran)
    growth.main([str(tmp_path), "--only", "classes"])

    assert (first, len(ran)) == (6, 6)
    assert "AllDistinct/5000Nodes_10000Pods" in ran[2]
    assert "classes: inline 10: 1,234 pods/s" in capsys.readouterr().err
    known = json.loads((tmp_path / "growth.json").read_text())
    assert known["classes: ray 1"] == [{"pods_per_s": 1234.0, "peak_bytes": 5, "commit": "abc"}]
    drawn = (tmp_path / "growth-classes.svg").read_text()
    assert "Pods scheduled per second by number of pod classes" in drawn
    assert "One run of each point: no intervals." in drawn


def test_every_axis_has_valid_points(ran, tmp_path, growth):
    growth.main([str(tmp_path)])

    assert {path.name for path in tmp_path.glob("*.svg")} == {
        f"growth-{axis}.svg" for axis in growth.AXES
    }
    assert any("partitioned" in command for command in ran)


def test_existing_measurements_are_drawn_without_a_run(ran, tmp_path, growth):
    known = {"nodes: ray 100": [{"pods_per_s": 7.0}]}
    (tmp_path / "growth.json").write_text(json.dumps(known))

    growth.main([str(tmp_path), "--plot", "--only", "nodes", "--only", "pods"])

    assert ran == []
    assert (tmp_path / "growth-nodes.svg").exists()
    assert not (tmp_path / "growth-pods.svg").exists()


def test_intervals_of_several_runs_are_labelled(growth):
    runs = [{"pods_per_s": rate} for rate in (7.0, 9.0, 8.0)]

    drawn = growth.plot("nodes", {"nodes: ray 100": runs, "nodes: ray 1000": runs[:2]})

    assert "slowest to fastest of 2 to 3 runs; the marker is at their median" in drawn
    assert "ray, 100: 8 (7 to 9)" in drawn
    assert "no intervals" not in drawn


def test_a_failed_run_is_reported_and_earlier_measurements_are_kept(monkeypatch, tmp_path, growth):
    def fails(command, **_):
        return subprocess.CompletedProcess(command, 2, "", "no such workload")

    monkeypatch.setattr(subprocess, "run", fails)

    with pytest.raises(SystemExit, match="exit status 2\nno such workload"):
        growth.main([str(tmp_path), "--only", "pods"])
    assert (tmp_path / "growth.json").exists()


def test_a_workload_has_the_format_of_the_bench(growth):
    ((case),) = json.loads(
        growth.workload(growth.GrowthPoint(1, "inline", "inline", nodes=3, pods=4))
    )

    assert case["workloads"] == [{"name": "one", "params": {"nodes": 3, "pods": 4}}]
    assert case["defaultPodTemplatePath"].endswith("templates/pod.yaml")
