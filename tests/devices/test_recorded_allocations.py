"""The allocator answers for every recorded pod and node as kube-scheduler 1.34.1 did."""

from pathlib import Path

import pytest

from roadstead.devices.cel_selectors import compile_cel
from tests.devices.recorded import ERROR, FITS, RecordedCase, read_case

FOLDER = Path(__file__).parents[1] / "golden" / "dra"
FILES = sorted(FOLDER.glob("*.json.gz"))


def case_of(file: Path) -> RecordedCase:
    return RecordedCase(read_case(file), compile_cel)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_allocations_errors_and_refusals_are_those_recorded(file):
    answers = list(case_of(file).answers())
    assert [each for each in answers if not each.agrees] == []


def test_the_selected_cases_hold_every_kind_of_answer_with_every_gate():
    recorded = [each.recorded for file in FILES for each in case_of(file).answers()]
    errors = {each for each in recorded if isinstance(each, str) and each.startswith(ERROR)}
    assert len([each for each in recorded if not isinstance(each, str)]) >= 400
    assert len(errors) >= 100
    assert recorded.count("cannot allocate all claims") >= 200
    assert recorded.count(FITS) >= 50
    assert any(str(each).startswith("runtime error") for each in recorded)
    assert len({file.name.rsplit("-", 1)[0] for file in FILES}) == 6


def test_screening_never_contradicts_a_recorded_answer():
    for file in FILES:
        case = case_of(file)
        for pod in case.case["pending"]:
            plan = case.plan(pod)
            if plan is None:
                continue
            for name, verdict in case.screen(plan).items():
                answer = case.allocate(pod, case.nodes[name])
                assert verdict is None or verdict == (not isinstance(answer, str)), (
                    file,
                    pod,
                    name,
                )
