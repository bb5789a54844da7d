"""The locks: every package with hashes, no index named, and equal versions in both files."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")
PACKAGE = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ; ([^\\]+))? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def normal(name):
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!\[; ]", name)[0]).lower()


def packages(name):
    """Return (package, marker) → version."""
    found = (PACKAGE.match(line) for line in (ROOT / name).read_text().splitlines())
    return {(match[1], (match[3] or "").strip()): match[2] for match in found if match}


def names_in(name):
    return {package for package, _ in packages(name)}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_packages_and_hashes_and_nothing_else(name):
    header, *lines = (ROOT / name).read_text().splitlines()
    assert header.startswith("# Written by scripts/lock.py")
    assert all(PACKAGE.match(line) or HASH.match(line) for line in lines)


def test_the_locks_cover_the_dependencies_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    build = {normal(entry) for entry in project["build-system"]["requires"]}
    runtime = {normal(entry) for entry in project["project"]["dependencies"]} | build
    dev = {normal(entry) for entry in project["project"]["optional-dependencies"]["dev"]}
    assert runtime <= names_in("requirements.lock")
    assert runtime | dev <= names_in("requirements-dev.lock")


def test_both_locks_name_the_same_versions():
    runtime, dev = packages("requirements.lock"), packages("requirements-dev.lock")
    assert {key: dev.get(key) for key in runtime} == runtime


def test_options_and_comments_of_the_resolver_are_dropped(scripts):
    resolved = (
        "--index-url https://example.com/simple\n# via ray\nray==1 \\\n    --hash=sha256:00\n"
    )
    assert scripts("lock").without_index(resolved) == "ray==1 \\\n    --hash=sha256:00\n"


def test_the_docs_justify_every_direct_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "docs" / "dependencies.md").read_text().lower()
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    assert [entry for entry in wanted if f"`{normal(entry)}`" not in text] == []


def test_the_extra_for_clusters_requires_the_same_ray():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extra,) = project["optional-dependencies"]["cluster"]
    assert extra.replace("[default]", "") in project["dependencies"]
    assert "`ray[default]`" in (ROOT / "docs" / "dependencies.md").read_text()


@pytest.fixture
def resolver(scripts, monkeypatch, tmp_path):
    """Return the script in a checkout of its own, with a resolver that echoes its input."""
    lock = scripts("lock")
    calls = []

    def run(command, *, input, **_):
        calls.append((command[command.index("-") - 4 :] if "-c" in command else [], input))
        answer = "".join(f"{line}==1 \\\n" for line in input.splitlines())
        return subprocess.CompletedProcess(command, 0, stdout=answer)

    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\n'
        '[project]\ndependencies = ["ray"]\noptional-dependencies.dev = ["pytest"]\n'
    )
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    monkeypatch.setattr(lock.subprocess, "run", run)
    return lock, tmp_path, calls


def test_the_lock_for_tests_is_constrained_by_the_one_for_running(resolver, capsys):
    lock, folder, calls = resolver
    assert lock.main([]) == 0
    assert [asked for _, asked in calls] == ["ray\nsetuptools", "ray\nsetuptools\npytest"]
    assert str(folder / "requirements.lock") in calls[1][0]
    assert capsys.readouterr().out.splitlines() == [
        "requirements.lock: 2 packages",
        "requirements-dev.lock: 3 packages",
    ]


def test_versions_are_kept_unless_an_upgrade_is_requested(resolver):
    lock, folder, calls = resolver
    lock.main([])
    calls.clear()
    lock.main([])
    assert str(folder / "requirements.lock") in calls[0][0]
    calls.clear()
    lock.main(["--upgrade"])
    assert calls[0][0] == []
