"""multiPoint: the plugins of each extension point, and their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.intree import EXTENSION_POINTS, IN_TREE_POINTS
from roadstead.config.merge import (
    ExpansionError,
    default_plugins,
    enabled_names,
    expand,
    merge_plugins,
    score_weights,
)
from roadstead.config.schema import Plugins, PluginSet, V1Plugin

POINTS = {
    "A": frozenset({"filter", "score"}),
    "B": frozenset({"filter", "score"}),
    "C": frozenset({"filter", "score"}),
    "F": frozenset({"filter"}),
}


def chosen(*names: str, disabled: tuple[str, ...] = ()) -> PluginSet:
    return PluginSet(
        enabled=[V1Plugin(name=name) for name in names],
        disabled=[V1Plugin(name=name) for name in disabled],
    )


def names(plugins: PluginSet) -> list[str]:
    return [plugin.name for plugin in plugins.enabled or ()]


def test_plugins_listed_in_multi_point_precede_the_rest_and_other_listed_ones_follow() -> None:
    plugins = Plugins(multi_point=chosen("A", "B", "F"), filter=chosen("C", "B"))

    order = expand(plugins, POINTS)

    assert order["filter"] == ("B", "A", "F", "C")
    assert order["score"] == ("A", "B")
    assert order["bind"] == ()


def test_a_star_at_one_point_leaves_only_the_plugins_listed_there() -> None:
    plugins = Plugins(multi_point=chosen("A", "B"), score=chosen("C", disabled=("*",)))

    order = expand(plugins, POINTS)

    assert order["score"] == ("C",)
    assert order["filter"] == ("A", "B")


def test_plugin_disabled_at_a_point_runs_at_its_other_points() -> None:
    plugins = Plugins(multi_point=chosen("A", "B"), score=chosen(disabled=("A",)))

    order = expand(plugins, POINTS)

    assert order["score"] == ("B",)
    assert order["filter"] == ("A", "B")


def test_a_plugin_both_disabled_and_listed_at_a_point_follows_multi_point() -> None:
    plugins = Plugins(multi_point=chosen("A", "B"), score=chosen("A", disabled=("A",)))

    assert expand(plugins, POINTS)["score"] == ("B", "A")


@pytest.mark.parametrize(
    ("plugins", "text", "point"),
    [
        (Plugins(filter=chosen("X")), 'FilterPlugin "X" does not exist', "filter"),
        (Plugins(multi_point=chosen("X")), 'PreFilterPlugin "X" does not exist', "preFilter"),
        (
            Plugins(score=chosen("F")),
            'plugin "F" does not extend ScorePlugin plugin',
            "score",
        ),
        (
            Plugins(filter=chosen("A", "A")),
            'plugin "A" already registered as "FilterPlugin"',
            "filter",
        ),
        (
            Plugins(multi_point=chosen("A", "A")),
            'plugin "A" already registered as "FilterPlugin"',
            "filter",
        ),
    ],
)
def test_plugins_that_can_not_be_combined_are_refused_at_their_point(
    plugins: Plugins, text: str, point: str
) -> None:
    with pytest.raises(ExpansionError) as refused:
        expand(plugins, POINTS)

    assert str(refused.value) == text
    assert refused.value.point == point


def test_custom_plugin_replaces_a_default_one_in_its_place() -> None:
    custom = Plugins(multi_point=PluginSet(enabled=[V1Plugin(name="NodeName", weight=7)]))

    merged = merge_plugins(default_plugins(), custom)

    assert names(merged.multi_point) == list(IN_TREE_POINTS)
    assert {p.name: p.weight for p in merged.multi_point.enabled or ()}["NodeName"] == 7


def test_a_default_plugin_disabled_and_enabled_again_is_last() -> None:
    custom = Plugins(multi_point=chosen("NodeName", disabled=("NodeName", "Unknown")))

    merged = merge_plugins(default_plugins(), custom)

    assert names(merged.multi_point)[-1] == "NodeName"
    assert names(merged.multi_point).count("NodeName") == 1
    assert [p.name for p in merged.multi_point.disabled or ()] == ["NodeName", "Unknown"]


def test_a_plugin_listed_twice_over_a_default_stays_twice_so_that_it_is_refused() -> None:
    merged = merge_plugins(default_plugins(), Plugins(multi_point=chosen("NodeName", "NodeName")))

    assert names(merged.multi_point).count("NodeName") == 2
    with pytest.raises(ExpansionError, match="already registered"):
        expand(merged, IN_TREE_POINTS)


def test_a_weight_at_score_overrides_multi_point_and_zero_means_one() -> None:
    plugins = Plugins(
        multi_point=PluginSet(enabled=[V1Plugin(name="A", weight=4), V1Plugin(name="B", weight=5)]),
        score=PluginSet(enabled=[V1Plugin(name="A", weight=0), V1Plugin(name="C", weight=-2)]),
    )

    assert score_weights(plugins) == {"A": 1, "C": -2, "B": 5}


def test_enabled_names_are_sorted_and_counted_once() -> None:
    plugins = Plugins(multi_point=chosen("B", "A"), score=chosen("A", "C"))

    assert enabled_names(plugins) == ["A", "B", "C"]


def distinct(source: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(source, unique=True, max_size=4)


@given(
    distinct(st.sampled_from(sorted(POINTS))),
    distinct(st.sampled_from(["A", "B", "C"])),
    distinct(st.sampled_from(["A", "B", "C", "F", "Z"])),
)
def test_every_plugin_runs_at_most_once_and_only_at_points_it_implements(
    multi: list[str], listed: list[str], disabled: list[str]
) -> None:
    score = chosen(*listed, disabled=tuple(disabled))

    order = expand(Plugins(multi_point=chosen(*multi), score=score), POINTS)

    assert set(order) == set(EXTENSION_POINTS)
    expected = set(listed) | {n for n in multi if "score" in POINTS[n] and n not in disabled}
    assert sorted(order["score"]) == sorted(expected)
    assert order["filter"] == tuple(multi)
    assert [n for n in order["score"] if n in multi and n in listed and n not in disabled] == [
        n for n in listed if n in multi and n not in disabled
    ]
