from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.pod import HostPort, PodAffinityTerm
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import PreFilterPlugin, PreFilterResult
from roadstead.framework.victims import DryRun, DryRunResult
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.preemption.dry_run import NO_VICTIMS, dry_run
from roadstead.protocol.status import SUCCESS, unschedulable
from roadstead.run import RunPlan, build_profiles
from tests.builders import node, pod, profile_of, put, require, table_of, taint

ALL = DryRun(1000)
HOSTNAME = "kubernetes.io/hostname"
DB = LabelSelector((require("app", "In", "db"),))


class World:
    """Nodes with pods on them; `tried` is the result of a dry run for a pod."""

    def __init__(self, *nodes, budgets=()):
        self.classes = PodClasses()
        self.table = NodeTable(self.classes)
        profiles = build_profiles(RunPlan(cluster=ClusterFacts(budgets=budgets)), self.classes)
        self.profile = profiles["default-scheduler"]
        for each in nodes:
            self.table.add_node(each)

    def put(self, node_name, name, facts, started_s=None):
        pod_class = self.classes.pod_class(facts)
        self.table.add_pod(node_name, pod_class, uid=f"default/{name}", started_s=started_s)
        return self

    def nominate(self, node_name, facts):
        self.table.nominate(node_name, self.classes.pod_class(facts))
        return self

    def evaluated(self, facts):
        evaluation = Evaluation(self.profile, self.classes.pod_class(facts), self.table)
        evaluation.update(evaluation.run_pre_filter())
        return evaluation

    def tried(self, facts, ask=ALL):
        return dry_run(self.evaluated(facts), ask, self.profile.budgets)

    def victims(self, facts, ask=ALL):
        """Return node → names of victims."""
        return {
            each.node_name: [victim.key.removeprefix("default/") for victim in each.victims]
            for each in self.tried(facts, ask).candidates
        }


def host(name="n1", **facts):
    return node(name, cpu=4000, labels={HOSTNAME: name}, **facts)


def urgent(cpu=2000, **facts):
    return pod(cpu=cpu, priority=10, **facts)


def test_only_necessary_pods_are_victims_and_the_most_important_stay():
    world = World(host())
    for name, priority in (("low", 0), ("middle", 1), ("high", 2)):
        world.put("n1", name, pod(cpu=1300, priority=priority))

    assert world.victims(urgent(1300)) == {"n1": ["low"]}
    assert world.victims(urgent(2600)) == {"n1": ["middle", "low"]}


def test_pods_of_equal_or_higher_priority_are_never_victims():
    world = World(host()).put("n1", "equal", pod(cpu=4000, priority=10))

    assert world.tried(urgent()) == DryRunResult((), 1, ((NO_VICTIMS, 1),))


def test_a_node_that_does_not_fit_without_victims_has_the_reason():
    world = World(host()).put("n1", "equal", pod(cpu=3000, priority=10))
    world.put("n1", "low", pod(cpu=500))

    assert world.tried(urgent()) == DryRunResult((), 1, (("Insufficient cpu", 1),))


def test_nodes_that_preemption_can_not_help_are_not_tried():
    world = World(host(taints=(taint("gpu"),)), host("n2"))
    for name in ("n1", "n2"):
        world.put(name, f"low-{name}", pod(cpu=4000))

    assert world.victims(urgent()) == {"n2": ["low-n2"]}
    assert world.victims(urgent(4001)) == {}


def test_pods_protected_by_a_budget_are_restored_first():
    budget = DisruptionBudget("default", "db", DB, 0)
    world = World(host(), budgets=(budget,))
    world.put("n1", "web", pod(cpu=2000, priority=5))
    world.put("n1", "db", pod(cpu=2000, priority=1, labels={"app": "db"}))

    (found,) = world.tried(urgent()).candidates

    assert ([each.key for each in found.victims], found.violations) == (["default/web"], 0)


def test_victims_are_sorted_by_importance_even_after_budgets_changed_the_order():
    budget = DisruptionBudget("default", "db", DB, 0)
    world = World(host(), budgets=(budget,))
    world.put("n1", "web", pod(cpu=2000, priority=5))
    world.put("n1", "db", pod(cpu=2000, priority=1, labels={"app": "db"}))

    (found,) = world.tried(urgent(4000)).candidates

    assert [each.key for each in found.victims] == ["default/web", "default/db"]
    assert found.violations == 1


def test_host_ports_are_freed_by_the_pod_that_used_them():
    web = HostPort("0.0.0.0", "TCP", 80)
    world = World(host()).put("n1", "holder", pod(cpu=100, host_ports=(web,)))
    world.put("n1", "other", pod(cpu=100))

    assert world.victims(urgent(100, host_ports=(web,))) == {"n1": ["holder"]}


def test_pods_with_conflicting_anti_affinity_are_victims_and_others_stay():
    away = (PodAffinityTerm(HOSTNAME, DB, ("default",), None),)
    world = World(host())
    world.put("n1", "db", pod(cpu=100, labels={"app": "db"}))
    world.put("n1", "web", pod(cpu=100, labels={"app": "web"}))

    assert world.victims(urgent(100, pod_anti_affinity=away)) == {"n1": ["db"]}


def test_nominated_pods_of_no_lower_priority_keep_their_resources():
    world = World(host()).put("n1", "low", pod(cpu=4000))
    world.nominate("n1", pod(cpu=3000, priority=10))

    assert world.tried(urgent()) == DryRunResult((), 1, (("Insufficient cpu", 1),))
    assert world.victims(pod(cpu=2000, priority=11)) == {"n1": ["low"]}


def test_a_pods_own_nomination_does_not_count():
    facts = urgent(3000, nominated_node_name="n1")
    world = World(host()).put("n1", "low", pod(cpu=4000)).nominate("n1", facts)

    assert world.victims(facts) == {"n1": ["low"]}


def test_nothing_is_tried_while_earlier_victims_are_terminating():
    leaving = pod(cpu=4000, is_terminating=True, is_preempted=True)
    world = World(host(), host("n2")).put("n1", "leaving", leaving)
    world.put("n2", "low", pod(cpu=4000))

    assert world.tried(urgent(nominated_node_name="n1")) == DryRunResult(waits=True)
    assert not world.tried(urgent(nominated_node_name="n2")).waits
    assert not world.tried(urgent(nominated_node_name="gone")).waits


def test_a_nominated_node_that_can_not_be_helped_is_not_waited_for():
    leaving = pod(cpu=4000, is_terminating=True, is_preempted=True)
    world = World(host(taints=(taint("gpu"),)), host("n2")).put("n1", "leaving", leaving)
    world.put("n2", "low", pod(cpu=4000))

    assert world.victims(urgent(nominated_node_name="n1")) == {"n2": ["low"]}


def test_pods_without_a_name_are_victims_without_a_name():
    world = World(host())
    world.table.add_pod("n1", world.classes.pod_class(pod(cpu=2000)), 2)

    (found,) = world.tried(urgent()).candidates

    assert [each.uid for each in found.victims] == [""]


def test_the_number_of_candidates_is_limited():
    world = World(*(host(f"n{i}") for i in range(6)))
    for i in range(6):
        world.put(f"n{i}", f"low-{i}", pod(cpu=4000))

    assert list(world.victims(urgent(), DryRun(2))) == ["n0", "n1"]
    assert len(world.victims(urgent(), DryRun(2, pod_hash=7))) == 2


class NoLuck(PreFilterPlugin):
    name = "NoLuck"

    def pre_filter(self, state, pod, table):
        refused = pod.facts.priority > 0
        return PreFilterResult(unschedulable("no luck today") if refused else SUCCESS)


def test_new_nodes_are_tried_if_a_plugin_refuses_the_pod_before_filters():
    table = table_of(node("n1", cpu=500), classes=PodClasses())
    fit = "NodeResourcesFit"
    points = {"preFilter": ["NoLuck", fit], "filter": ["NodeUnschedulable", fit]}
    profile = profile_of(points, plugins=[NoLuck], classes=table.classes)
    urgent = table.classes.pod_class(pod(cpu=500, priority=10))
    evaluation = Evaluation(profile, urgent, table)

    def tried():
        evaluation.update(evaluation.run_pre_filter())
        return [each.node_name for each in dry_run(evaluation, ALL, ()).candidates]

    put(table, "n1", pod(cpu=500))
    assert tried() == ["n1"]
    table.add_node(node("n2", cpu=500))
    table.update_node(node("n1", cpu=500, unschedulable=True))
    put(table, "n2", pod(cpu=500))
    assert tried() == ["n2"]


class NamesTheFirst(PreFilterPlugin):
    name = "NamesTheFirst"

    def pre_filter(self, state, pod, table):
        return PreFilterResult(node_names=frozenset({"n1"}))


def test_all_nodes_are_tried_if_one_plugin_names_some_and_another_refuses_the_pod():
    table = table_of(node("n1", cpu=500), node("n2", cpu=500), classes=PodClasses())
    fit = "NodeResourcesFit"
    points = {"preFilter": ["NamesTheFirst", "NoLuck", fit], "filter": [fit]}
    profile = profile_of(points, plugins=[NamesTheFirst, NoLuck], classes=table.classes)
    for name in ("n1", "n2"):
        put(table, name, pod(cpu=500))
    evaluation = Evaluation(profile, table.classes.pod_class(pod(cpu=500, priority=10)), table)
    evaluation.update(evaluation.run_pre_filter())

    tried = dry_run(evaluation, ALL, ())

    assert sorted(each.node_name for each in tried.candidates) == ["n1", "n2"]


def tries(evaluation, budgets=()):
    """Return the names of the nodes that a dry run copies, and its result."""
    copied = []

    def copy_rows(table, rows):
        copied.extend(table.columns.names[row] for row in rows.tolist())
        return NodeTable.copy_of(table.columns, rows)

    with patch.object(NodeTable, "copy_rows", copy_rows):
        tried = dry_run(evaluation, ALL, budgets)
    return sorted(copied), tried


def test_the_next_pod_of_a_class_tries_only_nodes_that_changed():
    world = World(*map(host, ("n1", "n2", "n3")))
    for name in ("n1", "n2", "n3"):
        world.put(name, f"on-{name}", pod(cpu=3000))
    evaluation = world.evaluated(urgent())
    assert tries(evaluation)[0] == ["n1", "n2", "n3"]
    assert tries(evaluation)[0] == []

    world.put("n2", "more", pod(cpu=500))
    world.nominate("n3", pod(cpu=1000, priority=10))
    evaluation.update(evaluation.run_pre_filter())
    copied, tried = tries(evaluation)

    assert copied == ["n2", "n3"]
    assert [each.node_name for each in tried.candidates] == ["n1", "n2", "n3"]


def test_changed_budgets_and_nodes_cause_new_tries_of_all():
    world = World(*map(host, ("n1", "n2")))
    for name in ("n1", "n2"):
        world.put(name, f"on-{name}", pod(cpu=3000))
    evaluation = world.evaluated(urgent())
    tries(evaluation)

    assert tries(evaluation, (DisruptionBudget("b", "default", DB, 0),))[0] == ["n1", "n2"]

    world.table.update_node(host("n2", unschedulable=True))
    evaluation.update(evaluation.run_pre_filter())
    copied, tried = tries(evaluation)

    assert copied == ["n1"]
    assert [each.node_name for each in tried.candidates] == ["n1"]


@given(st.data())
def test_cached_results_of_rows_equal_those_of_a_new_evaluation(data):
    names = [f"n{number}" for number in range(6)]
    world = World(*map(host, names))
    kept = Evaluation(world.profile, world.classes.pod_class(urgent()), world.table)
    placed = {}
    for step in range(data.draw(st.integers(1, 12))):
        name = data.draw(st.sampled_from(names))
        facts = pod(cpu=data.draw(st.sampled_from((500, 1500, 4000))), priority=step % 4 * 5)
        what = data.draw(st.sampled_from(("put", "leave", "nominate", "withdraw", "node")))
        if what == "put":
            uid = f"pod-{step}"
            world.put(name, uid, facts)
            placed[uid] = name, facts
        elif what == "leave" and placed:
            uid = data.draw(st.sampled_from(sorted(placed)))
            name, facts = placed.pop(uid)
            world.table.remove_pod(name, world.classes.pod_class(facts), uid=f"default/{uid}")
        elif what == "node":
            world.table.update_node(host(name, unschedulable=data.draw(st.booleans())))
        elif what in ("nominate", "withdraw"):
            getattr(world.table, what)(name, world.classes.pod_class(pod(cpu=1000, priority=10)))
        ask = DryRun(data.draw(st.sampled_from((1, 2, 1000))), data.draw(st.integers(0, 3)))
        kept.update(kept.run_pre_filter())
        if not kept.feasible.any():
            assert dry_run(kept, ask, ()) == world.tried(urgent(), ask)
