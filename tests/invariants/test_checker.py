import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.pod import (
    GroupMembership,
    HostPort,
    PodAffinityTerm,
    SpreadConstraint,
    Volume,
)
from roadstead.facts.pod_groups import PodGroup
from roadstead.facts.selectors import LabelSelector
from roadstead.facts.storage import (
    ClaimFacts,
    CsiNodeFacts,
    NodeDriverFacts,
    StorageFacts,
    VolumeFacts,
)
from roadstead.invariants.checker import Checker, check
from roadstead.journal import JournalRecord, RecordKind
from tests.builders import node, pod, require, taint, term, tolerate
from tests.invariants.history import History, started
from tests.storage.world import DRIVER, bound, storage, using, volume


def test_a_valid_history_has_no_violations():
    history = started().add(RecordKind.ADD, "a", facts=pod()).bind("a")
    history.add(RecordKind.LOAD, "b", "n1", facts=pod()).add(RecordKind.DELETE, "a", "n1")
    history.add(RecordKind.NODE_GONE, "n1", "n1").add(RecordKind.EVICT, "b", "n1")

    result = check(history.records)

    assert result.violations == []
    assert result.binds_checked == 1
    assert result.records == {
        "node": 1, "add": 1, "bind": 1, "load": 1, "delete": 1, "node_gone": 1, "evict": 1,
    }  # fmt: skip
    assert result.counts == {"evictions": 1}


def test_an_overfilled_node_is_reported_with_the_amounts():
    history = started(cpu=1000).bind("a", facts=pod(cpu=600)).bind("b", facts=pod(cpu=600))

    assert history.broken() == [("I1", 3, "cpu: 600 + 600 of 1000")]


def test_removed_pods_no_longer_fill_a_node():
    history = started(cpu=1000).bind("a", facts=pod(cpu=600))
    history.add(RecordKind.EVICT, "a", "n1").bind("b", facts=pod(cpu=600))

    assert history.broken() == []


def test_too_many_pods_and_a_port_used_twice_are_reported():
    port = pod(host_ports=(HostPort("0.0.0.0", "TCP", 80),))
    history = started(pods=1).bind("a", facts=port).bind("b", facts=port)

    assert history.broken() == [
        ("I1", 3, "2 pods on a node for 1"),
        ("I1", 3, "port TCP 80 is taken"),
    ]


def test_a_pod_is_bound_once_in_its_life():
    history = started().bind("a").add(RecordKind.DELETE, "a", "n1").bind("a", token="t2")

    assert history.broken() == [("I3", 4, "it was bound before")]


def test_a_pod_bound_twice_is_on_its_last_node():
    history = started(cpu=100).node(node("n2", cpu=100)).bind("a").bind("a", "n2", token="t2")

    assert history.bind("b", "n1").bind("c", "n2").broken() == [
        ("I3", 4, "it was bound before"),
        ("I1", 6, "cpu: 100 + 100 of 100"),
    ]


def test_a_pod_reported_on_another_node_stays_on_its_node():
    history = started(cpu=100).node(node("n2", cpu=100))
    for name in ("n1", "n2"):
        history.add(RecordKind.LOAD, "a", name, facts=pod(cpu=100))

    assert history.bind("b", "n2").bind("c", "n1").broken() == [
        ("I3", 4, "it is on n1 already"),
        ("I1", 6, "cpu: 100 + 100 of 100"),
    ]


def test_a_running_pod_counts_with_its_updated_facts():
    history = started(cpu=1000).bind("a", facts=pod(cpu=100))
    history.add(RecordKind.ADD, "a", "n1", facts=pod(cpu=800)).bind("b", facts=pod(cpu=300))

    assert history.broken() == [("I1", 4, "cpu: 800 + 300 of 1000")]


def test_the_volumes_of_a_running_pod_are_those_of_its_update():
    limited = CsiNodeFacts("n1", (NodeDriverFacts(DRIVER, 1),))
    facts = storage(limited, volume("v"), volume("w"), bound("c", "v"), bound("d", "w"))
    begun = History().add(RecordKind.CLUSTER, subject=ClusterFacts(storage=facts))
    history = begun.node(node("n1")).bind("a", facts=using("c"))

    history.add(RecordKind.ADD, "a", "n1", facts=pod()).bind("b", facts=using("d"))
    assert history.broken() == []
    history.add(RecordKind.ADD, "a", "n1", facts=using("c")).delete("b", "n1")
    assert history.bind("z", facts=using("d")).broken() == [
        ("I1", 8, f"volumes of {DRIVER}: 1 + 1 of 1")
    ]


def test_a_running_pod_does_not_move():
    history = started().node(node("n2")).add(RecordKind.LOAD, "a", "n1", facts=pod())

    assert history.add(RecordKind.LOAD, "a", "n2", facts=pod()).broken() == [
        ("I3", 4, "it is on n1 already")
    ]


def test_only_accepted_pods_are_bound_if_the_journal_has_acceptances():
    history = started().add(RecordKind.ADD, "a", facts=pod()).bind("b")

    assert history.broken() == [("I4", 3, "it was never accepted")]


def test_a_token_has_one_effect_and_an_old_epoch_none():
    history = started().bind("a", token="t", epoch=2).bind("b", token="t", epoch=1)

    assert history.broken() == [
        ("I8", 3, "its token is that of a"),
        ("I8", 3, "s: epoch 1 after 2"),
    ]


def test_record_numbers_only_increase():
    history = started().bind("a")
    history.records[1] = history.records[1]._replace(lsn=1)

    assert history.broken() == [("I7", 1, "record 1 follows 1")]


def test_an_unknown_node_accepts_no_pod():
    assert History().bind("a").broken() == [("I2", 1, "the node is not there")]


def test_a_removed_node_accepts_no_pod_until_it_is_added_again():
    history = started().add(RecordKind.NODE_GONE, "n1", "n1").bind("a")

    assert history.broken() == [("I2", 3, "the node is not there")]
    assert started().add(RecordKind.NODE_GONE, "n1", "n1").node(node("n1")).bind("a").broken() == []


@pytest.mark.parametrize("operator", ["", "Equal"])
def test_a_toleration_with_a_value_matches_that_value_only(operator):
    history = started(taints=(taint("gpu", "a100"),))
    history.bind("a", facts=pod(tolerations=(tolerate("gpu", "a100", operator=operator),)))
    history.bind("b", facts=pod(tolerations=(tolerate("gpu", "h100", operator=operator),)))

    assert history.broken() == [("I2", 3, "taint gpu=a100:NoSchedule")]


def test_a_toleration_of_a_key_matches_any_value():
    any_gpu = pod(tolerations=(tolerate("gpu", operator="Exists"),))

    assert started(taints=(taint("gpu", "a100"),)).bind("a", facts=any_gpu).broken() == []


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize(("label", "limit"), [("many", "4"), (None, "4"), ("4", "many")])
def test_a_non_number_is_neither_greater_nor_less(operator, label, limit):
    labels = {} if label is None else {"cores": label}
    picky = pod(required_node_terms=(term(require("cores", operator, limit)),))

    assert started(labels=labels).bind("a", facts=picky).broken() == [
        ("I2", 2, "node selector or required node affinity")
    ]


@pytest.mark.parametrize(("policy", "is_even"), [("Honor", True), ("Ignore", False)])
def test_only_selected_nodes_count_where_the_constraint_honors_affinity(policy, is_even):
    web = LabelSelector((require("app", "In", "web"),))
    even = SpreadConstraint("zone", 1, "DoNotSchedule", web, 1, policy, "Ignore", ())
    spread = pod(labels={"app": "web"}, node_selector={"disk": "ssd"}, spread_constraints=(even,))
    history = History().node(node("n1", labels={"zone": "a", "disk": "ssd"}))
    history.node(node("n2", labels={"zone": "b"}))

    history.bind("a", facts=spread).bind("b", facts=spread)

    too_many = [("I2", 4, "skew 2 over zone is more than 1")]
    assert history.broken() == ([] if is_even else too_many)


def test_only_nodes_with_tolerated_taints_count_where_taints_are_honored():
    web = LabelSelector((require("app", "In", "web"),))
    even = SpreadConstraint("zone", 1, "DoNotSchedule", web, 1, "Ignore", "Honor", ())
    spread = pod(
        labels={"app": "web"},
        tolerations=(tolerate("gpu", operator="Exists"),),
        spread_constraints=(even,),
    )
    both = (taint("gpu", "", "NoSchedule"), taint("slow", "", "NoSchedule"))
    history = History().node(node("n1", labels={"zone": "a"}))
    history.node(node("n2", labels={"zone": "b"}, taints=both))

    history.bind("a", facts=spread).bind("b", facts=spread)
    assert history.broken() == []

    history.node(node("n3", labels={"zone": "c"})).bind("c", facts=spread)
    assert history.broken() == [("I2", 6, "skew 3 over zone is more than 1")]


def test_an_evicted_pod_was_bound():
    assert started().add(RecordKind.EVICT, "a", "n1").broken() == [
        ("I3", 2, "it is evicted and was not bound")
    ]


def test_a_waiting_pod_may_be_evicted_and_is_never_bound():
    history = started().accept("a").add(RecordKind.EVICT, "a", "")
    assert history.broken() == []
    assert history.bind("a").broken() == [("I4", 4, "it was deleted before")]


def test_a_bound_pod_is_evicted_from_its_own_node():
    history = started().bind("a").add(RecordKind.EVICT, "a", "")
    assert history.broken() == [("I5", 3, "its room is given back, but it is on n1")]


def test_a_claim_for_a_single_pod_is_not_shared():
    alone = ("ReadWriteOncePod",)
    claim = ClaimFacts("default", "data", "", "", "pv", has_bind_completed=True, access_modes=alone)
    cluster = ClusterFacts(storage=StorageFacts((VolumeFacts("pv"),), (claim,)))
    user = pod(volumes=(Volume("v", "persistentVolumeClaim", (("claimName", "data"),)),))
    history = started().add(RecordKind.CLUSTER, subject=cluster)

    assert history.bind("a", facts=user).bind("b", facts=user).broken() == [
        ("I2", 4, "claim default/data is for one pod alone")
    ]


@pytest.mark.parametrize("filters", [(), ("NodePorts",)])
def test_a_profile_is_checked_by_its_own_filters_only(filters):
    history = started(cpu=100)
    history.add(RecordKind.CLUSTER, subject=Rules((("default-scheduler", filters),)))

    assert history.bind("a", facts=pod(cpu=600)).broken() == []


@pytest.mark.parametrize(
    ("operator", "is_near"), [("NotIn", True), ("DoesNotExist", True), ("In", False)]
)
def test_a_namespace_selector_met_by_no_labels_selects_every_namespace(operator, is_near):
    chosen = LabelSelector((require("team", operator, *(["b"] if "In" in operator else [])),))
    web = LabelSelector((require("app", "In", "web"),))
    near = pod(pod_affinity=(PodAffinityTerm("zone", web, (), chosen),))
    cluster = ClusterFacts(namespaces=(("default", (("team", "a"),)), ("other", (("team", "b"),))))
    history = History().add(RecordKind.CLUSTER, subject=cluster)
    history.node(node("n1", labels={"zone": "z"}))
    history.bind("a", facts=pod(labels={"app": "web"})).bind("b", facts=near)

    refusal = [("I2", 4, "affinity over zone: no such pod is near")]
    assert history.broken() == ([] if is_near else refusal)


def test_a_partly_bound_gang_is_broken():
    member = pod(pod_group=GroupMembership("g", 2))
    history = started().bind("a", facts=member)

    assert history.broken() == [("I10", 0, "1 of at least 2 pods of group default/g were bound")]
    assert history.bind("b", facts=member).broken() == []


def test_pods_without_a_gang_count_for_none():
    member = pod(pod_group=GroupMembership("g", 2))
    history = started().bind("a", facts=member).bind("plain").bind("b", facts=member)

    assert history.broken() == []
    assert started().bind("a", facts=member).bind("plain").broken() == [
        ("I10", 0, "1 of at least 2 pods of group default/g were bound")
    ]


def test_members_of_a_gang_may_have_been_deleted_before_a_snapshot():
    member = pod(pod_group=GroupMembership("g", 2))
    history = started().add(RecordKind.LOAD, "a", "n1", token="t", facts=member)

    assert history.broken() == [("I10", 0, "1 of at least 2 pods of group default/g were bound")]
    history.delete("b")
    history.records[-1] = history.records[-1]._replace(lsn=0)
    assert history.broken() == []


def test_earlier_deleted_members_count_only_for_gangs_in_a_snapshot():
    member = pod(pod_group=GroupMembership("g", 2))
    broken = [("I10", 0, "1 of at least 2 pods of group default/g were bound")]
    gone_before = started().delete("b")
    gone_before.records[-1] = gone_before.records[-1]._replace(lsn=0)

    # It was bound after the snapshot.
    assert gone_before.bind("a", facts=member).broken() == broken
    gone_before.records.pop()
    # It ran from the start, and was never bound.
    assert gone_before.add(RecordKind.LOAD, "a", "n1", facts=member).broken() == broken
    kept = started().add(RecordKind.LOAD, "a", "n1", token="t", facts=member)
    # It was deleted later: its gang is known.
    assert kept.delete("b").broken() == broken


def test_a_member_bound_again_counts_as_one_member():
    member = pod(pod_group=GroupMembership("g", 2))
    loaded, again = started(), started().bind("a", facts=member).delete("a", "n1")
    for _ in range(2):
        loaded.add(RecordKind.LOAD, "a", "n1", facts=member)
    again.bind("a", token="t2", facts=member)

    text = "1 of at least 2 pods of group default/g were bound"
    assert loaded.broken() == [("I10", 0, text)]
    assert again.broken() == [("I3", 4, "it was bound before"), ("I10", 0, text)]


def test_pods_define_the_minimum_of_a_gang_without_a_pod_group():
    cluster = ClusterFacts(pod_groups=(PodGroup("default", "g"),))
    begun = History().add(RecordKind.CLUSTER, subject=cluster).node(node("n1"))

    assert begun.bind("a", facts=pod(pod_group=GroupMembership("g"))).broken() == []
    assert begun.bind("b", facts=pod(pod_group=GroupMembership("g", 3))).broken() == [
        ("I10", 0, "2 of at least 3 pods of group default/g were bound")
    ]


def test_the_pod_group_may_define_the_minimum_of_a_gang():
    member = pod(pod_group=GroupMembership("g"))
    cluster = ClusterFacts(pod_groups=(PodGroup("default", "g", 3), PodGroup("default", "h")))
    history = History().add(RecordKind.CLUSTER, subject=cluster).node(node("n1"))

    assert history.bind("a", facts=member).broken() == [
        ("I10", 0, "1 of at least 3 pods of group default/g were bound")
    ]


def test_records_without_required_fields_are_refused():
    for kind in (RecordKind.NODE, RecordKind.CLUSTER, RecordKind.LOAD):
        with pytest.raises(AssertionError, match="record 1 has no"):
            Checker().apply(JournalRecord(1, kind, "a", "a", "n1"))
    checker = Checker()
    with pytest.raises(AssertionError, match="record 1 has no facts"):
        checker.apply(JournalRecord(1, RecordKind.BIND, "a", "a", "n1"))
