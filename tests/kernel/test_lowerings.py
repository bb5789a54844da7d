"""Arrays of classes: what compiled code reads is what the plugins would compare and score."""

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
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.tie_break import Chooser, TieBreak, ranked
from roadstead.kernel.arrays import CHUNK, END, new_chunk, padded
from roadstead.kernel.compiled_code import load
from roadstead.kernel.covered_classes import KernelClass
from roadstead.kernel.jit import FLOAT_BOUND, quotient
from roadstead.kernel.kernel import Kernel
from roadstead.kernel.lowering.lowerings import (
    RowLowering,
    lay_out_classes,
    replace_amounts,
    why_not,
)
from roadstead.kernel.lowering.node_ports import RequestedPorts
from roadstead.kernel.lowering.node_resources_fit import LEAST, MOST, OFF, RATIO
from roadstead.plugins.node_ports import NodePorts
from roadstead.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from roadstead.plugins.node_resources_fit import NodeResourcesFit
from tests import strategies
from tests.builders import (
    GIB,
    GPU,
    ROW_PLUGINS,
    evaluated,
    filter_with,
    node,
    pod,
    profile_of,
    put,
    score_with,
    table_of,
)
from tests.kernel.test_equality import MODEST_PODS, ROOMY_NODES

CPU, MEMORY = 0, 1
SHAPE = (ShapePoint(0, 0), ShapePoint(50, 10), ShapePoint(100, 2))


def lowered(*classes, strategy="LeastAllocated", resources=(("cpu", 1), ("memory", 2)), ignored=()):
    """Return the arrays of some classes, their functions, and the table with its classes."""
    table = table_of(node("n1", others={GPU: 2}))
    resources = tuple(ResourceSpec(*each) for each in resources)
    function = RequestedToCapacityRatio(SHAPE) if strategy == "RequestedToCapacityRatio" else None
    scoring = ScoringStrategy(strategy, resources, function)
    args = {
        "NodeResourcesFit": NodeResourcesFitArgs(
            ignored_resources=ignored, scoring_strategy=scoring
        ),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(resources),
    }
    profile = profile_of(ROW_PLUGINS, args=args, classes=table.classes)
    pods = [table.classes.pod_class(facts) for facts in classes]
    lowerings = [RowLowering(evaluated(profile, facts, table)) for facts in classes]
    zeros = np.zeros(len(pods), np.int64)
    affects = np.zeros((len(pods), len(pods)), np.bool_)
    found, ports_in_use = lay_out_classes(lowerings, pods, affects, zeros, zeros)
    return found, ports_in_use, table, lowerings, pods


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3), max_size=4))
def test_lists_of_different_lengths_are_padded_at_their_ends(lists):
    found = padded(lists, 2)

    assert found.shape == (len(lists), max(map(len, lists), default=0), 2)
    for row, each in zip(found.tolist(), lists, strict=True):
        assert row[: len(each)] == [list(pair) for pair in each]
        assert row[len(each) :] == [[END, END]] * (len(row) - len(each))


def test_a_class_without_requests_compares_nothing_and_is_scored_by_the_defaults():
    arrays, *_ = lowered(pod(), pod(cpu=500, others={GPU: 1}))
    gpu = arrays.fit.filtered_requests[1].tolist()[1][0]

    assert arrays.fit.filtered_requests.tolist() == [[[END, END]] * 2, [[CPU, 500], [gpu, 1]]]
    assert arrays.placed_requests.tolist() == arrays.fit.filtered_requests.tolist(), (
        "what it adds is what it compares"
    )
    assert arrays.nonzero.tolist() == [[100, 200 << 20], [500, 200 << 20]]
    assert arrays.fit.scored_requests.tolist() == [
        [[CPU, CPU, 100, 1], [MEMORY, MEMORY, 200 << 20, 2]],
        [[CPU, CPU, 500, 1], [MEMORY, MEMORY, 200 << 20, 2]],
    ]
    assert arrays.balanced.weight.tolist() == [-1, 1], "PreScore skips pods without requests"
    assert arrays.balanced.scored_requests[1].tolist() == [[CPU, 500], [MEMORY, 0]]


def test_an_ignored_resource_is_added_and_scored_but_not_compared():
    arrays, _, table, *_ = lowered(
        pod(cpu=1, others={GPU: 3}), ignored=(GPU,), resources=(("cpu", 1), (GPU, 5))
    )
    gpu = table.classes.resources.code(GPU)

    assert arrays.fit.filtered_requests.tolist() == [[[CPU, 1]]]
    assert arrays.placed_requests.tolist() == [[[CPU, 1], [gpu, 3]]]
    assert arrays.fit.scored_requests.tolist() == [[[CPU, CPU, 1, 1], [gpu, -1, 3, 5]]]


def test_an_extended_resource_is_scored_only_for_classes_that_request_it():
    arrays, _, table, *_ = lowered(pod(cpu=1), pod(others={GPU: 2}), resources=((GPU, 5),))
    gpu = table.classes.resources.code(GPU)

    assert arrays.fit.scored_requests.tolist() == [[[END] * 4], [[gpu, -1, 2, 5]]]
    assert arrays.balanced.scored_requests.tolist() == [[[END] * 2], [[gpu, 2]]]


@pytest.mark.parametrize(
    ("strategy", "code"),
    [("LeastAllocated", LEAST), ("MostAllocated", MOST), ("RequestedToCapacityRatio", RATIO)],
)
def test_the_strategy_and_its_shape_are_those_of_the_profile(strategy, code):
    arrays, *_ = lowered(pod(), pod(cpu=1), strategy=strategy)

    assert arrays.fit.score.tolist() == [[code, 1, 0]] * 2
    if code == RATIO:
        (shape,) = arrays.fit.shapes.tolist()
        assert (shape[0], shape[25], shape[50], shape[75], shape[100]) == (0, 50, 100, 60, 20)
        assert len(shape) == 101, "a score for each percentage"
    else:
        assert len(arrays.fit.shapes) == 0


def test_a_profile_that_scores_by_neither_plugin_has_both_off():
    points = ROW_PLUGINS | {"score": ["ImageLocality"]}
    table = table_of(node("n1"))
    evaluation = evaluated(profile_of(points, classes=table.classes), pod(), table)

    found = RowLowering(evaluation)

    assert (found.fit.strategy, found.balanced.weight) == (OFF, -1)
    assert why_not(evaluation.profile, evaluation.pod) == "", "the filters are there"


def test_amounts_of_another_class_are_written_in_place_if_the_lists_are_long_enough():
    old, short = pod(cpu=500, memory=GIB), pod(cpu=7)
    arrays, _, table, (lowering, *_), _ = lowered(old, pod())

    def replaced(facts):
        return replace_amounts(arrays, 0, lowering, table.classes.pod_class(facts))

    assert replaced(short)
    assert (
        arrays.fit.filtered_requests[0].tolist()
        == arrays.placed_requests[0].tolist()
        == [[CPU, 7], [END, END]]
    )
    assert arrays.nonzero[0].tolist() == [7, 200 << 20]
    assert replaced(old)
    assert arrays.fit.filtered_requests[0].tolist() == [[CPU, 500], [MEMORY, GIB]]
    before = [
        each.copy()
        for each in (arrays.fit.filtered_requests, arrays.placed_requests, arrays.nonzero)
    ]
    assert not replaced(pod(cpu=1, memory=1, others={GPU: 1})), "a list has no room for three"
    for array, known in zip(
        (arrays.fit.filtered_requests, arrays.placed_requests, arrays.nonzero), before, strict=True
    ):
        assert (array == known).all(), "then nothing is changed"


PORTED = st.lists(
    st.lists(st.sampled_from(strategies.PORTS), max_size=2).map(tuple), min_size=1, max_size=3
)


@given(PORTED, st.lists(PORTED, min_size=1, max_size=3))
def test_a_port_is_blocked_on_the_rows_on_which_the_plugin_refuses_it(wanted, running):
    table = table_of(*(node(f"n{number}") for number in range(len(running))))
    for number, of_node in enumerate(running):
        put(table, f"n{number}", *(pod(host_ports=ports) for ports in of_node))
    pods = [table.classes.pod_class(pod(host_ports=ports)) for ports in wanted]
    asked = RequestedPorts(pods)

    ports_in_use = asked.ports_in_use(table, np.arange(len(table)))
    columns = asked.lay_out().requested

    for facts, ports in zip(wanted, columns.tolist(), strict=True):
        refused = filter_with(NodePorts(), pod(host_ports=facts), table)
        own = [column for column in ports if column != END]
        assert ports_in_use[:, own].any(axis=1).tolist() == [each is not None for each in refused]


def test_ports_that_conflict_with_each_other_are_marked_both_ways():
    everywhere, here, other = (
        strategies.HostPort(ip, "TCP", port)
        for ip, port in (("0.0.0.0", 80), ("10.0.0.1", 80), ("10.0.0.1", 443))
    )
    pods = [
        table_of().classes.pod_class(pod(host_ports=(each,))) for each in (everywhere, here, other)
    ]

    found = RequestedPorts(pods).lay_out()

    assert found.requested.tolist() == [[0], [1], [2]]
    assert found.conflicts.tolist() == [
        [True, True, False],
        [True, True, False],
        [False, False, True],
    ]


def test_a_piece_has_room_for_its_rows_and_no_resource_in_use():
    chunk = new_chunk(3)

    assert chunk.used_resources.tolist() == [False] * 3
    assert chunk.capacity.shape == chunk.requested.shape == (3, CHUNK)
    assert chunk.nonzero.shape == (2, CHUNK)


EDGES = [0, 1, 99, FLOAT_BOUND - 1, FLOAT_BOUND, FLOAT_BOUND + 1, 2**62, 2**63 - 1]
INTEGERS = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**63 - 1), st.integers(0, 2**20))


@given(INTEGERS, INTEGERS.filter(bool))
def test_the_fast_quotient_is_the_exact_one_also_beside_multiples(dividend, divisor):
    multiple = dividend - dividend % divisor

    for each in (dividend, multiple, max(multiple - 1, 0)):
        assert quotient.py_func(each, divisor) == each // divisor


RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 2), ResourceSpec(GPU, 3))
SCORERS = [
    ScoringStrategy("LeastAllocated", RESOURCES),
    ScoringStrategy("MostAllocated", RESOURCES),
    ScoringStrategy(
        "RequestedToCapacityRatio", RESOURCES, RequestedToCapacityRatio(SHAPE)
    ),
]  # fmt: skip


CLUSTERS = st.lists(
    st.tuples(ROOMY_NODES, st.lists(strategies.small_pods, max_size=2)),
    min_size=1,
    max_size=6,
    unique_by=lambda line: line[0].name,
)
FIT, PORTS, BALANCED = "NodeResourcesFit", "NodePorts", "NodeResourcesBalancedAllocation"
POINTS = {
    "preFilter": [PORTS, FIT],
    "filter": [PORTS, FIT],
    "preScore": [FIT, BALANCED],
    "score": [(FIT, 7), (BALANCED, 2)],
}


def listed_by_kernel(table, facts, args, draw):
    """Return all feasible rows with their totals, best first, as the kernel lists them."""
    pod_class = table.classes.pod_class(facts)
    evaluation = Evaluation(profile_of(POINTS, args=args, classes=table.classes), pod_class, table)
    pre_filter = evaluation.run_pre_filter()
    evaluation.update(pre_filter)
    known = KernelClass(evaluation, pod_class, pre_filter, evaluation.run_pre_score())
    kernel = Kernel(load(), table, {"class": known}, Chooser(TieBreak("random")))
    found = kernel.list_best(["class"], np.array([draw], np.uint64), len(table))
    count = int(found.counts[0])
    return list(zip(found.rows[0, :count].tolist(), found.totals[0, :count].tolist(), strict=True))


@settings(max_examples=50)
@given(CLUSTERS, MODEST_PODS, st.sampled_from(SCORERS), st.integers(0, 2**64 - 1))
def test_totals_are_the_weighted_scores_of_the_plugins_and_ties_are_in_order_of_the_draw(
    clusters, facts, scoring, draw
):
    """Scores of each row by itself, without cycle, batch or evaluation."""
    table = table_of(*(each for each, _ in clusters))
    for each, running in clusters:
        put(table, each.name, *running)
    args = {
        FIT: NodeResourcesFitArgs(scoring_strategy=scoring),
        BALANCED: NodeResourcesBalancedAllocationArgs(RESOURCES),
    }
    fit, balanced = NodeResourcesFit(args[FIT]), NodeResourcesBalancedAllocation(args[BALANCED])
    by_fit, by_ports = (filter_with(each, facts, table) for each in (fit, NodePorts()))
    fits, evens = score_with(fit, facts, table), score_with(balanced, facts, table)
    evens = evens or [0] * len(table)
    ranks = ranked(draw, table.name_hashes).tolist()

    found = listed_by_kernel(table, facts, args, draw)

    wanted = [
        (row, 7 * fits[row] + 2 * evens[row])
        for row in range(len(table))
        if by_fit[row] is by_ports[row] is None
    ]
    wanted.sort(key=lambda each: (each[1], ranks[each[0]]), reverse=True)
    assert found == wanted, "rows and totals, the best first"
