"""Structured logs: one JSON object per line, only where the plan names a log."""

from __future__ import annotations

import json
import logging

import pytest

from roadstead.actors.logs import MAX_ERROR_CHARS, close_logs, log, open_log


@pytest.fixture(autouse=True)
def closed_afterwards():
    root = logging.getLogger("roadstead")
    before = (root.level, root.propagate)
    yield
    close_logs()
    root.setLevel(before[0])
    root.propagate = before[1]


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_an_event_is_a_line_of_json_with_its_actor_and_numbers(tmp_path):
    open_log(str(tmp_path), "driver")

    log("scheduler-0", "batch decided", pods=512, placed=510)

    (line,) = lines_of(tmp_path / "driver.jsonl")
    assert line.pop("at").endswith("+00:00")
    assert line == {
        "level": "info",
        "actor": "scheduler-0",
        "event": "batch decided",
        "pods": 512,
        "placed": 510,
    }


def test_a_failure_is_logged_with_the_end_of_its_traceback(tmp_path):
    open_log(str(tmp_path), "driver")

    try:
        raise ValueError("x" * 2 * MAX_ERROR_CHARS)
    except ValueError:
        logging.getLogger("roadstead.worker-1").exception("cannot continue")

    (line,) = lines_of(tmp_path / "driver.jsonl")
    assert (line["level"], line["event"]) == ("error", "cannot continue")
    assert len(line["error"]) == MAX_ERROR_CHARS


def test_opening_the_same_log_twice_writes_each_event_once(tmp_path):
    open_log(str(tmp_path), "driver")
    open_log(str(tmp_path), "driver")

    log("queue", "leased", pods=1)

    assert len(lines_of(tmp_path / "driver.jsonl")) == 1


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    open_log("", "driver")
    log("queue", "leased", pods=1)

    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_log_folder_is_reported_and_fails_nothing(tmp_path, caplog):
    taken = tmp_path / "taken"
    taken.write_text("a file, not a folder", encoding="utf-8")

    open_log(str(taken), "driver")
    log("queue", "leased", pods=1)

    assert "cannot write logs" in caplog.text


def test_closed_logs_ignore_events(tmp_path):
    open_log(str(tmp_path), "driver")
    close_logs()

    log("queue", "leased", pods=1)

    assert lines_of(tmp_path / "driver.jsonl") == []
