"""Recorded attempts with extenders, on every path."""

import gzip
import json
from pathlib import Path

import pytest

from scripts.recordings.cases import find_files, read_document
from scripts.recordings.suites import run_file

FOLDER = Path(__file__).parents[1] / "golden" / "extenders"
FILES = find_files([FOLDER])


@pytest.mark.parametrize("path_name", ["plain", "batches", "1", "2", "5"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_calls_and_their_effects_equal_upstreams(file, path_name):
    (answer,) = run_file(file, [path_name])

    assert answer.result.mismatches == []
    assert not answer.result.unsupported
    assert answer.result.decisions > 0


def found_in(tmp_path, change):
    """Return the differences from a recording whose first placed pod's entry is changed."""
    document = read_document(FILES[0])
    entry = next(each for each in document["expected"] if "bestTotal" in each)
    change(entry)
    file = tmp_path / FILES[0].name
    file.write_bytes(gzip.compress(json.dumps(document).encode()))
    (answer,) = run_file(file, ["plain"])
    return answer.result.mismatches


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entry: entry["calls"].pop(), "calls"),
        (lambda entry: entry["calls"][0]["request"].update(Pod="default/other"), "request.Pod"),
        (lambda entry: entry["calls"][0].update(url="http://other/filter"), "calls[0].url"),
        (lambda entry: entry.update(bestTotal=entry["bestTotal"] + 1), "bestTotal"),
        (lambda entry: entry.update(chosen="another"), "chosen"),
        (lambda entry: entry.update(bindError="no"), "bindError"),
        (lambda entry: entry.update(interested=[7]), "interested"),
        (lambda entry: entry["feasible"].append("another"), "feasible"),
    ],
)
def test_any_other_recorded_value_is_a_mismatch(tmp_path, change, message):
    (mismatch,) = found_in(tmp_path, change)

    assert message in mismatch
