"""The notebook of the documentation runs, cell by cell in one process, without Jupyter."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "examples" / "fleet.ipynb"


def cells(kind):
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return ["".join(each["source"]) for each in document["cells"] if each["cell_type"] == kind]


def test_every_cell_runs(tmp_path):
    script = tmp_path / "fleet_cells.py"
    script.write_text("\n\n".join(cells("code")), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, timeout=200,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    for part in ("placed", "binpack", "Insufficient cpu", "cpu_allocatable", "####"):
        assert part in done.stdout


def test_the_notebook_has_no_outputs_and_its_links_exist():
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))

    assert document["nbformat"] == 4
    code = [each for each in document["cells"] if each["cell_type"] == "code"]
    assert code
    assert not any(each["outputs"] or each["execution_count"] for each in code)
    assert len({each["id"] for each in document["cells"]}) == len(document["cells"])
    for page in ("python.md", "scenario.md"):
        assert f"](../{page})" in "".join(cells("markdown"))
        assert (ROOT / "docs" / page).exists()
