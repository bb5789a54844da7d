"""The file of results: what it stores is read again, and whatever else it holds is refused."""

import json
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.protocol.errors import InputError
from roadstead.sweeps import results_file
from roadstead.sweeps.results_file import ResultsFile, header_of, refuse_unfinished

PLAN = {"study": "omega", "vary": [["load", [0.5, 0.7]]], "seeds": [0, 1]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out" / "results.jsonl"


@pytest.fixture
def header():
    return header_of(PLAN, 4)


def written(path, header, rows):
    file = ResultsFile.begin(path, header)
    for task, result in rows.items():
        file.add(task, result)
    file.close()


def resumed(path, header):
    file = ResultsFile.resume(path, header)
    file.close()
    return dict(file.stored())


ROWS = {2: {"wait_s": 0.1 + 0.2, "share": 1e-300}, 0: {"wait_s": 3.0, "text": "ä\n"}}


def test_results_are_read_again_exactly_and_in_order(path, header):
    written(path, header, ROWS)

    found = resumed(path, header)

    assert list(found.items()) == list(ROWS.items())


@given(cut=st.integers(1, 60))
def test_a_line_that_was_cut_off_is_forgotten_and_the_file_goes_on(tmp_path_factory, cut):
    path, header = tmp_path_factory.mktemp("cut") / "results.jsonl", header_of(PLAN, 4)
    written(path, header, ROWS)
    last = len(json.dumps({"task": 0, "result": ROWS[0]})) + 1
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - min(cut, last)])

    file = ResultsFile.resume(path, header)
    assert file.stored() == {2: ROWS[2]}
    file.add(0, ROWS[0])
    file.close()

    assert path.read_bytes() == whole


def test_a_file_cut_off_in_its_header_is_started_again(path, header):
    written(path, header, {})
    path.write_bytes(path.read_bytes()[:20])

    assert resumed(path, header) == {}
    assert json.loads(path.read_text())["plan"] == PLAN


def test_a_resumed_sweep_without_a_file_begins_one(path, header):
    assert resumed(path, header) == {}
    assert json.loads(path.read_text()) == header


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": "policies"}, 'study: was begun with "\\"omega\\"", and this command has'),
        ({"vary": [["load", [0.5]]]}, "vary: was begun with"),
        ({"inputs": ["ab"]}, "inputs: was begun with"),
    ],
)
def test_another_plan_is_refused_with_its_difference(path, header, change, message):
    written(path, header, ROWS)

    with pytest.raises(InputError) as refused:
        ResultsFile.resume(path, header_of(PLAN | change, 4))

    assert message in str(refused.value)
    assert "name a new directory" in str(refused.value)
    assert resumed(path, header) == ROWS, "the refusal changed nothing and left it unlocked"


def test_other_code_is_refused(path, header):
    written(path, header, ROWS)

    with pytest.raises(InputError, match="by other code of Roadstead"):
        ResultsFile.resume(path, {**header, "code": "0123"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: is no JSON"),
        ("[1]", "line 2: must be an object"),
        ('{"task": 4, "result": 1}', "line 2: must have a result, and a task below 4"),
        ('{"task": -1, "result": 1}', "a task below 4"),
        ('{"task": true, "result": 1}', "a task below 4"),
        ('{"task": 1}', "must have a result"),
        ("[" * 100_000, "line 2: is no JSON"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(path, header, line, message):
    written(path, header, {})
    with path.open("a") as file:
        file.write(line + "\n")

    with pytest.raises(InputError) as refused:
        ResultsFile.resume(path, header)

    assert message in str(refused.value)


def test_a_line_that_is_too_long_is_refused(path, header, monkeypatch):
    written(path, header, {1: "x" * 300})
    monkeypatch.setattr(results_file, "LINE_MAX_BYTES", 300)

    with pytest.raises(InputError, match="line 2: is longer than 300 bytes"):
        ResultsFile.resume(path, header)


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "x"}\n',
        '{"format": "roadstead-sweep"}\n',
        '{"format": "roadstead-sweep", "version": 1, "tasks": 4}\n',
        '{"format": "roadstead-sweep", "version": 1, "tasks": 4, "plan": []}\n',
        "[]\n",
    ],
)
def test_another_file_is_refused(path, header, text):
    path.parent.mkdir()
    path.write_text(text)

    with pytest.raises(InputError, match=r"results.jsonl: (is no file of results|line 1)"):
        ResultsFile.resume(path, header)


def test_a_second_process_is_refused(path, header):
    file = ResultsFile.begin(path, header)

    with pytest.raises(InputError, match="is in use by another process"):
        ResultsFile.resume(path, header)

    file.close()


def test_only_an_unfinished_sweep_is_kept_from_being_replaced(path, header):
    refuse_unfinished(path)
    written(path, header, ROWS)
    with pytest.raises(InputError, match="holds an unfinished sweep: continue it with --resume"):
        refuse_unfinished(path)

    written(path, header, dict.fromkeys(range(4), 1))

    refuse_unfinished(path)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path, header):
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match=r"results.jsonl: cannot be written"):
        ResultsFile.begin(tmp_path / "file" / "results.jsonl", header)


def test_a_folder_in_place_of_the_file_is_reported(path):
    path.mkdir(parents=True)

    with pytest.raises(InputError, match=r"results.jsonl: cannot be read: Is a directory"):
        refuse_unfinished(path)


@pytest.fixture
def full_disk():
    """Let no file of this process grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("open_file", [ResultsFile.begin, ResultsFile.resume])
def test_a_file_whose_header_cannot_be_written_is_reported_and_unlocked(open_file, path, header):
    with pytest.raises(InputError, match="cannot be written") as first:
        open_file(path, header)

    # Unlocked by Roadstead, not by Python: the first error still refers to the open file.
    with pytest.raises(InputError, match="cannot be written"):
        open_file(path, header)
    assert first.tb is not None
