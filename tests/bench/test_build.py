import copy
import json

import pytest

from roadstead.bench import build
from roadstead.bench.build import build_script
from roadstead.bench.reading import read_cases
from roadstead.bench.script import (
    AddNodes,
    AwaitPods,
    BeginMeasuring,
    ChurnObjects,
    EndMeasuring,
    RemovePods,
    SleepStep,
    SubmitPods,
    WaitMode,
)
from roadstead.bench.series import ENDLESS
from roadstead.facts.node import HOSTNAME_LABEL
from roadstead.facts.storage import ClaimReference
from roadstead.protocol.errors import InputError
from tests.bench.cases import (
    NODES,
    POD,
    PODS,
    case,
    measured_pods,
    node_count,
    script_of,
    write_cases,
)

ZONE = "topology.kubernetes.io/zone"
NODE = {"kind": "Node", "status": {"capacity": {"cpu": "2", "memory": "1Gi", "pods": "7"}}}
CHURN = {"opcode": "churn", "mode": "create", "intervalMilliseconds": 200}


def nodes_of(script):
    return [
        facts
        for step in script.steps
        if isinstance(step, AddNodes)
        for facts in step.series.part(0, step.series.count)
    ]


def pods_of(script):
    return [step for step in script.steps if isinstance(step, SubmitPods)]


def refusal(folder, *ops, **more):
    with pytest.raises(InputError) as refused:
        script_of(folder, *ops, **more)
    return str(refused.value).replace(str(folder), "DIR")


def test_a_claim_whose_devices_cannot_be_searched_is_refused(tmp_path):
    request = {"name": "a", "exactly": {"deviceClassName": "none"}}
    claim = {"kind": "ResourceClaim", "spec": {"devices": {"requests": [request]}}}
    create = {"opcode": "createAny", "templatePath": "claim.yaml", "namespace": "x"}
    allocate = {"opcode": "allocResourceClaims", "namespace": "x"}

    why = refusal(tmp_path, NODES, create, allocate, PODS, claim=claim)

    assert "ResourceClaim x/resourceclaim-0" in why
    assert "could not retrieve device class none" in why


def altered(document, *path, value):
    """Return a copy of a document with another value at a path."""
    changed = copy.deepcopy(document)
    place = changed
    for part in path[:-1]:
        place = place.setdefault(part, {}) if isinstance(part, str) else place[part]
    place[path[-1]] = value
    return changed


def test_without_templates_nodes_and_pods_are_upstreams_default_ones(tmp_path):
    script = script_of(tmp_path, NODES, PODS)

    nodes = nodes_of(script)
    (submit,) = pods_of(script)
    assert script.name == "Case/small"
    assert (node_count(script), measured_pods(script)) == (3, 2)
    assert [facts.name for facts in nodes] == [f"scheduler-perf-{number}" for number in range(3)]
    assert dict(nodes[0].allocatable) == {"cpu": 4000, "memory": 32 << 30}
    assert nodes[0].allocatable_pods == 110
    assert dict(nodes[1].labels) == {HOSTNAME_LABEL: "scheduler-perf-1"}
    assert dict(submit.series.classes[0].requests) == {"cpu": 100, "memory": 500 << 20}
    assert (submit.measured, submit.wait) == (True, WaitMode.BOUND)


def test_pods_without_a_namespace_get_one_with_the_number_of_their_op(tmp_path):
    script = script_of(tmp_path, NODES, PODS, {**PODS, "namespace": "mine"})

    assert [step.series.namespace for step in pods_of(script)] == ["namespace-1", "mine"]
    assert {name for name, _ in script.cluster.namespaces} == {"namespace-1", "mine"}
    labels = dict(script.cluster.namespaces)["mine"]
    assert labels == (("kubernetes.io/metadata.name", "mine"),)


def test_the_template_of_an_op_overrides_that_of_the_case(tmp_path):
    other = altered(POD, "metadata", "generateName", value="other-")
    named = {**PODS, "podTemplatePath": "other.yaml"}

    script = script_of(
        tmp_path, NODES, PODS, named, more={"defaultPodTemplatePath": "pod.yaml"}, pod=POD,
        other=other,
    )  # fmt: skip

    assert [step.series.prefix for step in pods_of(script)] == ["pod-", "other-"]


def test_no_two_objects_of_a_prefix_share_a_name(tmp_path):
    twice = {**PODS, "namespace": "ns"}

    script = script_of(tmp_path, NODES, NODES, twice, twice)

    names = [facts.name for facts in nodes_of(script)]
    uids = [uid for step in pods_of(script) for uid in step.series.part(0, 9).uids]
    assert len(set(names)) == 6
    assert uids == ["ns/pod-0", "ns/pod-1", "ns/pod-2", "ns/pod-3"]


def test_label_values_are_assigned_to_nodes_in_turn(tmp_path):
    op = {**NODES, "labelNodePrepareStrategy": {"labelKey": ZONE, "labelValues": ["a", "b"]}}

    nodes = nodes_of(script_of(tmp_path, op, PODS))

    assert [dict(facts.labels)[ZONE] for facts in nodes] == ["a", "b", "a"]


def test_a_unique_label_differs_on_every_node(tmp_path):
    op = {**NODES, "uniqueNodeLabelStrategy": {"labelKey": "own"}}

    nodes = nodes_of(script_of(tmp_path, op, PODS))

    assert len({dict(facts.labels)["own"] for facts in nodes}) == 3


def test_nodes_can_have_extra_resources_and_limits_of_drivers(tmp_path):
    strategy = {
        "nodeAllocatable": {"example.com/gpu": "2"},
        "csiNodeAllocatable": {"ebs.csi.aws.com": {"count": 39}},
        "migratedPlugins": ["kubernetes.io/aws-ebs"],
    }
    op = {**NODES, "nodeAllocatableStrategy": strategy, "nodeTemplatePath": "node.yaml"}

    script = script_of(tmp_path, op, PODS, node=NODE)

    nodes, csi_nodes = nodes_of(script), script.cluster.storage.csi_nodes
    assert dict(nodes[0].allocatable)["example.com/gpu"] == 2
    assert dict(nodes[0].allocatable)["cpu"] == 2000
    assert [each.name for each in csi_nodes] == [facts.name for facts in nodes]
    assert csi_nodes[0].drivers[0].limit == 39
    assert csi_nodes[0].migrated == ("kubernetes.io/aws-ebs",)


def test_objects_of_a_template_with_an_index_differ(tmp_path):
    resource = "example.com/r{{.Index}}"
    node = altered(NODE, "status", "capacity", resource, value="1")
    pod = altered(POD, "metadata", value={"name": "p-{{.Index}}"})
    pod = altered(pod, "spec", "containers", 0, "resources", value={"requests": {resource: "1"}})
    op = {**NODES, "nodeTemplatePath": "node.yaml"}

    script = script_of(tmp_path, op, {**PODS, "podTemplatePath": "pod.yaml"}, node=node, pod=pod)

    (submit,) = pods_of(script)
    assert [dict(f.allocatable).get("example.com/r1") for f in nodes_of(script)] == [None, 1, None]
    assert submit.series.part(0, 2).names == ("p-0", "p-1")
    assert [dict(facts.requests) for facts in submit.series.classes] == [
        {"example.com/r0": 1},
        {"example.com/r1": 1},
    ]


def test_a_template_with_a_name_creates_one_object_only(tmp_path):
    named = altered(NODE, "metadata", value={"name": "only"})
    one = {"opcode": "createNodes", "count": 1, "nodeTemplatePath": "node.yaml"}

    script = script_of(tmp_path, one, PODS, params={}, node=named)

    assert [facts.name for facts in nodes_of(script)] == ["only"]
    message = refusal(tmp_path, {**one, "count": 2}, PODS, params={}, node=named)
    assert 'metadata.name: "only" is the name of several objects' in message


def test_a_template_with_an_index_can_create_zero_nodes(tmp_path):
    node = altered(NODE, "metadata", value={"name": "n-{{.Index}}"})
    op = {**NODES, "nodeTemplatePath": "node.yaml"}

    assert nodes_of(script_of(tmp_path, op, PODS, params={"nodes": 0}, node=node)) == []


def test_namespaces_are_numbered_and_have_the_labels_of_their_template(tmp_path):
    op = {"opcode": "createNamespaces", "prefix": "ns", "count": 2}
    labelled = {**op, "prefix": "team", "count": 1, "namespaceTemplatePath": "team.yaml"}
    template = {"kind": "Namespace", "metadata": {"labels": {"team": "devops"}}}

    script = script_of(tmp_path, NODES, op, labelled, PODS, team=template)

    labels = {name: dict(found) for name, found in script.cluster.namespaces}
    assert labels.keys() == {"ns-0", "ns-1", "team-0", "namespace-3"}
    assert labels["team-0"]["team"] == "devops"


def test_pods_with_claims_each_have_a_bound_claim_and_a_volume_of_their_own(tmp_path):
    volume = {
        "kind": "PersistentVolume",
        "spec": {"csi": {"driver": "d"}, "capacity": {"storage": "1Gi"}},
    }
    claim = {"kind": "PersistentVolumeClaim", "spec": {"accessModes": ["ReadOnlyMany"]}}
    op = {
        **PODS,
        "persistentVolumeTemplatePath": "pv.yaml",
        "persistentVolumeClaimTemplatePath": "pvc.yaml",
    }

    script = script_of(tmp_path, NODES, op, pv=volume, pvc=claim)

    (submit,), storage = pods_of(script), script.cluster.storage
    assert [each.csi.handle for each in storage.volumes] == ["vol-0", "vol-1"]
    assert storage.volumes[1].claim == ClaimReference("namespace-1", "pvc-1")
    assert [(each.volume_name, each.is_bound) for each in storage.claims] == [
        ("vol-0", True),
        ("vol-1", True),
    ]
    assert [facts.volumes[0].source for facts in submit.series.classes] == [
        (("claimName", "pvc-0"),),
        (("claimName", "pvc-1"),),
    ]
    message = refusal(tmp_path, NODES, {**PODS, "persistentVolumeTemplatePath": "pv.yaml"})
    assert "must be given together" in message


def test_in_tree_volumes_get_an_id_of_their_own(tmp_path):
    volume = {"kind": "PersistentVolume", "spec": {"awsElasticBlockStore": {"volumeID": ""}}}
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"annotations": {"a": "b"}},
        "spec": {},
    }
    op = {
        **PODS,
        "persistentVolumeTemplatePath": "pv.yaml",
        "persistentVolumeClaimTemplatePath": "pvc.yaml",
    }

    storage = script_of(tmp_path, NODES, op, pv=volume, pvc=claim).cluster.storage

    assert [each.migrated.handle for each in storage.volumes] == ["vol-0", "vol-1"]


def test_deleting_waiting_and_measuring_become_steps(tmp_path):
    script = script_of(
        tmp_path,
        {**PODS, "collectMetrics": False, "skipWaitToCompletion": True},
        {"opcode": "deletePods", "namespace": "namespace-0", "deletePodsPerSecond": 5},
        {
            "opcode": "deletePods",
            "namespace": "x",
            "labelSelector": {"b": "2", "a": "1"},
            "skipWaitToCompletion": True,
        },
        {"opcode": "barrier", "stageRequirement": "Attempted"},
        {"opcode": "barrier", "namespaces": ["x"], "labelSelector": {"a": "1"}},
        {"opcode": "sleep", "duration": "2s"},
        {"opcode": "startCollectingMetrics", "name": "part", "namespaces": ["x"]},
        {"opcode": "stopCollectingMetrics"},
        params={},
    )

    assert pods_of(script)[0].wait is WaitMode.NOTHING
    assert script.steps[1:] == (
        RemovePods("namespace-0", (), 5, waits=True),
        RemovePods("x", (("a", "1"), ("b", "2")), 0, waits=False),
        AwaitPods(attempted=True),
        AwaitPods(("x",), (("a", "1"),)),
        SleepStep(2.0),
        BeginMeasuring("part", ("x",)),
        EndMeasuring(),
    )


def test_churn_creates_pods_and_nodes_without_end(tmp_path):
    op = {**CHURN, "templatePaths": ["pod.yaml", "node.yaml"], "number": 4, "namespace": "ns"}

    script = script_of(tmp_path, op, PODS, params={}, pod=POD, node=NODE)

    churn = script.steps[0]
    assert isinstance(churn, ChurnObjects)
    assert (churn.interval_s, churn.number, churn.recreates) == (0.2, 4, False)
    pods, nodes = churn.series
    assert (pods.count, nodes.count) == (ENDLESS, ENDLESS)
    assert pods.part(3, 4).uids == ("ns/pod-churned-3",)
    assert nodes.part(3, 4)[0].name == "churn-churned-3"


def test_other_objects_of_a_churn_exist_from_the_start_and_a_note_reports_it(tmp_path):
    service = {"kind": "Service", "spec": {"selector": {"app": "x"}}}
    op = {**CHURN, "mode": "recreate", "number": 1, "templatePaths": ["service.yaml"]}

    script = script_of(tmp_path, op, PODS, params={}, service=service)

    assert script.steps[0].series == ()
    assert script.steps[0].recreates
    assert script.cluster.selecting[0].kind == "Service"
    assert script.notes == (
        "Service of a churn exists from the start; it is not created and deleted.",
    )
    assert "number: must not be 0" in refusal(
        tmp_path, {**op, "number": 0}, PODS, params={}, service=service
    )


def test_an_interval_of_0_is_upstreams_default(tmp_path):
    op = {**CHURN, "intervalMilliseconds": 0, "templatePaths": ["pod.yaml"]}

    assert script_of(tmp_path, op, PODS, params={}, pod=POD).steps[0].interval_s == 0.5


def test_objects_of_any_kind_are_created_one_by_one(tmp_path):
    service = {"kind": "Service", "spec": {"selector": {"app": "x{{.Index}}"}}}
    any_service = {
        "opcode": "createAny",
        "count": 2,
        "namespace": "ns",
        "templatePath": "service.yaml",
    }
    node = {"opcode": "createAny", "templatePath": "node.yaml"}
    pod = {"opcode": "createAny", "templatePath": "pod.yaml"}
    named = {"opcode": "createAny", "templatePath": "named.yaml", "namespace": "ns"}

    script = script_of(
        tmp_path, any_service, node, pod, named, PODS, params={}, service=service, node=NODE,
        pod=POD, named=altered(POD, "metadata", value={"name": "me"}),
    )  # fmt: skip

    assert [each.name for each in script.cluster.selecting] == ["service-0", "service-1"]
    assert [facts.name for facts in nodes_of(script)] == ["node-0"]
    first, second, _ = pods_of(script)
    assert first.series.part(0, 1).uids == ("namespace-2/pod-0",)
    assert second.series.part(0, 1).uids == ("ns/me",)
    assert second.wait is WaitMode.NOTHING


def test_priority_classes_apply_to_later_pods(tmp_path):
    high = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    pod = altered(POD, "spec", "priorityClassName", value="high")

    script = script_of(
        tmp_path,
        {"opcode": "createAny", "templatePath": "class.yaml"},
        {**PODS, "podTemplatePath": "pod.yaml"},
        params={},
        **{"class": high, "pod": pod},
    )

    assert pods_of(script)[0].series.classes[0].priority == 100


def test_the_script_contains_the_cases_own_configuration(tmp_path):
    script = script_of(
        tmp_path, NODES, PODS, more={"schedulerConfigPath": "config.yaml"}, config="kind: X\n"
    )

    assert script.config_text == "kind: X\n"
    assert script.config_source.endswith("config.yaml")


@pytest.mark.parametrize(
    ("ops", "templates", "text"),
    [
        (
            [{**PODS, "steadyState": True}],
            {},
            "steadyState: true needs a duration and collectMetrics",
        ),
        (
            [{**PODS, "steadyState": True, "duration": "10001s", "collectMetrics": True}],
            {},
            "duration: 10001.0s must not exceed 10000 s for a steady state",
        ),
        ([{**PODS, "skipWaitToCompletion": True}], {}, "cannot be true where collectMetrics is"),
        ([{**PODS, "podTemplatePath": "x.yaml"}], {"x": NODE}, 'kind: "Node" must be Pod'),
        (
            [{**PODS, "podTemplatePath": "x.yaml"}],
            {"x": altered(POD, "spec", "containers", 0, "resources", "requests", "cpu", value="z")},
            "requests.cpu",
        ),
        (
            [{"opcode": "createAny", "templatePath": "x.yaml"}, PODS],
            {"x": {"kind": "Service", "spec": {}}},
            "namespace: is missing for a Service",
        ),
        (
            [{"opcode": "createAny", "templatePath": "x.yaml"}, PODS],
            {"x": {"kind": "ConfigMap"}},
            '"ConfigMap" is not a kind that a benchmark can create',
        ),
    ],
)
def test_an_impossible_op_is_refused_with_case_and_place(tmp_path, ops, templates, text):
    message = refusal(tmp_path, *ops, params={}, **templates)

    assert 'test case "Case"' in message or "DIR/x.yaml" in message
    assert text in message


def test_keys_of_spread_constraints_may_be_capitalized_as_in_upstreams_templates(tmp_path):
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "NodeTaintsPolicy": "Honor",
    }
    pod = altered(POD, "spec", "topologySpreadConstraints", value=[constraint])

    script = script_of(tmp_path, {**PODS, "podTemplatePath": "p.yaml"}, params={}, p=pod)

    (found,) = pods_of(script)[0].series.classes[0].spread_constraints
    assert found.node_taints_policy == "Honor"


def test_requests_that_can_not_be_counted_are_refused(tmp_path):
    container = {"name": "a", "image": "i", "resources": {"requests": {"cpu": "1e100000"}}}
    pod = altered(POD, "spec", "containers", value=[container])

    assert "spec.containers[0].resources.requests.cpu: " in refusal(
        tmp_path, {**PODS, "podTemplatePath": "p.yaml"}, params={}, p=json.dumps(pod)
    )


def test_storage_classes_and_volumes_get_the_fields_set_by_their_controllers(tmp_path):
    of = {"opcode": "createAny"}

    script = script_of(
        tmp_path,
        {**of, "templatePath": "class.yaml"},
        {**of, "templatePath": "pv.yaml"},
        PODS,
        params={},
        **{
            "class": {"kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "p"},
            "pv": {"kind": "PersistentVolume", "spec": {"capacity": {"storage": "1Gi"}}},
        },
    )

    storage = script.cluster.storage
    assert storage.classes[0].binding_mode == "Immediate"
    assert storage.volumes[0].phase == "Available"


def test_a_namespace_created_by_create_any_has_its_labels(tmp_path):
    template = {"kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "a"}}}

    script = script_of(
        tmp_path, {"opcode": "createAny", "templatePath": "ns.yaml"}, PODS, params={}, ns=template
    )

    assert dict(dict(script.cluster.namespaces)["team-a"])["team"] == "a"


def test_a_selector_that_does_not_parse_is_refused(tmp_path):
    selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}
    replica_set = {
        "kind": "ReplicaSet",
        "metadata": {"name": "r"},
        "spec": {"selector": selector, "template": {"spec": POD["spec"]}},
    }

    assert "spec.selector" in refusal(
        tmp_path,
        {"opcode": "createAny", "namespace": "ns", "templatePath": "rs.yaml"},
        PODS,
        params={},
        rs=replica_set,
    )


def test_an_unknown_op_is_an_internal_error_of_the_builder(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "unroll", lambda case, params: ["nothing"])
    (found,) = read_cases(write_cases(tmp_path, case(NODES, PODS)))

    with pytest.raises(AssertionError, match="no such op"):
        build_script(found, found.spec.workloads[0])
