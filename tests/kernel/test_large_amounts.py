"""Amounts near the limits of int64 are decided as by the plugins, whose products wrap as Go's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.config.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
)
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.kernel.amounts import AMOUNT_MAX, INEXACT_AMOUNTS, are_inexact
from roadstead.kernel.mirror import Mirror
from roadstead.nodes.pod_class import LARGE_REQUEST
from tests.builders import GIB, GPU, ROW_PLUGINS, config_of, node, pod, put, table_of
from tests.inside import kernel_of
from tests.kernel.test_equality import Batches, Plain, World, compiled_kernel, play
from tests.kernel.test_kernel import KernelBatch

INT64_MAX = 2**63 - 1
EDGES = [0, 1, GIB, LARGE_REQUEST, LARGE_REQUEST + 1, AMOUNT_MAX, AMOUNT_MAX + 1]
EDGES += [INT64_MAX // 2, INT64_MAX // 2 + 1, INT64_MAX]
SHAPE = RequestedToCapacityRatio((ShapePoint(0, 10), ShapePoint(100, 0)))
STRATEGIES = [
    ("LeastAllocated", None),
    ("MostAllocated", None),
    ("RequestedToCapacityRatio", SHAPE),
]


def profile_by(strategy, ignored):
    kind, shape = strategy
    resources = tuple(ResourceSpec(name, weight) for name, weight in (("memory", 1), (GPU, 3)))
    scoring = ScoringStrategy(kind, resources, shape)
    return config_of(
        ROW_PLUGINS,
        {
            "NodeResourcesFit": NodeResourcesFitArgs(
                ignored_resources=ignored, scoring_strategy=scoring
            ),
            "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(resources),
        },
    )


@st.composite
def worlds(draw):
    amounts = st.sampled_from(EDGES[: draw(st.sampled_from([3, 6, len(EDGES)]))])
    gpus = st.one_of(st.just({}), amounts.map(lambda amount: {GPU: amount}))
    pods = st.builds(pod, memory=st.one_of(st.none(), amounts), others=gpus)
    clusters = [
        (
            node(f"n{number}", memory=draw(amounts), others=draw(gpus), pods=4),
            draw(st.lists(pods, max_size=1)),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    kinds = st.sampled_from(draw(st.lists(pods, min_size=1, max_size=2)))
    return World(clusters, [draw(st.lists(st.tuples(kinds, st.just(False)), max_size=5))])


@settings(deadline=None, max_examples=40)
@given(worlds(), st.sampled_from(STRATEGIES), st.sampled_from([(), (GPU,)]))
def test_decisions_at_the_limits_of_int64_are_those_of_the_plugins(world, strategy, ignored):
    config, tie_break = profile_by(strategy, ignored), TieBreak("first")

    with_kernel = play(Batches(world, config, tie_break, compiled_kernel()), world)

    assert with_kernel == play(Plain(world, config, tie_break, None), world)


@pytest.mark.parametrize(
    ("memory", "by_kernel"), [(AMOUNT_MAX, 2), (AMOUNT_MAX + 1, 0), (INT64_MAX, 0)]
)
def test_the_kernel_decides_as_long_as_no_node_has_more_than_the_limit(memory, by_kernel):
    batch = KernelBatch(table_of(node("n1"), node("n2", memory=memory)), *[pod(cpu=1)] * 2)

    assert len(batch.decide()) == by_kernel, "pods decided by the kernel"
    assert batch.coverage.by_kernel == by_kernel
    assert batch.coverage.stops == ({} if by_kernel else {INEXACT_AMOUNTS: 1})


@pytest.mark.parametrize(("memory", "by_kernel"), [(LARGE_REQUEST, 1), (LARGE_REQUEST + 1, 0)])
def test_a_class_that_requests_more_than_the_limit_is_left_to_the_plugins(memory, by_kernel):
    batch = KernelBatch(
        table_of(node("n1", memory=AMOUNT_MAX)), pod(memory=memory), pod(memory=GIB)
    )

    assert len(batch.decide()) == (2 if by_kernel else 0), "the first pod ends or starts the run"
    assert batch.coverage.by_reference == ({} if by_kernel else {INEXACT_AMOUNTS: 1})


def test_a_node_that_grows_beyond_the_limit_stops_the_kernel_until_the_next_one():
    batch = KernelBatch(table_of(node("n1"), node("n2")), *[pod(cpu=1)] * 3)
    first = batch.run.decide_by_kernel(batch.pods[:1])
    batch.run.flush()
    put(batch.table, "n2", *[pod(memory=AMOUNT_MAX)] * 2)

    second = batch.run.decide_by_kernel(batch.pods[1:])

    assert (len(first), len(second)) == (1, 0), "one before the change, none after it"
    assert kernel_of(batch.run).place_one(batch.pods[1]) is None, "nor a single pod"
    assert kernel_of(batch.run).listable_classes() == [], "nor are rows listed for others"
    assert batch.run.decide(batch.pods[1]).node_name is not None, "the plugins decide it"


def test_the_mirror_reports_large_amounts_of_all_rows_and_of_changed_ones():
    def mirror_of(table):
        ports_in_use = np.zeros((len(table), 1), np.bool_)
        return Mirror(table, Chooser(TieBreak()), lambda table, rows: ports_in_use[rows])

    table = table_of(node("n1"), node("n2"))
    mirror = mirror_of(table)
    assert not mirror.has_inexact_amounts
    put(table, "n1", pod(memory=GIB))
    mirror.refresh()
    assert not mirror.has_inexact_amounts, "a usual pod"
    table.update_node(node("n1", memory=AMOUNT_MAX + 1))
    mirror.refresh()
    assert mirror.has_inexact_amounts, "the node reports more"
    assert mirror_of(table).has_inexact_amounts, "a new mirror finds it, too"


@pytest.mark.parametrize(
    ("amounts", "large"),
    [
        ([], False),
        ([0, AMOUNT_MAX], False),
        ([1, AMOUNT_MAX + 1], True),
        ([INT64_MAX], True),
        ([5, -1], True),
        ([-(2**63)], True),
    ],
)
def test_amounts_are_large_above_the_limit_and_if_a_sum_wrapped_around(amounts, large):
    assert are_inexact(np.array(amounts, np.int64)) is large
