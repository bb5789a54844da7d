"""Sampling and extenders in whole cycles: batches decide like single pods in turn."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.extender_preemption import call_extenders
from roadstead.cycle.node_search import NodeSearch
from roadstead.extenders.extender import Extender
from roadstead.extenders.sequence import Extenders
from roadstead.facts.pod import PodIdentity
from roadstead.framework.plugin import PreFilterPlugin, PreFilterResult, Reads
from roadstead.framework.victims import Candidate, DryRunResult, Victim
from roadstead.local.decision_paths import BatchPath, PathOptions, PlainPath
from roadstead.nodes.table import NodeTable
from roadstead.protocol.status import Code
from tests.actors import fleets
from tests.actors.world import identity
from tests.builders import named, node, pod, profile_of
from tests.extenders.servers import config_of
from tests.local.test_paths import contents, decide, filled, prepared, profiles_of
from tests.strategies import ZONE


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
    """The same fleet, decided pod by pod and in batches, each with a node_search of its own."""

    def __init__(self, inputs, narrower_of, profiles_of=profiles_of):
        self.plain = filled(PlainPath(profiles_of, PathOptions(node_search=narrower_of())), inputs)
        self.beside = filled(BatchPath(profiles_of, PathOptions(node_search=narrower_of())), inputs)

    def decide_alone(self, facts):
        return list(map(contents, decide(self.plain, facts)))

    def decide_together(self, facts, batch=7):
        return list(map(contents, decide(self.beside, facts, batch)))

    def explained(self, facts):
        """Yield both explanations of a pod that is not placed."""
        for path in (self.plain, self.beside):
            yield path.explain(prepared(path, [facts])[0])


@pytest.fixture
def few_are_enough(monkeypatch):
    """Set samples of two nodes, so that small fleets are sampled."""
    monkeypatch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)


def shares(percent):
    return {"default-scheduler": percent}


@given(fleets.inputs(), st.sampled_from([0, 1, 40]), st.integers(0, 3))
def test_batches_are_sampled_like_single_pods_in_turn(inputs, percent, mood):
    def node_search():
        extenders = moody(mood, fails=mood == 2) if mood else None
        return NodeSearch(shares(percent) if mood != 3 else {}, extenders)

    facts = [each for _, each in inputs.pending]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)
        world = World(inputs, node_search)
        assert world.decide_together(facts) == world.decide_alone(facts)


def fleet(count):
    nodes = [node(f"n{index}", cpu=4000, pods=10) for index in range(count)]
    return fleets.inputs_of(nodes, [])


def test_searches_rotate_over_the_nodes(few_are_enough):
    world = World(fleet(6), lambda: NodeSearch(shares(1)))

    decided = world.decide_alone([pod(cpu=100)] * 4)

    assert [each[1] for each in decided] == ["n0", "n2", "n4", "n1"]
    assert [each[2] for each in decided] == [2] * 4
    assert world.decide_together([pod(cpu=100)] * 4) == decided


def test_a_pod_that_names_its_nodes_is_sampled_among_them_only(few_are_enough):
    world = World(fleet(6), lambda: NodeSearch(shares(1)))
    facts = [pod(cpu=100, required_node_terms=(named("n1", "n4", "n5"),))] * 3

    decided = world.decide_alone(facts)

    assert [each[1] for each in decided] == ["n1", "n5", "n4"]
    assert [each[2] for each in decided] == [2] * 3
    assert world.decide_together(facts) == decided


def test_a_sampled_pod_is_a_batch_of_its_own():
    managed = config_of(node_cache_capable=True, filter_verb="filter", managed=("x/gpu",))
    chain = Extenders([Extender(managed, Moody(1))])
    path = World(fleet(4), lambda: NodeSearch({}, chain)).beside
    plain, special = pod(cpu=100), pod(cpu=100, others={"x/gpu": 0})
    pods = prepared(path, [plain, plain, special, plain])

    counts = []
    while pods:
        counts.append(len(path.decide(pods)))
        pods = pods[counts[-1] :]

    assert counts == [2, 1, 1]


def test_an_extender_that_leaves_no_node_is_named():
    class Refuses:
        def call(self, verb, payload):
            return {"NodeNames": [], "FailedNodes": {"n0": "no room", "n1": "no room"}}

    config = config_of(node_cache_capable=True, filter_verb="filter")
    world = World(fleet(3), lambda: NodeSearch({}, Extenders([Extender(config, Refuses())])))

    ((_, chosen, _, _, _, _, why, error),) = world.decide_alone([pod(cpu=100)])

    assert (chosen, error) == (None, "")
    assert why == ("0/3 nodes are available: 2 no room.", ("Extender",))
    assert world.decide_together([pod(cpu=100)])[0][6] == why


@pytest.mark.parametrize(("left", "plugins"), [((), ("Extender",)), (("n0", "n1", "n2"), ())])
def test_an_explanation_names_the_extender_that_leaves_nodes_out(left, plugins):
    class Leaves:
        def call(self, verb, payload):
            return {"NodeNames": [name for name in payload["NodeNames"] if name in left]}

    config = config_of(node_cache_capable=True, filter_verb="filter")
    world = World(fleet(3), lambda: NodeSearch({}, Extenders([Extender(config, Leaves())])))

    for explained in world.explained(pod(cpu=100)):
        assert explained.diagnosis.plugins == plugins


def test_a_failing_extender_fails_the_cycle():
    class Fails:
        def call(self, verb, payload):
            return {"Error": "no licence"}

    config = config_of(node_cache_capable=True, filter_verb="filter")
    world = World(fleet(3), lambda: NodeSearch({}, Extenders([Extender(config, Fails())])))

    assert world.decide_alone([pod(cpu=100)])[0][-1] == "no licence"
    assert world.decide_together([pod(cpu=100)])[0][-1] == "no licence"
    for explained in world.explained(pod(cpu=100)):
        assert explained.as_recorded()["cycleError"] == "no licence"


def test_extenders_scores_decide_and_are_explained():
    class Prefers:
        def call(self, verb, payload):
            return [{"Host": "n2", "Score": 10}]

    config = config_of(node_cache_capable=True, prioritize_verb="rate", weight=100)
    world = World(fleet(3), lambda: NodeSearch({}, Extenders([Extender(config, Prefers())])))

    (decided,) = world.decide_together([pod(cpu=100)])

    assert decided[1] == "n2"
    assert decided[3] > 10_000
    for explained in world.explained(pod(cpu=100)):
        explanation = explained.as_recorded()
        line = explanation["scores"][-1]
        assert explanation["best"] == ["n2"]
        assert (line["plugin"], line["raw"]) == ("Extender", [0, 0, 10_000])


def filters_alone(classes):
    points = {"filter": ["NodeResourcesFit"], "preFilter": ["NodeResourcesFit"]}
    return {"default-scheduler": profile_of(points, classes=classes)}


def test_without_scores_each_node_has_a_total_of_one():
    """Upstream: prioritizeNodes."""
    world = World(fleet(3), lambda: NodeSearch({}), filters_alone)

    (decided,) = world.decide_alone([pod(cpu=100)])

    assert decided[3] == 1
    assert world.decide_together([pod(cpu=100)])[0][3] == 1
    for explained in world.explained(pod(cpu=100)):
        explanation = explained.as_recorded()
        assert (explanation["total"], explanation["bestTotal"], explanation["scores"]) == (
            [1, 1, 1],
            1,
            [],
        )


def test_extenders_scores_alone_decide_and_are_explained():
    """Without scoring plugins, totals begin at zero (upstream: prioritizeNodes)."""

    class Prefers:
        def call(self, verb, payload):
            return [{"Host": "n2", "Score": 10}, {"Host": "n1", "Score": 3}]

    config = config_of(node_cache_capable=True, prioritize_verb="rate", weight=1)
    node_search = NodeSearch({}, Extenders([Extender(config, Prefers())]))
    world = World(fleet(3), lambda: node_search, filters_alone)

    (decided,) = world.decide_together([pod(cpu=100)])

    assert (decided[1], decided[3]) == ("n2", 100)
    for explained in world.explained(pod(cpu=100)):
        explanation = explained.as_recorded()
        assert (explanation["best"], explanation["total"]) == (["n2"], [0, 30, 100])
        assert [line["plugin"] for line in explanation["scores"]] == ["Extender"]


def test_negative_scores_choose_too():
    class Dislikes:
        def call(self, verb, payload):
            return [{"Host": name, "Score": -int(name[1:]) - 1} for name in payload["NodeNames"]]

    config = config_of(node_cache_capable=True, prioritize_verb="rate", weight=1000)
    world = World(fleet(3), lambda: NodeSearch({}, Extenders([Extender(config, Dislikes())])))

    assert world.decide_alone([pod(cpu=100)])[0][1] == "n0"
    assert world.decide_together([pod(cpu=100)])[0][1] == "n0"


def test_spread_constraints_are_weighted_by_the_remaining_nodes(few_are_enough):
    """Zones weigh as much as hosts among two nodes; among ten they would weigh less."""
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

    world = World(inputs, lambda: NodeSearch(shares(1)))

    assert [each[1] for each in world.decide_alone([spread])] == ["n1"]
    assert [each[1] for each in world.decide_together([spread])] == ["n1"]


def test_added_and_removed_nodes_are_sampled_in_their_order(few_are_enough):
    world = World(fleet(4), lambda: NodeSearch(shares(1)))
    world.decide_alone([pod(cpu=100)])
    world.decide_together([pod(cpu=100)])

    late = node("late", cpu=4000, pods=10)
    for path in (world.plain, world.beside):
        path.remove_node("n2")
        path.add_nodes([late])

    facts = [pod(cpu=200)] * 3
    assert world.decide_together(facts) == world.decide_alone(facts)


class Chooses:
    """An extender of preemptions whose answer a test computes from the candidates."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def call(self, verb, payload):
        self.asked.append(payload)
        found = self.answer(payload["NodeNameToMetaVictims"])
        return found if "Error" in found else {"NodeNameToMetaVictims": found}


def preempting(answer, **fields):
    """Decide an important pod on a full fleet, alone and in a batch; return PostFilter's result."""
    config = config_of(node_cache_capable=True, preempt_verb="preempt", **fields)
    chain = Extenders([Extender(config, Chooses(answer))])
    world = World(fleet(3), lambda: NodeSearch({}, chain))
    for path in (world.plain, world.beside):
        for index in range(3):
            who = PodIdentity(f"uid-{index}", "default", f"low-{index}")
            path.add_pod(f"n{index}", pod(cpu=3000), who)
    important = pod(cpu=3000, priority=10)
    (alone,) = decide(world.plain, [important])
    (together,) = decide(world.beside, [important])
    assert together.post_filter == alone.post_filter
    return alone.post_filter


def test_an_extender_chooses_the_node_of_a_preempting_pod():
    outcome = preempting(lambda found: {"n2": found["n2"]})

    assert (outcome.status.code, outcome.nominated_node) == (Code.SUCCESS, "n2")
    assert [each.node_name for each in outcome.candidates] == ["n2"]
    assert [victim.uid for victim in outcome.candidates[0].victims] == ["uid-2"]


def test_an_extender_that_refuses_all_candidates_leaves_none():
    outcome = preempting(lambda found: {})

    assert outcome.status.code is Code.UNSCHEDULABLE
    assert outcome.status.message.endswith("preemption: no candidate node for preemption")


def test_a_failing_extender_ends_the_preemption_unless_it_is_ignorable():
    outcome = preempting(lambda found: {"n0": {"Pods": []}})
    ignored = preempting(lambda found: {"n9": found["n0"]}, ignorable=True)

    assert outcome.status.code is Code.ERROR
    assert outcome.status.reasons == ('preemption: expected at least one victim pod on node "n0"',)
    assert (ignored.status.code, ignored.nominated_node) == (Code.SUCCESS, "n0")


def test_an_extender_without_the_verb_is_not_called_for_a_preemption():
    config = config_of(node_cache_capable=True)
    tried = DryRunResult((Candidate("n0", (Victim("u", "ns/p", 0),)),))
    asked = PodInCycle("u", "ns/q", NodeTable().classes.pod_class(pod(cpu=1)), "s")

    assert call_extenders(Extenders([Extender(config, Moody(0))]), asked, tried) is tried
    assert call_extenders(None, asked, tried) is tried


class NamesN1(PreFilterPlugin):
    """A plugin whose PreFilter names only n1."""

    name = "NamesN1"
    reads = Reads.NODE

    def pre_filter(self, state, pod, table):
        return PreFilterResult(node_names=frozenset({"n1"}))

    def sign(self, pod):
        return ""


class OutOfOrder:
    def call(self, verb, payload):
        return {"Error": "out of order"}


@pytest.mark.parametrize("kind", [PlainPath, BatchPath])
def test_a_nominated_node_on_which_an_extender_fails_is_not_among_the_named(kind):
    fit = "NodeResourcesFit"
    points = {"preFilter": [fit, "NamesN1"], "filter": [fit]}
    chain = Extenders([Extender(config_of(node_cache_capable=True, filter_verb="f"), OutOfOrder())])

    def profiles(classes):
        return {"default-scheduler": profile_of(points, plugins=[NamesN1], classes=classes)}

    path = kind(profiles, PathOptions(node_search=NodeSearch({}, chain)))
    path.add_nodes(node(name, cpu=1000) for name in ("n1", "n2", "n3"))
    path.add_pod("n1", pod(cpu=600))

    (decision,) = path.decide(prepared(path, [pod(cpu=600, nominated_node_name="n2")]))

    assert (decision.node_name, decision.error) == (None, "")
    assert decision.diagnosis.reasons() == {
        "Insufficient cpu": 1,
        "node(s) didn't satisfy plugin(s) [NamesN1]": 2,
    }
