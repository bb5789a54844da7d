"""The runtime environment that installs this Roadstead on the nodes of a Ray cluster."""

import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError

import pytest
import yaml
from ray._private.runtime_env.packaging import get_uri_for_package

import roadstead
from roadstead.api import cluster_pack
from roadstead.api.cluster_pack import pack, pinned_requirements
from roadstead.protocol.errors import InputError


def test_the_environment_names_the_wheel_and_pinned_packages(tmp_path):
    packed = pack(tmp_path / "env.yaml")

    environment = yaml.safe_load(packed.environment.read_text())
    assert environment["py_modules"] == [str(packed.wheel)]
    assert environment["pip"]["packages"] == list(packed.packages)
    names = {each.partition("==")[0] for each in packed.packages}
    assert {"numpy", "numba", "llvmlite", "msgpack", "pydantic"} <= names
    assert not names & {"ray", "roadstead", "pytest"}


def test_the_same_files_give_the_same_bytes(tmp_path):
    first = pack(tmp_path / "a" / "env.yaml", with_packages=False)
    second = pack(tmp_path / "b" / "env.yaml", with_packages=False)

    assert first.wheel.read_bytes() == second.wheel.read_bytes()
    assert first.wheel.name == second.wheel.name


def test_ray_can_tell_the_wheels_of_two_versions_of_a_plugin_by_their_names(tmp_path):
    plugin = tmp_path / "few_pods.py"
    plugin.write_text("NAME = 'few'\n")
    first = pack(tmp_path / "env.yaml", plugin_files=[plugin], with_packages=False)
    plugin.write_text("NAME = 'fewer'\n")
    second = pack(
        tmp_path / "env.yaml", plugin_files=[plugin], with_packages=False, may_replace=True
    )

    assert get_uri_for_package(first.wheel) != get_uri_for_package(second.wheel)
    build = second.wheel.name.split("-")[2]
    with zipfile.ZipFile(second.wheel) as archive:
        info = f"roadstead-{roadstead.__version__}.dist-info"
        assert f"Build: {build}\n" in archive.read(f"{info}/WHEEL").decode()


def test_the_wheel_is_imported_from_its_folder_alone(tmp_path):
    plugin = tmp_path / "few_pods.py"
    plugin.write_text("NAME = 'few'\n")
    packed = pack(tmp_path / "env.yaml", plugin_files=[plugin], with_packages=False)
    folder = tmp_path / "target"
    with zipfile.ZipFile(packed.wheel) as archive:
        archive.extractall(folder)

    script = "import roadstead.actors.entry, few_pods; print(roadstead.__file__, few_pods.NAME)"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(folder)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stdout.split() == [str(folder / "roadstead" / "__init__.py"), "few"]


def test_the_wheel_needs_nothing_from_pip(tmp_path):
    packed = pack(tmp_path / "env.yaml", with_packages=False)

    with zipfile.ZipFile(packed.wheel) as archive:
        info = f"roadstead-{roadstead.__version__}.dist-info"
        assert b"Requires-Dist" not in archive.read(f"{info}/METADATA")
        listed = archive.read(f"{info}/RECORD").decode().splitlines()
        assert {line.split(",")[0] for line in listed} == set(archive.namelist())


def test_files_are_replaced_only_on_request(tmp_path):
    output = tmp_path / "env.yaml"
    pack(output, with_packages=False)

    with pytest.raises(InputError, match=r"env.yaml.*exists already: use --force"):
        pack(output, with_packages=False)
    pack(output, with_packages=False, may_replace=True)


NO_MODULES = ["few-pods.py", "few_pods.txt", "roadstead.py", "numpy.py", "ray.py", "json.py"]


@pytest.mark.parametrize("name", NO_MODULES)
def test_a_plugin_file_must_be_a_module(tmp_path, name):
    path = tmp_path / name
    path.write_text("")

    with pytest.raises(InputError, match=r"--plugin-file.*must be a Python module"):
        pack(tmp_path / "env.yaml", plugin_files=[path])


def test_two_plugin_files_of_one_name_are_refused(tmp_path):
    paths = [tmp_path / each / "few_pods.py" for each in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("")

    with pytest.raises(InputError, match=r"few_pods.py is the name of two files"):
        pack(tmp_path / "env.yaml", plugin_files=paths, with_packages=False)


def test_missing_packages_are_left_out():
    assert list(pinned_requirements("no-such-package")) == []


def test_a_package_that_is_not_installed_is_refused(tmp_path, monkeypatch):
    def no_distribution(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(cluster_pack, "distribution", no_distribution)

    with pytest.raises(InputError, match=r"roadstead.* is not installed"):
        pack(tmp_path / "env.yaml")
