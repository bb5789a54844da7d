from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.binder.verification import Verifier
from roadstead.config.model import default_config
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodClaim
from roadstead.framework.plugin import (
    FilterPlugin,
    FilterResult,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
)
from roadstead.framework.profile import Profile
from roadstead.framework.registry import extension_points
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.status import SUCCESS, Code, Status, error, unschedulable
from roadstead.storage import AssumedClaims
from tests import faulty_plugins
from tests.actors import fleets
from tests.builders import evaluated, named, node, pod, profile_of, put, table_of, taint
from tests.devices.fleet import devices as fleet_devices
from tests.devices.fleet import owned, with_template
from tests.strategies import clusters, nodes, pods

WEB = fleets.apps("web")
PROFILES = default_config().profiles


def profiles_for(table):
    handle = Handle(table.classes)
    return {each.scheduler_name: Profile(each, in_tree_registry(), handle) for each in PROFILES}


class World:
    """A binder's table and the verifier over it."""

    def __init__(self, *nodes, profiles=None):
        self.table = table_of(*(nodes or (node("n1"), node("n2"))))
        profiles = profiles or profiles_for(self.table)
        self.profile = profiles["default-scheduler"]
        self.verifier = Verifier(self.table, profiles)

    def put(self, name, *facts):
        put(self.table, name, *facts)
        return self

    def verify(self, facts, name="n1"):
        return self.verifier.verify(facts, name)

    def pre_filter_calls(self):
        """Return a list to which each later call of the first PreFilter plugin adds its pod."""
        plugin, pods = self.profile.pre_filter[0], []
        original = plugin.pre_filter

        def pre_filter(state, pod_class, table):
            pods.append(pod_class)
            return original(state, pod_class, table)

        plugin.pre_filter = pre_filter
        return pods


def scripted(*results):
    """A profile of PreFilter plugins P0, P1 … with these results."""
    plugins = [
        type(f"P{index}", (Scripted,), {"name": f"P{index}", "result": result})
        for index, result in enumerate(results)
    ]
    points = {"preFilter": [plugin.name for plugin in plugins]}
    return {"default-scheduler": profile_of(points, plugins=plugins)}


class Scripted(PreFilterPlugin):
    result = PreFilterResult(SUCCESS)

    def pre_filter(self, state, pod, table):
        return self.result

    def sign(self, pod):
        return ""


FAILING = {
    "RaisesAtPreFilterForSome": 'running PreFilter plugin "{}": RuntimeError: the oracle is silent',
    "FailsToCountForSome": 'running PreFilter plugin "{}": RuntimeError: the oracle is silent',
    "RaisesAtFilterForSome": 'running "{}" filter plugin: RuntimeError: the oracle is silent',
    "FiltersNoneForSome": 'running "{}" filter plugin: returned None, want a FilterResult',
}


@pytest.mark.parametrize("plugin", FAILING)
def test_a_failing_users_plugin_refuses_its_own_pods_only(plugin):
    kind = getattr(faulty_plugins, plugin)
    points = {point: [plugin] for point in extension_points(kind)}
    profile = profile_of(points, plugins=[kind])
    world = World(profiles={"default-scheduler": profile})

    for _ in range(4):
        assert world.verify(pod(cpu=200)) == SUCCESS
        refusal = world.verify(pod(cpu=100))
        assert (refusal.code, refusal.plugin) == (Code.ERROR, plugin)
        assert refusal.message.startswith(FAILING[plugin].format(plugin))
    assert not world.verifier.verify_prefix([pod(cpu=100)] * 4, ["n1"] * 4)


def test_a_plugin_that_failed_once_is_called_again():
    class FailsOnce(Scripted):
        name = "FailsOnce"

        def pre_filter(self, state, pod, table):
            found, self.result = self.result, PreFilterResult(SUCCESS)
            return found

    FailsOnce.result = PreFilterResult(error("not now"))
    profile = profile_of({"preFilter": ["FailsOnce"]}, plugins=[FailsOnce])
    world = World(profiles={"default-scheduler": profile})

    assert world.verify(pod()).code is Code.ERROR
    assert world.verify(pod()) == SUCCESS


def narrows(*names):
    return PreFilterResult(SUCCESS, frozenset(names))


def test_a_pod_that_fits_passes():
    assert World().verify(pod(cpu=4000)) == SUCCESS


def test_binds_committed_meanwhile_count():
    world = World().put("n1", pod(cpu=3000))

    refusal = world.verify(pod(cpu=2000))

    assert refusal == Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit")
    assert world.verify(pod(cpu=2000), "n2") == SUCCESS


def test_the_first_refusing_plugin_is_reported():
    world = World(node("n1", cpu=100, unschedulable=True, taints=(taint("gpu"),)))

    assert world.verify(pod(cpu=2000)).plugin == "NodeUnschedulable"


def test_a_refusal_ends_with_its_cause():
    world = World().put("n1", pod(cpu=3000))
    assert not world.verify(pod(cpu=2000)).is_success

    world.table.remove_pod("n1", world.table.classes.pod_class(pod(cpu=3000)))

    assert world.verify(pod(cpu=2000)) == SUCCESS


def test_a_changed_node_is_seen_in_its_present_state():
    world = World()
    assert world.verify(pod(cpu=2000)) == SUCCESS

    world.table.update_node(node("n1", cpu=1000))

    assert world.verify(pod(cpu=2000)).reasons == ("Insufficient cpu",)


def test_counts_across_nodes_are_the_present_ones():
    alone = pod(labels={"app": "web"}, pod_anti_affinity=(fleets.near(WEB),))
    world = World(*(fleets.host(number, "ab"[number // 2]) for number in range(4)))
    assert world.verify(alone, "n0") == SUCCESS

    world.put("n1", alone)

    assert world.verify(alone, "n0").plugin == "InterPodAffinity"
    assert world.verify(alone, "n2") == SUCCESS


def test_a_new_domain_counts_at_once():
    even = pod(labels={"app": "web"}, spread_constraints=(fleets.spread(selector=WEB),))
    world = World(fleets.host(0, "a")).put("n0", even)
    assert world.verify(even, "n0") == SUCCESS

    world.table.add_node(fleets.host(1, "b"))

    assert world.verify(even, "n0").plugin == "PodTopologySpread"
    assert world.verify(even, "n1") == SUCCESS


def test_a_node_excluded_by_plugins_is_refused():
    world = World(profiles=scripted(narrows("n1", "n2"), narrows("n2", "n3")))

    assert world.verify(pod(), "n1").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert world.verify(pod(), "n2") == SUCCESS


def test_plugins_that_exclude_all_nodes_refuse_every_node():
    world = World(profiles=scripted(narrows("n1"), narrows("n2")))

    for name in ("n1", "n2"):
        refusal = world.verify(pod(), name)
        text = "node(s) didn't satisfy plugin(s) [P0 P1] simultaneously"
        assert refusal.reasons == (text,)


def test_a_pod_that_names_its_nodes_is_bound_to_no_other():
    facts = pod(required_node_terms=(named("n2"),))
    world = World()

    assert not world.verify(facts, "n1").is_success
    assert world.verify(facts, "n2") == SUCCESS


def test_a_refusing_pre_filter_is_named():
    world = World(profiles=scripted(PreFilterResult(unschedulable("not today"))))

    assert world.verify(pod()) == Status(Code.UNSCHEDULABLE, ("not today",), "P0")


def test_a_plugin_that_skips_does_not_filter():
    calls = []
    world = World()
    ports = next(plugin for plugin in world.profile.filter if plugin.name == "NodePorts")
    ports.filter = lambda *_: calls.append(1)

    assert world.verify(pod()) == SUCCESS
    assert calls == []


def test_the_pod_being_verified_is_not_counted():
    world = World()

    for _ in range(3):
        assert world.verify(pod(cpu=4000)) == SUCCESS

    assert world.table.row_facts("n1")["pod_count"] == 0


def test_a_claim_that_is_not_there_is_refused():
    status = World().verify(pod(device_claims=(PodClaim("gpu", claim_name="gpu"),)))
    assert status.reasons == ('could not find ResourceClaim "default/gpu"',)


def test_pods_of_one_template_are_verified_by_one_class():
    names = [f"p{number}" for number in range(9)]
    table = table_of(node("n1"))
    facts = ClusterFacts(devices=fleet_devices(*(owned(f"c-{name}", name) for name in names)))
    handle = Handle(table.classes, facts)
    profile = Profile(PROFILES[0], in_tree_registry(), handle)
    verifier = Verifier(table, {profile.scheduler_name: profile})
    prepared = []
    pre_filter = profile.pre_filter[0].pre_filter
    profile.pre_filter[0].pre_filter = lambda *args: prepared.append(1) or pre_filter(*args)
    claims, asked = AssumedClaims(handle.storage), [with_template(e, f"c-{e}") for e in names]

    for name, each in zip(names[:2], asked[:2], strict=True):
        assert [verifier.verify(asked[-1], "n1") for _ in range(3)] == [SUCCESS] * 3
        assert claims.assume(name, each, node("n1")) is not None

    refused = verifier.verify(asked[2], "n1")
    assert refused.reasons == ("cannot allocate all claims",), "two devices are in use"
    claims.forget("p0")
    assert verifier.verify(asked[2], "n1") == SUCCESS
    assert len(prepared) < 8, "PreFilter does not run for each pod"
    in_flight = verifier.verify(asked[1], "n1")
    assert "default/c-p1 is in the process of being allocated" in in_flight.reasons[0]


def test_unknown_nodes_and_profiles_are_not_refusals():
    with pytest.raises(KeyError):
        World().verify(pod(), "n9")
    with pytest.raises(KeyError):
        World().verify(pod(scheduler_name="theirs"))


waiting = st.one_of(pods, fleets.meeting_pods)
fleet = clusters.filter(bool)


@given(fleet, st.lists(waiting, min_size=1, max_size=3), st.data())
def test_a_node_passes_exactly_if_a_full_evaluation_finds_it_feasible(cluster, asked, data):
    table = NodeTable()
    for facts, on_node in cluster:
        table.add_node(facts)
        put(table, facts.name, *on_node)
    profiles = profiles_for(table)
    verifier = Verifier(table, profiles)
    for facts in asked * 2:
        evaluation = evaluated(profiles["default-scheduler"], replace(facts, priority=0), table)
        passed = evaluation.pre_filter.status.is_success
        for row, name in enumerate(table.names):
            status = verifier.verify(replace(facts, priority=0), name)
            assert status.is_success == (passed and bool(evaluation.feasible[row]))
        put(table, data.draw(st.sampled_from(table.names)), facts)


@given(fleet, st.lists(waiting, min_size=2, max_size=3), st.data())
def test_cached_results_of_a_class_equal_new_ones(cluster, asked, data):
    table = NodeTable()
    for facts, on_node in cluster:
        table.add_node(facts)
        put(table, facts.name, *on_node)
    profiles = profiles_for(table)
    verifier, there = Verifier(table, profiles), []
    for _ in range(data.draw(st.integers(2, 12))):
        facts = data.draw(st.sampled_from(asked))
        for name in table.names:
            assert verifier.verify(facts, name) == Verifier(table, profiles).verify(facts, name)
        if there and data.draw(st.booleans()):
            name, gone = there.pop(data.draw(st.integers(0, len(there) - 1)))
            table.remove_pod(name, table.classes.pod_class(gone))
        elif data.draw(st.booleans()):
            name, comes = data.draw(st.sampled_from(table.names)), data.draw(waiting)
            put(table, name, comes)
            there.append((name, comes))
        else:
            table.update_node(
                replace(data.draw(nodes()), name=data.draw(st.sampled_from(table.names)))
            )


def test_the_most_recent_of_many_classes_are_kept(monkeypatch):
    monkeypatch.setattr("roadstead.binder.verification.MAX_CACHED", 2)
    world = World()

    calls = world.pre_filter_calls()

    for app, times in (("a", 1), ("b", 2), ("c", 3), ("a", 4), ("c", 4), ("a", 4), ("b", 5)):
        assert world.verify(pod(labels={"app": app})) == SUCCESS
        assert len(calls) == times, f"{app}: only the last two classes are not computed again"


def test_pods_that_differ_in_amounts_alone_share_one_cache_entry():
    world = World()
    calls = world.pre_filter_calls()

    for cpu in (1, 2, 3, 4):
        assert world.verify(pod(cpu=cpu)) == SUCCESS

    assert len(calls) == 1
    assert world.verify(pod(cpu=1_000_000)).reasons == ("Insufficient cpu",)


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, {"unschedulable": True}), ({"unschedulable": True}, {}), ({}, {"cpu": 100})],
)
def test_results_cached_for_all_rows_are_forgotten_when_a_node_changes(before, after):
    world = World(node("n1", **before), node("n2"))
    for name in ("n1", "n2") * 3:
        world.verify(pod(cpu=200), name)

    world.table.update_node(node("n1", **after))

    for _ in range(6):
        assert world.verify(pod(cpu=200)).is_success is (not after)
        assert world.verify(pod(cpu=200), "n2") == SUCCESS


def test_a_pod_is_always_refused_on_nodes_that_plugins_do_not_name():
    of_node = {"name": "P0", "result": narrows("n2"), "reads": Reads.NODE}
    plugin = type("P0", (Scripted,), of_node)
    profile = profile_of({"preFilter": ["P0"]}, plugins=[plugin])
    world = World(profiles={"default-scheduler": profile})

    for _ in range(6):
        assert world.verify(pod(), "n2") == SUCCESS
        assert world.verify(pod(), "n1").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert not world.verifier.verify_prefix([pod()] * 4, ["n1"] * 4)


def test_no_node_is_filtered_for_a_class_that_pre_filter_refuses():
    class Watching(FilterPlugin):
        name = "Watching"
        reads = Reads.NODE
        asked = 0

        def filter(self, state, pod, table):
            Watching.asked += 1
            return FilterResult(None)

        def sign(self, pod):
            return ""

    refusing = type("P0", (Scripted,), {"name": "P0", "result": PreFilterResult(unschedulable())})
    points = {"preFilter": ["P0"], "filter": ["Watching"]}
    profile = profile_of(points, plugins=[refusing, Watching])
    world = World(profiles={"default-scheduler": profile})

    for _ in range(3):
        assert not world.verifier.verify_prefix([pod()] * 8, ["n1", "n2"] * 4)
        assert world.verify(pod()).plugin == "P0"
    assert Watching.asked == 0
