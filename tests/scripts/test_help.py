"""`--help` of each script describes it and each of its options, and runs nothing."""

import re
import runpy
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
COMMANDS = sorted(
    path.stem
    for path in SCRIPTS.glob("*.py")
    if 'if __name__ == "__main__"' in path.read_text() and path.stem != "environment"
)
OPTION = re.compile(r"^  (?:-h, )?(--[\w-]+|[a-z]+)\b(.*)$")


def help_of(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.syspath_prepend(str(SCRIPTS))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_printed_and_describes_each_option(name, monkeypatch, capsys):
    text = help_of(name, monkeypatch, capsys)

    _, _, options = text.partition("\noptions:\n")
    lines = options.splitlines()
    empty = []
    for line, following in pairwise([*lines, ""]):
        option = OPTION.match(line)
        described = option and re.search(r" {2,}\S", option[2])
        if option and not described and not following.startswith(" " * 8):
            empty.append(option[1])
    assert empty == []
    assert f"{name}.py" in text or f"scripts/{name}" in text or "scripts/test" in text


def test_without_uv_no_lock_is_written(scripts, monkeypatch, tmp_path, capsys):
    lock = scripts("lock")
    shutil.copy(lock.ROOT / "pyproject.toml", tmp_path)
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert lock.main([]) == 1
    assert "pip install uv" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pyproject.toml"]
