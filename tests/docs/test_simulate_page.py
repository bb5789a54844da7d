"""docs/simulate.md lists the columns of all tables, and the metrics of the samples."""

import re
from pathlib import Path

import pytest

from roadstead.report.arrow import INT64, STRING, list_of
from roadstead.simulator.samples import METRICS
from roadstead.simulator.tables import COLUMNS

PAGE = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text()
ROW = re.compile(r"^\| `(.*?)` \| (?:((?:list of )?\w+) \| )?(.*) \|$", re.MULTILINE)
TYPES = {"int64": "Int64", "float64": "Float64", "string": "Utf8"}
TYPES |= {
    f"list of {name}": str(list_of(kind)) for name, kind in (("int64", INT64), ("string", STRING))
}


def rows_of(heading):
    _, _, section = PAGE.partition(f"### {heading}\n")
    return ROW.findall(section.partition("\n### ")[0])


@pytest.mark.parametrize("table", COLUMNS)
def test_the_page_lists_the_columns_of_a_table(table):
    shown = {name: (TYPES[kind], meaning) for name, kind, meaning in rows_of(f"`{table}`")}

    columns = COLUMNS[table].items()
    assert list(shown) == list(COLUMNS[table])
    for name, (kind, meaning) in columns:
        assert shown[name][1] == meaning
        assert shown[name][0] in str(kind)


def test_the_page_lists_the_metrics_of_the_samples():
    assert {name: meaning for name, _, meaning in rows_of("Metrics of `samples`")} == METRICS
