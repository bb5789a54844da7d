"""Warnings of a run's processes reach the user, a bounded number of them."""

import logging

import pytest

from roadstead.actors.interface import NOTHING, Stamp, decode_reply
from roadstead.actors.logs import close_logs, log, open_log
from roadstead.actors.messages import STATUS, ActorStatus
from roadstead.actors.process_warnings import MAX_CHARS, MAX_LINES, ProcessWarnings, WarningLimit
from roadstead.actors.runtime.dispatch import Dispatcher
from roadstead.actors.supervisor.statuses import Statuses
from roadstead.protocol.plain_data import DecodeLimits
from tests.actors.world import Fake, plan_of

LIMITS = DecodeLimits(max_bytes=100_000)


@pytest.fixture
def kept():
    made = ProcessWarnings("scheduler-0")
    made.open()
    yield made
    made.close()


def warn(text, name="roadstead.scheduler-0", **more):
    logging.getLogger(name).warning(text, **more)


def test_warnings_are_kept_until_they_are_collected(kept):
    log("scheduler-0", "an event is no warning")
    warn("the kernel\ncannot be loaded")
    warn("slow", name="roadstead.kernel")
    warn("of a plugin's own logger", name="my_plugin")

    assert kept.collect() == (
        "scheduler-0: the kernel cannot be loaded",
        "scheduler-0 (kernel): slow",
        "scheduler-0 (my_plugin): of a plugin's own logger",
    )
    assert kept.collect() == ()


def test_with_a_log_file_they_are_kept_as_well(kept, tmp_path):
    root = logging.getLogger("roadstead")
    before = root.level, root.propagate
    open_log(str(tmp_path), "scheduler-0")
    try:
        warn("once")
    finally:
        close_logs()
        root.level, root.propagate = before

    assert kept.collect() == ("scheduler-0: once",)


def test_records_of_two_threads_that_alternate_are_kept_once(kept):
    records = [logging.LogRecord("x", logging.WARNING, "", 0, text, (), None) for text in "ab"]

    # Each comes through both loggers.
    for record in records * 2:
        kept.handle(record)

    assert kept.collect() == ("scheduler-0 (x): a", "scheduler-0 (x): b")


def test_a_failure_is_named_without_its_traceback(kept):
    try:
        raise ValueError("x" * 1000)
    except ValueError:
        warn("cannot continue", exc_info=True)

    (line,) = kept.collect()
    assert line.startswith("scheduler-0: cannot continue (ValueError: xxx")
    assert len(line) == MAX_CHARS + 1


def test_a_process_keeps_the_first_warnings_and_counts_the_others(kept):
    for index in range(MAX_LINES + 1234):
        warn(f"pod {index}")

    lines = kept.collect()

    assert len(lines) == MAX_LINES + 1
    assert lines[MAX_LINES - 1 :] == (
        f"scheduler-0: pod {MAX_LINES - 1}",
        "scheduler-0: 1,234 further warnings",
    )


def test_the_driver_shows_a_number_of_lines_in_a_minute_and_then_their_count():
    limit = WarningLimit()

    shown = limit.admitted([f"a{index}" for index in range(MAX_LINES - 1)], 0.0)
    shown += limit.admitted(["b", "c", "d"], 59.0)
    assert shown[-1] == "b"
    assert len(shown) == MAX_LINES

    assert limit.admitted(["e"], 60.0) == [
        "2 further warnings are not shown; --log DIR writes all warnings of Roadstead",
        "e",
    ]
    assert limit.left_out() == []


async def test_the_reply_to_a_status_request_has_the_warnings_of_the_process(kept):
    class Actor:
        async def status(self, _):
            return ActorStatus("well")

    dispatcher = Dispatcher("scheduler-0", Actor(), LIMITS, kept.collect)
    request = Stamp("driver", 1).envelope(STATUS.name, NOTHING)
    warn("late")

    answers = [await dispatcher.receive(request) for _ in range(2)]

    found = [decode_reply("scheduler-0", STATUS, each, LIMITS).warnings for each in answers]
    assert found == [("scheduler-0: late",), ()]


class OneNode:
    def __init__(self, node):
        self.node_of = lambda name: node


@pytest.mark.parametrize(
    ("node", "begins"), [("h2 (10.0.0.2)", "Warning on h2 (10.0.0.2): "), ("", "Warning: ")]
)
async def test_the_supervisor_reports_them_with_the_node(node, begins):
    warnings = tuple(f"scheduler-0: {index}" for index in range(MAX_LINES + 3))
    refs = {"scheduler-0": Fake("scheduler-0", status=ActorStatus("well", warnings=warnings))}
    statuses, reported = Statuses(refs, OneNode(node), plan_of(), lambda: ""), []
    statuses.report_to(reported.append)

    await statuses.of("scheduler-0")
    statuses.report_left_out()

    assert reported[0] == f"{begins}scheduler-0: 0"
    assert len(reported) == MAX_LINES + 1
    assert reported[-1].startswith("3 further warnings are not shown")
