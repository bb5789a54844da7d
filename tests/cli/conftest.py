"""The command line with a launcher in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from roadstead.cli.main import build_cli
from tests.cli.manifests import node, pod, write
from tests.cli.plain_launcher import PlainLauncher

Run = Callable[..., Result]


@pytest.fixture
def launcher() -> PlainLauncher:
    return PlainLauncher()


@pytest.fixture
def run(launcher: PlainLauncher) -> Run:
    """Call the command line; an error that is not an exit fails the test."""

    def call(*args: object, stdin: str | bytes | None = None) -> Result:
        arguments = [str(each) for each in args]
        return CliRunner().invoke(
            build_cli(lambda: launcher), arguments, input=stdin, catch_exceptions=False
        )

    return call


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Write three nodes in two zones, not in order, and a pod that runs on one of them."""
    return write(
        tmp_path / "cluster.json",
        node("n-2", zone="b"),
        node("n-10", zone="a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
        node("n-1", cpu="2", zone="a"),
        pod("old", "500m", nodeName="n-1"),
    )


@pytest.fixture
def pods(tmp_path: Path) -> str:
    """Write two pods that both fit, and one that fits nowhere."""
    return write(tmp_path / "pods.json", pod("small"), pod("large", "3"), pod("giant", "9"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Enter a new working directory; its modules are removed from the import cache afterwards."""
    known = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in set(sys.modules) - known:
        if not name.startswith("roadstead."):
            del sys.modules[name]
