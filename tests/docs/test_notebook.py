"""The notebooks of the documentation run, cell by cell in one process, without Jupyter."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PRINTED = {
    "fleet.ipynb": ("placed", "binpack", "Insufficient cpu", "cpu_allocatable", "####"),
    "lab.ipynb": ("480 tasks expected", "zone-1", "@@@@", "Insufficient cpu", "3 pairs"),
}
"""Notebooks, and parts of what their cells print."""


def cells(name, kind):
    document = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    return ["".join(each["source"]) for each in document["cells"] if each["cell_type"] == kind]


@pytest.mark.parametrize("name", PRINTED)
def test_every_cell_runs(tmp_path, name):
    script = tmp_path / "notebook_cells.py"
    script.write_text("\n\n".join(cells(name, "code")), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, timeout=200,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    for part in PRINTED[name]:
        assert part in done.stdout


def test_every_notebook_is_run():
    assert {each.name for each in EXAMPLES.glob("*.ipynb")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_the_notebook_has_no_outputs_and_its_links_exist(name):
    document = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))

    assert document["nbformat"] == 4
    code = [each for each in document["cells"] if each["cell_type"] == "code"]
    assert code
    assert not any(each["outputs"] or each["execution_count"] for each in code)
    assert len({each["id"] for each in document["cells"]}) == len(document["cells"])
    links = re.findall(r"\]\(([^)]+)\)", "".join(cells(name, "markdown")))
    assert "../python.md" in links
    assert all((EXAMPLES / each).exists() for each in links)
