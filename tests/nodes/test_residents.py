import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.pod import HostPort
from roadstead.nodes.residents import NominationCounts, Resident, Residents
from roadstead.nodes.table import NodeTable
from tests.builders import node, pod

WEB = HostPort("0.0.0.0", "TCP", 80)


def table_with(*names):
    table = NodeTable()
    for name in names:
        table.add_node(node(name))
    return table


def on(table, name="n1"):
    return [resident.uid for resident in table.residents.on(name)]


def test_pods_are_listed_in_order_of_arrival():
    table = table_with("n1")
    pod_class = table.classes.pod_class(pod())
    for uid in ("c", "a", "b"):
        table.add_pod("n1", pod_class, uid=uid)

    table.remove_pod("n1", pod_class, uid="a")
    table.add_pod("n1", pod_class, uid="a")

    assert on(table) == ["c", "b", "a"]


def test_a_pod_has_a_start_time_and_a_name_that_differs_from_its_uid():
    residents, pod_class = Residents(), NodeTable().classes.pod_class(pod())
    residents.add("n1", "uid-1", pod_class, "default/one", 12.5)
    residents.add("n1", "default/two", pod_class, "default/two")

    assert list(residents.on("n1")) == [
        Resident("uid-1", "default/one", 12.5, pod_class),
        Resident("default/two", "default/two", None, pod_class),
    ]


def test_the_facts_of_a_removed_pod_are_forgotten():
    residents, pod_class = Residents(), NodeTable().classes.pod_class(pod())
    residents.add("n1", "uid-1", pod_class, "default/one", 12.5)
    residents.remove("n1", pod_class, "uid-1")
    residents.add("n1", "uid-1", pod_class)

    assert list(residents.on("n1")) == [Resident("uid-1", "uid-1", None, pod_class)]


def test_without_a_uid_the_last_pod_of_the_class_is_removed():
    table = table_with("n1")
    one, other = (table.classes.pod_class(pod(cpu=cpu)) for cpu in (1, 2))
    for uid, pod_class in (("a", one), ("b", one), ("c", other)):
        table.add_pod("n1", pod_class, uid=uid)

    table.remove_pod("n1", one)

    assert on(table) == ["a", "c"]


def test_pods_without_a_uid_are_anonymous():
    table = table_with("n1")
    pod_class = table.classes.pod_class(pod())
    table.add_pod("n1", pod_class, 2)
    assert on(table) == []

    table.add_pod("n1", pod_class, uid="a")
    table.remove_pod("n1", pod_class, uid="who")

    assert on(table) == ["a"]


def test_a_removed_node_removes_its_pods():
    table = table_with("n1", "n2")
    pod_class = table.classes.pod_class(pod())
    table.add_pod("n1", pod_class, uid="a", key="default/a", started_s=1.0)

    table.remove_node("n1")
    table.add_node(node("n1"))

    assert on(table) == []
    table.add_pod("n1", pod_class, uid="a")
    assert [each.started_s for each in table.residents.on("n1")] == [None]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("add", "add", "remove", "clear", "ask")),
            st.sampled_from(("n1", "n2")),
            st.sampled_from("abcdef"),
        )
    )
)
def test_the_pods_on_a_node_do_not_depend_on_when_they_are_listed(happened):
    residents, pod_class, wanted = Residents(), NodeTable().classes.pod_class(pod()), {}
    for what, name, uid in happened:
        if what == "add":
            residents.add(name, uid, pod_class)
            wanted.pop(uid, None)
            wanted[uid] = name
        elif what == "remove":
            residents.remove(name, pod_class, uid)
            wanted = {each: on for each, on in wanted.items() if (each, on) != (uid, name)}
        elif what == "clear":
            residents.clear(name)
            wanted = {each: on for each, on in wanted.items() if on != name}
        else:
            list(residents.on(name))

    for name in ("n1", "n2"):
        assert [each.uid for each in residents.on(name)] == [
            u for u, n in wanted.items() if n == name
        ]
    assert all(residents.is_on(name, uid) for uid, name in wanted.items())


def test_nominations_are_counted_by_class_and_removed_at_zero():
    nominations, pod_class = NominationCounts(), NodeTable().classes.pod_class(pod())
    nominations.add("n1", pod_class, 2)
    assert bool(nominations)
    assert nominations.to("n1") == {pod_class: 2}

    assert nominations.remove("n1", pod_class)
    assert nominations.remove("n1", pod_class)
    assert not nominations.remove("n1", pod_class)

    assert not nominations
    assert nominations.to("n1") == {}


def test_a_nomination_marks_its_row_once_the_node_exists():
    table = table_with("n1")
    before, pod_class = table.version, table.classes.pod_class(pod())

    table.nominate("elsewhere", pod_class)
    assert table.version == before
    table.nominate("n1", pod_class)
    assert table.rows_changed_since(before).tolist() == [0]

    known = table.version
    table.withdraw("n1", table.classes.pod_class(pod(cpu=1)))
    assert table.version == known
    table.withdraw("n1", pod_class)
    assert table.rows_changed_since(known).tolist() == [0]


def test_pods_are_nominated_by_their_class_without_the_nominated_node():
    table = table_with("n1", "n2")
    classes = table.classes
    for name in ("n1", "n2"):
        table.nominate(name, classes.pod_class(pod(cpu=5, nominated_node_name=name)))

    plain = classes.pod_class(pod(cpu=5))
    assert [table.nominations.to(name) for name in ("n1", "n2")] == [{plain: 1}, {plain: 1}]
    assert list(table.nominations) == ["n1", "n2"]


def test_an_overlay_tracks_which_ports_are_in_use():
    table = table_with("n1")
    pod_class = table.classes.pod_class(pod(host_ports=(WEB,)))
    table.add_pod("n1", pod_class, 2)
    overlay = table.copy_rows(np.array([0]))
    overlay.ports_as_set = True

    overlay.remove_pod("n1", pod_class)
    assert overlay.port_sets[overlay.port_codes[0]] == ()
    overlay.remove_pod("n1", pod_class)
    overlay.add_pod("n1", pod_class)

    assert overlay.port_sets[overlay.port_codes[0]] == ((WEB, 1),)
    assert table.port_sets[table.port_codes[0]] == ((WEB, 2),)
