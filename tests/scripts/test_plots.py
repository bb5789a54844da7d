"""The script that draws the pictures of the documentation again."""

import json
import shutil

import pytest

from tests.scripts.conftest import ROOT

FOLDER = ROOT / "docs" / "plots"


@pytest.fixture
def plots(scripts):
    return scripts("plots")


def test_the_pictures_of_the_documentation_show_the_recorded_figures(plots):
    drawn = plots.draw_all(FOLDER)

    assert set(drawn) == {path.name for path in FOLDER.glob("*.svg")}
    differ = [name for name, text in drawn.items() if (FOLDER / name).read_text() != text + "\n"]
    assert differ == [], "run scripts/plots.py"


def test_pictures_are_written_beside_the_recorded_figures(plots, tmp_path):
    for name in ("sweeps.json", "growth.json", "compare.json"):
        shutil.copy(FOLDER / name, tmp_path)

    assert plots.main([str(tmp_path)]) == 0

    assert len(list(tmp_path.glob("*.svg"))) == len(list(FOLDER.glob("*.svg")))


def test_every_recorded_sweep_names_its_command_and_commit(plots):
    sweeps = json.loads((FOLDER / "sweeps.json").read_text())

    assert all(each["command"].startswith("roadstead stress") for each in sweeps.values())
    assert all(each["commit"] for each in sweeps.values())
