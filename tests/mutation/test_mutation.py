"""The mutation run's own parts: which changes it finds, how it makes one, and how it reports."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation import planting
from tests.mutation.equivalents import EQUIVALENTS
from tests.mutation.hosts import _first_failing
from tests.mutation.planting import module_name, plant_in_functions
from tests.mutation.reach import Reach, lines_of, new_coverage
from tests.mutation.sites import mutants_of, mutate

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = '''
"""A module."""
LIMIT = 3
Names = tuple[str] | None


def pick(rows, least=0):
    """Say "less" of numbers below 1."""
    assert rows, "there are rows"
    found = [row for row in rows if row < LIMIT]
    if not found:
        raise ValueError("0 rows")
    log.info("found %d", 7)
    log(QUEUE, "found", rows=7)
    found.sort()
    return min(found) + least


def validate(self):
    return 1 == 1
'''


def changes(source=SOURCE):
    return [(each.before, each.after) for each in mutants_of("m.py", source)]


def test_comparisons_arithmetic_calls_conditions_and_numbers_are_changed():
    found = changes()

    for change in (
        ("3", "4"),
        ("0", "1"),
        ("row < LIMIT", "True"),
        ("row < LIMIT", "row <= LIMIT"),
        ("not found", "found"),
        ("found.sort()", "pass"),
        ("min(found) + least", "min(found) - least"),
        ("min(found)", "max(found)"),
    ):
        assert change in found


def test_checks_texts_errors_logs_and_types_are_not_changed():
    texts = [text for change in changes() for text in change]

    assert not any("assert" in text or "raise ValueError('0" in text for text in texts)
    assert not any("log" in text or "7" in text for text in texts)
    assert not any("tuple[str]" in text or "1 == 1" in text for text in texts)


def test_a_zip_that_checks_lengths_is_not_changed():
    """A zip that does not check lengths is changed: it would raise."""
    strict, loose = "zip(a, b, strict=True)", "zip(a, b, strict=False)"

    assert ("True", "False") not in changes(f"def f(a, b):\n    return {strict}")
    assert ("False", "True") in changes(f"def f(a, b):\n    return {loose}")


def test_a_number_identifies_one_change_and_nothing_else_differs():
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants_of("m.py", SOURCE):
        after = ast.unparse(mutate("m.py", SOURCE, mutant.number)).splitlines()
        differing = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
        assert differing or len(before) != len(after), mutant


def test_an_unknown_number_is_an_error():
    with pytest.raises(IndexError, match=r"there is no number 99"):
        mutate("m.py", SOURCE, 99)


def test_modules_of_linked_folders_and_packages_have_their_import_names():
    assert module_name("actors/messages/recovery.py") == "roadstead.actors.messages.recovery"
    assert module_name("roadstead/queue/core.py") == "roadstead.queue.core"
    assert module_name("roadstead/queue/__init__.py") == "roadstead.queue"


PLANTED = """
from tests.mutation.planting import plant
from tests.mutation.sites import mutants_of
path = "roadstead/cache/deadlines.py"
mutant = mutants_of(path, open(path).read())[0]
plant(mutant)
import roadstead.cache.core
import roadstead.cache.deadlines as planted
print(type(planted.__spec__.loader).__name__, planted.__name__)
"""


def test_a_planted_mutant_is_imported_in_place_of_its_module():
    ran = subprocess.run(
        [sys.executable, "-c", PLANTED], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ran.stdout.split() == ["_Loader", "roadstead.cache.deadlines"]


FUNCTIONS = """
from tests.mutation.planting import UnsuitedError, plant_in_functions
from tests.mutation.sites import mutants_of
from roadstead.cache.deadlines import AssumeDeadlines
path = "roadstead/cache/deadlines.py"
before = AssumeDeadlines.__init__.__code__, AssumeDeadlines.__len__.__code__
mutants = mutants_of(path, open(path).read())
plant_in_functions(next(each for each in mutants if each.function == "AssumeDeadlines.__init__"))
print(AssumeDeadlines.__init__.__code__ == before[0], AssumeDeadlines.__len__.__code__ == before[1])
path = "roadstead/cycle/class_cache.py"
import roadstead.cycle.class_cache
mutants = mutants_of(path, open(path).read())
try:
    plant_in_functions(next(each for each in mutants if not each.function))
except UnsuitedError:
    print("must be imported")
"""


def test_a_mutant_is_planted_in_existing_functions_or_must_be_imported():
    ran = subprocess.run(
        [sys.executable, "-c", FUNCTIONS], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ran.stdout.splitlines() == ["False True", "must be imported"]


def test_a_mutant_in_a_nested_function_is_planted(tmp_path, monkeypatch):
    """The function that contains it gets new code, which applies to functions it defines from then
    on.
    """
    source = (
        "def outer(rows):\n    def within(row):\n        return row < 3\n    return within(rows)\n"
    )
    (tmp_path / "nested.py").write_text(source)
    monkeypatch.setattr(planting, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    outer = importlib.import_module("nested").outer
    (mutant,) = (m for m in mutants_of("nested.py", source) if m.after == "row <= 3")

    assert not outer(3)
    plant_in_functions(mutant)
    assert outer(3)


def test_equivalents_name_existing_mutants():
    paths = {path for path, *_ in EQUIVALENTS}
    found = {path: mutants_of(path, (ROOT / path).read_text()) for path in paths}
    existing = {(path, m.function, m.before, m.after) for path in found for m in found[path]}

    assert {*EQUIVALENTS} - existing == set()


def test_a_mutant_that_no_test_reaches_is_detected_by_none(request):
    assert _first_failing(request.session, []) is None


def test_a_line_is_reached_by_the_contexts_that_execute_its_statement():
    reach = Reach({"tests/mutation/planting.py": {17: ["one"], 20: ["", "two"]}}, {})

    assert reach.of("tests/mutation/planting.py", 17) == {"one"}
    assert reach.of("tests/mutation/planting.py", 18) == set()
    assert reach.of("not/measured.py", 1) is None


def test_lines_executed_by_imports_are_reached_by_all():
    reach = Reach({"tests/mutation/planting.py": {11: [""]}}, {})

    assert reach.of("tests/mutation/planting.py", 11) is None


def test_lines_are_assigned_to_the_contexts_that_execute_them():
    followed = new_coverage(["tests/mutation/planting.py"])
    followed.start()
    followed.switch_context("a run")
    module_name("roadstead/queue/core.py")
    followed.stop()

    lines = lines_of(followed)["tests/mutation/planting.py"]
    assert [names for line, names in sorted(lines.items())] == [["a run"], ["a run"]]
