"""Progress: lines without a terminal, a bar on a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from roadstead.cli.progress import ProgressLines, shown_progress
from roadstead.cli.session import Session, Stopwatch
from roadstead.run import Progress
from tests.cli.plain_launcher import PlainLauncher


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_phase_is_printed_once_and_pods_in_ten_steps(capsys: pytest.CaptureFixture[str]) -> None:
    report = ProgressLines()
    report(Progress("starting actors"))
    report(Progress("starting actors"))
    for decided in range(0, 1001):
        report(
            Progress("scheduling", placed=decided - decided // 4, pending=decided // 4, total=1000)
        )

    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [
        "starting actors",
        "scheduling",
        "scheduling: 75 placed, 25 pending of 1,000 pods",
    ]
    assert len(lines) == 12
    assert lines[-1] == "scheduling: 750 placed, 250 pending of 1,000 pods"


def test_progress_without_pending_pods_does_not_mention_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ProgressLines()(Progress("scheduling", placed=5, total=5))

    assert capsys.readouterr().err == "scheduling: 5 placed of 5 pods\n"


def test_without_a_terminal_lines_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as report:
        report(Progress("loading"))

    assert capsys.readouterr().err == "loading\n"


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")

    with shown_progress() as report:
        report(Progress("starting actors"))
        report(Progress("scheduling", placed=3, pending=1, total=8))

    assert "scheduling" in terminal.getvalue()
    assert "3 placed, 1 pending of 8 pods" in terminal.getvalue()


def test_the_stopwatch_sums_phases_in_the_order_of_their_start() -> None:
    watch = Stopwatch()
    for name in ("read", "write", "read"):
        with watch.phase(name):
            before = watch.elapsed_s

    assert list(watch.timings_s) == ["read", "write"]
    assert 0 <= sum(watch.timings_s.values()) <= watch.elapsed_s
    assert before <= watch.elapsed_s


def test_the_launcher_is_opened_when_it_is_needed() -> None:
    opened: list[PlainLauncher] = []

    def open_launcher() -> PlainLauncher:
        opened.append(PlainLauncher())
        return opened[-1]

    session = Session(open_launcher, ())
    assert opened == []
    assert session.launcher() is opened[0]
