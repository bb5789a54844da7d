"""Proves the recommendations, and that their output has the numbers behind them."""

import pytest

from roadstead.lab.recommend import recommend
from roadstead.lab.statistics import Band
from roadstead.lab.sweep import Point


def point(schedulers, *, placed=100.0, rate=1000.0, regret=0.0, conflicts=0.0, batch=256):
    metrics = {
        "placed": placed,
        "pods_per_s": rate,
        "score_regret": regret,
        "conflict_fraction": conflicts,
    }
    values = {"mode": "shared", "schedulers": schedulers, "batch": batch}
    return Point(values, {name: Band(each, each, each) for name, each in metrics.items()})


def schedulers_of(*points):
    return recommend(points).values["schedulers"]


def test_settings_that_place_fewer_pods_are_not_recommended_however_fast():
    assert schedulers_of(point(1), point(8, placed=90.0, rate=9000.0)) == 1


def test_one_more_pod_does_not_justify_a_slower_run():
    assert schedulers_of(point(1, placed=389.0), point(2, placed=390.0, rate=500.0)) == 1


def test_more_schedulers_are_recommended_if_they_are_faster():
    assert schedulers_of(point(1), point(4, rate=3000.0)) == 4


def test_fewer_schedulers_are_preferred_to_a_gain_within_the_noise():
    assert schedulers_of(point(8, rate=1050.0), point(2)) == 2


def test_better_decisions_are_preferred_among_equally_fast_settings():
    assert schedulers_of(point(2, regret=5.0), point(8, regret=0.1)) == 8


def test_fewer_conflicts_are_preferred_among_equally_good_settings():
    assert schedulers_of(point(2, conflicts=0.5), point(8)) == 8


def test_the_smaller_batch_is_preferred_if_nothing_else_differs():
    assert recommend([point(2, batch=1024), point(2, batch=64)]).values["batch"] == 64


def test_an_interval_is_reported_for_several_seeds_only():
    rate = Band(1000.0, 900.0, 1100.0)
    several = point(1)
    several = Point(several.values, {**several.bands, "pods_per_s": rate})

    assert "one seed" in recommend([point(1), point(2)]).reasons[1]
    assert "95%: 900 to 1,100" in recommend([several]).reasons[1]


def banded(schedulers, rate, half):
    found = point(schedulers)
    return Point(found.values, {**found.bands, "pods_per_s": Band(rate, rate - half, rate + half)})


def test_an_interval_of_a_rate_does_not_go_below_zero():
    assert "(95%: 0 to 3,000)" in recommend([banded(1, 1000.0, 2000.0)]).reasons[1]


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("shared", "mode shared, schedulers 1, batch 256"),
        ("partitioned", "mode partitioned, schedulers 1, batch 256, partitions 4"),
    ],
)
def test_partitions_are_reported_for_partitioned_mode_only(mode, text):
    found = point(1)
    values = {**found.values, "mode": mode, "partitions": 4}

    assert recommend([Point(values, found.bands)]).text == text


def test_one_seed_gives_no_recommendation():
    alone = recommend([point(1), point(2)])
    several = recommend([banded(1, 1000.0, 50.0), banded(2, 1000.0, 50.0)])

    assert not alone.is_supported
    assert alone.headline.startswith("Nothing is recommended from one seed")
    assert several.is_supported
    assert several.headline == "Recommended: mode shared, schedulers 1, batch 256"


def test_a_gain_without_separate_intervals_does_not_count():
    assert schedulers_of(banded(1, 1000.0, 300.0), banded(4, 1800.0, 500.0)) == 1
    assert schedulers_of(banded(1, 1000.0, 30.0), banded(4, 1800.0, 50.0)) == 4


def test_the_recommendation_reports_whether_other_settings_are_faster():
    assert "none is faster" in recommend([point(1), point(4, rate=1.0)]).reasons[1]
    slower = recommend([point(1), point(4, rate=1050.0)]).reasons[1]
    assert "the fastest, mode shared, schedulers 4, batch 256, has 1,050" in slower


def test_a_recommendation_contains_its_numbers():
    advice = recommend([point(1), point(4, rate=3000.0, regret=1.5, conflicts=0.25)])

    assert advice.text == "mode shared, schedulers 4, batch 256"
    assert "100 pods; 2 of 2 combinations" in advice.reasons[0]
    assert "3,000 pods/s" in advice.reasons[1]
    assert "1.50 points of 100; the least of all is 0.00" in advice.reasons[2]
    assert "0.250 conflicts" in advice.reasons[3]
