"""Reading and validation of test case files in scheduler_perf's format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from roadstead.bench.schema import CaseSpec, CreatePodSetsOp, CreatePodsOp, StopCollecting, cases_of
from roadstead.bench.templates import Template, read_template, read_text
from roadstead.config.decode import validation_problems
from roadstead.protocol.documents import read_documents
from roadstead.protocol.errors import InputError, cut_short

CASES_MAX_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test case, its file, and the folder against which template paths are resolved."""

    __test__ = False

    spec: CaseSpec
    source: str
    folder: Path
    _templates: dict[str, Template] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def obj(self) -> str:
        """The name of the test case in errors."""
        return f"test case {cut_short(self.name)}"

    def template(self, path: str) -> Template:
        """Read a template; path: relative to the file. Raises InputError if it cannot be read."""
        found = self._templates.get(path)
        if found is None:
            found = self._templates[path] = read_template(self.folder / path)
        return found


def read_cases(path: Path) -> tuple[TestCase, ...]:
    """Read and validate the test cases of a file. Raises InputError that names the place."""
    source = str(path)
    documents = list(read_documents(read_text(path, CASES_MAX_BYTES), source=source))
    if len(documents) != 1 or not isinstance(documents[0], list):
        raise InputError("must hold one list of test cases", source=source)
    try:
        specs = cases_of(documents[0])
    except ValidationError as error:
        raise _refused(error, documents[0], source) from None
    if not specs:
        raise InputError("holds no test case", source=source)
    _check_unique((spec.name for spec in specs), source, "")
    for spec in specs:
        obj = f"test case {cut_short(spec.name)}"
        _check_unique((each.name for each in spec.workloads), source, obj)
        if not any(map(_collects, spec.workload_template)):
            problem = "no op collects metrics: nothing would be measured"
            raise InputError(problem, source=source, obj=obj, field="workloadTemplate")
    return tuple(TestCase(spec, source, path.parent) for spec in specs)


def _collects(op: object) -> bool:
    if isinstance(op, CreatePodSetsOp):
        return op.create_pods_op.collect_metrics
    return isinstance(op, StopCollecting) or (isinstance(op, CreatePodsOp) and op.collect_metrics)


def _check_unique(names: Iterable[str], source: str, obj: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        problem = "is there twice"
        raise InputError(problem, source=source, obj=obj, field="name", value=cut_short(twice[0]))


def _refused(error: ValidationError, document: object, source: str) -> InputError:
    """The first error of a validation, with the name of its test case."""
    problem = validation_problems(error, "")[0]
    return InputError(
        problem.rule,
        source=source,
        obj=_case_name(document, problem.field),
        field=problem.field,
        value=problem.value or "",
    )


def _case_name(document: object, path: str) -> str:
    number = path.removeprefix("[").partition("]")[0]
    assert isinstance(document, list)
    if not number.isdigit() or not isinstance(document[int(number)], dict):
        return ""
    name = document[int(number)].get("name")
    return f"test case {cut_short(name)}" if isinstance(name, str) else ""
