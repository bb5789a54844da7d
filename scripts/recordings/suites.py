"""Every suite of recordings: which of its lists hold decisions, and how each is compared.

No recorded decision is passed over, and a document that is not understood fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from roadstead.framework.sampling import feasible_nodes_to_find
from roadstead.protocol.errors import InputError
from scripts.recordings.cases import Case, compile_case, read_document
from scripts.recordings.cel_cases import selector_check
from scripts.recordings.config_cases import check_config
from scripts.recordings.extending import EXTENDERS, ExtendedReplay
from scripts.recordings.label_cases import check_labels
from scripts.recordings.node_order_cases import check_node_order
from scripts.recordings.quantity_cases import check_arithmetic, check_quantity
from scripts.recordings.queueing_cases import (
    Check,
    check_claims_made,
    check_classification,
    events_check,
    hint_check,
)
from scripts.recordings.replay import EXPECTED, failed, replay
from scripts.recordings.result import Json, RecordingResult, differing

DECISION_SUITES = (
    *("static", "profiles", "preemption", "sequence", "openb", "sampling", EXTENDERS),
    *("dra", "dra-sequence"),
)
NO_PATH = "-"
"""The path of suites in which nothing is scheduled."""

AFTER_FAILURE = "not reached after a failure"


@dataclass(frozen=True, slots=True)
class OfDocument:
    """A check that needs the whole recording."""

    open: Callable[[Path, Json], Check]


def check_sampling(case: Json) -> tuple[Json, list[str]]:
    """Return our number of nodes to find, and how it differs."""
    nodes, percentage = case["numAllNodes"], case["percentage"]
    assert isinstance(nodes, int)
    assert isinstance(percentage, int)
    ours = {**case, "numNodesToFind": feasible_nodes_to_find(nodes, percentage)}
    return ours, differing(ours, case)


CHECKS: Mapping[str, Mapping[str, Check | OfDocument]] = {
    "config": {"cases": check_config},
    "quantity": {"cases": check_quantity, "arithmetic": check_arithmetic},
    "labels": {"cases": check_labels},
    "dra-cel": {"cases": OfDocument(selector_check)},
    "misc": {"numFeasibleNodes": check_sampling, "nodeOrder": check_node_order},
    "queueing": {"cases": OfDocument(hint_check), "classification": check_classification},
    "dra-queueing": {"cases": OfDocument(hint_check), "classification": check_claims_made},
    "queueing-events": {"registered": OfDocument(events_check)},
}
"""The check of an element, by suite and list."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one recorded file on one path. header: its suite, name and nodes."""

    file: Path
    suite: str
    path_name: str
    header: Json
    result: RecordingResult


def run_file(
    file: Path, path_names: Sequence[str], explained_on: Collection[str] | None = None
) -> list[Answer]:
    """Replay a recorded file on each path, or once if nothing is scheduled; never raises.

    explained_on: paths that also explain pods (see `replay`); None for all.
    """
    try:
        document = read_document(file)
        suite = suite_of(file, document)
    except InputError as error:
        return [Answer(file, "unreadable", NO_PATH, {}, _all_failed(0, str(error)))]
    header: Json = {key: document[key] for key in ("suite", "name", "nodes") if key in document}
    names = path_names if suite in DECISION_SUITES else (NO_PATH,)
    # Compiled once for all paths, none of which changes a case.
    case = cache(partial(compile_case, file, document))
    explained = names if explained_on is None else explained_on
    return [
        Answer(
            *(file, suite, name, header),
            _run(file, document, suite, name, case, explains=name in explained),
        )
        for name in names
    ]


def suite_of(file: Path, document: Json) -> str:
    """Return the suite of a recording; "openb" for sequences of openb. InputError if unknown."""
    if "steps" in document and document.get("workload") == "openb":
        return "openb"
    suite = str(document.get("suite"))
    if suite not in DECISION_SUITES and suite not in CHECKS:
        raise InputError("is the name of no known suite", source=file.name, value=f'"{suite}"')
    return suite


def _run(
    file: Path,
    document: Json,
    suite: str,
    path_name: str,
    case: Callable[[], Case],
    *,
    explains: bool,
) -> RecordingResult:
    try:
        if suite == EXTENDERS:
            result = ExtendedReplay(case(), path_name).run()
        elif suite in DECISION_SUITES:
            result = replay(case(), path_name, explains=explains)
        else:
            result = _check(file, document, CHECKS[suite])
        result.validate()
        if not result.decisions:
            result.mismatches.append(f"{file.name}: holds no decision")
    except Exception as failure:
        return _all_failed(decisions_in(document, suite), f"{file.name}: {failed(failure)}")
    return result


def _check(file: Path, document: Json, checks: Mapping[str, Check | OfDocument]) -> RecordingResult:
    result = RecordingResult(decisions=sum(len(_elements(document, key)) for key in checks))
    for key, made in checks.items():
        check = made.open(file, document) if isinstance(made, OfDocument) else made
        for index, case in enumerate(_elements(document, key)):
            where = f"{file.name} {key}[{index}] {case.get('name', '')}".rstrip()
            result.compare(where, key, *check(case))
    return result


def _elements(document: Json, key: str) -> list[Json]:
    """Return the decisions of a list, or of an object whose keys are their names."""
    found = document[key]
    assert isinstance(found, list | dict)
    if isinstance(found, dict):
        return [{"name": name, "value": value} for name, value in found.items()]
    return found


def decisions_in(document: Json, suite: str) -> int:
    """Return how many decisions a recording has, as far as it can be read."""
    keys: Iterable[str] = CHECKS.get(suite, (EXPECTED, "ops"))
    found = [document.get(key) or () for key in keys]
    return sum(
        sum(not isinstance(each, dict) or each.get("op", "schedule") == "schedule" for each in part)
        for part in found
        if isinstance(part, list | dict)
    )


def _all_failed(decisions: int, why: str) -> RecordingResult:
    result = RecordingResult(decisions=decisions, mismatches=[why])
    if decisions:
        result.unsupported[AFTER_FAILURE] = decisions
    return result
