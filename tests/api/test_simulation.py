"""`roadstead.simulate`: figures, tables and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import roadstead
from tests.scenario.files import POD

SCENARIO: dict[str, Any] = {
    "apiVersion": "roadstead.dev/v1",
    "kind": "Scenario",
    "metadata": {"name": "tasks"},
    "fleet": [{"generate": {"nodes": 2, "shape": "cpu-8"}}],
    "workload": [
        {
            "name": "tasks",
            "arrivals": {"every": "1m"},
            "duration": "10m",
            "pods": [{"template": POD}],
        }
    ],
    "horizon": "1h",
    "seeds": 2,
}


def test_several_runs_have_joined_tables_and_figures_by_name(tmp_path: Path) -> None:
    seen = []
    result = roadstead.simulate(SCENARIO, output=tmp_path / "out", progress=seen.append)

    assert list(result.summaries) == ["default-0", "default-1"]
    assert result.tables["pods"].column_names[:3] == ["config", "seed", "number"]
    assert result.to_arrow("pods").num_rows == 120
    assert (tmp_path / "out" / "report.html").is_file()
    assert result.query("SELECT DISTINCT seed FROM pods").num_rows == 2
    with pytest.raises(roadstead.InputError, match="several runs; use summaries"):
        _ = result.summary
    again = roadstead.simulate(SCENARIO, output=tmp_path / "out", resume=True)
    assert again.summaries == result.summaries


def test_a_temporary_folder_is_removed_with_the_result() -> None:
    result = roadstead.simulate(SCENARIO, seed=7)
    folder = result.directory

    assert result.summary.seed == 7
    assert set(result.tables) == {
        *("pods", "classes", "attempts", "events", "nodes", "devices", "allocations", "samples"),
        "class_samples",
    }
    del result
    assert not folder.exists()


def test_wrong_arguments_are_input_errors(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    with pytest.raises(roadstead.InputError, match="holds other files"):
        roadstead.simulate(SCENARIO, output=tmp_path)
    with pytest.raises(roadstead.InputError, match="exclude each other"):
        roadstead.simulate(SCENARIO, output=tmp_path, force=True, resume=True)
    with pytest.raises(roadstead.InputError, match="fleet"):
        roadstead.simulate(SCENARIO | {"fleet": []})
    with pytest.raises(roadstead.InputError, match="is no table"):
        roadstead.simulate(SCENARIO, seed=0).to_arrow("nothing")


@pytest.mark.parametrize("name", ["run.json", "part-00000.parquet", "summary.json", "report.html"])
def test_files_that_cannot_be_written_are_named(
    tmp_path: Path, fill_disk_at: Callable[[str], None], name: str
) -> None:
    fill_disk_at(name)
    with pytest.raises(roadstead.InputError, match=f"{name}: cannot be written: No space left"):
        roadstead.simulate(SCENARIO, output=tmp_path / "out")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(roadstead.InputError, match="out: "):
        roadstead.simulate(SCENARIO, output=tmp_path / "file" / "out")


def test_a_configuration_may_end_with_a_dash(tmp_path: Path) -> None:
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    files = [tmp_path / "a-.yaml", tmp_path / "a.yaml"]
    for each in files:
        each.write_text(config)
    scenario = SCENARIO | {"scheduler": {"config": [str(each) for each in files]}}

    result = roadstead.simulate(scenario, seed=3)

    assert list(result.summaries) == ["a--3", "a-3"]
    assert [(each.a, each.b) for each in result.compare()] == [("a-", "a")]


def test_a_finished_run_is_read_from_its_folder(tmp_path: Path) -> None:
    played = roadstead.simulate(SCENARIO, output=tmp_path / "out")

    read = roadstead.load_run(tmp_path / "out")

    assert read.summaries == played.summaries
    assert read.to_arrow("pods").num_rows == 120
    with pytest.raises(roadstead.InputError, match="holds no simulated runs"):
        roadstead.load_run(tmp_path)
    (tmp_path / "out" / "default-1" / "summary.json").unlink()
    with pytest.raises(roadstead.InputError):
        roadstead.load_run(tmp_path / "out")


def test_a_moment_of_a_run_is_a_cluster() -> None:
    result = roadstead.simulate(SCENARIO)

    cluster = result.at("5m30s", run="default-1")

    assert len(cluster.running) == 6
    assert (cluster.pending, len(cluster.nodes)) == ((), 2)
    assert cluster.fit("pod-0-0", max_changes=0, max_replicas=3).replicas == 3
    with pytest.raises(roadstead.InputError, match="plugin: needs a config or preset"):
        cluster.schedule(plugin="nosuch.module:Klass")
    with pytest.raises(roadstead.InputError, match="is no run"):
        result.at("5m", run="default-9")
    with pytest.raises(roadstead.InputError, match="after the end of the run"):
        result.at("2h")


DEVICES = """apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {extendedResourceName: example.com/gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpu}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: g0}, {name: g1}]
"""


def test_settings_of_the_run_answer_the_questions_about_its_moments(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(DEVICES)
    gpu = {"example.com/gpu": 1}
    main = {"name": "main", "image": "i", "resources": {"requests": gpu, "limits": gpu}}
    arrivals = {
        "arrivals": {"every": "1m", "count": 1},
        "pods": [{"template": {"spec": {"containers": [main]}}}],
    }
    scenario = {
        **SCENARIO,
        "fleet": [{"manifests": [str(tmp_path / "fleet.yaml")]}],
        "workload": [arrivals],
        "scheduler": {"settings": {"featureGates": {"DRAExtendedResource": True}}},
        "seeds": 1,
    }

    cluster = roadstead.simulate(scenario).at("5m")

    assert cluster.running == {"default/pod-0-0": "n1"}
    assert cluster.fit("pod-0-0", max_changes=0).replicas == 1
    assert cluster.fit("pod-0-0", max_changes=0, settings={}).replicas == 0


def test_the_life_of_a_pod_is_explained_from_python(tmp_path: Path) -> None:
    result = roadstead.simulate(SCENARIO, output=tmp_path / "out")

    life = result.why("pod-0-20", run="default-1")

    assert (life.pod.number, life.pod.ending, life.unexplained) == (20, "done", "")
    assert life.explanation is not None
    assert life.pod.node in life.explanation.best
    assert life.document()["explained_at_us"] == life.pod.bound_us
    assert [each.outcome for each in life.attempts] == ["bound"]
    assert result.why("pod-0-20", tables_only=True).explanation is None
    at = result.why("pod-0-20", at="21m").moment
    assert (at and at.time_us) == 21 * 60_000_000


def test_a_pod_that_never_ran_has_attempts_and_no_node() -> None:
    huge = {"resources": {"requests": {"cpu": 99}}}
    pod = {"spec": {"containers": [{"name": "main", "image": "i", **huge}]}}
    arrivals = {"arrivals": {"every": "1m", "count": 1}, "pods": [{"template": pod}]}
    result = roadstead.simulate(SCENARIO | {"workload": [arrivals]}, seed=0)

    life = result.why("pod-0-0")

    assert str(life) == "<PodLife default/pod-0-0 in default-0: tried 12 times>"
    assert "Insufficient cpu" in life.attempts[0].message
    assert life.explanation is None


def test_wrong_questions_about_a_pod_are_input_errors() -> None:
    result = roadstead.simulate(SCENARIO, seed=0)

    with pytest.raises(roadstead.InputError, match="is no pod or workload of the run"):
        result.why("nothing")
    with pytest.raises(roadstead.InputError, match="is no run"):
        result.why("pod-0-0", run="default-9")
    with pytest.raises(roadstead.InputError, match="is no time at which the pod exists"):
        result.why("pod-0-5", at="1s")
    with pytest.raises(roadstead.InputError, match="needs the run to be played again"):
        result.why("pod-0-5", at="6m", tables_only=True)


def test_each_run_is_checked_by_its_tables() -> None:
    found = roadstead.simulate(SCENARIO).check()

    assert {name: (each.pods, each.violations) for name, each in found.items()} == {
        "default-0": (60, ()),
        "default-1": (60, ()),
    }


def test_configurations_are_compared_pairwise(tmp_path: Path) -> None:
    presets = ["default", "binpack", "spread"]
    played = roadstead.simulate(
        SCENARIO | {"scheduler": {"preset": presets}, "horizon": "20m"}, output=tmp_path / "out"
    )

    found = played.compare()

    assert [(each.a, each.b) for each in found] == [
        ("default", "binpack"),
        ("default", "spread"),
        ("binpack", "spread"),
    ]
    assert {each.pairs for each in found} == {2}
    again = roadstead.load_run(tmp_path / "out").compare()
    assert [each.document() for each in again] == [each.document() for each in found]
    assert roadstead.simulate(SCENARIO | {"horizon": "5m"}).compare() == ()
