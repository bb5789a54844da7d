"""The output folder of a what-if question: an answer replaces an earlier one, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from roadstead.report.what_if_output import AnswerFiles, write_answer


def test_an_answer_replaces_the_files_of_an_earlier_one(tmp_path: Path) -> None:
    write_answer(tmp_path, AnswerFiles("grow", {}, {}, {"nodes.yaml": "kind: List\n"}))

    write_answer(tmp_path, AnswerFiles("fit", {"replicas": 3}, {}))

    assert [each.name for each in tmp_path.iterdir()] == ["fit.json"]
    assert json.loads((tmp_path / "fit.json").read_text()) == {"replicas": 3}


def test_a_file_that_the_user_put_there_meanwhile_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    write_answer(tmp_path, AnswerFiles("fit", {}, {}))

    assert (tmp_path / "mine.txt").read_text() == "mine"
