"""Python's garbage collector while many objects are created that stay."""

import gc
from contextlib import suppress

import pytest

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.garbage_collection import LONG_PAUSES, SHORT_PAUSES, gc_paused, gc_tuned
from tests.actors.world import inputs_of, plan_of, pods_of
from tests.builders import node, pod


class InCycle:
    """An object that refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def instances() -> int:
    """Return the number of objects in cycles that the collector finds."""
    return sum(type(each) is InCycle for each in gc.get_objects())


@pytest.fixture(autouse=True)
def frozen_as_before():
    """Freeze again what the collection of the tests froze: the blocks here unfreeze it."""
    yield
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("fails", [False, True])
def test_thresholds_are_restored_after_the_block(fails: bool) -> None:
    before = gc.get_threshold()

    with suppress(ValueError), gc_tuned():
        meanwhile = gc.get_threshold()
        if fails:
            raise ValueError

    assert meanwhile == LONG_PAUSES.thresholds
    assert gc.get_threshold() == before


@pytest.mark.parametrize("tuning", [LONG_PAUSES, SHORT_PAUSES])
def test_survivors_freeze_after_the_generation_of_the_tuning(tuning) -> None:
    with gc_tuned(tuning):
        survivor = InCycle()
        for generation in range(tuning.frozen_after):
            gc.collect(generation)
            assert gc.is_tracked(survivor)
            assert instances() == 1, "it is searched until its generation freezes"
        gc.collect(tuning.frozen_after)

        assert instances() == 0, "a frozen object is searched no more"


def test_an_inner_block_has_its_own_tuning_and_the_outer_one_returns() -> None:
    with gc_tuned(LONG_PAUSES):
        with gc_tuned(SHORT_PAUSES):
            inner = gc.get_threshold()
            survivor = InCycle()
            gc.collect(0)
            assert instances() == 1, "the outer block does not freeze within the inner one"
        assert gc.get_threshold() == LONG_PAUSES.thresholds
        gc.collect(0)
        del survivor

    assert inner == SHORT_PAUSES.thresholds


def test_blocks_that_overlap_restore_the_thresholds_outside_of_both() -> None:
    # As those of two threads: the first block ends before the second.
    before, first, second = gc.get_threshold(), gc_tuned(LONG_PAUSES), gc_tuned(SHORT_PAUSES)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)

    assert gc.get_threshold() == SHORT_PAUSES.thresholds
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before


def test_cycles_that_froze_are_freed_after_the_block() -> None:
    with gc_tuned():
        cycle = InCycle()
        gc.collect(0)
        del cycle
        gc.collect()
        assert instances() == 0, "frozen, so neither found nor freed"

    assert instances() == 1
    gc.collect()
    assert instances() == 0


@pytest.mark.parametrize("is_enabled", [False, True])
def test_a_pause_leaves_the_collector_as_it_was(is_enabled: bool) -> None:
    (gc.enable if is_enabled else gc.disable)()
    try:
        with suppress(ValueError), gc_paused():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable()


@pytest.mark.parametrize("batch", [1, 2048])
def test_a_run_in_small_batches_has_short_pauses(batch: int) -> None:
    before, seen = gc.get_threshold(), set[tuple[int, int, int]]()
    inputs = inputs_of([node("n1", cpu=1000)], pods_of("a", facts=pod(cpu=100)))

    ActorLauncher().run(inputs, plan_of(batch=batch), lambda _: seen.add(gc.get_threshold()))

    assert seen == {(SHORT_PAUSES if batch == 1 else LONG_PAUSES).thresholds}
    assert gc.get_threshold() == before
