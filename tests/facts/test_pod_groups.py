import pytest

from roadstead.facts.compile import compile_pod
from roadstead.facts.pod import GroupMembership
from roadstead.facts.pod_groups import PodGroup, group_key, membership, pod_groups
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import validate
from tests.builders import pod

GANG = "scheduling.x-k8s.io/pod-group"
OLD = "pod-group.scheduling.sigs.k8s.io"


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({}, {}, None),
        ({"app": "web"}, {f"{OLD}/min-available": "3"}, None),
        ({GANG: ""}, {}, None),
        ({GANG: "a"}, {}, GroupMembership("a")),
        ({OLD: "a"}, {}, GroupMembership("a")),
        ({}, {f"{OLD}/name": "a"}, GroupMembership("a")),
        ({GANG: "new", OLD: "old"}, {}, GroupMembership("new")),
        ({GANG: "a", f"{OLD}/min-available": "3"}, {}, GroupMembership("a", 3)),
        (
            {GANG: "a"},
            {"scheduling.x-k8s.io/min-available": "4", f"{OLD}/timeout-seconds": "90"},
            GroupMembership("a", 4, 90),
        ),
        (
            {GANG: "label", f"{OLD}/min-available": "1"},
            {GANG: "annotation", f"{OLD}/min-available": "2"},
            GroupMembership("label", 1),
        ),
    ],
)
def test_a_pod_names_its_group_by_label_or_annotation(labels, annotations, expected):
    assert membership(labels, annotations) == expected


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "2147483648", "9" * 5000, "٣"])
def test_an_invalid_number_is_reported_with_its_key(text):
    found = membership({GANG: "a"}, {f"{OLD}/min-available": text})

    assert found.min_member is None
    assert found.error == f'{OLD}/min-available: "{text[:20]}" is not a whole number'


def test_a_compiled_pod_has_its_group():
    manifest = {
        "metadata": {"name": "p", "labels": {GANG: "a"}, "annotations": {f"{OLD}/name": "b"}},
        "spec": {"containers": [{"name": "c"}]},
    }

    _, facts = compile_pod(validate("Pod", manifest, source=""))

    assert facts.pod_group == GroupMembership("a")
    assert group_key(facts) == ("default", "a")
    assert group_key(pod()) is None


def group(**spec):
    manifest = {"metadata": {"name": "a", "namespace": "ml"}, "spec": spec}
    return validate("PodGroup", manifest, source="gang.yaml")


def test_groups_of_manifests_and_of_running_pods_are_merged():
    member = pod(namespace="ml", pod_group=GroupMembership("a"))
    other = pod(pod_group=GroupMembership("b", 2))

    found = pod_groups(
        [group(minMember=3, scheduleTimeoutSeconds=10)], [member, other, member, pod()]
    )

    assert found == (PodGroup("ml", "a", 3, 10, running=2), PodGroup("default", "b", running=1))
    assert [each.key for each in found] == [("ml", "a"), ("default", "b")]


def test_a_group_without_namespace_is_in_the_default_one():
    bare = validate("PodGroup", {"metadata": {"name": "a"}}, source="")

    assert pod_groups([bare], []) == (PodGroup("default", "a", 0),)


def test_an_invalid_pod_group_is_reported():
    with pytest.raises(InputError, match=r'gang.yaml: PodGroup "a".*: spec.minMember'):
        group(minMember=-1)
