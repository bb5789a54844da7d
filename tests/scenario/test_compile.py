"""Compiled scenarios: nodes, templates, controllers, manifests, traces, and the whole plan."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from roadstead.facts.node import ZONE_LABEL
from roadstead.facts.taints import Taint
from roadstead.fleet.trace import TraceBuilder
from roadstead.fleet.trace_file import write_trace
from roadstead.manifests.deployments import replica_set_of
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import validate
from roadstead.scenario.arrivals import DrawnArrivals
from roadstead.simulator.scenario import (
    ControllerChange,
    ControllerPlan,
    TimedToleration,
    merge_arrivals,
)
from roadstead.simulator.share import Share
from roadstead.simulator.times import NEVER_US
from tests.cli.manifests import node, pod
from tests.scenario.files import (
    DEPLOYMENT,
    FLEET,
    HEAD,
    NAMED_POD,
    POD,
    TASKS,
    compiled,
    loaded,
    scenario,
    write_json,
    written,
)

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
NOT_READY = "node.kubernetes.io/not-ready"


def with_template(template: object, more: str = "") -> str:
    pods = json.dumps([{"template": template}])
    return scenario(f"workload: [{{arrivals: {{every: 1s}}, pods: {pods}}}]\n{more}")


def only_choice(text: str, folder: Path = Path()) -> Any:
    (source,) = compiled(text, folder).sources
    assert isinstance(source, DrawnArrivals)
    return source.choices[0]


def controller(key: str, entry: dict[str, object], folder: Path = Path()) -> ControllerPlan:
    (plan,) = compiled(scenario(f"workload: [{json.dumps({key: entry})}]"), folder).controllers
    return plan


def test_the_defaults_are_those_of_the_page() -> None:
    plan = compiled(scenario())

    assert (plan.horizon_us, plan.sample_us) == (24 * HOUR_US, 300 * SECOND_US)
    assert (plan.start_delay_us, plan.seeds, plan.configs) == (0, (0,), ())
    assert plan.timings.node_monitor_grace_us == 50 * SECOND_US
    assert plan.decision.pod_us == 0
    assert not plan.decision.is_measured


def test_nodes_of_all_entries_are_joined_with_zones_in_turn() -> None:
    plan = compiled(
        scenario(
            "shapes: {big: {allocatable: {cpu: 96, pods: 20}, labels: {pool: big},"
            " taints: [{key: big}]}}\n",
            "fleet: [{generate: {nodes: 3, shape: cpu-8, zones: 2}},"
            " {generate: {nodes: 1, shape: big, zones: 1}}, {generate: {nodes: 2, zones: 1}},"
            " {generate: {nodes: 1, shape: cpu-8}}]\n",
        )
    )

    names = [each.name for each in plan.nodes]
    assert names == [
        *("cpu-8-00000", "cpu-8-00001", "cpu-8-00002", "big-00000"),
        *("node-00000", "node-00001", "cpu-8-2-00000"),
    ]
    assert [dict(each.labels)[ZONE_LABEL] for each in plan.nodes[:3]] == [
        *("zone-0", "zone-1", "zone-0"),
    ]
    small, big = plan.nodes[0], plan.nodes[3]
    assert dict(small.allocatable) == {"cpu": 8_000, "memory": 32 << 30}
    assert small.allocatable_pods == 110
    assert (big.allocatable_pods, big.taints) == (20, (Taint("big", "", "NoSchedule"),))
    assert dict(big.labels)["pool"] == "big"


def test_a_template_is_admitted_as_a_pod_of_schedule(tmp_path: Path) -> None:
    objects: list[dict[str, object]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1_000,
        },
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "small", "namespace": "default"},
            "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "250m"}}]},
        },
    ]
    write_json(tmp_path, "cluster.yaml", *objects)
    template = {"spec": {**POD["spec"], "priorityClassName": "high"}}
    text = with_template(template).replace(FLEET, "fleet: [{manifests: cluster.yaml}]\n")

    choice = only_choice(text, tmp_path)

    assert choice.facts.priority == 1_000
    assert dict(choice.facts.requests) == {"cpu": 250}
    assert choice.facts.images == ("task:1",)


def test_lifecycles_have_the_times_of_template_and_scenario(tmp_path: Path) -> None:
    given = [
        {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10},
        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "old", "value": "yes"},
    ]
    spec = {**POD["spec"], "tolerations": given, "terminationGracePeriodSeconds": 90}
    more = "controllers: {default_toleration: 20s}\ntermination_grace: 5s\n"

    own = only_choice(with_template({"spec": spec}, more)).lifecycle
    default = only_choice(with_template(POD, more)).lifecycle

    unreachable = TimedToleration("node.kubernetes.io/unreachable", "Exists", "", 20 * SECOND_US)
    assert own.grace_us == 90 * SECOND_US
    assert own.no_execute == (
        TimedToleration(NOT_READY, "Exists", "", 10 * SECOND_US),
        TimedToleration("old", "Equal", "yes", NEVER_US),
        unreachable,
    )
    assert default.grace_us == 5 * SECOND_US
    assert default.no_execute == (
        TimedToleration(NOT_READY, "Exists", "", 20 * SECOND_US),
        unreachable,
    )


def test_pods_of_a_cron_job_have_the_grace_period_of_its_job_template(tmp_path: Path) -> None:
    spec = {**POD["spec"], "restartPolicy": "Never", "terminationGracePeriodSeconds": 90}
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {
            "schedule": "0 3 * * *",
            "jobTemplate": {"spec": {"template": {"spec": spec}}},
        },
    }

    assert only_choice(with_template(cron_job)).lifecycle.grace_us == 90 * SECOND_US


def test_entries_with_equal_templates_share_facts_and_lifecycles(tmp_path: Path) -> None:
    write_json(tmp_path, "task.yaml", {"apiVersion": "v1", "kind": "Pod", **NAMED_POD})
    entry = "{arrivals: {every: 1s}, pods: [{template: task.yaml}]}"

    plan = compiled(scenario(f"workload: [{entry}, {{{TASKS}}}]"), tmp_path)

    first, second = islice(merge_arrivals(plan, 0), 2)
    third = next(plan.sources[1].arrivals(0))
    assert first.pods[0][1] is second.pods[0][1] is third.pods[0][1]
    assert first.lifecycle is third.lifecycle
    assert [first.pods[0][0], third.pods[0][0]] == ["task-0-0", "task-1-0"]


def test_gangs_are_groups_if_a_configuration_places_them(tmp_path: Path) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {
                        "enabled": [{"name": "Coscheduling"}],
                        "disabled": [{"name": "PrioritySort"}],
                    }
                }
            }
        ],
    }
    write_json(tmp_path, "gangs.yaml", config)
    text = with_template(POD).replace('"template"', '"gang": 4, "template"')

    alone = compiled(text)
    grouped = compiled(text + "scheduler: {config: [gangs.yaml], preset: [binpack]}", tmp_path)

    assert "no configuration has a plugin that places gangs" in " ".join(alone.notes)
    (facts,) = {facts for _, facts in next(grouped.sources[0].arrivals(0)).pods}
    assert facts.pod_group is not None
    assert grouped.notes == ()
    assert [each.name for each in grouped.configs] == ["gangs", "binpack"]


def test_a_deployment_takes_from_its_file_what_the_entry_does_not_set(tmp_path: Path) -> None:
    rolling = {"strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}}
    document = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], **rolling}}
    write_json(
        tmp_path,
        "api.yaml",
        document,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "api"},
            "spec": {"selector": {"app": "api"}},
        },
    )

    own = controller("deployment", {"template": "api.yaml"}, tmp_path)
    changed = controller(
        "deployment",
        {"template": "api.yaml", "name": "web", "replicas": 9, "max_unavailable": "10%"},
        tmp_path,
    )

    assert (own.kind, own.namespace, own.name, own.replicas) == ("Deployment", "shop", "api", 3)
    assert (own.max_surge, own.max_unavailable) == (Share(basis_points=5_000), Share(0))
    assert (changed.name, changed.replicas) == ("web", 9)
    assert changed.max_unavailable == Share(basis_points=1_000)
    deployment: Any = validate("Deployment", document, source="")
    name, facts = own.pod(0, 0)
    assert name.startswith(f"{replica_set_of(deployment).metadata.name}-")
    assert facts.owner is not None
    assert facts.owner.name == replica_set_of(deployment).metadata.name
    assert own.pod(0, 1)[1] is facts
    assert own.pod(0, 1)[0] != name


def test_changes_of_a_controller_are_in_order_of_time() -> None:
    entry = {
        "name": "web",
        "template": POD,
        "at": "1h",
        "delete_at": "9h",
        "replicas": 2,
        "scale": [{"at": "5h", "replicas": 8}, {"at": "3h", "replicas": 4}],
        "rollout": [{"at": "5h", "template": NAMED_POD}],
        "duration": "30m",
    }

    plan = controller("deployment", entry)

    assert (plan.created_us, plan.deleted_us) == (HOUR_US, 9 * HOUR_US)
    assert plan.changes == (
        ControllerChange(3 * HOUR_US, replicas=4),
        ControllerChange(5 * HOUR_US, template=1),
        ControllerChange(5 * HOUR_US, replicas=8),
    )
    names = {each.name_prefix for each in plan.templates}
    assert len(names) == len(plan.templates), "a replica set for each revision"
    assert plan.durations is not None
    assert next(plan.durations.draws(0, 0)) == HOUR_US // 2


def test_replica_sets_of_deployments_select_their_pods() -> None:
    text = scenario(f"workload: [{json.dumps({'deployment': {'name': 'w', 'template': POD}})}]")

    plan = compiled(text)

    (selects,) = plan.cluster.selecting
    assert selects.selector is not None
    assert selects.selector.matches(dict(plan.controllers[0].templates[0].facts.labels))
    assert ("default", (("kubernetes.io/metadata.name", "default"),)) in plan.cluster.namespaces


def test_pods_of_a_stateful_set_have_ordinals_and_claims_for_the_most_replicas() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {}}}}]
    document = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "selector": {"matchLabels": {"app": "db"}},
            "podManagementPolicy": "Parallel",
            "ordinals": {"start": 5},
            "volumeClaimTemplates": claims,
            "template": {"metadata": {"labels": {"app": "db"}}, **POD},
        },
    }
    entry = {"template": document, "replicas": 2, "scale": [{"at": "1h", "replicas": 3}]}
    text = scenario(f"workload: [{json.dumps({'statefulSet': entry})}]")

    plan = compiled(text)

    (stateful,) = plan.controllers
    assert (stateful.first_ordinal, stateful.is_parallel, stateful.replicas) == (5, True, 2)
    assert stateful.pod(0, 7)[0] == "db-7"
    facts = [stateful.pod(0, ordinal)[1] for ordinal in (5, 6, 7)]
    assert len(set(facts)) == 3
    assert [dict(each.volumes[0].source)["claimName"] for each in facts] == [
        f"data-db-{ordinal}" for ordinal in (5, 6, 7)
    ]
    assert len(plan.cluster.storage.claims) == 3


def test_stateful_sets_of_one_name_in_two_namespaces_have_their_own_claims() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {}}}}]

    def stateful_set(namespace: str) -> dict[str, Any]:
        template = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": namespace},
            "spec": {
                "selector": {"matchLabels": {"app": "db"}},
                "volumeClaimTemplates": claims,
                "template": {"metadata": {"labels": {"app": "db"}}, **POD},
            },
        }
        rollout = [{"at": "1h", "template": template}]
        return {"statefulSet": {"template": template, "replicas": 2, "rollout": rollout}}

    text = scenario(f"workload: {json.dumps([stateful_set('a'), stateful_set('b')])}")

    plan = compiled(text)

    assert [(each.namespace, each.name) for each in plan.cluster.storage.claims] == [
        (namespace, f"data-db-{ordinal}") for namespace in "ab" for ordinal in (0, 1)
    ], "the later revision of each has the same claims"
    assert [each.namespace for each in plan.cluster.selecting] == ["a", "b"]


def test_a_daemon_set_of_a_pods_file_tolerates_lost_nodes_for_ever(tmp_path: Path) -> None:
    write_json(tmp_path, "agent.yaml", {"apiVersion": "v1", "kind": "Pod", **NAMED_POD})

    plan = controller("daemonSet", {"template": "agent.yaml", "name": "agent"}, tmp_path)

    timed = {each.key: each.tolerated_us for each in plan.templates[0].lifecycle.no_execute}
    assert timed == {NOT_READY: NEVER_US, "node.kubernetes.io/unreachable": NEVER_US}
    assert len(plan.templates[0].lifecycle.no_execute) == 2


def test_a_job_has_its_parameters_from_entry_or_file(tmp_path: Path) -> None:
    document = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"parallelism": 2, "completions": 6, "backoffLimit": 3, "template": POD},
    }
    write_json(tmp_path, "train.yaml", document)

    own = controller("job", {"template": "train.yaml", "duration": "1h"}, tmp_path)
    changed = controller(
        "job",
        {"template": "train.yaml", "duration": "1h", "completions": 1, "failing": "5%"},
        tmp_path,
    )

    assert (own.replicas, own.parallelism, own.backoff_limit, own.failing) == (6, 2, 3, 0.0)
    assert (changed.replicas, changed.failing) == (1, 0.05)
    assert ("job-name", "train") in own.pod(0, 0)[1].labels


def test_pods_and_budgets_of_manifests_are_there_at_the_start(tmp_path: Path) -> None:
    running = pod("web-1")
    running["spec"]["nodeName"] = "b"
    lost = pod("web-2")
    lost["spec"]["nodeName"] = "gone"
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
    }
    folder = tmp_path / "cluster"
    folder.mkdir()
    write_json(folder, "a.yaml", node("b"), node("a"), running, lost, pod("web-0"), budget)

    plan = compiled(scenario(fleet="fleet: [{manifests: [cluster/]}]\n"), tmp_path)

    assert [each.name for each in plan.nodes] == ["a", "b"]
    assert [(each.identity.name, each.node) for each in plan.pods] == [
        ("web-1", "b"),
        ("web-0", ""),
    ]
    assert plan.pods[0].facts is plan.pods[1].facts
    (compiled_budget,) = plan.budgets
    assert compiled_budget.min_available == Share(basis_points=5_000)
    assert compiled_budget.max_unavailable is None
    assert any("1 running pod" in note for note in plan.notes)


def test_a_trace_is_fleet_and_workload_and_may_be_used_twice(tmp_path: Path) -> None:
    builder = TraceBuilder("test", {"default": (("team", "a"),)})
    first = compiled(scenario(f"workload: [{{{TASKS}}}]"))
    builder.add_node(first.nodes[0])
    facts = next(first.sources[0].arrivals(0)).pods[0][1]
    # In the trace it runs on a node; the scheduler of the scenario places it anew.
    builder.add_pod("p", "u", replace(facts, node_name="n"), 10, 70)
    write_trace(tmp_path / "t.trace", builder.build())
    work = "workload: [{trace: t.trace}, {trace: t.trace, shift: 1h}]"

    plan = compiled(scenario(work, "fleet: [{trace: t.trace}]\n"), tmp_path)

    assert plan.nodes == first.nodes[:1]
    arrivals = list(merge_arrivals(plan, 0))
    assert [(each.pods[0][0], each.at_us) for each in arrivals] == [
        ("p", 10 * SECOND_US),
        ("p-1", HOUR_US + 10 * SECOND_US),
    ]
    assert arrivals[0].duration_us == 60 * SECOND_US
    assert arrivals[0].pods[0][1] == facts
    assert ("default", (("team", "a"),)) in plan.cluster.namespaces


def test_times_of_files_are_sorted_and_converted(tmp_path: Path) -> None:
    written(tmp_path, "id,at,took\na,2.5,10\nb,0.0000019,20\n\nc,1,30\n", "jobs.csv")
    entry = {
        "arrivals": {"file": {"path": "jobs.csv", "column": "at"}},
        "duration": {"empirical": {"path": "jobs.csv", "column": "took", "unit": "m"}},
        "pods": [{"template": POD}],
    }

    plan = compiled(scenario(f"workload: [{json.dumps(entry)}]"), tmp_path)

    found = list(merge_arrivals(plan, 0))
    assert [each.at_us for each in found] == [1, SECOND_US, 2_500_000]
    assert {each.duration_us for each in found} <= {n * 60 * SECOND_US for n in (10, 20, 30)}


def test_events_are_compiled_in_order() -> None:
    plan = compiled(
        scenario(
            "events:\n"
            "- {every: 2h, drain: {nodes: 25%}, for: 10m, until: 9h}\n"
            "- {nodes: {mtbf: 90d, mttr: 4h, zone: zone-1}}\n"
            "- {at: 0s, add: {nodes: 2, shape: cpu-4}}\n"
            "- {at: 3h, taint: {names: [cpu-4-00000], key: x, effect: NoExecute}}\n"
            "- {at: 3h, every: 1h, remove: {nodes: 1, selector: {kubernetes.io/hostname: "
            "cpu-8-00001}}}\n"
        )
    )

    drain, add, taint, remove = plan.node_events
    assert [each.action for each in plan.node_events] == ["drain", "add", "taint", "remove"]
    assert [each.index for each in plan.node_events] == [0, 1, 2, 3]
    assert list(drain.times(24 * HOUR_US)) == [2 * HOUR_US, 4 * HOUR_US, 6 * HOUR_US, 8 * HOUR_US]
    assert drain.for_us == 600 * SECOND_US
    assert len(drain.chosen(plan.nodes, 0, 0)) == 1
    assert [each.name for each in add.nodes] == ["cpu-4-00000", "cpu-4-00001"]
    assert taint.taint == Taint("x", "", "NoExecute")
    assert taint.chosen(add.nodes, 0, 0) == ("cpu-4-00000",)
    assert remove.chosen(plan.nodes, 0, 0) == ("cpu-8-00001",)
    (failures,) = plan.failures
    assert sum(map(failures.target.matches, plan.nodes)) == 2


@pytest.mark.parametrize(("name", "is_taken"), [("more-00000-2", True), ("more-00000-9", False)])
def test_nodes_that_a_repeated_event_adds_have_names_of_their_own(
    name: str, is_taken: bool, tmp_path: Path
) -> None:
    write_json(tmp_path, "nodes.yaml", node(name))
    text = scenario(
        fleet="fleet: [{manifests: [nodes.yaml]}]\n",
        body="events: [{every: 1h, until: 5h, add: {nodes: 1, name: more, shape: cpu-4}}]",
    )

    if is_taken:
        problem = rf'events\[0\]: adds a node of the name "{name}", as fleet\[0\] has'
        with pytest.raises(InputError, match=problem):
            compiled(text, tmp_path)
    else:
        assert compiled(text, tmp_path).node_events[0].added(2)[0].name == "more-00000-2"


@pytest.mark.parametrize(
    ("text", "is_measured", "pod_us"),
    [("0", False, 0), ("3ms", False, 3_000), ("measured", True, 0)],
)
def test_the_time_of_a_decision_is_fixed_or_measured(
    text: str, is_measured: bool, pod_us: int
) -> None:
    decision = compiled(scenario(f"decision_time: {text}")).decision

    assert (decision.is_measured, decision.pod_us, decision.durations) == (
        is_measured,
        pod_us,
        None,
    )


def test_an_event_may_repeat_often_if_it_ends_early() -> None:
    plan = compiled(scenario("horizon: 100d\nevents: [{every: 1s, until: 1m, cordon: {}}]"))

    (event,) = plan.node_events
    assert len(event.times(plan.horizon_us)) == 59


def test_the_time_of_a_decision_may_be_drawn() -> None:
    decision = compiled(scenario("decision_time: {uniform: {min: 1ms, max: 9ms}}")).decision

    assert decision.durations is not None
    assert all(1_000 <= each <= 9_000 for each in islice(decision.durations.draws(0, 0), 100))


def test_a_scenario_that_extends_another_replaces_its_keys(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    write_json(base, "task.yaml", {"apiVersion": "v1", "kind": "Pod", **NAMED_POD})
    written(
        base,
        scenario("workload: [{arrivals: {every: 1s}, pods: [{template: task.yaml}]}]\nseeds: 3"),
    )
    path = written(tmp_path, f"{HEAD}extends: base/test.yaml\nseeds: [7]\nhorizon: 2h\n")

    plan = loaded(path)

    assert (plan.seeds, plan.horizon_us, len(plan.nodes)) == ((7,), 2 * HOUR_US, 4)
    assert plan.sources[0].name == "workload[0] every"


def test_an_error_below_a_key_of_the_base_names_the_base(tmp_path: Path) -> None:
    written(tmp_path, scenario("workload: [{trace: none.trace}]"), "base.yaml")
    path = written(tmp_path, f"{HEAD}extends: base.yaml\n")

    with pytest.raises(InputError, match=r"base\.yaml: line 5: workload\[0\]\.trace"):
        loaded(path)


def test_settings_are_given_to_the_run_as_written() -> None:
    plan = compiled(scenario("scheduler: {settings: {tie_break: first, batch: 7}}"))

    assert plan.settings == {"tie_break": "first", "batch": 7}


def test_a_claim_template_of_a_pod_must_be_in_the_cluster(tmp_path: Path) -> None:
    template = {
        "spec": {
            **POD["spec"],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "none"}],
        }
    }
    with pytest.raises(InputError) as caught:
        only_choice(with_template(template), tmp_path)

    assert caught.value.field == "spec.resourceClaims[0].resourceClaimTemplateName"
    assert caught.value.rule == "names no ResourceClaimTemplate of the cluster"


@pytest.mark.parametrize("is_on", [False, True])
def test_pods_have_claims_for_extended_resources_that_classes_serve(
    tmp_path: Path, *, is_on: bool
) -> None:
    resource = "example.com/gpu"
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": resource},
    }
    write_json(tmp_path, "fleet.yaml", node("n1"), device_class)
    wanted = {"requests": {resource: 1}, "limits": {resource: 1}}
    template = {"spec": {"containers": [{"name": "main", "image": "i", "resources": wanted}]}}
    pods = json.dumps([{"template": template}])
    gates = json.dumps({"DRAExtendedResource": is_on})
    text = scenario(
        f"workload: [{{arrivals: {{every: 1s}}, pods: {pods}}}]\n"
        f"scheduler: {{settings: {{featureGates: {gates}}}}}",
        fleet="fleet: [{manifests: [fleet.yaml]}]\n",
    )

    facts = only_choice(text, tmp_path).facts

    assert [each.resource for each in facts.extended_requests] == ([resource] if is_on else [])
