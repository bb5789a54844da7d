"""Python's cyclic garbage collector while actors run."""

import gc

import pytest

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime.gc_tuning import (
    SHORT_THRESHOLDS,
    THRESHOLDS,
    raised_gc_thresholds,
)
from tests.actors.world import inputs_of, plan_of, pods_of
from tests.builders import node, pod


def test_thresholds_are_restored_after_a_run() -> None:
    before = gc.get_threshold()

    with raised_gc_thresholds():
        meanwhile = gc.get_threshold()

    assert meanwhile == THRESHOLDS
    assert gc.get_threshold() == before


def test_thresholds_are_restored_after_a_failed_run() -> None:
    before = gc.get_threshold()

    try:
        with raised_gc_thresholds():
            raise ValueError
    except ValueError:
        pass

    assert gc.get_threshold() == before


@pytest.mark.parametrize("batch", [1, 2048])
def test_a_run_in_small_batches_has_short_pauses(batch: int) -> None:
    before, seen = gc.get_threshold(), set[tuple[int, int, int]]()
    inputs = inputs_of([node("n1", cpu=1000)], pods_of("a", facts=pod(cpu=100)))

    ActorLauncher().run(inputs, plan_of(batch=batch), lambda _: seen.add(gc.get_threshold()))

    assert seen == {SHORT_THRESHOLDS if batch == 1 else THRESHOLDS}
    assert gc.get_threshold() == before
