"""`roadstead.simulate`: figures, tables and errors."""

from __future__ import annotations

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
    assert set(result.tables) == {"pods", "classes", "attempts", "events", "nodes", "samples"}
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
