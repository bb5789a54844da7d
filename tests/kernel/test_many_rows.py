"""Totals that are computed in chunks equal those that the reference computes for all rows."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.arrays import BUCKETS, CHUNK
from roadstead.kernel.compiled_build import MANY_PER_BUCKET
from tests.builders import GIB, GPU, MIB, node, pod, prefer, require, taint, term
from tests.cycle.test_batch_builder import Cycle
from tests.kernel.test_equality import PROFILES, Plain, World, compiled_kernel, play

SPARE = [0, 1, 999, 4000, 63_999]
MEMORY = [0, 8 * GIB, 3 * GIB + 1, 1 << 45, 1 << 52]


def many(draw, rows):
    """Draw nodes of all sizes, some too large for division in floating point."""
    huge = draw.random() < 0.3
    return [
        node(
            f"n{number}",
            cpu=draw.choice(SPARE),
            memory=draw.choice(MEMORY if huge else MEMORY[:3]),
            pods=draw.choice([0, 1, 110]),
            others=draw.choice([{}, {GPU: 8}, {f"example.com/own-{number % 50}": 1, GPU: 2}]),
            labels={"zone": draw.choice("ab")},
            taints=(taint("k", "v", "PreferNoSchedule"),) if draw.random() < 0.1 else (),
        )
        for number in range(rows)
    ]


def demand(draw):
    liking = (prefer(5, term(require("zone", "In", "a"))),) if draw.random() < 0.5 else ()
    return pod(
        cpu=draw.choice([None, 0, 7, 1000, 60_000]),
        memory=draw.choice([None, 1, 100 * MIB, 1 << 44, 1 << 50]),
        others=draw.choice(
            [{}, {}, {GPU: 1}, {GPU: 3}, {f"example.com/own-{draw.randrange(50)}": 1}]
        ),
        preferred_node_terms=liking,
    )


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.integers(CHUNK - 2, 2 * CHUNK + 100), PROFILES)
def test_pods_on_more_rows_than_one_chunk_are_decided_like_by_the_reference(seed, rows, config):
    with_kernel, reference = decided(seed, rows, config, 12)

    assert with_kernel == reference, "decisions about rows in several chunks"


@settings(deadline=None, max_examples=2)
@given(st.integers(0, 2**32), PROFILES)
def test_pods_on_so_many_rows_that_buckets_are_searched_are_decided_like_by_the_reference(
    seed, config
):
    with_kernel, reference = decided(seed, MANY_PER_BUCKET * BUCKETS + 100, config, 4)

    assert with_kernel == reference, "decisions about rows whose buckets are searched"


def decided(seed, rows, config, pods):
    """Return the outcomes of two batches: decided by compiled code, and by the reference."""
    draw = random.Random(seed)
    batches = [[(demand(draw), draw.random() < 0.2) for _ in range(pods)] for _ in range(2)]
    world = World([(each, []) for each in many(draw, rows)], batches)
    tie_break = TieBreak("random", seed)

    with_kernel = play(Cycle(world, config, tie_break, compiled_kernel()), world)
    return with_kernel, play(Plain(world, config, tie_break, None), world)
