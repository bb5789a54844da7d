"""Progress of a sweep: plain lines, one changing line on a terminal, and the remaining time."""

import pytest

from roadstead.cli import sweep_progress
from roadstead.cli.sweep_progress import CombinationLines, SweepProgress
from roadstead.lab.scenario_sweep import ScenarioSweep
from roadstead.sweeps.tasks import TaskCounts


def named(number):
    return f"load 0.{number}"


def on_terminal(monkeypatch, columns="80"):
    monkeypatch.setattr(sweep_progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", columns)


def test_plain_lines_count_runs_and_estimate_the_remaining_time_once_it_is_known(capsys):
    times = iter((0.0, 120.0, 240.0, 300.0))
    show = SweepProgress(named, lambda: next(times))

    for done in range(4):
        show(TaskCounts(4, done, running=1), last=done)

    assert capsys.readouterr().err.splitlines() == [
        "0 of 4 runs done, 1 running: load 0.0",
        "1 of 4 runs done, 1 running, about 6 min left: load 0.1",
        "2 of 4 runs done, 1 running, about 4 min left: load 0.2",
        "3 of 4 runs done, 1 running, about 2 min left: load 0.3",
    ]


def test_runs_of_an_earlier_sweep_do_not_make_the_estimate_shorter(capsys):
    times = iter((0.0, 120.0))
    show = SweepProgress(named, lambda: next(times))

    show(TaskCounts(100, 51, running=1, restored=50), last=51)

    assert ", about 98 min left" in capsys.readouterr().err


def test_a_long_sweep_prints_few_lines_and_each_loss(capsys):
    show = SweepProgress(named)

    for done in range(1000):
        show(TaskCounts(1000, done, running=8, losses=int(done > 500)), last=done)

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == sweep_progress.LINES + 1
    assert sum(", 1 lost" in line for line in lines) == 10


def test_a_terminal_gets_one_changing_line_and_then_a_new_one(monkeypatch, capsys):
    on_terminal(monkeypatch)
    show = SweepProgress(named)

    show(TaskCounts(2, 0, running=1), last=0)
    show(TaskCounts(2, 0, running=1), last=0)
    show(TaskCounts(2, 2), last=1)
    show.end()
    show.end()

    assert capsys.readouterr().err == (
        "\r\033[K0 of 2 runs done, 1 running: load 0.0\r\033[K2 of 2 runs done\n"
    )


def test_a_note_begins_on_a_new_line(monkeypatch, capsys):
    on_terminal(monkeypatch)
    show = SweepProgress(named)

    show(TaskCounts(2, 0, running=1), last=0)
    show.note("Left out: h2")

    assert capsys.readouterr().err.endswith("load 0.0\nLeft out: h2\n")


def test_a_result_replaces_the_changing_line(monkeypatch, capsys):
    on_terminal(monkeypatch)
    show = SweepProgress(named)

    show(TaskCounts(2, 0, running=1), last=0)
    show.result("load 0.0: wait 7 s")
    show.result("load 0.1: wait 8 s")

    assert capsys.readouterr().err.endswith(
        "load 0.0\r\033[Kload 0.0: wait 7 s\nload 0.1: wait 8 s\n"
    )


@pytest.mark.parametrize(
    ("columns", "shown"), [("30", "0 of 2 runs done, 1 running: "), ("1", "0")]
)
def test_a_line_is_no_wider_than_the_terminal(monkeypatch, capsys, columns, shown):
    on_terminal(monkeypatch, columns)

    SweepProgress(named)(TaskCounts(2, 0, running=1), last=0)

    assert capsys.readouterr().err == f"\r\033[K{shown}"


def test_a_combination_has_a_line_when_its_last_run_has_ended():
    lines = []
    show = CombinationLines(ScenarioSweep("s", (("load", (1, 2)),), (0, 1)), lines.append)

    for task in (0, 2, 1, 3):
        show(task, {"placed_share": float(task), "wait_p99_s": 7.0, "other": 1.0})

    assert lines == [
        "load 1 (2 runs): placed_share 0.5, wait_p99_s 7",
        "load 2 (2 runs): placed_share 2.5, wait_p99_s 7",
    ]


def test_lines_about_combinations_are_bounded_and_one_combination_has_none():
    lines = []
    show = CombinationLines(ScenarioSweep("s", (("load", tuple(range(999))),), (0,)), lines.append)
    for task in range(999):
        show(task, {"placed_share": 1.0})
    assert len(lines) == sweep_progress.COMBINATIONS_MAX

    CombinationLines(ScenarioSweep("s", (), (0,)), lines.append)(0, {"placed_share": 1.0})
    assert len(lines) == sweep_progress.COMBINATIONS_MAX
