"""Scripts without tests of their own agree with the modules that they import."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "scripts"


@pytest.mark.parametrize("name", sorted(each.stem for each in FOLDER.glob("bench_*.py")))
def test_a_benchmark_can_be_imported(scripts, name):
    assert scripts(name).main
