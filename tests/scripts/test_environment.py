"""Setting up `.venv`: complete the first time, nothing the second time, again after a change."""

import sys
from pathlib import Path

import pytest


class Recorder:
    """Stands for running commands: records them, and creates the environment."""

    def __init__(self, environment):
        self.commands = []
        self._environment = environment

    def __call__(self, command):
        self.commands.append(list(command))
        if "venv" in command:
            python = self._environment.python_of(Path(command[-1]))
            python.parent.mkdir(parents=True, exist_ok=True)
            python.symlink_to(sys.executable)

    @property
    def verbs(self):
        kinds = (
            *(("venv", "create"), ("--require-hashes", "lock"), ("compileall", "compile")),
            ("--editable", "project"),
        )
        return [name for command in self.commands for flag, name in kinds if flag in command]


@pytest.fixture
def environment(scripts):
    return scripts("environment")


@pytest.fixture
def checkout(tmp_path):
    for name in ("requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.fixture
def usable(environment, monkeypatch):
    monkeypatch.setattr(environment, "is_usable", lambda venv: environment.python_of(venv).exists())


@pytest.mark.usefixtures("usable")
def test_a_new_checkout_gets_environment_lock_and_project(environment, checkout):
    run = Recorder(environment)
    assert environment.setup(checkout, "dev", run)
    assert run.verbs == ["create", "lock", "compile", "project"]
    assert str(checkout / "requirements-dev.lock") in run.commands[1]
    assert "--no-deps" in run.commands[1]
    assert "--no-build-isolation" in run.commands[3]


@pytest.mark.usefixtures("usable")
def test_the_second_setup_does_nothing(environment, checkout):
    run = Recorder(environment)
    environment.setup(checkout, "dev", run)
    run.commands.clear()
    assert not environment.setup(checkout, "dev", run)
    assert run.commands == []


@pytest.mark.usefixtures("usable")
@pytest.mark.parametrize("name", ["requirements-dev.lock", "pyproject.toml"])
def test_a_change_of_lock_or_project_reinstalls_into_the_same_environment(
    environment, checkout, name
):
    run = Recorder(environment)
    environment.setup(checkout, "dev", run)
    run.commands.clear()
    (checkout / name).write_text("changed")
    assert environment.setup(checkout, "dev", run)
    assert run.verbs == ["lock", "compile", "project"]


@pytest.mark.usefixtures("usable")
def test_a_demo_setup_does_not_count_as_the_setup_for_tests(environment, checkout):
    run = Recorder(environment)
    environment.setup(checkout, "runtime", run)
    run.commands.clear()
    assert environment.setup(checkout, "dev", run)
    assert not environment.setup(checkout, "runtime", run)


@pytest.mark.usefixtures("usable")
def test_an_interrupted_setup_is_repeated(environment, checkout):
    run = Recorder(environment)

    def fail(command):
        run(command)
        if "--editable" in command:
            raise environment.SetupError("no space left")

    with pytest.raises(environment.SetupError):
        environment.setup(checkout, "dev", fail)
    assert environment.setup(checkout, "dev", run)


@pytest.mark.usefixtures("usable")
def test_a_moved_checkout_is_set_up_again(environment, checkout, tmp_path):
    run = Recorder(environment)
    environment.setup(checkout, "dev", run)
    moved = tmp_path.with_name("moved")
    checkout.rename(moved)
    assert environment.setup(moved, "dev", run)


@pytest.mark.parametrize("checkout_name", ["roadstead", "tests"])
def test_all_importable_modules_are_compiled(environment, tmp_path, checkout_name):
    venv = tmp_path / checkout_name / ".venv"
    packages = venv / "lib" / "python3.11" / "site-packages"
    wanted = [packages / name for name in ("ray/core", "numba/core", "rich")]
    unwanted = [packages / name for name in ("ray/data", "numba/tests", "numba/np/tests/sub")]
    for folder in wanted + unwanted:
        folder.mkdir(parents=True)
        (folder / "module.py").write_text("")
    (packages / "rich" / "broken.py").write_text("def")
    environment.python_of(venv).parent.mkdir()
    environment.python_of(venv).symlink_to(sys.executable)

    environment.compile_packages(venv)

    assert {path.parents[1] for path in venv.rglob("*.pyc")} == set(wanted)


def test_an_environment_is_usable_if_its_python_starts(environment, tmp_path):
    python = environment.python_of(tmp_path)
    assert not environment.is_usable(tmp_path)
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    assert not environment.is_usable(tmp_path)
    python.write_text("#!/bin/sh\nexit 0\n")
    assert environment.is_usable(tmp_path)


def test_the_output_of_a_failed_command_is_in_the_error(environment):
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    with pytest.raises(environment.SetupError, match=r"ended with 3:\nout\nerr"):
        environment.run([sys.executable, "-c", script])


def test_a_successful_command_prints_nothing(environment, capfd):
    environment.run([sys.executable, "-c", "print('hello')"])
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("arguments", [[], ["prod"], ["dev", "runtime"]])
def test_wrong_arguments_are_reported_with_the_usage(environment, capsys, arguments):
    assert environment.main(arguments) == 2
    assert "usage" in capsys.readouterr().err


@pytest.fixture
def pretend(environment, monkeypatch, tmp_path):
    """Give `main` another checkout and another `setup`."""

    def apply(setup):
        monkeypatch.setattr(environment, "ROOT", tmp_path)
        monkeypatch.setattr(environment, "setup", setup)

    return apply


def test_main_reports_a_setup(environment, capsys, pretend):
    pretend(lambda root, kind: True)
    assert environment.main(["dev"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Setting up .venv")
    assert "Set up .venv in" in out


@pytest.mark.usefixtures("usable")
def test_main_prints_nothing_if_everything_is_installed(environment, capsys, pretend, tmp_path):
    pretend(lambda root, kind: False)
    environment.python_of(tmp_path / ".venv").parent.mkdir(parents=True)
    environment.python_of(tmp_path / ".venv").touch()
    assert environment.main(["runtime"]) == 0
    assert capsys.readouterr().out == ""


def test_main_prints_the_error(environment, capsys, pretend):
    def fail(root, kind):
        raise environment.SetupError("pip install ended with 1")

    pretend(fail)
    assert environment.main(["dev"]) == 1
    assert "pip install ended with 1" in capsys.readouterr().err
