"""Files beside a user's manifests are never executed; other users cannot reach or read a run."""

import json
import os
import subprocess
import sys

import pytest

from roadstead import isolation
from roadstead.kernel import compile_process
from tests.cli.manifests import node, pod, write

HOSTILE = "open({mark!r}, 'a').write({name!r})\nraise SystemExit(77)\n"
NAMES = (
    *("random", "stat", "numpy", "config", "ray", "json", "logging", "typing", "yaml", "click"),
    *("msgpack", "uvloop", "numba", "actors", "protocol", "sitecustomize", "roadstead_kernel"),
)
PODS = 300


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Enter a working directory with modules that leave a mark when they are imported."""
    here = tmp_path / "here"
    here.mkdir()
    for name in NAMES:
        text = HOSTILE.format(mark=str(tmp_path / "executed"), name=name)
        (here / f"{name}.py").write_text(text)
    write(here / "nodes.json", *(node(f"n-{number}") for number in range(20)))
    write(here / "pods.json", *(pod(f"p-{number}", "10m") for number in range(PODS)))
    monkeypatch.chdir(here)
    yield here
    assert not (tmp_path / "executed").exists(), (tmp_path / "executed").read_text()


def run(*command, home, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, "HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


SCHEDULE = ("schedule", "--cluster", "nodes.json", "--pods", "pods.json", "--format", "json")


def test_a_run_in_one_process_imports_nothing_from_the_working_directory(hostile, tmp_path):
    result = run("-m", "roadstead", *SCHEDULE, "--runtime", "inline", home=tmp_path)

    assert json.loads(result)["placed"] == PODS


def test_the_process_that_compiles_imports_nothing_from_the_working_directory(hostile, monkeypatch):
    # The code is that of a Python module that imports `random` and ends at once.
    monkeypatch.setattr(compile_process, "MODULE", "tempfile")
    monkeypatch.setattr(sys, "path", ["", str(hostile), *sys.path])

    compile_process.compile_in_child()


def test_children_import_roadstead_and_nothing_from_the_working_directory(hostile, monkeypatch):
    monkeypatch.setattr(sys, "path", ["", str(hostile), "relative", *sys.path])

    path = isolation.import_path()

    assert isolation.PACKAGE_PARENT in path
    assert str(hostile) not in path
    assert all(map(os.path.isabs, path))
    # A user who names the folder in full wants its modules.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(hostile)]))
    assert str(hostile) in isolation.import_path()


def test_children_of_a_process_whose_working_directory_was_removed_import_roadstead(
    tmp_path, monkeypatch
):
    removed = tmp_path / "removed"
    removed.mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()

    assert isolation.PACKAGE_PARENT in isolation.import_path()


ON_RAY = """
import glob, json, os, stat, sys
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.cli.main import build_cli
import ray
import psutil

# An empty entry is the working directory, to whoever inherits this.
os.environ["PYTHONPATH"] = ":" + os.environ["PYTHONPATH"]
seen = []

def look():
    driver = psutil.Process()
    processes = [driver, *driver.children(recursive=True)]
    listening = [
        (each.name(), connection.laddr.ip)
        for each in processes
        for connection in each.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    (folder,) = glob.glob(f"/tmp/roadstead-{os.getpid()}-*")
    work = {each.name(): each.cwd() for each in processes[1:]}
    # Ray opens folders to all, which lets nobody in while the outer one is closed.
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    seen.append({"listening": listening, "mode": mode, "folder": folder, "work": work})

class Looking(ActorLauncher):
    def run(self, inputs, plan, progress):
        def report(event):
            progress(event)
            if event.phase == "scheduling" and not seen:
                look()
        return super().run(inputs, plan, report)

build_cli(Looking)(sys.argv[1:], standalone_mode=False)
print(json.dumps(seen[0]))
"""


@pytest.mark.ray
def test_a_run_on_ray_imports_nothing_from_there_and_is_private_to_its_owner(hostile, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = {"TMPDIR": "/tmp", "PYTHONPATH": isolation.PACKAGE_PARENT}
    arguments = (*SCHEDULE, "--runtime", "ray", "--workers", "2")

    result = run("-P", "-c", ON_RAY, *arguments, home=home, **environment)

    *summary, last = result.splitlines()
    seen = json.loads(last)
    assert json.loads("\n".join(summary))["placed"] == PODS
    assert {name for name, _ in seen["listening"]} >= {"gcs_server", "raylet"}
    assert {ip for _, ip in seen["listening"]} <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert seen["mode"] == 0o700
    assert set(seen["work"].values()) == {seen["folder"]}
    assert not os.path.exists(seen["folder"])
    assert list(home.iterdir()) == []
