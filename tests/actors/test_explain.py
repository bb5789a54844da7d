from dataclasses import replace

import pytest

from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.fleet.ten_classes import TEN_CLASSES
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import InputError, UnsupportedError
from roadstead.run import build_profiles
from tests.actors import fleets
from tests.actors.world import SERVED, identity, in_cycle, inputs_of, plainly, plan_of, pods_of
from tests.builders import node, pod
from tests.ten_shapes import ten_shapes

WEB = fleets.apps("web")
QUESTIONS = {
    **{dict(facts.labels)["app"]: facts for facts in TEN_CLASSES},
    "near": pod(pod_affinity=(fleets.near(WEB),)),
    "apart": pod(pod_anti_affinity=(fleets.near(WEB, fleets.HOSTNAME),)),
    "likes": pod(preferred_pod_affinity=(fleets.near(WEB, weight=7),)),
    "spread": pod(labels={"app": "web"}, spread_constraints=(fleets.spread(selector=WEB),)),
    "too big": pod(cpu=10**9),
    "elsewhere": pod(node_name="node-00003"),
    "gated": pod(scheduling_gates=("hold",)),
}


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)


def explained(inputs, facts, **how):
    asked = (identity("asked"), facts)
    return ActorLauncher().explain(inputs, plan_of(**how), asked, lambda progress: None)


def plainly_explained(inputs, facts):
    """Return PlainCycle's explanation of the pod after the pending pods are placed."""
    plan = plan_of()
    facts_of = {who.key: each for who, each in inputs.pending}
    table = NodeTable()
    for each in inputs.nodes:
        table.add_node(each)
    for _, each, name in inputs.running:
        table.add_pod(name, table.classes.pod_class(each))
    for key, name in plainly(inputs, plan)[0].items():
        table.add_pod(name, table.classes.pod_class(facts_of[key]))
    profiles = build_profiles(plan, table.classes)
    asked = in_cycle(identity("asked"), facts, table.classes, profiles[facts.scheduler_name])
    return PlainCycle(table, profiles, TieBreak()).explain(asked)


def a_fleet():
    trace = ten_shapes(12, 30, seed=2)
    running = [(who, facts, "node-00004") for who, facts in pods_of("w", facts=TEN_CLASSES[0])]
    running += [
        (who, pod(labels={"app": "web"}), "node-00007") for who, _ in pods_of("x1", "x2", "x3")
    ]
    return inputs_of(trace.nodes(), trace.pods(), running)


@pytest.mark.parametrize("name", QUESTIONS)
def test_explaining_after_a_run_agrees_with_one_table(name):
    inputs, facts = a_fleet(), QUESTIONS[name]
    expected = plainly_explained(inputs, facts)

    found = explained(inputs, facts)

    assert found.as_recorded() == expected.as_recorded()
    assert found.names == expected.names
    assert found.message == expected.message


@pytest.mark.parametrize("workers", [0, 2])
def test_any_number_of_workers_gives_one_explanation(workers):
    nodes = [fleets.host(number, "abc"[number % 3]) for number in range(4)]
    inputs = inputs_of(nodes, pods_of("p", "q", facts=pod(labels={"app": "web"})))
    facts = pod(cpu=500, labels={"app": "web"}, spread_constraints=(fleets.spread(selector=WEB),))

    found = explained(inputs, facts, workers=workers)

    assert found.as_recorded() == plainly_explained(inputs, facts).as_recorded()


def test_explaining_places_nothing():
    inputs = inputs_of([node("n1")], pods_of("p"))

    found = [explained(inputs, pod(cpu=4000)).as_recorded() for _ in range(2)]

    assert found[0] == found[1]
    assert found[0]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu")


def test_a_pod_of_no_profile_is_refused_by_field():
    with pytest.raises(InputError) as refusal:
        explained(inputs_of([node("n1")], []), pod(scheduler_name="theirs"))

    assert str(refusal.value) == (
        'Pod "default/asked": spec.schedulerName: "theirs" is not a profile of the '
        "configuration (must be one of default-scheduler)"
    )


def test_a_pod_that_is_not_supported_is_named():
    devices = pod(others={"example.com/gpu": 1})
    with pytest.raises(UnsupportedError) as refusal:
        explained(
            inputs_of([node("n1")], []),
            devices,
            featureGates={"DRAExtendedResource": True},
            cluster=SERVED,
        )

    assert (refusal.value.obj, refusal.value.field) == (
        'Pod "default/asked"',
        "spec.containers: example.com/gpu with DRAExtendedResource",
    )


def explained_pending(inputs, pods, **how):
    return ActorLauncher().explain_pending(inputs, plan_of(**how), pods, lambda progress: None)


def test_pending_pods_are_explained_as_if_each_were_alone():
    inputs = a_fleet()
    pods = [(identity(name), facts) for name, facts in QUESTIONS.items()]
    inputs = replace(inputs, pending=())

    found = explained_pending(inputs, pods)

    assert [each.pods for each in found] == [(each,) for each in pods]
    for (_, facts), each in zip(pods, found, strict=True):
        alone = explained(inputs, facts).as_recorded()
        assert each.explanation.as_recorded() == {**alone, "pod": each.explanation.pod_key}


def test_pods_with_the_same_facts_are_explained_once():
    same, gated = pods_of("a", "b", "c"), pods_of("d", facts=pod(scheduling_gates=("hold",)))

    found = explained_pending(inputs_of([node("n1")], []), [*same, *gated])

    assert [each.pods for each in found] == [tuple(same), tuple(gated)]
    assert [each.explanation.pre_enqueue.is_success for each in found] == [True, False]


def test_pods_that_the_run_placed_are_not_explained():
    pending = [*pods_of("a"), *pods_of("big", facts=pod(cpu=10**9))]

    found = explained_pending(inputs_of([node("n1")], pending), pending)

    assert [each.pods for each in found] == [(pending[1],)]


def test_a_pending_pod_of_no_profile_has_an_error_and_others_an_explanation():
    pods = [*pods_of("a"), *pods_of("b", facts=pod(scheduler_name="theirs"))]

    good, bad = explained_pending(inputs_of([node("n1")], []), pods)

    assert good.explanation is not None
    assert bad.explanation is None
    assert bad.error == (
        'spec.schedulerName: "theirs" is not a profile of the configuration (must be one of '
        "default-scheduler)"
    )


def test_a_pod_does_not_compete_with_its_own_nomination():
    """The pod stays pending on its scheduling gate; its nomination fills the node."""
    facts = pod(cpu=1000, nominated_node_name="n1", scheduling_gates=("hold",))
    pending = pods_of("a", facts=facts)
    inputs = inputs_of([node("n1", cpu=1000)], pending)

    (found,) = explained_pending(inputs, pending)

    assert found.explanation.best == ["n1"]
