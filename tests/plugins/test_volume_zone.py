from dataclasses import replace

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Volume
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import ALL_PASS, Handle
from roadstead.plugins.volume_zone import VolumeZone, topologies_of
from roadstead.protocol.status import SKIP, Code
from tests.builders import node, pod, table_of
from tests.storage.world import bound, claim, immediate, storage, using, volume, waiting

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
CONFLICT = "node(s) had no available volume zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


def labelled(**labels):
    keys = {"zone": ZONE, "region": REGION, "beta_zone": BETA_ZONE, "beta_region": BETA_REGION}
    return {keys.get(key, key): value for key, value in labels.items()}


def plugin_over(*objects, table=None):
    table = table or table_of(node("n1"))
    return VolumeZone(Handle(table.classes, ClusterFacts(storage=storage(*objects))))


def refused(volume_labels, node_labels, *, prepared=True):
    """Whether a node with these labels is refused for a volume with those labels."""
    table = table_of(node("n1", labels=node_labels))
    labels = tuple(sorted(volume_labels.items()))
    plugin = plugin_over(bound("c", "a"), volume("a", labels=labels), table=table)
    state, pod_class = CycleState(1), table.classes.pod_class(using("c"))
    if prepared:
        assert plugin.pre_filter(state, pod_class, None).status.is_success
    found = plugin.filter(state, pod_class, table)
    return found.codes is not None and found.statuses[0].reasons == (CONFLICT,)


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "refusal"),
    [
        (labelled(zone="a"), labelled(zone="a"), False),
        (labelled(zone="a"), labelled(zone="b"), True),
        (labelled(zone="a__b"), labelled(zone="b"), False),
        (labelled(zone="a__b"), labelled(zone="c"), True),
        (labelled(zone="a"), labelled(other="x"), False),
        (labelled(zone="a"), labelled(region="r"), True),
        (labelled(beta_zone="a"), labelled(zone="a"), False),
        (labelled(beta_zone="a"), labelled(zone="b"), True),
        (labelled(beta_zone="a"), labelled(beta_zone="b", zone="a"), True),
        (labelled(beta_zone="a"), labelled(beta_zone="a", zone="b"), False),
        (labelled(zone="a"), labelled(beta_zone="a"), True),
        (labelled(beta_region="r"), labelled(region="r"), False),
        (labelled(zone="a", region="r"), labelled(zone="a", region="s"), True),
        (labelled(zone="a", region="r"), labelled(zone="a", region="r"), False),
    ],
)
def test_zone_and_region_labels_of_a_volume_must_match_the_nodes(
    volume_labels, node_labels, refusal
):
    assert refused(volume_labels, node_labels) == refusal
    assert refused(volume_labels, node_labels, prepared=False) == refusal


def test_invalid_labels_are_ignored():
    readable = volume("a", labels=((BETA_ZONE, "a__ b "), (ZONE, "a____b"), ("other", "x")))

    assert topologies_of(readable) == [(BETA_ZONE, ("a", "b"))]


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim("c", volume_name="gone")], 'persistentvolume "gone" not found'),
        (
            [claim("c", storage_class="")],
            "PersistentVolumeClaim had no pv name and storageClass name",
        ),
        ([claim("c")], 'storageclass.storage.k8s.io "local" not found'),
        (
            [claim("c"), replace(immediate("local"), binding_mode="")],
            'VolumeBindingMode not set for StorageClass "local"',
        ),
        ([claim("c"), immediate("local")], "PersistentVolume had no name"),
    ],
)
def test_a_claim_without_a_volume_rejects_the_pod(objects, text):
    plugin = plugin_over(*objects)
    pod_class = table_of(node("n1")).classes.pod_class(using("c"))

    status = plugin.pre_filter(CycleState(1), pod_class, None).status

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == (text,)


def test_a_claim_without_a_name_rejects_the_pod():
    pod_class = table_of(node("n1")).classes.pod_class(
        pod(volumes=(Volume("v", "persistentVolumeClaim", ()),))
    )

    status = plugin_over().pre_filter(CycleState(1), pod_class, None).status

    assert status.reasons == ("PersistentVolumeClaim had no name",)


@pytest.mark.parametrize(
    "objects", [[claim("c"), waiting("local")], [bound("c", "a"), volume("a")]]
)
def test_a_pod_whose_volumes_have_no_labels_is_skipped(objects):
    pod_class = table_of(node("n1")).classes.pod_class(using("c"))

    assert plugin_over(*objects).pre_filter(CycleState(1), pod_class, None).status == SKIP


def test_without_pre_filter_the_filter_reports_the_same():
    plugin = plugin_over(table=(table := table_of(node("n1"))))
    state = CycleState(1)

    found = plugin.filter(state, table.classes.pod_class(using("c")), table)
    assert found.statuses[0].reasons == ('persistentvolumeclaim "c" not found',)
    assert plugin.filter(state, table.classes.pod_class(pod()), table) == ALL_PASS


def test_the_signature_is_the_set_of_claims():
    plugin = plugin_over()

    assert plugin.sign(using("c")) != plugin.sign(using("d"))
    assert plugin.sign(using("c")) != plugin.sign(using("c", namespace="other"))
    assert plugin.sign(pod()) == plugin.sign(pod(namespace="other"))
