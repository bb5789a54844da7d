"""Runs whose journal has a copy: both folders hold the same bytes, and either continues the run."""

import shutil
from dataclasses import replace

import pytest

from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.fleet.generate import generate_fleet
from roadstead.invariants.checker import check
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from roadstead.journal_copy.folder import INCOMPLETE
from roadstead.protocol.errors import InputError
from tests.actors.world import inputs_of, placed, plan_of, pods_of
from tests.builders import node


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)


def fleet():
    trace = generate_fleet(20, 300, 1)
    return inputs_of(trace.nodes(), trace.pods())


def folders(tmp_path):
    return {"journal": tmp_path / "journal", "journal_copy": tmp_path / "copy"}


def files_in(folder):
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name not in ("lock", "finished")
    }


def records_in(folder):
    return list(Reader(RealDisk(folder)).records())


def run(inputs, *, runtime="inline", resume=False, progress=lambda progress: None, **how):
    plan = plan_of(**how)
    settings = plan.settings.model_copy(update={"runtime": runtime})
    return ActorLauncher().run(inputs, replace(plan, settings=settings, resume=resume), progress)


class EndedError(Exception):
    """Stands for the end of a run's process."""


def stopped_in_the_middle(inputs, **how):
    def end(progress):
        if progress.placed > 50:
            raise EndedError

    with pytest.raises(EndedError):
        run(inputs, batch=4, schedulers=2, progress=end, **how)


def test_both_folders_have_the_same_bytes_after_a_run(tmp_path):
    outcome = run(fleet(), batch=16, schedulers=2, **folders(tmp_path))

    files = files_in(tmp_path / "journal")
    assert files == files_in(tmp_path / "copy")
    assert sorted(files) == ["journal-00000000000000000001.segment", "outcome"]
    result = check(records_in(tmp_path / "copy"))
    assert (result.violations, result.binds_checked) == ([], len(outcome.placements))


@pytest.mark.ray
def test_both_folders_have_the_same_bytes_after_a_run_on_ray(tmp_path):
    outcome = run(fleet(), runtime="ray", batch=16, **folders(tmp_path))

    assert files_in(tmp_path / "journal") == files_in(tmp_path / "copy")
    for name in ("journal", "copy"):
        result = check(records_in(tmp_path / name))
        assert (result.violations, result.binds_checked) == ([], len(outcome.placements))


def test_the_placements_are_those_of_a_run_without_a_copy(tmp_path):
    assert placed(run(fleet(), **folders(tmp_path))) == placed(run(fleet()))


def test_a_run_continues_from_its_copy_when_the_journal_is_gone(tmp_path):
    stopped_in_the_middle(fleet(), **folders(tmp_path))
    before = {each.uid: each.node_name for each in records_in(tmp_path / "copy") if each.token}
    shutil.rmtree(tmp_path / "journal")

    outcome = run(fleet(), resume=True, journal=tmp_path / "copy", journal_copy=tmp_path / "next")

    after = {each.uid: each.node for each in outcome.placements}
    assert 50 < len(before) < len(after), (
        "the first run was stopped in the middle, and the second bound more"
    )
    assert before.items() <= after.items()
    assert check(records_in(tmp_path / "copy")).violations == []
    assert files_in(tmp_path / "next") == files_in(tmp_path / "copy")


def test_a_run_continues_with_both_folders(tmp_path):
    stopped_in_the_middle(fleet(), **folders(tmp_path))

    outcome = run(fleet(), resume=True, **folders(tmp_path))

    assert len(outcome.placements) + len(outcome.pending) == 300
    assert files_in(tmp_path / "journal") == files_in(tmp_path / "copy")
    assert {path.name for path in tmp_path.iterdir()} == {"journal", "copy"}, "none set aside"


def test_the_outcome_is_read_from_the_copy(tmp_path):
    wanted = run(fleet(), **folders(tmp_path))
    shutil.rmtree(tmp_path / "journal")

    found = run(fleet(), resume=True, journal=tmp_path / "copy")

    assert set(found.placements) == set(wanted.placements)
    assert found.timings_s == wanted.timings_s


def test_the_copy_of_an_earlier_run_is_set_aside(tmp_path):
    stopped_in_the_middle(fleet(), **folders(tmp_path))
    before = files_in(tmp_path / "copy")
    inputs = inputs_of([node("n1")], pods_of("a"))

    run(inputs, journal=tmp_path / "new", journal_copy=tmp_path / "copy")

    assert files_in(tmp_path / "copy.1") == before
    assert files_in(tmp_path / "copy") == files_in(tmp_path / "new")


def test_an_incomplete_copy_is_not_continued(tmp_path):
    stopped_in_the_middle(fleet(), **folders(tmp_path))
    (tmp_path / "copy" / INCOMPLETE).touch()

    with pytest.raises(InputError, match="is a copy that lacks records of its journal"):
        run(fleet(), resume=True, journal=tmp_path / "copy")
