"""The checks of a Ray cluster's nodes: clocks, and which nodes are left out or checked again."""

import pytest

from roadstead.actors.interface import ActorLostError
from roadstead.actors.runtime import ray_checks
from roadstead.actors.runtime.ray_checks import (
    FIRST_CHECK_S,
    MAX_CHECKS,
    RECHECK_PAUSE_S,
    REPEATED_CHECK_S,
    NodeChecks,
    NodeReport,
    check_nodes,
    clock_difference_s,
)
from roadstead.actors.runtime.ray_placement import RayNode

NODE = RayNode("1", "h1", "10.0.0.1", 7000, 4.0, 4.0)
OTHER = RayNode("2", "h2", "10.0.0.2", 7000, 4.0, 4.0)


def late(node=NODE):
    return NodeReport(node, {}, "did not answer its check within 60 s", is_late=True)


@pytest.fixture
def checks():
    return NodeChecks()


def test_a_node_with_a_problem_is_left_out_and_named(checks):
    checks.record(NodeReport(NODE, {"has_nonce": "yes"}), 0.0)
    checks.record(NodeReport(OTHER, {}, "has roadstead 0.0.1"), 0.0)

    assert checks.left_out.keys() == {"2"}
    assert checks.format_left_out() == "; left out: h2 (10.0.0.2): has roadstead 0.0.1"
    assert checks.without_journal() == {"2"}


def test_no_note_is_written_if_no_node_is_left_out(checks):
    assert checks.format_left_out() == ""


def test_a_late_node_is_checked_again_after_a_pause(checks):
    checks.record(late(), 100.0)

    assert not checks.readmit_late({"1"}, 99.0 + RECHECK_PAUSE_S)
    assert checks.left_out.keys() == {"1"}
    assert checks.readmit_late({"1"}, 100.0 + RECHECK_PAUSE_S)
    assert checks.left_out == checks.reports == {}, "the node is unknown again"


def test_a_late_node_that_answers_then_is_used(checks):
    checks.record(late(), 0.0)
    checks.readmit_late({"1"}, RECHECK_PAUSE_S)

    checks.record(NodeReport(NODE), RECHECK_PAUSE_S)

    assert checks.left_out == {}
    assert not checks.readmit_late({"1"}, 10 * RECHECK_PAUSE_S)


def test_the_checks_of_one_node_are_bounded(checks):
    now_s, times = 0.0, 0
    while True:
        checks.record(late(), now_s)
        times += 1
        now_s += RECHECK_PAUSE_S
        if not checks.readmit_late({"1"}, now_s):
            break

    assert times == MAX_CHECKS


def test_other_problems_last_for_the_run(checks):
    checks.record(NodeReport(NODE, {}, "has roadstead 0.0.1"), 0.0)

    assert not checks.readmit_late({"1"}, 100 * RECHECK_PAUSE_S)


def test_a_node_that_is_lost_is_not_checked_again(checks):
    checks.record(late(), 0.0)
    checks.record(late(OTHER), 0.0)

    assert checks.readmit_late({"2"}, RECHECK_PAUSE_S)
    assert checks.left_out.keys() == {"1"}


def test_a_repeated_check_does_not_outlast_the_wait_for_room(checks):
    assert checks.deadline_s("1", 3.0) == FIRST_CHECK_S, "the first one may make an environment"
    checks.record(late(), 0.0)

    assert checks.deadline_s("1", 100.0) == REPEATED_CHECK_S
    assert checks.deadline_s("1", 4.0) == 4.0
    assert checks.deadline_s("1", -4.0) == 1.0
    assert checks.deadline_s("2", 4.0) == FIRST_CHECK_S


@pytest.mark.parametrize(
    ("node_s", "difference_s"), [(100.0, 0.0), (106.0, 0.0), (110.0, 4.0), (97.0, -3.0)]
)
def test_a_clock_is_wrong_by_the_difference_beyond_the_duration_of_the_check(node_s, difference_s):
    assert clock_difference_s(node_s, began_s=100.0, ended_s=106.0) == difference_s


async def test_a_check_that_takes_long_does_not_make_a_clock_wrong(monkeypatch):
    seconds = iter([100.0, 106.0])

    class Task:
        """A task whose process takes 6 s to start."""

        def options(self, **_):
            return self

        async def remote(self, nonce_path):
            return dict.fromkeys(ray_checks.node_probe.FIELDS, "") | {"clock": "105.9"}

    monkeypatch.setattr(ray_checks.time, "time", lambda: next(seconds))
    monkeypatch.setattr(ray_checks.ray, "remote", lambda probe: Task())
    monkeypatch.setattr(ray_checks, "NodeAffinitySchedulingStrategy", lambda *_, **__: None)
    monkeypatch.setattr(ray_checks, "problem_in", lambda found: "")

    (report,) = await check_nodes([NODE], None)

    assert report.checked(has_folder=False).clock_s == 0.0


async def test_a_journals_folder_that_cannot_be_made_is_an_error_of_the_run(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(ActorLostError, match=r"file/journal: cannot be written: Not a directory"):
        await check_nodes([], tmp_path / "file" / "journal")
