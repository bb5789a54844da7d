"""The folder of a local Ray is private to its owner, and removed after its process has ended."""

import os
import stat
import subprocess
import sys
import tempfile

import pytest

from roadstead.actors.runtime import ray_folder


@pytest.fixture
def parent(tmp_path_factory, monkeypatch):
    found = tempfile.mkdtemp(dir="/tmp", prefix="t")
    monkeypatch.setattr(ray_folder, "LONGEST_PARENT", len(found))
    monkeypatch.setattr(tempfile, "tempdir", found)
    yield found
    ray_folder.remove_folder(found)


def test_a_folder_is_private_to_its_owner_and_removed_with_its_contents(parent):
    folder = ray_folder.make_folder()
    with open(f"{folder}/log", "w") as file:
        file.write("x")

    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert os.path.dirname(folder) == parent
    ray_folder.remove_folder(folder)
    assert os.listdir(parent) == []


def test_folders_of_killed_processes_are_removed_and_others_stay(
    parent,
):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    stays = {f"roadstead-{os.getpid()}-abc", "roadstead-numba-abc", f"roadstead-{ended.pid}"}
    for name in (*stays, f"roadstead-{ended.pid}-abc"):
        os.makedirs(f"{parent}/{name}/ray")

    folder = ray_folder.make_folder()

    assert set(os.listdir(parent)) == stays | {os.path.basename(folder)}


def test_a_long_temporary_folder_is_not_used_since_socket_names_are_short(parent, monkeypatch):
    monkeypatch.setattr(ray_folder, "LONGEST_PARENT", len(parent) - 1)

    folder = ray_folder.make_folder()

    assert os.path.dirname(folder) == "/tmp"
    ray_folder.remove_folder(folder)
