"""Proves the models of views that are refreshed partition by partition."""

from dataclasses import replace
from functools import cache
from itertools import chain

import numpy as np
import pytest

from roadstead.lab import parsync
from roadstead.lab.parsync import (
    STEPS,
    GapModel,
    Slots,
    assign_slots,
    extra_slots,
    fill_gap,
    freshest,
    partition_of_refresh,
    refreshed,
)
from roadstead.lab.policies import PolicyModel, simulate

SMALL = GapModel(schedulers=8, partitions=8, tasks_per_s=2000.0, capacity_per_s=500.0)
STATE_SYNC = replace(SMALL, partitions=1)


def nobody_knows(slots):
    return np.zeros(slots, dtype=np.bool_)


@pytest.mark.parametrize(("schedulers", "share"), [(2, 0.1), (8, 0.25), (20, 0.05), (5, 1.0)])
def test_uniform_picks_conflict_as_often_as_the_closed_form(schedulers, share):
    slots, rounds, conflicts = 1000, 300, 0
    random = np.random.default_rng(7)

    for _ in range(rounds):
        room = Slots(slots, 1, 0.0, random)
        seen = np.zeros((schedulers, slots), dtype=np.bool_)
        picks = [
            room.pick(nobody_knows(slots), room.part(0), round(share * slots), random)
            for _ in range(schedulers)
        ]
        conflicts += int(assign_slots(room, seen, picks, random).lost.sum())

    # For uniform, independent choices: N·p − 1 + (1 − p)^N.
    expected = schedulers * share - 1.0 + (1.0 - share) ** schedulers
    assert conflicts / (rounds * slots) == pytest.approx(expected, rel=0.05, abs=1e-9)


@pytest.mark.parametrize("variance", [0.0, 1.0])
def test_picks_are_distinct_idle_slots_of_the_part(variance):
    random = np.random.default_rng(1)
    room = Slots(100, 4, variance, random)
    seen = nobody_knows(100)
    seen[25:45] = True

    few = room.pick(seen, room.part(1), 2, random)
    all_of_them = room.pick(seen, room.part(1), 99, random)

    assert len(set(few.tolist())) == 2
    assert sorted(all_of_them.tolist()) == [45, 46, 47, 48, 49]
    assert not room.pick(seen, slice(25, 45), 3, random).size


def test_high_scores_are_picked_first_and_more_so_with_variance():
    random = np.random.default_rng(1)
    even, uneven = Slots(1000, 1, 0.0, random), Slots(1000, 1, 4.0, random)

    mean = {
        room: room.score[room.pick(nobody_knows(1000), room.part(0), 50, random)].mean()
        for room in (even, uneven)
    }

    assert mean[even] == 0.0
    assert mean[uneven] > 2.0


def test_guessed_and_listed_picks_have_equal_means(monkeypatch):
    random = np.random.default_rng(3)
    room = Slots(400, 1, 1.0, random)
    seen = nobody_knows(400)

    def means():
        return [room.score[room.pick(seen, room.part(0), 20, random)].mean() for _ in range(200)]

    guessed = means()
    # Without a guess all slots are picked from the list.
    monkeypatch.setattr(parsync, "DRAW_ROUNDS", 0)
    listed = means()

    assert np.mean(guessed) == pytest.approx(np.mean(listed), abs=0.1)


@pytest.mark.parametrize("seed", range(20, 30))
def test_picks_stay_in_their_part_if_its_weights_are_tiny_beside_the_others(seed):
    random = np.random.default_rng(seed)
    pool = Slots(1000, 300, 100.0, random)

    for partition in range(pool.partitions):
        part = pool.part(partition)
        found = pool.pick(nobody_knows(1000), part, 1, random)
        assert part.start <= found[0] < part.stop


def test_picking_switches_to_the_list_if_guessing_finds_too_few():
    random = np.random.default_rng(3)
    room = Slots(100, 1, 60.0, random)

    found = room.pick(nobody_knows(100), room.part(0), 50, random)

    assert len(set(found.tolist())) == 50


def test_a_slot_has_one_winner_and_all_its_pickers_see_that_it_is_taken():
    random = np.random.default_rng(1)
    room = Slots(4, 1, 0.0, random)
    seen = np.zeros((2, 4), dtype=np.bool_)

    assigned = assign_slots(room, seen, [np.array([0, 1]), np.array([1, 2])], random)

    assert sorted(assigned.slots.tolist()) == [0, 1, 2]
    assert int(assigned.lost.sum()) == 1
    assert seen.tolist() == [[True, True, False, False], [False, True, True, False]]


def test_at_each_step_schedulers_are_refreshed_at_different_partitions():
    assert sorted(partition_of_refresh(who, 5, 8, 8) for who in range(8)) == list(range(8))


@pytest.mark.parametrize("partitions", [1, 3, 20, 50])
def test_in_a_gap_each_scheduler_refreshes_every_partition_once(partitions):
    for who in (0, 3):
        found = [refreshed(who, step, 8, partitions) for step in range(STEPS)]

        assert sorted(chain.from_iterable(found)) == list(range(partitions))
        assert found[0][-1] == freshest(who, 0, 8, partitions)


def test_between_refreshes_the_freshest_partition_stays_the_same():
    found = [freshest(1, step, 4, 4) for step in range(STEPS)]

    assert found == [1] * 5 + [2] * 5 + [3] * 5 + [0] * 5


def test_with_a_partition_for_each_scheduler_there_are_no_conflicts_in_a_gap():
    placed, conflicts = fill_gap(SMALL, 2 * SMALL.tasks, 1)

    assert (placed, conflicts) == (SMALL.tasks, 0)


def test_state_sync_needs_more_slots_than_parsync():
    assert extra_slots(STATE_SYNC, 1)["extra_slots"] > extra_slots(SMALL, 1)["extra_slots"]


def test_a_longer_gap_and_uneven_scores_need_more_slots():
    plain = extra_slots(STATE_SYNC, 1)["extra_slots"]

    assert extra_slots(replace(STATE_SYNC, sync_gap_s=1.0), 1)["extra_slots"] > 1.5 * plain
    assert extra_slots(replace(STATE_SYNC, variance=2.0), 1)["extra_slots"] > plain


def test_more_partitions_than_schedulers_make_no_difference():
    shares = [
        extra_slots(replace(SMALL, partitions=count), 1)["extra_share"] for count in (8, 16, 32)
    ]

    assert max(shares) < 0.01


def test_schedulers_that_use_all_partitions_conflict_for_any_number_of_partitions():
    shares = [
        extra_slots(replace(SMALL, partitions=count, look="all"), 1)["extra_share"]
        for count in (4, 8, 32)
    ]

    assert min(shares) > 0.05
    assert max(shares) < 2.0 * min(shares)
    assert max(shares) < extra_slots(STATE_SYNC, 1)["extra_share"]


def test_a_gap_in_which_less_than_a_task_arrives_has_one_task():
    assert extra_slots(GapModel(tasks_per_s=1.0, sync_gap_s=0.1), 1)["extra_share"] == 0.0


def test_too_slow_schedulers_never_find_enough_slots():
    metrics = extra_slots(replace(SMALL, capacity_per_s=100.0), 1)

    assert metrics["feasible"] == 0.0


POLICY = PolicyModel(slots=2000, schedulers=8, partitions=8, capacity_per_s=70.0, phase_s=4.0)


@cache
def by_policy(name):
    return simulate(replace(POLICY, policy=name), 1)


def test_the_same_seed_gives_the_same_run():
    short = replace(POLICY, phase_s=1.0)

    assert simulate(short, 1) == simulate(short, 1)


def test_latency_first_waits_least_and_quality_first_finds_better_slots():
    latency, quality = by_policy("latency-first"), by_policy("quality-first")

    assert latency["wait_s"] < quality["wait_s"]
    assert latency["conflict_fraction"] < quality["conflict_fraction"]
    assert latency["phase1_quality"] < quality["phase1_quality"]


def test_adaptive_waits_less_than_quality_first_and_is_better_than_latency_first():
    adaptive = by_policy("adaptive")

    assert adaptive["wait_s"] < by_policy("quality-first")["wait_s"]
    assert adaptive["phase1_quality"] > by_policy("latency-first")["phase1_quality"]


def test_state_sync_waits_longest_of_the_policies_that_prefer_fresh_slots():
    assert by_policy("state-sync")["wait_s"] > by_policy("latency-first")["wait_s"]


def test_load_is_the_share_of_used_slots():
    steady = simulate(replace(POLICY, policy="latency-first", phases=(0.5,), phase_s=30.0), 1)

    assert steady["utilization"] == pytest.approx(0.5, abs=0.1)
    assert steady["tasks_per_s"] == pytest.approx(200.0, rel=0.08)


@pytest.mark.parametrize("policy", ["latency-first", "quality-first", "state-sync"])
def test_tasks_wait_if_no_slot_is_idle(policy):
    full = replace(POLICY, slots=40, phases=(3.0,), policy=policy, phase_s=8.0)

    metrics = simulate(full, 1)

    assert metrics["phase1_backlog"] > 0
    assert metrics["utilization"] > 0.8
