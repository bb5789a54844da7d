"""Files and folders that pages name exist. Decision records are historical, and left out."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = re.compile(r"`([\w./-]+(?:\.py|\.md|\.toml|/))`")
PACKAGES = ("", "roadstead")
"""Possible roots of a path: the checkout, or, in most sentences, the package."""


def is_there(path):
    if "/" in path:
        return any((ROOT / package / path).exists() for package in PACKAGES)
    folders = ("roadstead", "actors", "protocol", "config", "scripts", "tests", "docs")
    return (ROOT / path).exists() or any(any((ROOT / each).rglob(path)) for each in folders)


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("README.md", 0),
        ("CONTRIBUTING.md", 20),
        ("docs/ARCHITECTURE.md", 50),
        ("docs/invariants.md", 5),
        ("docs/measurements.md", 0),
        ("docs/parity.md", 0),
        ("docs/performance.md", 0),
        ("docs/ray-cluster.md", 0),
        ("docs/simulation.md", 10),
        ("docs/state-machines.md", 2),
    ],
)
def test_every_file_and_folder_on_the_page_exists(page, least):
    named = PATH.findall((ROOT / page).read_text())

    assert [path for path in named if not is_there(path)] == []
    assert len(named) > least


def test_the_architecture_page_describes_each_package():
    links = {"actors", "config", "protocol"}
    packages = {path.parent.name for path in (ROOT / "roadstead").glob("*/__init__.py")}
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/ARCHITECTURE.md").read_text(), re.MULTILINE)

    named = {path for row in rows for path in re.findall(r"`roadstead/(\w+)/`", row)}
    assert packages - links - named == set()
