"""Combinations of a sweep of a scenario: all products, or values at one index."""

import pytest

from roadstead.lab.scenario_sweep import ScenarioSweep, name_of, rows_of, tables_of

AXES = (("config", ("a", "b")), ("plugin", (None, "mine.py")))


@pytest.mark.parametrize(
    ("is_zipped", "names"),
    [
        (
            False,
            [
                "config a, plugin null",
                "config a, plugin mine.py",
                "config b, plugin null",
                "config b, plugin mine.py",
            ],
        ),
        (True, ["config a, plugin null", "config b, plugin mine.py"]),
    ],
)
def test_combinations_are_products_unless_the_axes_are_zipped(is_zipped, names):
    planned = ScenarioSweep("s", AXES, (0, 1, 2), is_zipped)

    assert [name_of(each) for each in planned.combinations()] == names
    assert planned.size == 3 * len(names) == len(planned.runs())


def test_a_run_knows_the_folder_of_its_tables():
    planned = ScenarioSweep("s", (), (5, 6))

    (row,) = rows_of(planned, {1: {"lost": 0.0}}, has_tables=True)

    assert (row.seed, row.tables) == (6, "runs/002")
    assert tables_of(0) == "runs/001"
    assert rows_of(planned, {1: {"lost": 0.0}})[0].tables == ""
