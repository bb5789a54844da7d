"""The tests' command: every check runs, the wheel holds the sources, pytest's output is last."""

import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def check(scripts):
    return scripts("check")


@pytest.fixture
def sources(tmp_path):
    """Write a small checkout: a package with a link to a folder beside it."""
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


def test_a_wheel_must_contain_the_targets_of_the_links(check, sources, tmp_path):
    check.compare_wheel(wheel_with(tmp_path, *COMPLETE), sources)
    with pytest.raises(
        check.SetupError, match=r"missing \['roadstead/config/presets/openb.yaml'\]"
    ):
        check.compare_wheel(wheel_with(tmp_path, *COMPLETE[:-1]), sources)


def test_a_wheel_must_contain_only_sources(check, sources, tmp_path):
    stale = wheel_with(tmp_path, *COMPLETE, "roadstead/removed.py")
    with pytest.raises(check.SetupError, match=r"not wanted \['roadstead/removed.py'\]"):
        check.compare_wheel(stale, sources)


def test_shipped_files_of_this_checkout_are_in_the_package(check):
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


def test_with_arguments_only_pytest_runs(check, pytest_calls, monkeypatch):
    monkeypatch.setattr(check, "CHECKS", (("style", fail(check)),))
    assert check.main(["tests/fleet", "-x"]) == 0
    assert pytest_calls == [("tests/fleet", "-x")]


def test_checks_run_side_by_side_before_pytest_and_are_printed_in_order(
    check, pytest_calls, monkeypatch, capsys
):
    both_run = threading.Barrier(2, timeout=60)

    def step():
        both_run.wait()
        assert pytest_calls == []

    monkeypatch.setattr(check, "CHECKS", (("style", step), ("types", step)))
    assert check.main([]) == 0
    assert [line.split(" (")[0] for line in capsys.readouterr().out.splitlines()] == [
        "style ok",
        "types ok",
    ]
    assert pytest_calls == [check.PYTEST_ALL]


def test_a_failed_check_does_not_stop_the_next_and_fails_the_command(
    check, pytest_calls, monkeypatch, capsys
):
    monkeypatch.setattr(check, "CHECKS", (("style", fail(check)), ("types", lambda: None)))
    assert check.main([]) == 1
    printed = capsys.readouterr()
    assert "style FAILED\nline too long" in printed.out
    assert "types ok" in printed.out
    assert "Failed beside the tests: style." in printed.err
    assert len(pytest_calls) == 1


def test_failed_tests_fail_the_command(check, monkeypatch):
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


def test_a_python_of_another_version_is_skipped_for_the_next(tmp_path):
    fake_python(tmp_path, "python3", 1)
    fake_python(tmp_path, "python3.12", 0)
    assert find_python(PATH=str(tmp_path)).stdout == "python3.12\n"


def test_the_python_named_by_the_user_is_tried_first(tmp_path):
    fake_python(tmp_path, "python3", 0)
    found = find_python(PATH=str(tmp_path), PYTHON=sys.executable)
    assert found.stdout == f"{sys.executable}\n"


def test_a_missing_python_is_reported_clearly(tmp_path):
    found = find_python(PATH=str(tmp_path))
    assert found.returncode == 1
    assert "Roadstead needs Python 3.11, 3.12 or 3.13" in found.stderr


@pytest.fixture
def places(check, monkeypatch, tmp_path):
    """Move the script's folders away from the checkout."""
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "WHEEL_DIR", tmp_path / "build" / "wheel")
    monkeypatch.setattr(check, "WHEEL_VENV", tmp_path / "build" / "wheel-venv")
    (tmp_path / "requirements.lock").write_text("ray==1")
    return tmp_path


def test_the_wheel_is_built_from_the_sources_alone(check, places, monkeypatch):
    left_over = places / "build" / "lib" / "removed.py"
    left_over.parent.mkdir(parents=True)
    left_over.touch()

    def build(command):
        assert not left_over.exists()
        check.WHEEL_DIR.mkdir(parents=True)
        (check.WHEEL_DIR / "roadstead-0.whl").touch()

    monkeypatch.setattr(check, "run", build)
    assert check.build_wheel().name == "roadstead-0.whl"


def test_the_clean_environment_is_kept_while_the_lock_is_unchanged(check, places, monkeypatch):
    installed, commands = [], []

    def install(venv, lock):
        venv.mkdir(parents=True)
        installed.append(lock.read_text())

    monkeypatch.setattr(check, "install", install)
    monkeypatch.setattr(check, "run", commands.append)
    monkeypatch.setattr(check, "is_usable", lambda venv: venv.exists())
    check.install_wheel(places / "roadstead-0.whl")
    check.install_wheel(places / "roadstead-1.whl")
    (places / "requirements.lock").write_text("ray==2")
    check.install_wheel(places / "roadstead-1.whl")
    assert installed == ["ray==1", "ray==2"]
    assert [command[-1].rpartition("/")[2] for command in commands] == [
        "roadstead-0.whl",
        "roadstead-1.whl",
        "roadstead-1.whl",
    ]


def installed_demo(check, script):
    roadstead = check.WHEEL_VENV / "bin" / "roadstead"
    roadstead.parent.mkdir(parents=True, exist_ok=True)
    roadstead.write_text(f"#!/bin/sh\n{script}\n")
    roadstead.chmod(0o755)


def test_the_demo_runs_outside_the_checkout(check, places, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    seen = places / "seen"
    installed_demo(check, f'echo "$* ${{PYTHONPATH-none}} $(ls)" > "{seen}"')
    check.run_demo()
    assert seen.read_text() == "demo --small none \n"


def test_a_failed_demo_is_reported_with_its_output(check, places):
    installed_demo(check, "echo no ray here >&2; exit 3")
    with pytest.raises(check.SetupError, match=r"demo --small failed:\nno ray here"):
        check.run_demo()


def test_the_wheel_check_covers_sources_to_demo(check, monkeypatch):
    steps = []
    monkeypatch.setattr(check, "build_wheel", lambda: "a.whl")
    for name in ("compare_wheel", "install_wheel", "run_demo"):
        monkeypatch.setattr(check, name, lambda *args, name=name: steps.append((name, *args[:1])))
    check.check_wheel()
    assert steps == [("compare_wheel", "a.whl"), ("install_wheel", "a.whl"), ("run_demo",)]


def test_a_tool_runs_from_the_environment_with_its_arguments(check, monkeypatch):
    commands = []
    monkeypatch.setattr(check, "run", commands.append)
    check.tool("ruff", "check", ".")()
    assert commands == [["nice", "-n", "5", str(check.BIN / "ruff"), "check", "."]]


def test_pytest_runs_in_the_checkout_and_its_exit_code_is_returned(check, places, monkeypatch):
    def run(command, *, cwd, env, check):
        assert (command[1:], cwd, check) == (["-m", "pytest", "-x"], places, False)
        return subprocess.CompletedProcess(command, 5)

    monkeypatch.setattr(check.subprocess, "run", run)
    assert check.run_pytest(["-x"]) == 5


def test_processes_of_tests_write_bytecode(check, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    command = [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"]
    ran = subprocess.run(
        command, env=check.with_bytecode(), capture_output=True, text=True, check=True
    )

    assert ran.stdout == "False\n"


def test_all_tests_are_collected_in_a_process_that_writes_bytecode(check, places, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    ran = []

    def run(command, *, cwd, env, **how):
        ran.append((command[3:], cwd, "PYTHONDONTWRITEBYTECODE" in env))
        return subprocess.CompletedProcess(command, 2, "No module named 'x'", "")

    monkeypatch.setattr(check.subprocess, "run", run)
    with pytest.raises(check.SetupError, match="cannot be collected:\nNo module named 'x'"):
        check.write_bytecode()

    collects = [str(check.BIN / "python"), "-m", "pytest", "--collect-only", "-q"]
    assert ran == [(collects, places, False)]


def test_quick_runs_the_fast_checks_beside_tests_without_ray(check, monkeypatch, capfd, tmp_path):
    begin = tmp_path / "begin"
    os.mkfifo(begin)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@"\necho > "{begin}"\nexit 3\n')
    python.chmod(0o755)

    def style():
        # Waits for the tests, which wait for this check.
        begin.read_text()

    monkeypatch.setattr(check, "BIN", tmp_path)
    monkeypatch.setattr(check, "FAST_CHECKS", (("style", style), ("types", fail(check))))
    monkeypatch.setattr(check, "CHECKS", (("wheel", fail(check)),))
    monkeypatch.setenv("ROADSTEAD_TESTS", "")

    assert check.main(["--quick"]) == 1

    printed = capfd.readouterr()
    *checks, tests = printed.out.splitlines()
    assert [line.split(" (")[0] for line in checks] == ["style ok", "types FAILED", "line too long"]
    assert "not ray" in tests
    folders = [each for each in tests.split() if each.startswith("tests/")]
    assert "tests/queue" in folders
    assert all((ROOT / each).is_dir() for each in folders)
    assert printed.err == "Failed beside the tests: types.\n"


REPORT = {
    "files": {
        path: {"summary": {"covered_lines": covered, "num_statements": of}}
        for path, covered, of in (
            ("roadstead/run.py", 3, 4),
            ("roadstead/queue/core.py", 8, 10),
            ("roadstead/queue/deep/er.py", 0, 10),
            ("protocol/objects/pod.py", 8, 10),
            ("actors/queue/actor.py", 5, 6),
        )
    }
}


def test_coverage_is_listed_for_the_packages_with_tests_of_their_own(check):
    percent, floor, text = check.coverage_by_package(REPORT)

    assert percent == pytest.approx(100 * 16 / 30)
    assert 0 <= floor < 100
    assert text.splitlines()[2:] == [
        "| protocol | 10 | 80.0% |",
        "| roadstead/queue | 20 | 40.0% |",
        "| all | 30 | 53.3% |",
    ]


@pytest.mark.parametrize(("floor", "code"), [(53, 0), (54, 1)])
def test_coverage_below_the_floor_fails_the_command(check, monkeypatch, tmp_path, floor, code):
    ran = []
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "coverage.json").write_text(json.dumps(REPORT))
    (tmp_path / "pyproject.toml").write_text(f"[tool.coverage.report]\nfail_under = {floor}\n")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "COVERAGE_FILE", tmp_path / "build" / "coverage.json")
    monkeypatch.setattr(check, "run_pytest", lambda arguments: ran.append(arguments) or 0)
    monkeypatch.setattr(check, "tool", lambda *_: lambda: None)
    monkeypatch.setattr(check.os, "chdir", lambda path: None)
    monkeypatch.setattr(check.os, "environ", {})
    monkeypatch.setattr(check.subprocess, "run", lambda *_, **__: None)

    assert check.main(["--coverage"]) == code
    assert {"-m", "not ray", "--cov", "tests/queue", "tests/protocol"} <= {*ran[0]}


def test_each_covered_package_has_a_folder_of_tests(check):
    for folder in check.COVERED_FOLDERS:
        assert (ROOT / "tests" / folder).is_dir()
        assert (ROOT / "roadstead" / folder).is_dir()
