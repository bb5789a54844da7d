"""The tests' command: every check runs, the wheel holds the sources, pytest speaks last."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def check(scripts):
    return scripts("check")


@pytest.fixture
def sources(tmp_path):
    """A checkout in small: a package with a link to a folder beside it."""
    for name, text in {
        "roadstead/__init__.py": "",
        "roadstead/py.typed": "",
        "roadstead/__pycache__/junk.py": "",
        "roadstead/notes.txt": "",
        "config/__init__.py": "",
        "config/presets/openb.yaml": "a: 1",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "roadstead" / "config").symlink_to("../config")
    return tmp_path


def wheel_with(folder, *names):
    path = folder / "roadstead-0.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*names, "roadstead-0.dist-info/METADATA"):
            archive.writestr(name, "")
    return path


COMPLETE = (
    "roadstead/__init__.py",
    "roadstead/py.typed",
    "roadstead/config/__init__.py",
    "roadstead/config/presets/openb.yaml",
)


def test_a_wheel_must_hold_what_stands_behind_the_links(check, sources, tmp_path):
    check.compare_wheel(wheel_with(tmp_path, *COMPLETE), sources)
    with pytest.raises(
        check.SetupError, match=r"missing \['roadstead/config/presets/openb.yaml'\]"
    ):
        check.compare_wheel(wheel_with(tmp_path, *COMPLETE[:-1]), sources)


def test_a_wheel_must_not_hold_what_is_no_source(check, sources, tmp_path):
    stale = wheel_with(tmp_path, *COMPLETE, "roadstead/removed.py")
    with pytest.raises(check.SetupError, match=r"not wanted \['roadstead/removed.py'\]"):
        check.compare_wheel(stale, sources)


def test_shipped_files_of_this_checkout_stand_under_the_package(check):
    shipped = check.shipped_files(ROOT)
    assert {
        "roadstead/actors/__init__.py",
        "roadstead/protocol/errors.py",
        "roadstead/config/__init__.py",
        "roadstead/py.typed",
    } <= shipped


@pytest.fixture
def pytest_calls(check, monkeypatch):
    calls = []
    monkeypatch.setattr(check, "run_pytest", lambda arguments: calls.append(tuple(arguments)) or 0)
    monkeypatch.setattr(check.os, "chdir", lambda path: None)
    return calls


def fail(check):
    def failing():
        raise check.SetupError("line too long")

    return failing


def test_arguments_run_pytest_alone(check, pytest_calls, monkeypatch):
    monkeypatch.setattr(check, "CHECKS", (("style", fail(check)),))
    assert check.main(["tests/fleet", "-x"]) == 0
    assert pytest_calls == [("tests/fleet", "-x")]


def test_every_check_runs_before_pytest_and_is_told(check, pytest_calls, monkeypatch, capsys):
    ran = []
    steps = (("style", lambda: ran.append(1)), ("types", lambda: ran.append(2)))
    monkeypatch.setattr(check, "CHECKS", steps)
    assert check.main([]) == 0
    assert ran == [1, 2]
    assert [line.split(" (")[0] for line in capsys.readouterr().out.splitlines()] == [
        "style ok",
        "types ok",
    ]
    assert pytest_calls == [check.PYTEST_ALL]


def test_a_failed_check_does_not_hide_the_next_and_fails_the_whole(
    check, pytest_calls, monkeypatch, capsys
):
    monkeypatch.setattr(check, "CHECKS", (("style", fail(check)), ("types", lambda: None)))
    assert check.main([]) == 1
    told = capsys.readouterr()
    assert "style FAILED\nline too long" in told.out
    assert "types ok" in told.out
    assert "Failed before the tests: style." in told.err
    assert len(pytest_calls) == 1


def test_failed_tests_fail_the_whole(check, monkeypatch):
    monkeypatch.setattr(check, "CHECKS", ())
    monkeypatch.setattr(check.os, "chdir", lambda path: None)
    monkeypatch.setattr(check, "run_pytest", lambda arguments: 5)
    assert check.main([]) == 5


def find_python(**environment):
    script = f'. "{ROOT}/scripts/find-python.sh"; echo "$python"'
    return subprocess.run(
        ["/bin/sh", "-eu", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def fake_python(folder, name, exit_code):
    path = folder / name
    path.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    path.chmod(0o755)


def test_a_python_of_another_version_is_passed_over_for_the_next(tmp_path):
    fake_python(tmp_path, "python3", 1)
    fake_python(tmp_path, "python3.12", 0)
    assert find_python(PATH=str(tmp_path)).stdout == "python3.12\n"


def test_the_python_that_the_user_names_comes_first(tmp_path):
    fake_python(tmp_path, "python3", 0)
    found = find_python(PATH=str(tmp_path), PYTHON=sys.executable)
    assert found.stdout == f"{sys.executable}\n"


def test_no_suitable_python_is_a_clear_refusal(tmp_path):
    found = find_python(PATH=str(tmp_path))
    assert found.returncode == 1
    assert "Roadstead needs Python 3.11, 3.12 or 3.13" in found.stderr
