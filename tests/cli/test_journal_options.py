"""The location of a run's journal by command line options."""

import json

import pytest

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.cli.main import build_cli
from roadstead.report.output import check_directory


def test_a_run_with_an_output_directory_keeps_its_journal_there(
    run, launcher, cluster, pods, tmp_path
):
    run("schedule", "--cluster", cluster, "--pods", pods, "--output", tmp_path / "out")

    assert launcher.plan.settings.journal == tmp_path / "out" / "journal"
    assert not launcher.plan.resume
    written = json.loads((tmp_path / "out" / "run.json").read_text())
    assert written["settings"]["journal"] is None


def test_a_run_without_an_output_directory_has_no_journal(run, launcher, cluster, pods):
    run("schedule", "--cluster", cluster, "--pods", pods)

    assert launcher.plan.settings.journal is None


def test_none_turns_the_journal_off(run, launcher, cluster, pods, tmp_path):
    out = tmp_path / "out"
    run("schedule", "--cluster", cluster, "--pods", pods, "--output", out, "--journal", "none")

    assert launcher.plan.settings.journal is None


def test_a_named_folder_overrides_the_output_directory(run, launcher, cluster, pods, tmp_path):
    named = ("--journal", tmp_path / "mine", "--resume")
    run("schedule", "--cluster", cluster, "--pods", pods, "--output", tmp_path / "out", *named)

    assert launcher.plan.settings.journal == tmp_path / "mine"
    assert launcher.plan.resume
    written = json.loads((tmp_path / "out" / "run.json").read_text())
    assert written["settings"]["journal"] == str(tmp_path / "mine")


def test_the_copy_of_the_journal_has_a_folder_of_its_own(run, launcher, cluster, pods, tmp_path):
    copied = ("--journal-copy", tmp_path / "copy")
    run("schedule", "--cluster", cluster, "--pods", pods, "--output", tmp_path / "out", *copied)

    assert launcher.plan.settings.journal_copy == tmp_path / "copy"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--journal-copy", "c"), "needs a journal to copy: set journal (--journal DIR), too"),
        (("--journal", "none", "--journal-copy", "c"), "needs a journal to copy"),
        (("--journal", "c", "--journal-copy", "c"), "must be another folder than journal"),
    ],
)
def test_a_copy_without_a_journal_of_its_own_is_refused(run, cluster, pods, options, rule):
    ended = run("schedule", "--cluster", cluster, "--pods", pods, *options)

    assert ended.exit_code != 0
    assert rule in ended.stderr


def test_an_output_directory_that_contains_only_journals_may_be_written(tmp_path):
    for name in ("journal", "journal.1"):
        (tmp_path / name).mkdir()

    check_directory(tmp_path)


@pytest.mark.parametrize("again", [1, 2])
def test_the_journal_of_a_real_run_can_be_checked_by_its_output_directory(
    cluster, pods, tmp_path, again
):
    from click.testing import CliRunner

    def roadstead(*args):
        arguments = [str(each) for each in args]
        return CliRunner().invoke(build_cli(ActorLauncher), arguments, catch_exceptions=False)

    out = tmp_path / "out"
    asked = ("--cluster", cluster, "--pods", pods, "--runtime", "inline", "--output", out)
    for _ in range(again):
        assert roadstead("schedule", *asked, "--force").exit_code == 0

    checked = roadstead("check", out)

    assert (checked.exit_code, (out / "journal.1").is_dir()) == (0, again == 2)
    assert checked.stdout.splitlines()[-1] == "2 binds checked: no violations"
