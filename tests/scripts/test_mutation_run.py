"""The questions of a mutation run."""

from tests.mutation.killers import suites_of


def test_every_module_that_is_mutated_has_tests_to_be_asked(scripts):
    assert [path for path in scripts("mutation").targets() if not suites_of(path)] == []
