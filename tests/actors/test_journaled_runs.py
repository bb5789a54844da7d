"""A run with a journal: every placement is flushed to it, and the checker finds no error."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.interface import NOTHING, ActorError
from roadstead.actors.runs import client, launch
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.fleet.generate import generate_fleet
from roadstead.invariants.checker import check
from roadstead.journal import JournalError, RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from roadstead.protocol.errors import InputError
from tests.actors.world import inputs_of, placed, plan_of, pods_of
from tests.builders import node, pod

FORMAT_1 = Path(__file__).parents[1] / "journal" / "format_1"


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)


def run(inputs, report=lambda progress: None, **how):
    """Run and write the output."""
    launcher, plan = ActorLauncher(), plan_of(**how)
    outcome = launcher.run(inputs, plan, report)
    launcher.finish(plan)
    return outcome


def records_in(folder):
    return list(Reader(RealDisk(folder)).records())


def test_the_journal_has_the_cluster_and_every_bind_in_order(tmp_path):
    trace = generate_fleet(20, 200, 1)
    running = tuple((*each, "n-extra") for each in pods_of("runs", facts=pod(cpu=10)))
    inputs = inputs_of([*trace.nodes(), node("n-extra")], trace.pods(), running)

    outcome = run(inputs, journal=tmp_path / "journal", batch=16, schedulers=3)

    records = records_in(tmp_path / "journal")
    binds = {each.key: each.node_name for each in records if each.kind is RecordKind.BIND}
    assert binds == placed(outcome)
    kinds = {each.kind for each in records}
    assert kinds == {RecordKind.CLUSTER, RecordKind.NODE, RecordKind.LOAD, *("run", "add", "bind")}
    result = check(records)
    assert result.violations == []
    assert result.binds_checked == len(outcome.placements) > 100, (
        "the checker read every bind of a run of some size"
    )


def test_the_filters_of_the_profiles_are_in_the_journal(tmp_path):
    run(inputs_of([node("n1")], pods_of("a")), journal=tmp_path)

    _, rules = [each.subject for each in records_in(tmp_path) if each.kind is RecordKind.CLUSTER]

    ((name, filters),) = rules.filters
    assert name == "default-scheduler"
    assert {"NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"} < set(filters)


def test_the_journal_of_a_finished_run_is_moved_aside_and_kept(tmp_path):
    inputs, folder = inputs_of([node("n1")], pods_of("a")), tmp_path / "journal"
    run(inputs, journal=folder)
    before = records_in(folder)

    run(inputs, journal=folder)
    run(inputs, journal=folder)

    assert records_in(tmp_path / "journal.1") == before
    assert {path.name for path in tmp_path.iterdir()} == {"journal", "journal.1", "journal.2"}


def fleet():
    trace = generate_fleet(20, 300, 1)
    return inputs_of(trace.nodes(), trace.pods())


class EndedError(Exception):
    """Stands for the end of a run's process."""


def stopped_in_the_middle(folder, inputs):
    """End a run when only some of its pods are placed; return uid → node of the binds."""

    def end(progress):
        if progress.placed > 50:
            raise EndedError

    with pytest.raises(EndedError):
        ActorLauncher().run(inputs, plan_of(journal=folder, batch=4, schedulers=2), end)
    return {each.uid: each.node_name for each in records_in(folder) if each.kind == "bind"}


def resume(inputs, folder, phases=None, **how):
    plan = replace(plan_of(journal=folder, **{"batch": 8} | how), resume=True)
    notes = [] if phases is None else phases
    return ActorLauncher().run(inputs, plan, lambda progress: notes.append(progress.note))


def test_an_unfinished_run_is_resumed_and_bound_pods_stay_bound(tmp_path):
    before = stopped_in_the_middle(tmp_path, fleet())

    outcome = resume(fleet(), tmp_path)

    after = {each.uid: each.node for each in outcome.placements}
    assert 50 < len(before) < len(after), "the run was stopped in the middle, and continued"
    assert before.items() <= after.items()
    assert len(outcome.placements) + len(outcome.pending) == 300
    result = check(records_in(tmp_path))
    assert result.violations == []
    assert result.binds_checked == len(after)


def test_an_unfinished_run_is_overwritten_only_on_request(tmp_path):
    before = stopped_in_the_middle(tmp_path, fleet())

    with pytest.raises(
        InputError, match="holds a run that did not end: use --resume to continue it"
    ):
        run(fleet(), journal=tmp_path)

    assert len(before) == sum(each.kind == "bind" for each in records_in(tmp_path))


def test_a_run_is_resumed_only_with_the_same_inputs_and_seed(tmp_path):
    stopped_in_the_middle(tmp_path, fleet())
    others = inputs_of([node("n1")], pods_of("a"))

    for inputs, how in ((others, {}), (fleet(), {"seed": 9})):
        with pytest.raises(
            InputError, match="holds a run with other inputs, configuration or seed"
        ):
            resume(inputs, tmp_path, **how)


def test_a_run_without_a_journal_to_resume_starts_from_the_beginning(tmp_path):
    outcome = resume(inputs_of([node("n1")], pods_of("a")), tmp_path / "new")

    assert placed(outcome) == {"default/a": "n1"}


def test_a_damaged_journal_is_refused_with_its_position(tmp_path):
    stopped_in_the_middle(tmp_path, fleet())
    (segment,) = tmp_path.glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[60] ^= 1
    segment.write_bytes(data)

    with pytest.raises(InputError, match="damaged at offset"):
        resume(fleet(), tmp_path)


def is_locked(folder):
    disk = RealDisk(folder)
    try:
        disk.lock()
    except JournalError:
        return True
    disk.unlock()
    return False


def test_a_journal_is_locked_during_a_run_and_unlocked_after_it(tmp_path):
    during = []

    run(fleet(), lambda progress: during.append(is_locked(tmp_path)), journal=tmp_path, batch=16)

    assert any(during), "another process could write the journal of a run"
    assert not is_locked(tmp_path), "the next run could not use the journal"


def crowded():
    """Return more pods than fit, some of which preempt others."""
    trace = generate_fleet(6, 120, 3)
    runs = [(who, replace(facts, priority=-5), "n-extra") for who, facts in pods_of("old", "older")]
    urgent = pods_of("urgent", facts=replace(pod(cpu=3900), priority=9))
    return inputs_of([*trace.nodes(), node("n-extra")], (*trace.pods(), *urgent), tuple(runs))


def ended(folder, **how):
    """Return the remains of a run that was killed before it wrote its output."""
    return ActorLauncher().run(crowded(), plan_of(journal=folder, **how), lambda progress: None)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


@pytest.mark.parametrize("schedulers", [1, 2])
def test_the_outcome_of_a_run_without_output_is_read_and_nothing_is_decided(tmp_path, schedulers):
    wanted = ended(tmp_path, schedulers=schedulers, batch=8)
    before, phases = contents(tmp_path), []
    assert wanted.pending
    assert len(wanted.placements) > 20, "the run placed some pods"

    found = resume(crowded(), tmp_path, phases, schedulers=schedulers)

    assert set(found.placements) == set(wanted.placements)
    assert replace(found, placements=()) == replace(wanted, placements=())
    assert contents(tmp_path) == before
    assert phases == [
        f"Journal {tmp_path}: the run ended; its result is read, without new decisions."
    ]


def test_an_output_that_cannot_be_recorded_as_written_is_an_error(tmp_path, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "touch", full)

    with pytest.raises(JournalError, match="record that the output is written: No space left"):
        run(inputs_of([node("n1")], pods_of("a")), journal=tmp_path)


def test_an_ended_run_is_read_although_ray_did_not_start(tmp_path, monkeypatch):
    def failing(plan):
        raise ActorError("Ray did not start")

    wanted = ended(tmp_path, batch=8)
    monkeypatch.setattr(launch, "open_runtime", failing)
    launcher = ActorLauncher()
    plan = replace(plan_of(journal=tmp_path, batch=8), resume=True)
    launcher.prepare(plan.settings.model_copy(update={"runtime": "ray"}), "")

    assert launcher.run(crowded(), plan, lambda progress: None).pending == wanted.pending


def test_a_finished_run_without_output_is_started_again_only_on_request(tmp_path):
    ended(tmp_path)
    before = contents(tmp_path)

    with pytest.raises(InputError, match="ended, but its output was not written: use --resume"):
        run(crowded(), journal=tmp_path)

    assert contents(tmp_path) == before


def test_a_finished_run_can_be_read_any_number_of_times(tmp_path):
    wanted = run(crowded(), journal=tmp_path / "journal")
    before = contents(tmp_path / "journal")

    for _ in range(2):
        assert set(resume(crowded(), tmp_path / "journal").placements) == set(wanted.placements)

    assert contents(tmp_path / "journal") == before
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]


def test_the_outcome_of_other_inputs_is_not_read(tmp_path):
    ended(tmp_path)

    with pytest.raises(InputError, match="holds a run with other inputs, configuration or seed"):
        resume(fleet(), tmp_path)


@pytest.mark.parametrize("spoil", [lambda data: data[:-1], lambda data: b"x" + data[1:], None])
def test_bound_pods_stay_bound_if_the_outcome_is_missing_or_damaged(tmp_path, spoil):
    wanted, phases, file = ended(tmp_path), [], tmp_path / "outcome"
    if spoil:
        file.write_bytes(spoil(file.read_bytes()))
    else:
        file.unlink()

    found = resume(crowded(), tmp_path, phases)

    assert {(each.uid, each.node) for each in wanted.placements} <= {
        (each.uid, each.node) for each in found.placements
    }
    assert any("its outcome cannot be read. Bound pods stay bound" in each for each in phases)
    assert check(records_in(tmp_path)).violations == []


def test_resuming_a_finished_run_without_outcome_decides_no_pod_again(tmp_path):
    run(crowded(), journal=tmp_path)
    (tmp_path / "outcome").unlink()

    with pytest.raises(InputError, match="holds a run that ended, but not its outcome"):
        resume(crowded(), tmp_path)


def test_a_finished_run_of_an_earlier_release_is_refused_with_an_explanation(tmp_path, monkeypatch):
    folder = tmp_path / "journal"
    shutil.copytree(FORMAT_1 / "run" / "journal", folder)
    began_with = next(r.subject.digest for r in records_in(folder) if r.kind is RecordKind.RUN)
    monkeypatch.setattr("roadstead.actors.runs.journals.digest_of", lambda plan, inputs: began_with)

    with pytest.raises(InputError, match="ended, but not its outcome: start a new run without"):
        resume(fleet(), folder)
    run(inputs_of([node("n1")], pods_of("a")), journal=folder)

    assert (tmp_path / "journal.1").is_dir()


def test_an_incomplete_tail_is_noted_when_a_run_is_resumed(tmp_path):
    before, phases = stopped_in_the_middle(tmp_path, fleet()), []
    (segment,) = tmp_path.glob("*.segment")
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(b"torn")

    after = resume(fleet(), tmp_path, phases)

    assert before.items() <= {each.uid: each.node for each in after.placements}.items()
    text = f"{segment.name}: a torn end; left out from offset {size}: 4 bytes, records from "
    assert text in phases[0]
    assert phases[0].endswith("It was never acknowledged.")


@pytest.mark.parametrize("after_s", [0.0, 0.01])
def test_the_run_ends_a_journal_that_its_binder_could_not_end(tmp_path, monkeypatch, after_s):
    async def gone(self, _):
        # If Ray is lost, the binder's process ends a moment later.
        asyncio.get_running_loop().call_later(after_s, self.binder.journal.close)
        return NOTHING

    monkeypatch.setattr(launch, "CLOSE_PAUSE_S", 0.005)
    monkeypatch.setattr(BinderActor, "stop", gone)

    run(fleet(), journal=tmp_path)

    reader = Reader(RealDisk(tmp_path))
    assert reader.closed is None
    assert list(reader.records()), "the journal has records"
    assert reader.closed is not None


PROGRAM = """
import os, signal, sys
from roadstead.actors.entry import main
from roadstead.report import output

def killed(directory, result):
    os.kill(os.getpid(), signal.SIGKILL)

output.write_output = killed
sys.argv = ["roadstead", *sys.argv[1:]]
main()
"""


def test_a_run_killed_before_it_wrote_its_output_writes_it_when_resumed(tmp_path):
    """Use real manifests, processes and a real signal."""
    out = tmp_path / "out"
    inputs = ("--cluster", FORMAT_1 / "cluster.yaml", "--pods", FORMAT_1 / "pods.yaml")
    asked = ("schedule", *inputs, "--runtime", "inline", "--schedulers", "2", "--output", out)
    command = [sys.executable, "-c", PROGRAM, *map(str, asked)]
    killed = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    bound = {e.key: e.node_name for e in records_in(out / "journal") if e.kind is RecordKind.BIND}
    before = contents(out / "journal")
    assert not (out / "placements.json").exists()

    again = [sys.executable, "-m", "roadstead", *map(str, asked), "--resume"]
    resumed = subprocess.run(again, capture_output=True, check=False, cwd=tmp_path, text=True)

    assert resumed.returncode == 0, resumed.stderr
    assert "the run ended; its result is read, without new decisions" in resumed.stderr
    written = json.loads((out / "placements.json").read_text())
    assert {each["pod"]: each["node"] for each in written} == bound
    assert contents(out / "journal") == before | {"finished": b""}
