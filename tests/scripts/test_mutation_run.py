"""The questions of a mutation run."""

from tests.mutation.killers import suites_of


def test_every_mutated_module_has_tests(scripts):
    assert [path for path in scripts("mutation").targets() if not suites_of(path)] == []
