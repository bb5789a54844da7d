"""The kill matrix: its cells are observations, and each kind of error in a run is found."""

import json
import sys

import pytest

UIDS = {"a", "b", "c"}


@pytest.fixture
def matrix(scripts, monkeypatch):
    found = scripts("kill_matrix")
    monkeypatch.setattr(found, "LEFT_S", 0.0)
    # One process, for the driver: the tests of actors kill those on Ray.
    inline = found.SETTINGS.replace("runtime: ray", "runtime: inline")
    monkeypatch.setattr(found, "SETTINGS", inline)
    return found


@pytest.mark.parametrize("phase", ["schedule", "output"])
def test_a_cell_kills_in_its_phase_and_continues_the_run(matrix, tmp_path, phase):
    cell = matrix.carry_out(phase, "driver", 1, tmp_path)

    assert cell.is_good, cell
    assert (cell.ended, cell.resumed, cell.was_there) == (-9, 0, True)
    assert cell.placed >= cell.kept >= cell.acknowledged >= matrix.PODS // 10


@pytest.fixture
def ended(matrix, tmp_path):
    """Return the folder of a run that ended normally, without its kill."""
    write_fleet(matrix, tmp_path)
    status, output = matrix.run_command(
        matrix.roadstead_command("schedule", *matrix.schedule_options(resume=False)), tmp_path
    )
    assert status == 0, output
    return tmp_path


def write_fleet(matrix, folder):
    trace = matrix.generate_fleet(10, 30, 1)
    matrix.write_trace(folder / "fleet.trace", trace)
    (folder / "settings.yaml").write_text(matrix.SETTINGS)


def test_moved_and_lost_pods_and_changed_output_are_found(matrix, ended):
    before = matrix.binds_in(ended)
    rows = {name: json.loads((ended / f"out/{name}.json").read_text()) for name in matrix.OUTPUTS}
    uids = {row["uid"] for name in matrix.OUTPUTS for row in rows[name]}

    def look(before, uids):
        cell = matrix.Cell("output", "driver")
        matrix._look_at_result(cell, ended, before, uids)
        return cell

    assert look(before, uids).is_good
    moved = look({**before, next(iter(before)): "elsewhere", "nowhere": "n"}, uids)
    assert (moved.moved, moved.is_good) == (2, False)
    lost = look(before, uids | {"of nobody"})
    assert (lost.lost, lost.is_good) == (1, False)
    rows["placements"][0]["node"] = "another"
    (ended / "out/placements.json").write_text(json.dumps(rows["placements"]))
    assert any(each.startswith("check ended with 1") for each in look({}, uids).why)
    (ended / "out/journal.1").mkdir()
    assert "the run was begun anew: journal, journal.1" in look({}, uids).why


def test_a_run_without_output_is_found(matrix, tmp_path):
    cell = matrix.Cell("output", "driver")

    matrix._look_at_result(cell, tmp_path, {}, UIDS)

    assert cell.why == ["there is no output"]
    assert matrix.binds_in(tmp_path) == {}


def test_a_wrong_exit_a_traceback_and_remaining_processes_are_found(matrix, tmp_path):
    this = matrix.psutil.Process()
    processes = [(this.pid, this.create_time()), (this.pid, 0.0)]
    mark = {"placed": 7, "processes": processes, "is_there": False}
    (tmp_path / matrix.MARK).write_text(json.dumps(mark))
    cell = matrix.Cell("load", "raylet", ended=2)

    matrix._look_at_end(cell, "Traceback (most recent call last)\nKeyError\n", tmp_path)

    assert (cell.acknowledged, cell.was_there) == (7, False)
    assert cell.why[:2] == ["the run ended with 2: KeyError", "the run printed a traceback"]
    assert cell.why[2].startswith("still there after 0 s: ")
    assert cell.why[2].count(this.name()) == 1


def test_a_run_that_does_not_reach_its_phase_is_found(matrix, tmp_path):
    cell = matrix.Cell("load", "raylet", ended=1)

    matrix._look_at_end(cell, "", tmp_path)

    assert cell.why == ["the run did not come to its phase: it printed nothing"]


def test_a_hanging_command_is_ended(matrix, tmp_path, monkeypatch):
    monkeypatch.setattr(matrix, "RUN_S", 0.01)

    command = [sys.executable, "-c", "import time; time.sleep(600)"]

    assert matrix.run_command(command, tmp_path)[0] is None


def test_the_table_has_a_result_for_each_cell_and_describes_errors(matrix, monkeypatch, capsys):
    ends = {
        "driver": {"ended": -9, "was_there": True},
        "raylet": {"ended": 0, "was_there": False},
        "queue": {"ended": 0, "was_there": True},
        "binder": {"ended": 0, "was_there": True, "moved": 3},
    }
    monkeypatch.setattr(
        matrix,
        "carry_out",
        lambda phase, victim, seed, folder: matrix.Cell(phase, victim, **ends[victim]),
    )
    victims = [f"--victim={victim}" for victim in ends]
    monkeypatch.setattr(sys, "argv", ["kill_matrix.py", "--phase=load", *victims])

    assert matrix.main() == 1

    lines = capsys.readouterr().out.splitlines()
    words = {line.split()[0]: line.split()[2] for line in lines[1 : 1 + len(matrix.VICTIMS)]}
    expected = {"driver": "resumed", "raylet": "gone", "queue": "done", "binder": "BAD"}
    assert words == dict.fromkeys(matrix.VICTIMS, "-") | expected
    assert lines[-1].startswith("load × binder: ")
    assert '"moved": 3' in lines[-1]


def test_cells_are_printed_as_json_on_request(matrix, monkeypatch, capsys):
    monkeypatch.setattr(
        matrix, "carry_out", lambda phase, victim, seed, folder: matrix.Cell(phase, victim, ended=0)
    )
    monkeypatch.setattr(sys, "argv", ["kill_matrix.py", "--json", "--victim=queue"])

    assert matrix.main() == 0

    cells = json.loads(capsys.readouterr().out)
    assert [cell["phase"] for cell in cells] == list(matrix.PHASES)
