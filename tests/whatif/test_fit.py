"""fit counts the replicas that the scheduler places, and the next one is refused."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.facts.pod import HostPort, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.run import RunInputs
from roadstead.whatif.fit import FitQuestion, fit
from tests.actors.world import identity, inputs_of, plan_of, run_virtually
from tests.builders import node, pod, require, taint
from tests.whatif.questions import ZONE, asked, fit_of, running


def zoned(name, zone, **facts):
    return node(name, labels={ZONE: zone}, **facts)


def spread(cpu):
    """Return a pod whose replicas are spread evenly over zones."""
    same = LabelSelector((require("app", "In", "x"),))
    evenly = SpreadConstraint(ZONE, 1, "DoNotSchedule", same, 1, "Honor", "Ignore", ())
    return pod(cpu=cpu, labels={"app": "x"}, spread_constraints=(evenly,))


def test_replicas_are_counted_by_node_zone_and_shape():
    nodes = [zoned("a1", "a"), zoned("a2", "a", cpu=8000), zoned("b1", "b")]

    result = fit_of(nodes, pod(cpu=1500), [(identity("given"), pod(cpu=3000))])

    assert result.replicas == 2 + 5 + 2 - 2, "the given pod takes the room of two"
    assert sum(each.replicas for each in result.nodes) == result.replicas
    assert result.placed == 1
    assert set(result.zones) <= {"a", "b"}
    assert result.shapes["8 cores, 8 GiB"] in (3, 5)
    assert result.next.reasons == (("Insufficient cpu", 3),)
    assert result.next.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert not result.is_limited


def test_nothing_fits_where_every_node_is_tainted():
    result = fit_of([node("n1", taints=(taint("gpu"),))], pod(cpu=1))

    assert (result.replicas, result.nodes) == (0, ())
    assert "untolerated taint {gpu: }" in result.next.message


def test_a_host_port_allows_one_replica_per_node():
    ports = (HostPort("0.0.0.0", "TCP", 80),)

    assert fit_of([node("n1"), node("n2")], pod(host_ports=ports)).replicas == 2


def test_spreading_stops_the_count_before_the_nodes_are_full():
    nodes = [zoned("a1", "a", cpu=1000), zoned("b1", "b", cpu=8000)]

    result = fit_of(nodes, spread(500))

    assert result.replicas == 5, "two in a, and one more in b"
    assert result.zones == {"b": 3, "a": 2}
    assert ("node(s) didn't match pod topology spread constraints", 1) in result.next.reasons


def test_large_counts_are_exact():
    result = fit_of([node(f"n{n}", cpu=100_000, pods=900) for n in range(5)], pod(cpu=100))

    assert result.replicas == 5 * 900
    assert result.next.reasons == (("Too many pods", 5),)


def test_a_small_queue_bounds_the_batches_and_not_the_count():
    plan = plan_of(bounds={"queue_max_pods": 10})

    assert fit_of([node("n1", pods=500)], pod(cpu=10), plan=plan).replicas == 400


def test_several_specs_are_counted_in_rounds():
    specs = (asked("web", pod(cpu=500), 2), asked("db", pod(cpu=1500)))

    result = fit(inputs_of([node("n1"), node("n2")], ()), plan_of(), FitQuestion(specs))

    assert result.rounds == 2
    assert [each.replicas for each in result.specs] == [4, 2]
    assert result.next.spec == "db"


def test_specs_of_different_priority_take_turns_all_the_same():
    specs = (asked("low", pod(cpu=1000)), asked("high", pod(cpu=1000, priority=7)))

    result = fit(inputs_of([node("n1")], ()), plan_of(), FitQuestion(specs))

    assert [each.replicas for each in result.specs] == [2, 2]


def test_replicas_evict_no_pod_and_the_next_one_names_its_victims():
    low = [running("low", "n1", pod(cpu=3000))]

    result = fit_of([node("n1")], pod(cpu=1000, priority=5), running=low)

    assert result.replicas == 1
    assert [each.pod for each in result.next.preempts] == ["default/low"]


def test_the_count_can_stop_at_a_limit():
    result = fit_of([node("n1")], pod(cpu=1), max_replicas=10)

    assert (result.replicas, result.is_limited, result.next) == (10, True, None)


def test_pending_pods_of_the_spec_can_be_counted_too():
    facts = pod(cpu=1000)

    more = fit_of([node("n1")], facts, [(identity("x"), facts)])
    total = fit_of([node("n1")], facts, [(identity("x"), facts)], is_total=True)

    assert (more.replicas, total.replicas) == (3, 4)


def test_a_gated_pod_fits_nowhere_and_the_gate_is_named():
    result = fit_of([node("n1")], pod(scheduling_gates=("acme.io/wait",)))

    assert result.replicas == 0
    assert "acme.io/wait" in result.next.message
    assert result.changes[0].text == "drop scheduling gate acme.io/wait"


def test_a_cluster_without_nodes_has_no_room():
    result = fit_of([], pod(cpu=1))

    assert result.replicas == 0
    assert result.next.message == "no nodes available to schedule pods"


SPECS = st.sampled_from(
    [
        pod(cpu=700),
        pod(cpu=700, node_selector={ZONE: "a"}),
        pod(cpu=300, host_ports=(HostPort("0.0.0.0", "TCP", 80),)),
        spread(600),
        pod(),
    ]
)
NODES = st.lists(
    st.builds(
        lambda zone, cpu, pods, taints: (zone, cpu, pods, taints),
        st.sampled_from("ab"),
        st.sampled_from([0, 900, 2500, 4000]),
        st.sampled_from([1, 4, 7]),
        st.sampled_from([(), (), (taint("gpu"),)]),
    ),
    max_size=4,
)


@settings(max_examples=30, deadline=None)
@given(nodes=NODES, spec=SPECS, given_cpu=st.lists(st.sampled_from([100, 1000, 3000]), max_size=3))
def test_the_next_replica_is_refused_by_a_run_on_the_cluster_with_the_counted_ones(
    nodes, spec, given_cpu
):
    fleet = [
        zoned(f"n{at}", zone, cpu=cpu, pods=pods, taints=taints)
        for at, (zone, cpu, pods, taints) in enumerate(nodes)
    ]
    pods = [(identity(f"g{at}"), pod(cpu=cpu)) for at, cpu in enumerate(given_cpu)]
    result = fit_of(fleet, spec, pods, max_changes=0)

    first = run_virtually(inputs_of(fleet, pods), plan_of())
    facts_of = {who.uid: facts for who, facts in pods}
    there = [running(each.uid, each.node, facts_of[each.uid]) for each in first.placements]
    there += [
        running(f"r-{each.node}-{n}", each.node, spec)
        for each in result.nodes
        for n in range(each.replicas)
    ]
    outcome = run_virtually(RunInputs(fleet, tuple(there), ((identity("next"), spec),)), plan_of())

    assert not outcome.placements, "one more than fit counted is placed"
    assert outcome.pending[0].reasons == result.next.reasons
