"""Counts by topology domain, and totals by bucket, equal those counted one by one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.arrays import BLOCK, BUCKETS, INFEASIBLE
from roadstead.kernel.counter_arrays import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI,
    HARD,
    HOST,
    SCORE,
    SOFT,
)
from roadstead.kernel.counter_layout import lay_out_counters, with_classes
from roadstead.kernel.repeated_call import RepeatedCall, only_entry
from roadstead.plugins.in_tree import in_tree_registry
from tests import strategies
from tests.actors import fleets
from tests.builders import GIB, node, pod, prefer, put, require, table_of, taint, term
from tests.inside import kernel_totals
from tests.kernel.test_kernel import RELATED, WEB, KernelBatch
from tests.strategies import ZONE

DEFAULT = default_config().profiles[0]
ZONES = ["a", "b", None]
RUNNING = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["web", "db"]), st.booleans()), max_size=8
)
"""Running pods: node, app, and whether the pod is being deleted."""


def fleet(running):
    """Return a table of six nodes in two zones and none, and the pods on it."""
    table = table_of(*(fleets.host(number, ZONES[number % 3]) for number in range(6)))
    for number, app, is_terminating in running:
        put(table, f"n{number}", pod(labels={"app": app}, is_terminating=is_terminating))
    return table


def counters_of(table, *classes):
    """Return the counters of classes, after PreFilter and PreScore."""
    profile = Profile(DEFAULT, in_tree_registry(), Handle(table.classes))
    evaluations = []
    for facts in classes:
        evaluation = Evaluation(profile, table.classes.pod_class(facts), table)
        evaluation.update(evaluation.run_pre_filter())
        evaluation.update_scores(evaluation.run_pre_score())
        evaluations.append(evaluation)
    return lay_out_counters(evaluations, table, [0] * len(evaluations), 1)


def counts_of(counters, table, counter):
    """Return the counts of a counter by the value of its topology key."""
    at, size = counters.count_begin[counter], counters.count_size[counter]
    counts = counters.counts[at : at + size].tolist()
    values = table.columns.label(ZONE).values
    return {values.values[code]: counts[code] for code in range(len(values))}


def zone_of(number):
    return ZONES[number % 3]


def test_a_class_without_constraints_has_no_counters():
    table = fleet([(0, "web", False)])

    counters = counters_of(table, pod(cpu=100))

    assert counters.set_of_class.tolist() == [-1]
    assert len(counters.kind) == 0
    assert with_classes(counters, np.zeros(3, np.int64)).set_of_class.tolist() == [-1] * 3


@settings(max_examples=30)
@given(RUNNING)
def test_a_hard_constraint_counts_the_running_pods_of_each_zone(running):
    table = fleet(running)

    counters = counters_of(table, pod(labels=WEB, **RELATED["hard spread"]))

    hard = counters.kind.tolist().index(HARD)
    wanted = Counter(zone_of(n) for n, app, goes in running if app == "web" and not goes)
    assert counts_of(counters, table, hard) == {zone: wanted[zone] for zone in "ab"}
    assert (
        counters.domain_exists[counters.count_begin[hard] :][: counters.count_size[hard]].sum() == 2
    ), "both zones"
    assert counters.skew[hard] == 0, "a skew of 1, less the pod itself"


@settings(max_examples=30)
@given(RUNNING)
def test_soft_constraints_count_by_zone_and_by_node(running):
    table = fleet(running)

    counters = counters_of(table, pod(labels=WEB, **RELATED["soft spread"]))

    kinds = counters.kind.tolist()
    counted = [n for n, app, goes in running if app == "web" and not goes]
    host = kinds.index(HOST)
    at = counters.count_begin[host]
    assert counters.counts[at : at + 6].tolist() == [counted.count(n) for n in range(6)]
    soft = kinds.index(SOFT)
    wanted = Counter(map(zone_of, counted))
    assert counts_of(counters, table, soft) == {zone: wanted[zone] for zone in "ab"}
    # Nodes without the key are not scored: all keys are required of a pod's own constraints.
    assert counters.masks[counters.scored_mask[0]].tolist() == [
        zone_of(n) is not None for n in range(6)
    ]


@settings(max_examples=30)
@given(RUNNING)
def test_affinity_counts_pods_that_match_its_terms(running):
    table = fleet(running)
    wanted = Counter(zone_of(n) for n, app, _ in running if app == "web")

    for kind, family in (("affinity", AFFINITY), ("preferred affinity", SCORE)):
        counters = counters_of(table, pod(labels={"app": "other"}, **RELATED[kind]))
        found = [
            counts_of(counters, table, counter)
            for counter in np.flatnonzero(counters.kind == family).tolist()
            if counters.domains[counters.key[counter]].max() < len("ab")
        ]
        weight = 1 if family == AFFINITY else 10
        # Without a pod that matches, a preference has no counter.
        missing = family == SCORE and not wanted.keys() & set("ab")
        expected = [] if missing else [{zone: weight * wanted[zone] for zone in "ab"}]
        assert found == expected, kind
        assert not counters.matches_itself[0]


def test_a_pod_adds_to_the_counters_whose_selectors_match_it():
    web = pod(labels=WEB, **RELATED["hard spread"])
    wary = pod(labels={"app": "db"}, pod_anti_affinity=(fleets.near(fleets.apps("web")),))
    counters = counters_of(fleet([]), web, wary, pod(labels={"app": "db"}))

    def added_by(index):
        profile = counters.pod_profile[index]
        begin, end = counters.additions_from[profile : profile + 2]
        return {
            int(counters.kind[counter]): amount for counter, amount in counters.additions[begin:end]
        }

    # A pod of "web" is counted by its own constraint and by the term of the wary pod; that pod's
    # term, once it runs, is counted against pods of "web".
    assert added_by(0) == {HARD: 1, ANTI_AFFINITY: 1}
    assert added_by(1) == {EXISTING_ANTI: 1}
    assert added_by(2) == {}


def test_classes_with_equal_constraints_share_their_counters():
    one = pod(labels=WEB, cpu=100, **RELATED["hard spread"])
    other = pod(labels=WEB, cpu=200, **RELATED["hard spread"])

    counters = counters_of(fleet([]), one, other, pod(labels=WEB, **RELATED["affinity"]))

    assert counters.set_of_class.tolist() == [0, 0, 1]
    assert counters.pod_profile[0] == counters.pod_profile[1]
    assert counters.matches_itself.tolist() == [False, True], "the pod matches its own term"


SOFT_TAINT = taint("soft", "", "PreferNoSchedule")
SHAPES = [
    {"cpu": 4000},
    {"cpu": 1000, "pods": 2},
    {"cpu": 4000, "taints": (SOFT_TAINT,)},
    {"cpu": 8000, "labels": {ZONE: "a"}},
    {"cpu": 0},
]
KINDS = [
    pod(cpu=500),
    pod(cpu=1500, memory=GIB),
    pod(cpu=100, preferred_node_terms=(prefer(5, term(require(ZONE, "In", "a"))),)),
    pod(host_ports=(strategies.PORTS[0],)),
]


def assert_tops_are_of(numbers_of_bucket, total, top, tied):
    for bucket, positions in numbers_of_bucket.items():
        highest = total[positions].max()
        many = int((total[positions] == highest).sum()) if highest != INFEASIBLE else 0
        assert top[bucket] == highest, f"the highest total of bucket {bucket}"
        if highest != INFEASIBLE:
            assert tied[bucket] == many, f"the rows with it in bucket {bucket}"


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(SHAPES), min_size=1, max_size=12),
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=12),
)
def test_after_a_run_the_highest_totals_and_counts_are_those_of_its_totals(shapes, kinds):
    """Placements change single rows; the sums over buckets and groups must follow."""
    nodes = [node(f"n{number:02}", **shape) for number, shape in enumerate(shapes)]
    batch = KernelBatch(table_of(*nodes), *kinds, tie_break=TieBreak("first"))
    if not batch.decide():
        return
    totals = kernel_totals(batch.run)
    # By name rank, bucket b has the positions from b * rows / BUCKETS on.
    begin = [bucket * len(nodes) // BUCKETS for bucket in range(BUCKETS + 1)]
    begin[0] = 0
    buckets = {
        bucket: np.arange(begin[bucket], begin[bucket + 1])
        for bucket in range(BUCKETS)
        if begin[bucket] < begin[bucket + 1]
    }

    for c in np.flatnonzero(
        totals.has_totals & ~totals.results_changed & ~totals.needs_normalization
    ).tolist():
        total = totals.total[c]
        assert totals.feasible[c] == (total != INFEASIBLE).sum(), "feasible rows"
        assert totals.group_feasible[c].sum() == totals.feasible[c], "the same by group"
        assert_tops_are_of(buckets, total, totals.top[c], totals.tied[c])
        by_group = totals.top[c].reshape(-1, BLOCK).max(axis=1)
        assert (totals.block_top[c] == by_group).all(), "the highest of each group of buckets"
        assert totals.block_top[c].max() == total.max(), "and of all rows"


def test_arguments_that_are_the_same_objects_are_passed_without_their_types():
    calls = []

    def add(array, number, *more):
        calls.append((array, number, more))
        return number + 1

    known, one, other = RepeatedCall(add), np.zeros(1), np.zeros(1)

    assert only_entry(add) is None, "a function that is not compiled has no machine code"
    assert [known.call((one,), number) for number in (1, 2)] == [2, 3]
    assert known.call((other,), 3, (one,)) == 4
    assert [number for _, number, _ in calls] == [1, 2, 3]
    assert calls[-1] == (other, 3, (one,))


@pytest.mark.parametrize("kind", sorted(RELATED))
def test_too_many_counts_are_left_to_the_plugins(monkeypatch, kind):
    monkeypatch.setattr("roadstead.kernel.counter_layout.MAX_COUNTS", 5)
    facts = pod(labels=WEB, **RELATED[kind])

    assert counters_of(fleet([]), facts) is None
    monkeypatch.setattr("roadstead.kernel.counter_layout.MAX_COUNTS", 100)
    assert counters_of(fleet([]), facts) is not None


def test_fleets_of_many_sizes_share_few_arrays_of_weights():
    facts = pod(labels=WEB, **RELATED["hard spread"])
    table, weights = table_of(), {}
    for number in range(30):
        table.add_node(fleets.host(number, ZONES[0]))
        counters = counters_of(table, facts)
        weights[id(counters.topology_weights)] = counters.topology_weights

    assert [len(each) for each in weights.values()] == [4, 8, 16, 32, 64]
