"""The parity command: its table, its exit status, its dumps."""

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.recordings import command
from scripts.recordings.command import main
from tests.recordings.world import GATED, answered, changed, claiming, pod, sequence, static, write

SCRIPT = Path(__file__).parents[2] / "scripts" / "parity.py"


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Write a folder with one case of single decisions and one sequence."""
    folder, scratch = tmp_path_factory.mktemp("cases"), tmp_path_factory.mktemp("scratch")
    single = answered(scratch, static(pod("fits"), pod("large", cpu="9")), "expected")
    single |= GATED
    single["pending"].append(claiming("claims"))
    single["expected"].append({"pod": "ns/claims", "best": [], "feasible": []})
    write(folder, single)
    pods = [pod(f"p{i}", cpu="2") for i in range(3)]
    write(folder, answered(scratch, sequence(0, 1, 2, pending=pods), "steps"))
    return folder


@pytest.fixture(scope="module")
def planted(cases, tmp_path_factory):
    """Write the same case of single decisions with one wrong total."""

    def change(document):
        document["expected"][0]["total"][1] += 1

    document = json.loads(gzip.decompress((cases / "static-000.json.gz").read_bytes()))
    return write(tmp_path_factory.mktemp("planted"), changed(document, change))


def run(capsys, *arguments):
    status = main([str(each) for each in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_matching_cases_exit_with_0(capsys, cases):
    status, out, _ = run(capsys, cases / "sequence-000.json.gz", "--paths", "plain", "--jobs", 1)

    assert status == 0
    assert out.endswith("3 decisions compared, 0 mismatches, 0 not supported yet\n")


def test_unsupported_cases_exit_with_1_and_are_in_the_table(capsys, cases):
    status, out, err = run(capsys, cases, "--paths", "plain,2", "--jobs", 1)

    assert status == 1
    header, *lines = [line.split() for line in out.splitlines()]
    assert " ".join(header) == "suite path cases decisions compared mismatches not supported yet"
    assert [" ".join(line) for line in lines] == [
        "sequence plain 1 3 3 0 0",
        "sequence 2 1 3 3 0 0",
        "static plain 1 3 2 0 1",
        "static 2 1 3 2 0 1",
        "",
        "static plain,2: 1 not supported yet: DynamicResources",
        "10 decisions compared, 0 mismatches, 2 not supported yet",
    ]
    assert err == "1/2 sequence-000.json.gz\n2/2 static-000.json.gz\n"


def test_a_mismatch_exits_with_1_and_is_reported(capsys, planted):
    status, out, _ = run(capsys, planted, "--paths", "plain,1,3", "--jobs", 1)

    assert status == 1
    assert "static plain: static-000.json.gz ns/fits: total[1]: " in out
    assert "static 3: static-000.json.gz ns/fits: total[1]: " in out
    assert out.endswith("6 decisions compared, 3 mismatches, 3 not supported yet\n")


def test_the_number_of_shown_mismatches_can_be_limited(capsys, planted):
    _, out, _ = run(capsys, planted, "--paths", "plain", "--jobs", 1, "--show", 0)

    assert "static plain: and 1 more" in out
    assert "total[1]" not in out


def test_a_long_mismatch_is_cut(capsys, cases, tmp_path):
    document = json.loads(gzip.decompress((cases / "static-000.json.gz").read_bytes()))
    document["expected"][1]["message"] = "x" * 10_000

    _, out, _ = run(capsys, write(tmp_path, document), "--paths", "plain", "--jobs", 1)

    assert max(map(len, out.splitlines())) < 500
    assert "…" in out


def test_several_processes_give_the_same_result_as_one(capsys, cases, planted):
    one = run(capsys, cases, planted, "--paths", "plain,1", "--jobs", 1)

    assert run(capsys, cases, planted, "--paths", "plain,1", "--jobs", 2) == one


@pytest.mark.parametrize("where", ["nowhere", ""])
def test_a_call_without_cases_is_a_usage_error(capsys, tmp_path, where):
    status, out, err = run(capsys, tmp_path / where)

    assert (status, out) == (2, "")
    assert "parity: " in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--paths", "0"],
        ["--paths", "fast"],
        ["--paths", "1025"],
        ["--paths", ""],
        ["--jobs", "0"],
        ["--jobs", "x"],
        [],
    ],
)
def test_wrong_arguments_are_refused(capsys, tmp_path, arguments):
    with pytest.raises(SystemExit) as left:
        main([str(tmp_path), *arguments] if arguments else [])

    assert left.value.code == 2
    assert "error" in capsys.readouterr().err


def read(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def test_dumped_answers_have_the_recordings_form(capsys, cases, tmp_path):
    run(capsys, cases, "--paths", "plain,1,3", "--jobs", 1, "--dump", tmp_path)

    files = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.*"))
    assert files == ["sequence/sequence-000.json.gz", "static/static-000.json.gz"]
    single, recorded = read(tmp_path / files[1]), read(cases / "static-000.json.gz")
    assert list(single) == ["suite", "name", "nodes", "path", "expected"]
    assert (single["suite"], single["nodes"]) == ("static", recorded["nodes"])
    assert single["expected"][:2] == recorded["expected"][:2]
    assert single["expected"][2]["pod"] == "ns/claims"
    field = "spec.containers: example.com/gpu with DRAExtendedResource"
    assert single["expected"][2]["unsupported"] == f"DynamicResources: {field}"
    steps = read(tmp_path / files[0])
    assert steps["steps"] == read(cases / "sequence-000.json.gz")["steps"]


def test_a_dump_in_place_of_the_recording_compares_equal(capsys, planted, tmp_path):
    run(capsys, planted, "--paths", "plain", "--jobs", 1, "--dump", tmp_path)
    ours = read(tmp_path / "static" / "static-000.json.gz")

    again = write(tmp_path, read(planted) | {"expected": ours["expected"]}, "again")

    _, out, _ = run(capsys, again, "--paths", "plain,1,3", "--jobs", 1)
    assert out.endswith("6 decisions compared, 0 mismatches, 3 not supported yet\n")


def test_the_same_run_dumps_the_same_bytes(capsys, cases, tmp_path):
    for name in ("one", "two"):
        run(capsys, cases, "--paths", "plain", "--jobs", 1, "--dump", tmp_path / name)

    one, two = (
        {each.name: each.read_bytes() for each in (tmp_path / name).rglob("*.gz")}
        for name in ("one", "two")
    )
    assert one == two


def test_a_path_with_different_answers_has_a_file_of_its_own(capsys, cases, tmp_path, monkeypatch):
    original = command.run_file

    def one_shard_is_wrong(file, path_names):
        answers = original(file, path_names)
        answers[1].result.ours = {"steps": []}
        return answers

    monkeypatch.setattr(command, "run_file", one_shard_is_wrong)
    case = cases / "sequence-000.json.gz"

    run(capsys, case, "--paths", "plain,1,2", "--jobs", 1, "--dump", tmp_path)

    files = sorted(each.name for each in (tmp_path / "sequence").iterdir())
    assert files == ["sequence-000.1.json.gz", "sequence-000.json.gz"]
    assert read(tmp_path / "sequence" / files[0])["path"] == "1"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_progress_is_one_line(monkeypatch, cases):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    main([str(cases), "--paths", "plain", "--jobs", "1"])

    assert terminal.getvalue() == (
        "\r\x1b[K1/2 sequence-000.json.gz\r\x1b[K2/2 static-000.json.gz\n"
    )


def test_without_a_terminal_progress_is_an_occasional_line():
    out = io.StringIO()

    for done in range(1, 601):
        command.show_progress(out, done, 600, "case")

    lines = out.getvalue().splitlines()
    assert len(lines) == 20
    assert lines[-1] == "600/600 case"


def test_the_script_exits_like_the_command(planted):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(planted), "--paths", "plain", "--jobs", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=planted.parent,
    )

    assert done.returncode == 1
    assert "total[1]" in done.stdout
    assert done.stderr == "1/1 static-000.json.gz\n"


def test_a_recording_without_decisions_is_not_a_success(capsys, tmp_path, cases):
    document = json.loads(gzip.decompress((cases / "static-000.json.gz").read_bytes()))
    empty = write(tmp_path, document | {"pending": [], "expected": []})

    status, out, _ = run(capsys, empty, "--paths", "plain", "--jobs", 1)

    assert status == 1
    assert "static plain: static-000.json.gz: holds no decision" in out
