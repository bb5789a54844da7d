"""Sampling and extenders in whole cycles: any sharding gives the decisions of one table."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.local import LocalShards
from roadstead.cycle.narrowing import Narrower
from roadstead.cycle.plain import PlainCycle
from roadstead.cycle.preempting_outside import ask_extenders
from roadstead.extenders.chain import Extenders
from roadstead.extenders.extender import Extender
from roadstead.facts.pod import PodIdentity
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.framework.victims import Candidate, Tried, Victim
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.status import Code
from tests.actors import fleets
from tests.actors.world import identity
from tests.builders import named, node, pod
from tests.cycle.test_local import told
from tests.extenders.servers import config_of
from tests.strategies import ZONE

FIRST = TieBreak("first")


def profiles_of(classes):
    return {
        each.scheduler_name: Profile(each, in_tree_registry(), Handle(classes))
        for each in default_config().profiles
    }


def draw(*parts):
    return hashlib.blake2b("/".join(parts).encode(), digest_size=2).digest()[0]


class Moody:
    """An extender that answers by a hash of pod and node, with every kind of refusal."""

    def __init__(self, seed, fails=False):
        self.seed, self.fails = str(seed), fails

    def call(self, verb, payload):
        name = payload["Pod"]["metadata"]["name"]
        nodes = payload["NodeNames"]
        drawn = {each: draw(self.seed, name, each) for each in nodes}
        if verb == "prioritize":
            return [{"Host": each, "Score": drawn[each] % 11} for each in nodes]
        if self.fails and draw(self.seed, name) % 3 == 0:
            return {"Error": f"not today, {name}"}
        return {
            "NodeNames": [each for each in nodes if drawn[each] % 5 < 3],
            "FailedNodes": {each: "moody" for each in nodes if drawn[each] % 5 == 3},
            "FailedAndUnresolvableNodes": {
                each: "never" for each in [*nodes, "ghost"] if drawn.get(each, 9) % 10 == 9
            },
        }


def moody(seed, **fields):
    verbs = {"filter_verb": "filter", "prioritize_verb": "prioritize", "weight": 2}
    config = config_of(node_cache_capable=True, **verbs)
    return Extenders([Extender(config, Moody(seed, **fields))])


class World:
    """The same fleet on one table and over shards, each with a narrower of its own."""

    def __init__(self, inputs, shards, narrower_of):
        table = NodeTable()
        self.plain_profiles = profiles_of(table.classes)
        self.plain = PlainCycle(
            table, self.plain_profiles, FIRST, name_best=True, narrower=narrower_of()
        )
        self.local = LocalShards(shards, profiles_of, FIRST, name_best=True, narrower=narrower_of())
        for facts in inputs.nodes:
            table.add_node(facts)
        self.local.add_nodes(inputs.nodes)
        for _, facts, name in inputs.running:
            table.add_pod(name, table.classes.info(facts))
            self.local.add_pod(name, facts)

    def alone(self, number, facts):
        return _in_cycle(number, facts, self.plain.table.classes, self.plain_profiles)

    def together(self, number, facts):
        return _in_cycle(number, facts, self.local.cycle.classes, self.local.profiles)

    def decide_alone(self, facts):
        return [told(self.plain.decide(self.alone(*each))) for each in enumerate(facts)]

    def decide_together(self, facts, batch=7):
        waiting = [self.together(*each) for each in enumerate(facts)]
        decisions = []
        while waiting:
            decided = self.local.decide(waiting[:batch])
            decisions += map(told, decided)
            waiting = waiting[len(decided) :]
        return decisions


def _in_cycle(number, facts, classes, profiles):
    info = classes.info(facts)
    uid = f"u{number}"
    signature = profiles[facts.scheduler_name].class_of(info, uid)
    return PodInCycle(uid, f"default/p{number}", info, signature)


@pytest.fixture
def few_are_enough(monkeypatch):
    """Samples of two nodes, so that small fleets are sampled."""
    monkeypatch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)


def shares(percent):
    return {"default-scheduler": percent}


@given(fleets.inputs(), st.integers(1, 5), st.sampled_from([0, 1, 40]), st.integers(0, 3))
def test_any_sharding_narrows_as_one_table_does(inputs, shards, percent, mood):
    def narrower():
        extenders = moody(mood, fails=mood == 2) if mood else None
        return Narrower(shares(percent) if mood != 3 else {}, extenders)

    facts = [each for _, each in inputs.pending]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)
        world = World(inputs, shards, narrower)
        assert world.decide_together(facts) == world.decide_alone(facts)


@given(fleets.inputs(), st.integers(1, 4), st.integers(0, 2))
def test_a_narrowed_pod_is_explained_alike_everywhere(inputs, shards, mood):
    def narrower():
        return Narrower(shares(1), moody(mood) if mood else None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)
        world = World(inputs, shards, narrower)
        for number, (_, facts) in enumerate(inputs.pending[:3]):
            alone = world.plain.explain(world.alone(number, facts))
            together = world.local.explain(world.together(number, facts))
            assert together.as_expected() == alone.as_expected()


def fleet(count):
    nodes = [node(f"n{index}", cpu=4000, pods=10) for index in range(count)]
    return fleets.inputs_of(nodes, [])


def test_searches_go_round_the_nodes(few_are_enough):
    world = World(fleet(6), 2, lambda: Narrower(shares(1)))

    decided = world.decide_alone([pod(cpu=100)] * 4)

    assert [each[1] for each in decided] == ["n0", "n2", "n4", "n1"]
    assert [each[2] for each in decided] == [2] * 4
    assert world.decide_together([pod(cpu=100)] * 4) == decided


def test_a_pod_that_names_its_nodes_is_sampled_among_them_alone(few_are_enough):
    world = World(fleet(6), 2, lambda: Narrower(shares(1)))
    facts = [pod(cpu=100, required_node_terms=(named("n1", "n4", "n5"),))] * 3

    decided = world.decide_alone(facts)

    assert [each[1] for each in decided] == ["n1", "n5", "n4"]
    assert [each[2] for each in decided] == [2] * 3
    assert world.decide_together(facts) == decided


def test_a_pod_that_is_narrowed_is_a_batch_of_its_own():
    chain = moody(1)
    managed = config_of(node_cache_capable=True, filter_verb="filter", managed=("x/gpu",))
    chain = Extenders([Extender(managed, Moody(1))])
    world = World(fleet(4), 2, lambda: Narrower({}, chain))
    plain, special = pod(cpu=100), pod(cpu=100, others={"x/gpu": 0})
    pods = [world.together(n, each) for n, each in enumerate([plain, plain, special, plain])]

    together = world.local.cycle.together

    assert len(together(pods)) == 2
    assert len(together(pods[2:])) == 1
    assert len(together(pods[3:])) == 1


def test_an_extender_is_named_where_it_leaves_no_node():
    class Refuses:
        def call(self, verb, payload):
            return {"NodeNames": [], "FailedNodes": {"n0": "no room", "n1": "no room"}}

    config = config_of(node_cache_capable=True, filter_verb="filter")
    world = World(fleet(3), 2, lambda: Narrower({}, Extenders([Extender(config, Refuses())])))

    ((_, chosen, _, _, _, _, why, error),) = world.decide_alone([pod(cpu=100)])

    assert (chosen, error) == (None, "")
    assert why == ("0/3 nodes are available: 2 no room.", ("Extender",))
    assert world.decide_together([pod(cpu=100)])[0][6] == why


@pytest.mark.parametrize(("left", "told"), [((), ("Extender",)), (("n0", "n1", "n2"), ())])
def test_an_explanation_names_the_extender_where_it_leaves_nodes_out(left, told):
    class Leaves:
        def call(self, verb, payload):
            return {"NodeNames": [name for name in payload["NodeNames"] if name in left]}

    config = config_of(node_cache_capable=True, filter_verb="filter")
    world = World(fleet(3), 2, lambda: Narrower({}, Extenders([Extender(config, Leaves())])))

    for explained in (
        world.plain.explain(world.alone(0, pod(cpu=100))),
        world.local.explain(world.together(0, pod(cpu=100))),
    ):
        assert explained.diagnosis.plugins == told


def test_an_extender_that_fails_fails_the_cycle():
    class Fails:
        def call(self, verb, payload):
            return {"Error": "no licence"}

    config = config_of(node_cache_capable=True, filter_verb="filter")
    world = World(fleet(3), 2, lambda: Narrower({}, Extenders([Extender(config, Fails())])))

    assert world.decide_alone([pod(cpu=100)])[0][-1] == "no licence"
    assert world.decide_together([pod(cpu=100)])[0][-1] == "no licence"
    explained = world.plain.explain(world.alone(0, pod(cpu=100))).as_expected()
    assert explained["cycleError"] == "no licence"


def test_extenders_scores_decide_and_are_explained():
    class Prefers:
        def call(self, verb, payload):
            return [{"Host": "n2", "Score": 10}]

    config = config_of(node_cache_capable=True, prioritize_verb="rate", weight=100)
    world = World(fleet(3), 3, lambda: Narrower({}, Extenders([Extender(config, Prefers())])))

    (decided,) = world.decide_together([pod(cpu=100)])

    assert decided[1] == "n2"
    assert decided[3] > 10_000
    explained = world.local.explain(world.together(1, pod(cpu=100))).as_expected()
    assert explained["best"] == ["n2"]
    line = explained["scores"][-1]
    assert (line["plugin"], line["raw"]) == ("Extender", [0, 0, 10_000])


def test_scores_below_nothing_choose_too():
    class Dislikes:
        def call(self, verb, payload):
            return [{"Host": name, "Score": -int(name[1:]) - 1} for name in payload["NodeNames"]]

    config = config_of(node_cache_capable=True, prioritize_verb="rate", weight=1000)
    world = World(fleet(3), 3, lambda: Narrower({}, Extenders([Extender(config, Dislikes())])))

    assert world.decide_alone([pod(cpu=100)])[0][1] == "n0"
    assert world.decide_together([pod(cpu=100)])[0][1] == "n0"


def test_what_spreads_over_nodes_is_weighed_by_those_that_are_left(few_are_enough):
    """Of two nodes, zones weigh as much as hosts; of ten they would weigh less."""
    web = fleets.apps("web")
    soft = [
        fleets.spread(key, when="ScheduleAnyway", selector=web) for key in (ZONE, fleets.HOSTNAME)
    ]
    spread = pod(labels={"app": "web"}, spread_constraints=tuple(soft))
    nodes = [fleets.host(n, "ab"[n % 2], cpu=64_000, pods=110) for n in range(10)]
    there = [("n2", 5), ("n1", 2)]
    running = [
        (identity(f"{name}-{n}"), pod(labels={"app": "web"}), name)
        for name, count in there
        for n in range(count)
    ]
    inputs = fleets.inputs_of(nodes, [], running)

    world = World(inputs, 2, lambda: Narrower(shares(1)))

    assert [each[1] for each in world.decide_alone([spread])] == ["n1"]
    assert [each[1] for each in world.decide_together([spread])] == ["n1"]


def test_nodes_that_come_and_go_are_sampled_in_their_order(few_are_enough):
    world = World(fleet(4), 2, lambda: Narrower(shares(1)))
    world.decide_alone([pod(cpu=100)])
    world.decide_together([pod(cpu=100)])

    late = node("late", cpu=4000, pods=10)
    world.plain.table.remove_node("n2")
    world.plain.table.add_node(late)
    world.local.remove_node("n2")
    world.local.add_nodes([late])

    facts = [pod(cpu=200)] * 3
    assert world.decide_together(facts) == world.decide_alone(facts)


class Chooses:
    """An extender of preemptions that answers with what a test says of the candidates."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def call(self, verb, payload):
        self.asked.append(payload)
        found = self.answer(payload["NodeNameToMetaVictims"])
        return found if "Error" in found else {"NodeNameToMetaVictims": found}


def preempting(answer, shards=2, **fields):
    """One important pod on a full fleet, alone and together; what PostFilter said of it."""
    config = config_of(node_cache_capable=True, preempt_verb="preempt", **fields)
    chain = Extenders([Extender(config, Chooses(answer))])
    world = World(fleet(3), shards, lambda: Narrower({}, chain))
    for index in range(3):
        facts = pod(cpu=3000)
        uid, key = f"uid-{index}", f"default/low-{index}"
        world.plain.table.add_pod(
            f"n{index}", world.plain.table.classes.info(facts), uid=uid, key=key
        )
        world.local.add_pod(f"n{index}", facts, PodIdentity(uid, "default", f"low-{index}"))
    important = pod(cpu=3000, priority=10)
    alone = world.plain.decide(world.alone(0, important))
    (together,) = world.local.decide([world.together(0, important)])
    assert together.post_filter == alone.post_filter
    return alone.post_filter


def test_an_extender_chooses_where_a_pod_preempts():
    told = preempting(lambda found: {"n2": found["n2"]})

    assert (told.status.code, told.nominated_node) == (Code.SUCCESS, "n2")
    assert [each.node_name for each in told.candidates] == ["n2"]
    assert [victim.uid for victim in told.candidates[0].victims] == ["uid-2"]


def test_an_extender_that_refuses_all_candidates_leaves_none():
    told = preempting(lambda found: {})

    assert told.status.code is Code.UNSCHEDULABLE
    assert told.status.message.endswith("preemption: no candidate node for preemption")


def test_an_extender_that_fails_ends_the_preemption_unless_it_may_be_ignored():
    told = preempting(lambda found: {"n0": {"Pods": []}})
    ignored = preempting(lambda found: {"n9": found["n0"]}, ignorable=True)

    assert told.status.code is Code.ERROR
    assert told.status.reasons == ('preemption: expected at least one victim pod on node "n0"',)
    assert (ignored.status.code, ignored.nominated_node) == (Code.SUCCESS, "n0")


def test_an_extender_without_the_verb_is_not_asked_about_a_preemption():
    config = config_of(node_cache_capable=True)
    tried = Tried((Candidate("n0", (Victim("u", "ns/p", 0),)),))
    asked = PodInCycle("u", "ns/q", NodeTable().classes.info(pod(cpu=1)), "s")

    assert ask_extenders(Extenders([Extender(config, Moody(0))]), asked, tried) is tried
    assert ask_extenders(None, asked, tried) is tried
