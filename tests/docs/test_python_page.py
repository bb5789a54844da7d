"""The blocks of `docs/python.md` run in order, in one process, with the output on the page."""

import re
from pathlib import Path

import roadstead

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
FILES = dict(re.findall(r"^`(\w+\.yaml)`:\n\n```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^ *print\(.*\) +# (<.*>)$", re.MULTILINE)


def test_every_block_runs_and_prints_the_output_on_the_page(tmp_path, monkeypatch, capsys):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}

    for block in BLOCKS:
        exec(compile(block, "docs/python.md", "exec"), names)

    printed = capsys.readouterr().out
    shown = SHOWN.findall(PAGE)
    assert len(shown) == 8
    assert all(text in printed for text in shown)
    assert "Counter({'n1': 2, 'n2': 1})" in printed
    assert "node.yaml does not exist" in printed
    assert (tmp_path / "out" / "placements.parquet").exists()


def test_the_page_names_every_public_name():
    unnamed = {"__version__", "Cluster", "Result", "PodExplanation", "SimulationResult"}
    unnamed |= {"Comparison", "SweepResult"}
    for name in set(roadstead.__all__) - unnamed:
        assert f"{name}" in PAGE
