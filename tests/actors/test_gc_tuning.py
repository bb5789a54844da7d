"""Python's cyclic garbage collector while actors run."""

import gc

from roadstead.actors.runtime.gc_tuning import THRESHOLDS, raised_gc_thresholds


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
