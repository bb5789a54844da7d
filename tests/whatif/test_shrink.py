"""shrink: nodes that can go together, so that draining them leaves nothing pending."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.whatif.drain import drain
from roadstead.whatif.evictions import EvictionRules
from roadstead.whatif.shrink import shrink
from tests.actors.world import identity, inputs_of, plan_of
from tests.builders import node, pod, tolerate
from tests.whatif.questions import budget, owned, plan_with, running


def shrunk(nodes, there, plan=None, given=(), candidates=None, **more):
    inputs = inputs_of(nodes, given, there)
    return shrink(inputs, plan or plan_of(), candidates or nodes, "test", **more)


def names_of(result):
    return [each.node for each in result.nodes]


def test_empty_nodes_go_first_and_then_the_least_used():
    there = [
        running("a", "n1", owned(cpu=3000)),
        running("b", "n2", owned(cpu=500)),
    ]

    result = shrunk([node("n1"), node("n2"), node("n3")], there)

    assert names_of(result) == ["n3", "n2"]
    assert [each.pods for each in result.nodes] == [0, 1]
    assert (result.moved, result.node_count, result.is_complete) == (1, 3, True)


def test_full_nodes_stay():
    there = [running(name, name, owned(cpu=3000)) for name in ("n1", "n2")]

    assert names_of(shrunk([node("n1"), node("n2")], there)) == []


def test_the_last_node_stays_as_long_as_it_has_pods():
    assert names_of(shrunk([node("n1")], [running("a", "n1", owned(cpu=1))])) == []
    assert names_of(shrunk([node("n1")], ())) == ["n1"]


def test_daemon_pods_end_with_their_node_and_use_no_room():
    there = [running("d", "n1", owned("DaemonSet", cpu=4000))]

    result = shrunk([node("n1"), node("n2", cpu=100)], there)

    assert sorted(names_of(result)) == ["n1", "n2"]
    assert {each.node: each.daemons for each in result.nodes} == {"n1": 1, "n2": 0}


def test_a_pod_that_tolerates_the_cordon_keeps_its_node():
    everything = (tolerate(operator="Exists"),)
    there = [running("a", "n1", owned(cpu=1000, tolerations=everything))]

    assert names_of(shrunk([node("n1"), node("n2", cpu=100)], there)) == ["n2"]


def test_only_candidates_go():
    nodes = [node("n1"), node("n2"), node("n3")]

    result = shrunk(nodes, (), candidates=nodes[1:2])

    assert names_of(result) == ["n2"]
    assert (result.candidates, result.node_count) == (1, 3)


def test_no_node_goes_by_preemption():
    there = [
        running("high", "n1", owned(cpu=3000, priority=9)),
        running("low", "n2", owned(cpu=3500)),
    ]

    assert names_of(shrunk([node("n1"), node("n2")], there)) == []


def test_budgets_are_reported_with_their_first_refusals():
    web = owned(cpu=100, labels={"app": "web"})
    there = [running(f"w{number}", "n1", web) for number in range(3)]
    there += [running("big", "n2", owned(cpu=2000))]

    result = shrunk([node("n1"), node("n2")], there, plan_with(budget("b", "web", 1)))

    assert names_of(result) == ["n1"]
    (row,) = result.budgets
    assert (row.budget, row.allowed, row.pods, row.refused) == ("default/b", 1, 3, 2)


def test_bare_pods_are_moved_and_counted():
    there = [running("bare", "n1", pod(cpu=100)), running("big", "n2", owned(cpu=2000))]

    result = shrunk([node("n1"), node("n2")], there)

    assert names_of(result) == ["n1"]
    assert result.bare == 1


def test_pods_that_are_pending_anyway_do_not_keep_nodes():
    given = [(identity("giant"), owned(cpu=64_000))]

    result = shrunk([node("n1")], (), given=given)

    assert names_of(result) == ["n1"]
    assert result.pending_before == 1


def test_the_number_of_trials_is_bounded():
    nodes = [node(f"n{number:02}") for number in range(30)]

    result = shrunk(nodes, (), runs_max=2)

    assert len(result.nodes) == 1 + 2
    assert not result.is_complete


@settings(max_examples=25, deadline=None)
@given(
    pods=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from([0, 100, 900, 1900, 3000])), max_size=14
    ),
    priorities=st.booleans(),
)
def test_draining_the_nodes_that_can_go_leaves_nothing_pending(pods, priorities):
    nodes = [node(f"n{number}") for number in range(6)]
    there = [
        running(f"p{at}", f"n{on}", owned(cpu=cpu, priority=at if priorities else 0))
        for at, (on, cpu) in enumerate(pods)
    ]
    inputs = inputs_of(nodes, (), there)

    result = shrink(inputs, plan_of(), nodes)
    gone = [each for each in nodes if each.name in names_of(result)]

    assert drain(inputs, plan_of(), gone, EvictionRules()).is_complete
    used = sum(cpu for _, cpu in pods)
    assert not used or len(gone) < len(nodes)
