"""Fields that Kubernetes does not have are noted or refused, and never ignored silently."""

import io
import json

import pytest

from roadstead.manifests import read_manifests
from roadstead.manifests.unknown_fields import KINDS, TYPES, unknown_fields
from roadstead.protocol import objects
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects.pod import Container, PodSpec, ResourceRequirements
from roadstead.protocol.objects.selectors import Affinity

CONTAINER = {"name": "c", "image": "x"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def objects_spec(kind):
    return getattr(objects, kind).model_fields["spec"].annotation


def pod_of(**spec):
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]} | spec}


def messages(kind, document):
    return [str(each) for each in unknown_fields(kind, document)]


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            pod_of(nodeSelecter={"a": "b"}),
            'spec: "nodeSelecter" is no field that Kubernetes has (did you mean nodeSelector?)',
        ),
        (pod_of(zzz=1), 'spec: "zzz" is no field that Kubernetes has'),
        (
            pod_of(containers=[CONTAINER, CONTAINER | {"resource": {}}]),
            'spec.containers[1]: "resource" is no field that Kubernetes has (did you mean '
            "resources?)",
        ),
        (
            pod_of(initContainers=[CONTAINER | {"resources": {"request": {"cpu": 1}}}]),
            'spec.initContainers[0].resources: "request" is no field that Kubernetes has (did you '
            "mean requests?)",
        ),
        (
            pod_of(affinity={"podAntiAfinity": {}}),
            'spec.affinity: "podAntiAfinity" is no field that Kubernetes has (did you mean '
            "podAntiAffinity?)",
        ),
        (pod_of(resources={"limit": {}}), 'spec.resources: "limit" is no field that'),
        (pod_of(tolerations=[{"operater": "Exists"}]), 'spec.tolerations[0]: "operater" is no'),
        (
            pod_of(affinity={"podAntiAffinity": {"requiredDuringScheduling": []}}),
            'spec.affinity.podAntiAffinity: "requiredDuringScheduling" is no field',
        ),
        (
            pod_of(topologySpreadConstraints=[{"labelSelector": {"matchLabel": {}}}]),
            'spec.topologySpreadConstraints[0].labelSelector: "matchLabel" is no field that '
            "Kubernetes has (did you mean matchLabels?)",
        ),
        (
            pod_of(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"match": 1}]}}}),
            f'spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]: "match" is no field',
        ),
    ],
)
def test_an_unknown_field_is_named_with_similar_fields(document, text):
    (found,) = messages("Pod", document)
    assert found.startswith(text)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Deployment", ("spec", "template", "spec")),
        ("Job", ("spec", "template", "spec")),
        ("CronJob", ("spec", "jobTemplate", "spec", "template", "spec")),
    ],
)
def test_the_pod_templates_of_workloads_are_checked(kind, path):
    document = {"tolerationz": []}
    for name in reversed(path):
        document = {name: document}
    (found,) = messages(kind, document)
    assert found.startswith(f'{".".join(path)}: "tolerationz" is no field')


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("Deployment", {"replica": 7}, "replica"),
        ("PodDisruptionBudget", {"minAvaliable": 1}, "minAvaliable"),
        ("ResourceQuota", {"hards": {}}, "hards"),
    ],
)
def test_fields_of_workloads_budgets_and_quotas_are_checked(kind, spec, field):
    (found,) = messages(kind, {"spec": spec})
    assert found.startswith(f'spec: "{field}" is no field that Kubernetes has (did you mean')


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("Pod", pod_of(nodeSelector={}, dnsPolicy="Default", hostname="h")),
        ("Pod", {"spec": None}),
        ("Pod", {"spec": {"containers": None, "affinity": None}}),
        ("Pod", {"spec": {"containers": [None, 3]}}),
        ("Deployment", {"spec": {"template": []}}),
        ("Service", {"spec": {"anything": 1}}),
    ],
)
def test_known_and_unchecked_fields_pass(kind, document):
    assert messages(kind, document) == []


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (PodSpec, "PodSpec"),
        (Container, "Container"),
        (ResourceRequirements, "ResourceRequirements"),
        (Affinity, "Affinity"),
        *((objects_spec(kind), f"{kind}Spec") for kind in KINDS),
    ],
)
def test_every_field_that_is_read_is_known(model, known):
    assert {each.alias for each in model.model_fields.values()} <= TYPES[known].keys()


def test_every_referenced_type_exists():
    named = {kind for fields in TYPES.values() for kind in fields.values()} - {""}
    assert named | {f"{kind}Spec" for kind in KINDS} == TYPES.keys()


def read(document, **how):
    text = json.dumps({"apiVersion": "v1"} | document).encode()
    return read_manifests(["-"], stdin=io.BytesIO(text), **how)


def test_an_unknown_field_is_ignored_with_a_note_or_refused():
    document = pod_of(nodeSelecter={"a": "b"})
    text = 'standard input: Pod "p": spec: "nodeSelecter" is no field that Kubernetes has'

    manifests = read(document)
    assert len(manifests.pods) == 1
    assert [each.startswith(text) for each in manifests.unknown] == [True]

    with pytest.raises(InputError) as refused:
        read(document, is_strict=True)
    assert str(refused.value) == manifests.unknown[0]


def test_unrendered_template_syntax_is_recognized():
    with pytest.raises(InputError, match=r"holds template syntax .* helm template"):
        read_manifests(["-"], stdin=io.BytesIO(b"kind: Pod\nmetadata: {name: {{ .name }}}\n"))
    with pytest.raises(InputError) as other:
        read_manifests(["-"], stdin=io.BytesIO(b"kind: Pod\nmetadata: {name: [}\n"))
    assert "template" not in str(other.value)
