"""The kernel's copy of a table equals the table, however it was brought up to date."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.framework.tie_break import Chooser, TieBreak, in_order, ranked
from roadstead.kernel.arrays import BUCKETS
from roadstead.kernel.jit import position_of_bucket
from roadstead.kernel.lowering.node_ports import RequestedPorts
from roadstead.kernel.mirror import Mirror
from tests.builders import GPU, node, pod, put, table_of
from tests.nodes.test_table import DNS, WEB

NAMES = ["n1", "n2", "n3", "é", "Z", "n10"]
PODS = [
    pod(cpu=100),
    pod(cpu=333, memory=1),
    pod(others={GPU: 1}),
    pod(host_ports=(WEB,)),
    pod(host_ports=(WEB, DNS)),
]
NODES = st.builds(
    node,
    name=st.sampled_from(NAMES),
    cpu=st.sampled_from([0, 4000]),
    pods=st.integers(0, 3),
    others=st.sampled_from([{}, {GPU: 2}]),
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(NAMES), st.sampled_from(PODS)),
        st.tuples(st.just("remove"), st.sampled_from(NAMES), st.sampled_from(PODS)),
        NODES.map(lambda facts: ("update", facts.name, facts)),
    ),
    max_size=8,
)


FIRST = TieBreak("first")


def mirror_of(table, tie_break=FIRST):
    wanted = RequestedPorts([table.classes.pod_class(facts) for facts in PODS])
    return Mirror(table, Chooser(tie_break), wanted.ports_in_use)


def apply(table, change):
    """Apply a change; changes of unknown nodes, and removals of absent pods, do nothing."""
    what, name, value = change
    if name not in table.names:
        return
    if what == "update":
        table.update_node(value)
    elif what == "add":
        put(table, name, value)
    elif table.classes.pod_class(value) in table.columns.pods[table.names.index(name)]:
        table.remove_pod(name, table.classes.pod_class(value))


def arrays_of(mirror):
    return {name: array.tolist() for name, array in mirror.row_arrays._asdict().items()}


@settings(max_examples=40)
@given(st.lists(NODES, max_size=5, unique_by=lambda facts: facts.name), st.lists(CHANGES))
def test_a_refreshed_copy_equals_a_new_one(nodes, rounds):
    table = table_of(*nodes)
    # All resources are known before the copy, as those of the kernel's classes are.
    mirror_of(table)
    mirror = mirror_of(table)

    for changes in rounds:
        before = table.version
        for change in changes:
            apply(table, change)
        expected = table.rows_changed_since(before).tolist()

        assert sorted(mirror.refresh().tolist()) == expected, "the rows that changed"
        assert arrays_of(mirror) == arrays_of(mirror_of(table))
        assert mirror.refresh().tolist() == [], "nothing has changed since"


@settings(max_examples=40)
@given(st.lists(NODES, max_size=5, unique_by=lambda facts: facts.name), CHANGES)
def test_amounts_are_those_of_each_row(nodes, changes):
    table = table_of(*nodes)
    for change in changes:
        apply(table, change)

    row_arrays = mirror_of(table).row_arrays

    for row in range(len(table)):
        for code in range(row_arrays.allocatable.shape[1]):
            assert row_arrays.allocatable[row, code] == table.allocatable(code)[row]
            assert row_arrays.requested[row, code] == table.requested(code)[row]
        assert row_arrays.nonzero[row].tolist() == [
            table.nonzero_requested(code)[row] for code in (0, 1)
        ]
        assert row_arrays.pod_count[row] == table.pod_count[row]
        assert row_arrays.pod_limit[row] == table.allocatable_pods[row]


@given(
    st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=40, unique=True),
    st.sampled_from(["first", "random"]),
    st.integers(0, 2**63),
)
def test_positions_are_the_order_of_the_tie_break_divided_into_buckets(names, kind, seed):
    table = table_of(*(node(name) for name in names))
    tie_break = TieBreak(kind, seed)

    row_arrays = mirror_of(table, tie_break).row_arrays

    positions = np.arange(len(names))
    assert sorted(row_arrays.row_at.tolist()) == positions.tolist(), "each row has one position"
    assert (row_arrays.position_of[row_arrays.row_at] == positions).all(), (
        "and the inverse finds it"
    )
    assert (np.diff(row_arrays.sort_keys.astype(object)) >= 0).all(), "positions are in order"
    assert row_arrays.bucket_begin[0] == 0
    assert row_arrays.bucket_begin[BUCKETS] == len(names), "buckets hold all positions"
    for bucket in np.unique(row_arrays.bucket_of).tolist():
        at = np.flatnonzero(row_arrays.bucket_of == bucket)
        assert at.tolist() == list(
            range(row_arrays.bucket_begin[bucket], row_arrays.bucket_begin[bucket + 1])
        )
    if kind == "first":
        # The highest is chosen first: so names are in reverse.
        chosen = [names[row] for row in row_arrays.row_at[::-1].tolist()]
        assert chosen == [names[index] for index in in_order(names, None)]


@given(
    st.integers(0, 2**64 - 1),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20),
)
def test_buckets_of_compiled_code_are_in_the_order_of_the_ranks(draw, hashes):
    ranks = ranked(draw, np.array(hashes, np.uint64))

    for each, rank in zip(hashes, ranks.tolist(), strict=True):
        assert int(position_of_bucket(np.uint64(each >> 52), np.uint64(draw))) == rank >> 52


def test_a_resource_that_the_table_gets_later_is_no_part_of_the_copy():
    table = table_of(node("n1"))
    mirror = mirror_of(table)
    before = mirror.row_arrays.requested.shape

    put(table, "n1", pod(cpu=7, others={"x.io/new": 3}))

    assert mirror.refresh().tolist() == [0]
    assert mirror.row_arrays.requested.shape == before
    assert mirror.row_arrays.requested[0, 0] == 7, "known resources are copied"


def test_placements_that_were_counted_here_are_not_read_back():
    table = table_of(node("n1"), node("n2"))
    mirror = mirror_of(table)
    put(table, "n1", pod(cpu=7))

    mirror.mark_current()

    assert mirror.refresh().tolist() == []
    put(table, "n2", pod(cpu=7))
    assert mirror.refresh().tolist() == [1], "later changes are"
