"""Controllers through the engine: with a scheduler, nodes that fill up, and other components."""

from dataclasses import replace

import pytest

from roadstead.facts.node import ZONE_LABEL, NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.simulator.component import Component, DropNode, EndPod, PutNode, WakeAt
from roadstead.simulator.controllers import Controllers
from roadstead.simulator.engine import Engine
from roadstead.simulator.play import Variant, build_engine, components_of
from roadstead.simulator.scenario import (
    Arrival,
    CompiledScenario,
    ControllerPlan,
    ControllerTimings,
    Limits,
    PodLifecycle,
    PodTemplatePlan,
)
from roadstead.simulator.share import Share
from roadstead.simulator.simulated_pods import Ending, LifeState
from tests.simulator.fake_fleet import SECOND_US, rolled_out, scaled

TIMINGS = ControllerTimings(50 * SECOND_US, 0.1, 0.01, 5_500, 50)
LIFE = PodLifecycle(grace_us=30 * SECOND_US)


def node(name, cpu=4_000):
    labels = (("kubernetes.io/hostname", name), (ZONE_LABEL, "zone-0"))
    return NodeFacts(name, tuple(sorted(labels)), (("cpu", cpu), ("memory", 1 << 34)), 110)


def template(base, cpu=1_000, priority=0):
    facts = PodFacts(requests=(("cpu", cpu),), labels=(("base", base),), priority=priority)
    return PodTemplatePlan(base, facts, LIFE, tuple(facts for _ in range(16)))


def controller(kind, replicas, *templates, **more):
    index, name = more.pop("index", 0), more.pop("name", "web")
    return ControllerPlan(index, kind, "default", name, templates, replicas, **more)


class Script(Component):
    """Commands at times, in seconds."""

    def __init__(self, *commands):
        self.commands = commands

    def begin(self):
        return [
            WakeAt(at_s * SECOND_US, ("command", index))
            for index, (at_s, _) in enumerate(self.commands)
        ]

    def wake(self, key):
        return [self.commands[key[1]][1]]


class Records:
    """A recorder: (second, name, ending) of ended pods, notes, and binds."""

    def __init__(self):
        self.ended, self.notes, self.binds = [], [], []

    def pod_ended(self, life):
        self.ended.append((life.ended_us / SECOND_US, life.identity.name, str(life.ends_as)))

    def bound(self, now_us, life):
        self.binds.append((now_us / SECOND_US, life.identity.uid, life.node))

    def not_bound(self, now_us, life, note, nominated, victims):
        pass

    def claims(self, world, changed, removed):
        pass

    def note(self, now_us, note):
        self.notes.append((now_us / SECOND_US, note.what, note.subject))

    def node(self, now_us, name, facts, *, is_new):
        """Leave out nodes: the world has them."""

    def sample(self, engine):
        pass


def run(*controllers, nodes=4, horizon_s=1_000, script=(), sources=(), start_s=1):
    """Play controllers on nodes of 4 CPUs; return engine and records."""
    plan = CompiledScenario(
        "test",
        tuple(node(f"n{index}") for index in range(nodes)),
        horizon_s * SECOND_US,
        horizon_s * SECOND_US,
        start_s * SECOND_US,
        TIMINGS,
        Limits(10**6, 10**7, 1 << 32),
        controllers=controllers,
        sources=sources,
    )
    records = Records()
    components = [*components_of(plan, 0), Script(*script)]
    engine = build_engine(plan, Variant(), records, None, components)
    engine.run()
    engine.validate()
    for each in components:
        if isinstance(each, Controllers):
            each.validate()
    return engine, records


def names(engine: Engine, *states):
    return [each.identity.name for each in engine.pods.values() if each.state in states]


def test_a_plan_without_controllers_needs_no_component():
    plan = CompiledScenario("test", (), 1, 1, 0, TIMINGS, Limits(10**6, 10**7, 1 << 32))

    assert components_of(plan, 0) == ()


def test_pods_of_a_lost_node_come_back_on_others():
    web = controller("ReplicaSet", 8, template("web"))

    engine, records = run(web, script=[(100, DropNode("n0"))])

    lost = [each for each in records.ended if each[2] == "lost"]
    assert {each[0] for each in lost} == {100}
    assert len(lost) == 2, "eight pods were spread over four nodes"
    assert len(names(engine, LifeState.RUNNING)) == 8
    assert [each[0] for each in records.binds[8:]] == [100, 100]


def test_pods_that_do_not_fit_wait_and_are_placed_when_a_node_comes():
    web = controller("Deployment", 6, template("web"), changes=(scaled(50, 10),))

    engine, records = run(web, nodes=2, script=[(200, PutNode(node("n9")))])

    assert len(names(engine, LifeState.RUNNING)) == 10
    assert [each[0] for each in records.binds].count(200) == 2


def test_a_rollout_on_a_full_fleet_needs_the_room_of_terminating_pods():
    web = controller(
        "Deployment",
        8,
        template("web-a"),
        template("web-b"),
        max_surge=Share(0),
        max_unavailable=Share(4),
        changes=(rolled_out(100, 1),),
    )

    engine, records = run(web, nodes=2)

    # Four go at 100 s and have gone at 130 s; their successors start at 131 s.
    new = [each for each in records.binds if "web-b" in each[1]]
    assert [each[0] for each in new] == [130] * 4 + [161] * 4
    assert (162, "rollout finished", "Deployment/web") in records.notes
    assert len(names(engine, LifeState.RUNNING)) == 8


def test_preempted_pods_wait_for_room():
    low = controller("ReplicaSet", 8, template("low"), name="low")
    high = controller(
        "ReplicaSet",
        3,
        template("high", priority=10),
        name="high",
        index=1,
        created_us=100 * SECOND_US,
        deleted_us=500 * SECOND_US,
    )

    engine, records = run(low, high, nodes=2)

    preempted = [each for each in records.ended if each[2] == "preempted"]
    assert len(preempted) == 3
    assert {each[0] for each in preempted} == {100}
    assert len(names(engine, LifeState.RUNNING)) == 8, "all run when there is room again"
    assert len([each for each in records.binds if each[0] == 530]) == 3


def test_a_stateful_set_keeps_its_names_on_another_node():
    db = controller("StatefulSet", 3, template("db"), name="db")

    engine, records = run(db, script=[(100, DropNode("n0")), (200, DropNode("n1"))])

    assert sorted(names(engine, LifeState.RUNNING)) == ["db-0", "db-1", "db-2"]
    assert len({uid for _, uid, _ in records.binds}) == len(records.binds), "each life has its UID"
    assert [each[0] for each in records.binds[:3]] == [0, 1, 2], "one after the other"


def test_a_daemon_set_runs_on_every_node_at_any_scores():
    agent = controller(
        "DaemonSet", 0, template("agent", 100), name="agent", max_unavailable=Share(1)
    )

    engine, records = run(agent, script=[(100, PutNode(node("n9"))), (200, DropNode("n1"))])

    assert sorted(life.node for life in engine.pods.values()) == ["n0", "n2", "n3", "n9"]
    assert len(records.binds) == 5


def test_the_pods_of_a_job_run_side_by_side_until_all_have_succeeded():
    class Minutes:
        def draws(self, seed, stream):
            while True:
                yield 60 * SECOND_US

    job = controller("Job", 6, template("job"), name="job", parallelism=4, durations=Minutes())

    engine, records = run(job)

    assert [each[0] for each in records.ended] == [61] * 4 + [122] * 2
    assert records.notes == [
        (0, "controller created", "Job/job"),
        (122, "job completed", "Job/job"),
    ]
    assert not engine.pods


def test_a_pod_that_is_drained_is_replaced_while_it_terminates():
    class DrainNode(Component):
        def attach(self, world):
            self.world = world

        def begin(self):
            return [WakeAt(100 * SECOND_US, ())]

        def wake(self, key):
            facts = replace(self.world.nodes["n0"], unschedulable=True)
            evictions = [EndPod(life.uid, Ending.EVICTED) for life in self.world.pods_on("n0")]
            return [PutNode(facts), *evictions]

    web = controller("ReplicaSet", 8, template("web"))
    plan = CompiledScenario(
        "test",
        tuple(node(f"n{index}") for index in range(4)),
        300 * SECOND_US,
        300 * SECOND_US,
        0,
        TIMINGS,
        Limits(10**6, 10**7, 1 << 32),
        controllers=(web,),
    )
    records = Records()

    engine = build_engine(plan, Variant(), records, None, [*components_of(plan, 0), DrainNode()])
    engine.run()

    assert [each[0] for each in records.ended] == [130, 130]
    assert [each[0] for each in records.binds[8:]] == [100, 100]
    assert "n0" not in {life.node for life in engine.pods.values()}


def test_bare_pods_are_left_alone():
    class OnePod:
        index, name = 0, "bare"

        def expected(self, horizon_us):
            return 1.0, 1.0

        def arrivals(self, seed):
            yield Arrival(0, 0, (("bare", template("bare").facts),), 10 * SECOND_US, LIFE)

    web = controller("ReplicaSet", 2, template("web"))

    engine, records = run(web, sources=(OnePod(),))

    assert ("bare", "done") in [each[1:] for each in records.ended]
    assert len(engine.pods) == 2


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_the_same_scenario_gives_the_same_history(kind):
    class Varied:
        def draws(self, seed, stream):
            number = seed + stream
            while True:
                number = (number * 1_103_515_245 + 12_345) % 2**31
                yield number % (200 * SECOND_US)

    plan = controller(
        kind,
        10,
        template("web-a"),
        template("web-b"),
        durations=Varied(),
        changes=(rolled_out(100, 1), scaled(150, 14), scaled(300, 5)),
    )

    first, second = run(plan), run(plan)

    assert first[1].binds == second[1].binds
    assert first[1].ended == second[1].ended
    assert len(first[1].ended) > 20
