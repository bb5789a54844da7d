import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.pod import HostPort
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.row_slice import NodeSlice, RowSlice, cut, cut_nodes, join
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack
from tests.builders import GPU, node, pod, put, table_of
from tests.strategies import clusters

WEB = HostPort("10.0.0.1", "TCP", 80)
NUMBERS = (
    "allocatable",
    "requested",
    "nonzero_requested",
    "allocatable_pods",
    "pod_count",
    "ports",
)
ALL = (*NUMBERS, "facts", "unschedulable", "zone", "taints", "images", "labels", "pods")


def sent(each):
    """The slice as it arrives in another process."""
    return from_wire(type(each), unpack(pack(to_wire(each))))


def rows(*indices):
    return np.array(indices, dtype=np.intp)


def table_with_pods(cluster, classes=None):
    table = table_of(*(facts for facts, _ in cluster), classes=classes)
    for facts, pods in cluster:
        put(table, facts.name, *pods)
    return table


def numbers(table, what=NUMBERS):
    return {name: {key: table.row_facts(name)[key] for key in what} for name in table.names}


def test_rows_arrive_with_their_numbers_in_the_order_asked_for():
    table = table_of(node("n1"), node("n2", others={GPU: 4}), node("n3", pods=7))
    put(table, "n2", pod(cpu=100, others={GPU: 1}, host_ports=(WEB,)))

    joined = join([sent(cut(table, rows(2, 1)))], PodClasses())

    assert joined.names == ["n3", "n2"]
    assert numbers(joined) == {name: numbers(table)[name] for name in ("n3", "n2")}
    assert joined.name_hashes.tolist() == table.name_hashes[[2, 1]].tolist()
    assert joined.row_of("n2") == 1


def test_a_receiver_learns_resources_that_it_did_not_know():
    table = table_of(node("n1", others={"example.com/a": 1, "example.com/b": 2}))
    classes = PodClasses()
    classes.resources.code("example.com/b")

    joined = join([cut(table, rows(0))], classes)

    assert joined.row_facts("n1")["allocatable"] == table.row_facts("n1")["allocatable"]
    assert classes.resources.find("example.com/a") > 0


def test_slices_of_several_shards_become_one_table():
    one = table_of(node("n1", others={"example.com/a": 1}))
    other = table_of(node("n2", others={"example.com/b": 2}), node("n3"))
    put(one, "n1", pod(cpu=5, host_ports=(WEB,)))

    joined = join([cut(one, rows(0)), cut(other, rows(1, 0))], PodClasses())

    assert joined.names == ["n1", "n3", "n2"]
    assert numbers(joined) == numbers(one) | numbers(other)


def test_pods_may_be_placed_on_rows_that_arrived():
    table = table_of(node("n1"))
    put(table, "n1", pod(cpu=5, host_ports=(WEB,)))
    joined = join([cut(table, rows(0))], PodClasses())
    version = joined.version

    put(joined, "n1", pod(cpu=10, host_ports=(WEB,)))

    assert joined.row_facts("n1")["requested"] == {"cpu": 15}
    assert joined.row_facts("n1")["ports"] == ((WEB, 2),)
    assert joined.rows_changed_since(version).tolist() == [0]


def test_no_rows_are_a_table_too():
    table = table_of(node("n1"))

    assert len(join([sent(cut(table, rows()))], PodClasses())) == 0
    assert len(join([], PodClasses())) == 0
    assert len(join([sent(cut_nodes(table, rows()))], PodClasses())) == 0
    assert len(join([], PodClasses())) == 0


def test_whole_nodes_share_one_line_per_class():
    table = table_of(node("n1"), node("n2"))
    web, worker = pod(cpu=1, labels={"app": "web"}), pod(cpu=2)
    put(table, "n1", web, worker, worker)
    put(table, "n2", worker)

    told = cut_nodes(table, rows(0, 1))

    assert told.classes == (web, worker)
    assert told.pods == (((0, 1), (1, 2)), ((1, 1),))


def test_whole_nodes_may_be_cut_from_a_view():
    table = table_of(node("n1"), node("n2"))

    assert cut_nodes(table.view(rows(1)), rows(0)).nodes == (table.facts(1),)


@given(clusters, clusters, st.data())
def test_joined_rows_have_the_numbers_of_the_rows_that_were_cut(cluster, other, data):
    tables = [table_with_pods(cluster), table_with_pods(_elsewhere(other))]
    chosen = [data.draw(_some_of(table)) for table in tables]

    slices = [sent(cut(table, some)) for table, some in zip(tables, chosen, strict=True)]
    joined = join(slices, PodClasses())

    cut_names = [t.names[row] for t, some in zip(tables, chosen, strict=True) for row in some]
    assert joined.names == cut_names
    expected = {name: line for table in tables for name, line in numbers(table).items()}
    assert numbers(joined) == {name: expected[name] for name in cut_names}
    assert all(type(each) is RowSlice for each in slices)


@given(clusters, st.data())
def test_joined_nodes_are_the_nodes_that_were_cut(cluster, data):
    table = table_with_pods(cluster)
    chosen = data.draw(_some_of(table))

    told = sent(cut_nodes(table, chosen))
    joined = join([told], PodClasses())

    assert type(told) is NodeSlice
    assert joined.names == [table.names[row] for row in chosen]
    assert numbers(joined, ALL) == {name: numbers(table, ALL)[name] for name in joined.names}
    joined.validate()


def _elsewhere(cluster):
    return [
        (node(f"other-{facts.name}", cpu=facts.allocatable_pods), pods) for facts, pods in cluster
    ]


def _some_of(table):
    subsets = st.lists(st.integers(0, max(0, len(table) - 1)), unique=True, max_size=len(table))
    return subsets.map(lambda chosen: np.array(chosen, dtype=np.intp))
