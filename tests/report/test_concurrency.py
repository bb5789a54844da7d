"""A run's report about its schedulers."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from roadstead.report.concurrency import Concurrency, SchedulerWork, concurrency_part
from roadstead.report.output import write_output
from roadstead.report.summary import summarize, summary_document
from roadstead.report.terminal import print_summary
from tests.report.test_output import load


def work(name="scheduler-0", profile="", **figures):
    nothing = dict.fromkeys(
        ("reads", "decided", "asked", "bound", "transactions", "conflicted", "retries"), 0
    )
    given = {"busyness": 0.0, "passed_on": 0, "refused": {}, **nothing, **figures}
    return SchedulerWork(name, profile, **given)


SHARED = Concurrency(
    "shared",
    "version",
    "incremental",
    (
        work(
            *("scheduler-0", "web"),
            busyness=0.5,
            asked=80,
            bound=60,
            transactions=20,
            conflicted=5,
            retries=7,
            refused={"version": 15, "constraint": 3, "already_bound": 2},
        ),
        work("scheduler-1", "batch", asked=20, bound=20, transactions=10, passed_on=4),
    ),
)


def shown(result):
    console = Console(file=io.StringIO(), width=100, color_system=None)
    print_summary(console, summarize(result))
    return console.file.getvalue()


def test_conflicts_are_refusals_due_to_a_changed_state():
    assert [each.conflicts for each in SHARED.schedulers] == [18, 0]
    assert SHARED.conflict_fraction == 0.18
    assert SHARED.refused == {"version": 15, "constraint": 3, "already_bound": 2}
    assert SHARED.retries == 7


def test_the_memory_of_the_largest_process_is_shown_if_known(result):
    larger = replace(SHARED.schedulers[1], memory_bytes=3 << 30)
    known = replace(SHARED, schedulers=(replace(larger, memory_bytes=1 << 30), larger))
    with_memory = replace(result, concurrency=known)

    assert "at most 3 GiB of memory per process" in " ".join(shown(with_memory).split())
    document = summary_document(summarize(with_memory))["concurrency"]
    assert [each["memory_bytes"] for each in document["schedulers"]] == [1 << 30, 3 << 30]
    assert "of memory" not in shown(replace(result, concurrency=SHARED))


def test_conflicts_per_transaction_are_counted_for_each_that_succeeded():
    assert SHARED.conflicts_per_transaction == 5 / 25


def test_without_requests_there_is_no_conflict_fraction():
    idle = Concurrency("shared", "fit", "incremental", (work(),))

    assert (idle.conflict_fraction, idle.conflicts_per_transaction) == (None, None)


def test_a_single_exact_scheduler_without_refusals_is_not_reported(result):
    quiet = Concurrency("exact", "fit", "incremental", (work(asked=3, bound=3),))
    plain = summary_document(summarize(result))

    assert summary_document(summarize(replace(result, concurrency=quiet))) == plain
    assert "Schedulers" not in shown(replace(result, concurrency=quiet))
    assert concurrency_part(None) == {}


def test_an_exact_scheduler_that_lost_a_bind_is_reported():
    lost = Concurrency("exact", "fit", "incremental", (work(refused={"constraint": 1}),))

    assert concurrency_part(lost)["concurrency"]["refused"] == {"constraint": 1}


def test_the_terminal_shows_mode_conflicts_causes_and_each_scheduler(result):
    text = " ".join(shown(replace(result, concurrency=SHARED)).split())

    assert "2 schedulers, shared: 18.0% of 100 binds in conflict" in text
    assert "(version 15, constraint 3, already_bound 2); 7 retries" in text
    assert "scheduler-0 web" in text
    assert "50.0%" in text


def test_the_terminal_shows_one_scheduler_or_many(result):
    one = Concurrency("shared", "fit", "incremental", (work(),))
    many = Concurrency(
        "shared", "fit", "incremental", tuple(work(f"scheduler-{n}") for n in range(20))
    )

    assert "1 scheduler, shared" in shown(replace(result, concurrency=one))
    assert "and 4 more schedulers" in shown(replace(result, concurrency=many))


def test_control_characters_of_a_profiles_name_do_not_reach_the_terminal(result):
    hostile = Concurrency("shared", "fit", "incremental", (work(profile="web\x1b[2J"),))

    text = shown(replace(result, concurrency=hostile))

    assert "\x1b[2J" not in text
    assert r"web\x1b[2J" in text


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
def test_files_of_a_run_contain_the_figures_of_its_schedulers(result, tmp_path, name):
    write_output(tmp_path / "out", replace(result, concurrency=SHARED))

    figures = load(tmp_path / "out" / name)["concurrency"]

    assert (figures["mode"], figures["conflicts"], figures["asked"]) == ("shared", "version", 100)
    assert figures["conflict_fraction"] == 0.18
    assert [each["name"] for each in figures["schedulers"]] == ["scheduler-0", "scheduler-1"]
    assert figures["schedulers"][0]["busyness"] == 0.5
