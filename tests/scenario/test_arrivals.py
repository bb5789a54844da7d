"""Drawn arrivals: order, rates, windows, reproducibility, and shared facts."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter, deque
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import Trace, TraceBuilder
from roadstead.scenario.arrival_times import (
    ActiveWindow,
    ArrivalTimes,
    BurstTimes,
    DiurnalTimes,
    ListedTimes,
    PoissonTimes,
    RegularTimes,
)
from roadstead.scenario.arrivals import DrawnArrivals, PodChoice, TraceArrivals
from roadstead.scenario.durations import ExponentialTimes, FixedTimes
from roadstead.scenario.random_stream import BLOCK, RandomStream
from roadstead.simulator.scenario import Arrival, PodLifecycle
from roadstead.simulator.times import HOUR_US, NEVER_US

DAY_US = 24 * HOUR_US
WEB, TRAIN = PodFacts(labels=(("app", "web"),)), PodFacts(labels=(("app", "train"),))
LIFE = PodLifecycle()
SECOND_US = 1_000_000

PROCESSES = st.one_of(
    st.floats(0.1, 1e5).map(PoissonTimes),
    st.integers(1, HOUR_US).map(RegularTimes),
    st.builds(
        lambda size, every_us, part: BurstTimes(size, every_us, int(every_us * part)),
        st.integers(1, 3_000),
        st.integers(1, DAY_US),
        st.floats(0, 1),
    ),
    st.builds(
        DiurnalTimes,
        st.floats(0.1, 1e5),
        st.floats(0, 1),
        st.integers(SECOND_US, 10 * DAY_US),
        st.integers(0, DAY_US),
    ),
    st.lists(st.integers(0, DAY_US), max_size=50).map(
        lambda times: ListedTimes(np.array(sorted(times), dtype=np.int64))
    ),
)


ALWAYS = ActiveWindow()


def source(times: ArrivalTimes, window: ActiveWindow = ALWAYS, **more: Any) -> DrawnArrivals:
    given = {"durations": FixedTimes(), "choices": (PodChoice("web-0", WEB, LIFE),), **more}
    return DrawnArrivals(0, "test", times, window, **given)


def until(arrivals: DrawnArrivals, end_us: int, seed: int = 0) -> list[Arrival]:
    found = []
    for each in arrivals.arrivals(seed):
        if each.at_us >= end_us:
            break
        found.append(each)
    return found


@settings(deadline=None, max_examples=30)
@given(PROCESSES, st.integers(0, DAY_US), st.integers(0, 2**63 - 1))
def test_arrivals_are_in_order_and_equal_for_equal_seeds(
    times: ArrivalTimes, start_us: int, seed: int
) -> None:
    arrivals = source(times, ActiveWindow(start_us))

    found = list(islice(arrivals.arrivals(seed), 3_000))

    assert [each.at_us for each in found] == sorted(each.at_us for each in found)
    assert all(each.at_us >= start_us for each in found)
    assert found == list(islice(arrivals.arrivals(seed), 3_000))
    assert len({each.pods[0][0] for each in found}) == len(found), "names are unique"


@settings(deadline=None, max_examples=30)
@given(PROCESSES, st.integers(0, 3_000), st.integers(1, DAY_US))
def test_a_window_cuts_the_same_stream(times: ArrivalTimes, count: int, length_us: int) -> None:
    # Both ends, since a burst of one microsecond has more arrivals than a test can read.
    whole = [each.at_us for each in islice(source(times).arrivals(1), count)]

    cut = source(times, ActiveWindow(10, 10 + length_us, count or None))
    found = [each.at_us - 10 for each in islice(cut.arrivals(1), count)]

    assert found == [at_us for at_us in whole if at_us < length_us]


@pytest.mark.parametrize(
    "times",
    [
        PoissonTimes(500.0),
        RegularTimes(7 * SECOND_US),
        BurstTimes(300, HOUR_US, HOUR_US // 3),
        DiurnalTimes(500.0, 0.8, DAY_US, 14 * HOUR_US),
        DiurnalTimes(500.0, 1.0, 3 * HOUR_US, 0),
    ],
    ids=repr,
)
def test_the_rate_is_the_given_one(times: ArrivalTimes) -> None:
    for span_us in (2 * DAY_US, 31 * HOUR_US, 5 * HOUR_US):
        expected, _ = source(times).expected(span_us)

        found = [len(until(source(times), span_us, seed)) for seed in range(5)]

        # Five standard deviations of the mean of five Poisson counts.
        assert abs(np.mean(found) - expected) <= 5 * math.sqrt(expected / 5) + 1


def test_gaps_of_a_poisson_process_are_exponential() -> None:
    times = np.array([each.at_us for each in until(source(PoissonTimes(3600)), 10 * HOUR_US)])

    gaps = np.diff(times) / SECOND_US

    assert gaps.mean() == pytest.approx(1, abs=0.03)
    assert gaps.std() == pytest.approx(1, abs=0.05)
    assert np.quantile(gaps, 0.99) == pytest.approx(math.log(100), rel=0.1)


def test_a_diurnal_rate_is_highest_at_its_peak() -> None:
    times = DiurnalTimes(1_000, 0.8, DAY_US, 14 * HOUR_US)

    hours = Counter(each.at_us % DAY_US // HOUR_US for each in until(source(times), 5 * DAY_US))

    assert hours[14] / 5 == pytest.approx(1_800, rel=0.08)
    assert hours[2] / 5 == pytest.approx(200, rel=0.2)
    assert hours[8] / 5 == pytest.approx(1_000, rel=0.2)


def test_other_seeds_sources_and_durations_draw_other_or_the_same_times() -> None:
    def times(index: int, seed: int, durations: Any) -> list[int]:
        drawn = DrawnArrivals(
            index, "", PoissonTimes(60), ActiveWindow(), durations, (PodChoice("w", WEB, LIFE),)
        )
        return [each.at_us for each in islice(drawn.arrivals(seed), 100)]

    assert times(0, 1, FixedTimes()) == times(0, 1, ExponentialTimes(5)), "other durations"
    assert times(0, 1, FixedTimes()) != times(0, 2, FixedTimes())
    assert times(0, 1, FixedTimes()) != times(1, 1, FixedTimes())


def test_the_first_draws_are_recorded() -> None:
    """The streams are a promise: a run is repeated on other machines and versions."""
    drawn = source(PoissonTimes(60), durations=ExponentialTimes(20 * 60 * SECOND_US))

    found = [(each.at_us, each.duration_us) for each in islice(drawn.arrivals(7), 4)]

    assert found == [
        (30_060_075, 57_341_000),
        (153_073_047, 649_220_000),
        (237_832_947, 1_408_037_000),
        (358_956_141, 603_823_000),
    ]


def test_blocks_of_any_size_are_one_stream() -> None:
    whole = RandomStream(3, 1, "x").normal(100)
    parts = RandomStream(3, 1, "x")

    assert np.concatenate([parts.normal(1), parts.normal(60), parts.normal(39)]).tolist() == (
        whole.tolist()
    )


def test_choices_are_drawn_by_weight_and_share_their_facts() -> None:
    choices = (
        PodChoice("web-0", WEB, LIFE, weight=3),
        PodChoice("train-0", TRAIN, PodLifecycle(grace_us=1), weight=1),
    )

    found = list(islice(source(PoissonTimes(60), choices=choices).arrivals(0), 4 * BLOCK))

    by_facts = {WEB: choices[0], TRAIN: choices[1]}
    assert sum(each.pods[0][1] is WEB for each in found) / len(found) == pytest.approx(
        0.75, abs=0.02
    )
    assert all(each.pods[0][1] is by_facts[each.pods[0][1]].facts for each in found)
    assert all(each.lifecycle is by_facts[each.pods[0][1]].lifecycle for each in found)
    assert found[5].pods[0][0].endswith("-5"), "numbered over all choices"


def test_a_gang_has_facts_of_its_own_only_if_it_is_a_group() -> None:
    grouped = source(
        RegularTimes(1), choices=(PodChoice("train-0", TRAIN, LIFE, gang=3, is_group=True),)
    )
    plain = source(RegularTimes(1), choices=(PodChoice("train-0", TRAIN, LIFE, gang=3),))

    first, second = islice(grouped.arrivals(0), 2)
    (alone,) = islice(plain.arrivals(0), 1)

    assert [name for name, _ in first.pods] == ["train-0-g0-0", "train-0-g0-1", "train-0-g0-2"]
    (facts,) = {id(facts): facts for _, facts in first.pods}.values()
    assert facts.pod_group is not None
    assert (facts.pod_group.name, facts.pod_group.min_member) == ("train-0-g0", 3)
    assert ("scheduling.x-k8s.io/pod-group", "train-0-g0") in facts.labels
    assert second.pods[0][1] != facts
    assert all(facts is TRAIN for _, facts in alone.pods)
    assert grouped.expected(100) == (100.0, 300.0)


@pytest.fixture
def trace() -> Trace:
    builder = TraceBuilder("test", {"default": ()})
    for number in range(1_000):
        facts = WEB if number % 2 else TRAIN
        deleted_s = -1 if number % 5 == 0 else 10 * number + 60
        # The trace is not in the order of its times.
        created_s = 10 * (number ^ 1)
        deleted_s = max(deleted_s, created_s) if deleted_s >= 0 else deleted_s
        builder.add_pod(f"p{number}", f"u{number}", facts, created_s, deleted_s)
    return builder.build()


def of_trace(trace: Trace, **more: Any) -> TraceArrivals:
    return TraceArrivals(2, "trace", trace, (LIFE,) * len(trace.pod_classes), **more)


def test_a_trace_keeps_its_times_lifetimes_and_facts(trace: Trace) -> None:
    found = list(of_trace(trace).arrivals(0))

    assert [each.at_us for each in found] == [10 * n * SECOND_US for n in range(1_000)]
    assert [each.pods[0][0] for each in found[:3]] == ["p1", "p0", "p3"]
    assert found[1].duration_us == NEVER_US
    assert found[2].duration_us == 70 * SECOND_US
    assert {id(each.pods[0][1]) for each in found} == {id(facts) for facts in trace.pod_classes}
    assert {each.source for each in found} == {2}


def test_a_trace_is_cut_shifted_and_scaled(trace: Trace) -> None:
    arrivals = of_trace(trace, rate=2.0, start_from_us=5_000_500_000, shift_us=HOUR_US, suffix="-1")

    found = list(arrivals.arrivals(0))

    assert len(found) == 499, "the pods from 5,010 s on"
    assert found[0].at_us == HOUR_US + (5_010_000_000 - 5_000_500_000) // 2
    assert found[-1].at_us == HOUR_US + (9_990_000_000 - 5_000_500_000) // 2
    assert found[0].pods[0][0].endswith("-1")
    assert (
        arrivals.expected(HOUR_US + 1_000 * SECOND_US)
        == (sum(each.at_us < HOUR_US + 1_000 * SECOND_US for each in found),) * 2
    )


def test_a_sample_of_a_trace_is_a_part_of_it(trace: Trace) -> None:
    whole = list(of_trace(trace).arrivals(0))

    found = list(of_trace(trace, sample=0.3).arrivals(4))

    assert len(found) == pytest.approx(300, abs=60)
    assert set(found) <= set(whole)
    assert found == list(of_trace(trace, sample=0.3).arrivals(4))
    assert found != list(of_trace(trace, sample=0.3).arrivals(5))


def test_arrivals_are_not_held() -> None:
    def read(count: int) -> int:
        arrivals = source(PoissonTimes(3_600), durations=ExponentialTimes(SECOND_US)).arrivals(0)
        tracemalloc.start()
        deque(islice(arrivals, count), maxlen=0)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak_bytes

    assert read(30_000) < 1.5 * read(3_000), "the memory is that of one block"
