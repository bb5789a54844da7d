"""drain: where pods go, what kubectl drain refuses, and that no budget is ever exceeded."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.facts.selectors import LabelSelector
from roadstead.whatif.drain import drain
from roadstead.whatif.evictions import Allowances, EvictionRules
from tests.actors.world import identity, inputs_of, plan_of
from tests.builders import node, pod, tolerate
from tests.whatif.questions import budget, owned, plan_with, running


def drained(nodes, there, names, plan=None, given=(), **rules):
    inputs = inputs_of(nodes, given, there)
    chosen = [each for each in nodes if each.name in names]
    return drain(inputs, plan or plan_of(), chosen, EvictionRules(**rules))


def outcomes(result):
    return {each.pod.removeprefix("default/"): (each.outcome, each.to) for each in result.pods}


def test_pods_move_to_other_nodes():
    there = [running("a", "n1", owned(cpu=1000)), running("b", "n2", owned(cpu=3500))]

    result = drained([node("n1"), node("n2"), node("n3")], there, ["n1"])

    assert outcomes(result) == {"a": ("moved", "n3")}
    assert result.targets == {"n3": 1}
    assert (result.is_complete, result.rounds) == (True, 1)


def test_a_drained_node_is_no_target_even_if_it_is_the_emptiest():
    there = [running("a", "n1", owned(cpu=1000))]

    result = drained([node("n1"), node("n2"), node("n3", cpu=1000)], there, ["n1", "n2"])

    assert outcomes(result) == {"a": ("moved", "n3")}


def test_a_pod_without_room_stays_pending_with_the_scheduler_s_message():
    there = [running("a", "n1", owned(cpu=3000)), running("b", "n2", owned(cpu=3000))]

    result = drained([node("n1"), node("n2")], there, ["n1"])

    (row,) = result.pods
    assert row.outcome == "pending"
    assert row.reason.startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    )
    assert not result.is_complete


def test_pods_of_daemon_sets_static_pods_and_ending_pods_go_with_the_node():
    there = [
        running("d", "n1", owned("DaemonSet")),
        running("m", "n1", owned("Node")),
        running("t", "n1", owned(is_terminating=True)),
    ]

    result = drained([node("n1")], there, ["n1"])

    assert {each[0] for each in outcomes(result).values()} == {"leaves"}
    assert result.is_complete


def test_bare_pods_need_force_and_are_then_shown_where_they_would_go():
    there = [running("bare", "n1", pod(cpu=1000))]
    nodes = [node("n1"), node("n2")]

    refused = drained(nodes, there, ["n1"])
    forced = drained(nodes, there, ["n1"], with_bare=True)

    assert outcomes(refused) == {"bare": ("refused", "")}
    assert "--force" in refused.pods[0].reason
    assert not refused.is_complete
    assert outcomes(forced) == {"bare": ("moved", "n2")}
    assert "create it again" in forced.pods[0].reason


def test_pods_with_an_empty_dir_need_the_flag_of_kubectl():
    there = [running("a", "n1", owned(cpu=1000))]
    nodes = [node("n1"), node("n2")]
    local = {"local_storage": {"uid-a"}}

    refused = drained(nodes, there, ["n1"], **local)

    assert "--delete-emptydir-data" in refused.pods[0].reason
    assert drained(nodes, there, ["n1"], with_local_storage=True, **local).is_complete


def test_a_budget_allows_one_eviction_after_the_other():
    web = owned(cpu=500, labels={"app": "web"})
    there = [running(f"w{number}", "n1", web) for number in range(3)]

    result = drained([node("n1"), node("n2")], there, ["n1"], plan_with(budget("b", "web", 1)))

    assert [each.round for each in result.pods] == [1, 2, 3]
    (row,) = result.budgets
    assert (row.budget, row.allowed, row.pods) == ("default/b", 1, 3)
    assert (row.evicted, row.rounds, row.blocked) == (3, 3, 0)


def test_a_budget_without_disruptions_blocks_every_eviction():
    web = owned(cpu=500, labels={"app": "web"})
    there = [running("w", "n1", web), running("o", "n1", owned(cpu=500))]

    result = drained([node("n1"), node("n2")], there, ["n1"], plan_with(budget("b", "web", 0)))

    assert outcomes(result) == {"w": ("blocked", ""), "o": ("moved", "n2")}
    assert "violate the disruption budget default/b" in result.pods[0].reason
    assert result.budgets[0].blocked == 1


def test_a_disruption_stays_counted_while_the_replacement_is_pending():
    web = owned(cpu=2000, labels={"app": "web"})
    there = [running("w1", "n1", web), running("w2", "n1", web)]

    result = drained(
        [node("n1"), node("n2", cpu=1000)], there, ["n1"], plan_with(budget("b", "web", 1))
    )

    assert [each.outcome for each in result.pods] == ["pending", "blocked"]


def test_two_budgets_for_one_pod_are_refused_like_by_the_eviction_api():
    there = [running("w", "n1", owned(labels={"app": "web"}))]
    plan = plan_with(budget("one", "web", 5), budget("two", "web", 5))

    result = drained([node("n1"), node("n2")], there, ["n1"], plan)

    assert result.pods[0].outcome == "blocked"
    assert "more than one PodDisruptionBudget" in result.pods[0].reason
    assert "default/one, default/two" in result.pods[0].reason


def test_budgets_of_other_namespaces_and_without_a_selector_select_nothing():
    facts = owned(labels={"app": "web"})
    elsewhere = replace(budget("b", "web", 0), namespace="other")
    everything = replace(budget("all", "web", 0), selector=None)

    assert Allowances([elsewhere, everything]).selecting(facts) == ()


def test_an_empty_selector_selects_all_pods_of_the_namespace_as_by_the_eviction_api():
    # Preemption, in contrast, ignores such a budget.
    there = [running("w", "n1", owned(labels={"app": "web"}))]
    everything = replace(budget("all", "web", 0), selector=LabelSelector())

    result = drained([node("n1"), node("n2")], there, ["n1"], plan_with(everything))

    assert outcomes(result) == {"w": ("blocked", "")}
    assert "disruption budget default/all" in result.pods[0].reason


def test_a_pod_that_is_preempted_for_a_replacement_is_reported():
    there = [
        running("high", "n1", owned(cpu=3000, priority=9)),
        running("low", "n2", owned(cpu=3000)),
    ]

    result = drained([node("n1"), node("n2")], there, ["n1"])

    assert outcomes(result) == {"high": ("moved", "n2")}
    assert [each.pod for each in result.preempted] == ["default/low"]
    assert not result.is_complete


def test_a_replacement_that_a_later_round_preempts_is_pending_and_counts_as_disrupted():
    web = {"labels": {"app": "web"}, "cpu": 3000}
    there = [
        running("low", "n1", owned(**web)),
        running("high", "n1", owned(**web, priority=10)),
        running("last", "n1", owned(**web | {"cpu": 100})),
    ]
    nodes = [node("n1", cpu=8000), node("n2")]

    result = drained(nodes, there, ["n1"], plan_with(budget("b", "web", 1)))

    assert outcomes(result) == {
        "low": ("pending", ""),
        "high": ("moved", "n2"),
        "last": ("blocked", ""),
    }
    assert result.pods[0].reason == "was preempted by another replacement"
    assert result.rounds == 2


def test_a_pod_that_tolerates_the_cordon_comes_back():
    everything = (tolerate(operator="Exists"),)
    there = [running("a", "n1", owned(cpu=1000, tolerations=everything))]

    result = drained([node("n1"), node("n2", cpu=100)], there, ["n1"])

    assert outcomes(result) == {"a": ("pending", "")}
    assert result.pods[0].reason == "tolerates the cordon: it is placed on n1 again"


def test_given_pods_are_placed_first_and_move_too():
    pods = [(identity("x"), owned(cpu=1000)), (identity("giant"), owned(cpu=9000))]

    result = drained([node("n1"), node("n2", cpu=500)], (), ["n1"], given=pods)

    assert outcomes(result) == {"x": ("pending", "")}
    assert result.pending_before == 1


APPS = st.sampled_from(["web", "db", "free"])


@settings(max_examples=30, deadline=None)
@given(
    pods=st.lists(
        st.tuples(APPS, st.sampled_from(["n1", "n2", "n3"]), st.sampled_from([100, 900, 2500])),
        max_size=10,
    ),
    allowed=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    names=st.sets(st.sampled_from(["n1", "n2", "n3"]), min_size=1),
)
def test_no_round_evicts_more_than_a_budget_allows(pods, allowed, names):
    nodes = [node("n1"), node("n2"), node("n3")]
    there = [
        running(f"{app}-{at}", name, owned(cpu=cpu, labels={"app": app}))
        for at, (app, name, cpu) in enumerate(pods)
    ]
    plan = plan_with(budget("web", "web", allowed[0]), budget("db", "db", allowed[1]))

    result = drained(nodes, there, names, plan)

    assert len(result.pods) == sum(name in names for _, name, _ in pods)
    for app, left in zip(("web", "db"), allowed, strict=True):
        mine = [each for each in result.pods if each.pod.startswith(f"default/{app}-")]
        evicted = Counter(each.round for each in mine if each.round)
        for turn in range(1, result.rounds + 1):
            assert evicted[turn] <= left, f"round {turn} evicts too many of {app}"
            # Evictions whose replacements run are given back.
            left -= sum(each.round == turn and each.outcome == "pending" for each in mine)
        assert left == 0 or not any(each.outcome == "blocked" for each in mine)
    for each in result.pods:
        assert each.to not in names
        assert (each.outcome == "moved") == bool(each.to)
