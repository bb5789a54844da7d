"""Line numbers of values in YAML and JSON, and times with days."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.durations import parse_duration, parse_long_duration
from roadstead.config.errors import ConfigError, Problem
from roadstead.config.lines import line_of
from roadstead.config.scenario.values import LONGEST_US, micros, time_text

TEXT = """# a comment
a:
  b: [1, 2]
  c:
  - x: 1
    y: &y
      z: 3
  - y: *y
d: {e: 1,
    f: 2}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 0),
        (("a",), 2),
        (("a", "b"), 3),
        (("a", "b", 1), 3),
        (("a", "c", 0, "y", "z"), 7),
        (("a", "c", 1), 8),
        (("a", "c", 1, "y", "z"), 7),
        (("d", "f"), 10),
        (("d", "g"), 9),
        (("a", "b", 7), 3),
        (("none",), 0),
    ],
)
def test_a_value_has_the_line_of_its_key(path: tuple[str | int, ...], line: int) -> None:
    assert line_of(TEXT, path) == line


def test_a_key_that_is_twice_has_its_first_line() -> None:
    assert line_of("a: 1\n? [b]\n: 2\na: 3\n", ["a"]) == 1


def test_json_has_lines_and_a_text_that_is_no_yaml_has_none() -> None:
    assert line_of('{"a": 1,\n "b": [\n  2]}', ["b", 0]) == 3
    assert line_of("a: [", ["a"]) == 0
    assert line_of("", ["a"]) == 0


def test_an_error_shows_the_line_of_its_problem() -> None:
    problem = Problem("a.b", "is wrong", value="7", line=12)

    assert str(ConfigError("decode", [problem], source="x.yaml")) == (
        "x.yaml: line 12: a.b: 7: is wrong"
    )


def test_days_are_only_in_long_durations() -> None:
    assert parse_long_duration("1d12h").ns == 36 * 3_600_000_000_000
    assert parse_long_duration("1.5d") == parse_long_duration("36h")
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration("1d")


@given(st.integers(0, LONGEST_US))
def test_a_time_is_read_as_it_is_written(us: int) -> None:
    assert micros(time_text(us)) == us


def test_times_are_written_in_the_units_of_kubernetes_and_days() -> None:
    written = [time_text(us) for us in (0, 7, 1_500, 250_000, 90_000_000, 86_400_000_000)]

    assert written == ["0s", "7us", "1500us", "250ms", "1m30s", "1d"]
