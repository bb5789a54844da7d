"""The lines of progress of a simulation whose output is no terminal."""

from types import SimpleNamespace

from roadstead.cli.simulate_run import SILENT_MAX_S, shown_runs

MINUTE_US = 60_000_000


def engine_at(minutes: int, created: int) -> SimpleNamespace:
    return SimpleNamespace(
        now_us=minutes * MINUTE_US, simulated_pods=SimpleNamespace(created=created)
    )


def test_each_tenth_of_a_run_has_a_line_and_a_slow_run_has_more(capsys):
    now_s = 0.0
    with shown_runs(100 * MINUTE_US, 1, lambda: now_s) as show:
        for minutes, passed_s in (
            (9, 1),
            (10, 1),
            (19, SILENT_MAX_S - 1),
            (19, 1),
            (19, 1),
            (20, 1),
        ):
            now_s += passed_s
            show("default-0", engine_at(minutes, 5 * minutes))

    assert capsys.readouterr().err.splitlines() == [
        "default-0: 10m of 1h40m, 50 pods",
        "default-0: 19m of 1h40m, 95 pods",
        "default-0: 20m of 1h40m, 100 pods",
    ]
