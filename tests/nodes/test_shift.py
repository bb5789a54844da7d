"""Pods that are added to many rows of an overlay, or removed, in one call, count as one by one."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.pod import HostPort
from roadstead.nodes.table import NodeTable
from tests.builders import GPU, node, pod

ROWS = 7
KINDS = [
    pod(cpu=100, memory=5),
    pod(cpu=250, others={GPU: 1}),
    pod(host_ports=(HostPort("0.0.0.0", "TCP", 80),)),
    pod(),
]
SHIFTS = st.lists(
    st.tuples(
        st.integers(0, len(KINDS) - 1),
        st.dictionaries(st.integers(0, ROWS - 1), st.integers(1, 2), min_size=1),
        st.booleans(),
    ),
    max_size=8,
)


def empty():
    table = NodeTable()
    for number in range(ROWS):
        table.add_node(node(f"n{number}"))
    return table


def contents(table):
    pod_classes = [table.classes.pod_class(facts) for facts in KINDS]
    columns = table.columns
    numbers = (columns.requested, columns.nonzero_requested, columns.pod_count)
    return (
        [each[..., :ROWS].tolist() for each in numbers],
        [[columns.pods[row].get(pod_class, 0) for pod_class in pod_classes] for row in range(ROWS)],
        [table.port_sets[code] for code in columns.port_set[:ROWS].tolist()],
        [columns.class_counts.get(pod_class, 0) for pod_class in pod_classes],
    )


@given(SHIFTS, st.booleans())
def test_shifting_many_pods_equals_shifting_them_one_by_one(shifts, ports_as_set):
    ours, theirs = empty(), empty()
    ours.ports_as_set = theirs.ports_as_set = ports_as_set
    for kind, changes, goes in shifts:
        mine, pod_class = ours.classes.pod_class(KINDS[kind]), theirs.classes.pod_class(KINDS[kind])
        if goes:
            here = {
                row: min(n, theirs.columns.pods[row].get(pod_class, 0))
                for row, n in changes.items()
            }
            changes = {row: -count for row, count in here.items() if count}
        if not changes:
            continue
        version = ours.version
        ours.change_pods(changes, mine)
        for row, change in changes.items():
            for _ in range(abs(change)):
                move = theirs.add_pod if change > 0 else theirs.remove_pod
                move(f"n{row}", pod_class)
        assert sorted(ours.rows_changed_since(version).tolist()) == sorted(changes)
        assert contents(ours) == contents(theirs)
