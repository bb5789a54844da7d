"""Requests to extenders and the meaning of their answers, with a caller that replays answers."""

from dataclasses import fields, replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.extender import Extender, ExtenderPod, Victims, shown_url
from roadstead.extenders.http import HttpCaller
from roadstead.extenders.manifests import node_manifest, pod_manifest
from roadstead.extenders.replies import read_binding, read_filter, read_priorities, read_victims
from roadstead.extenders.sequence import EXTENDER, Extenders
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import HostPort, PodFacts, PodIdentity, PreferredNodeTerm
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint, Toleration
from roadstead.protocol.status import Code, Status
from tests.extenders.servers import Server, config_of
from tests.plugins.test_signatures import VALUES

N1, N2, N3 = (NodeFacts(name) for name in ("n1", "n2", "n3"))
POD = ExtenderPod(
    PodIdentity("uid-p", "ns", "p"), PodFacts("ns", requests=(("cpu", 500), ("x/gpu", 1)))
)


NOT_SENT = {
    # The identity has the namespace; containers are sent one for each image.
    *("namespace", "container_count"),
    # The first container has all requests of the pod.
    *("nonzero_cpu_milli", "nonzero_memory_bytes", "container_requests"),
    *("is_terminating", "is_preempted", "owner", "pod_group", "scheduling_gates"),
    *("pod_affinity", "pod_anti_affinity", "preferred_pod_affinity"),
    *("preferred_pod_anti_affinity", "spread_constraints"),
    *("volumes", "device_claims", "claims_as"),
}
"""Facts of pods that a request to an extender does not have."""


class Replay:
    """A caller that answers each verb with one reply, or raises it."""

    def __init__(self, **replies):
        self.replies = replies
        self.asked = []

    def call(self, verb, payload):
        self.asked.append((verb, payload))
        reply = self.replies[verb]
        if isinstance(reply, Exception):
            raise reply
        return reply


class Replayed(Extender):
    """An extender with its requests: `asked`."""

    def __init__(self, config, caller):
        super().__init__(config, caller)
        self.asked = caller.asked


def extender(replies, managed=(), cache=True, **fields):
    verbs = {f"{verb}_verb": verb for verb in replies}
    config = config_of(managed=managed, node_cache_capable=cache, weight=3, **verbs, **fields)
    return Replayed(config, Replay(**replies))


def chain(*extenders):
    return Extenders(list(extenders))


def refused(code, why):
    return Status(code, (why,), EXTENDER)


def test_an_extender_with_a_node_cache_gets_and_returns_names():
    one = extender({"filter": {"NodeNames": ["n2"], "FailedNodes": {"n1": "no gpu"}}})

    passed = chain(one).filter(POD, [N1, N2])

    assert passed.nodes == [N2]
    assert passed.refused == {"n1": refused(Code.UNSCHEDULABLE, "no gpu")}
    (verb, payload), *_ = one.asked
    assert (verb, payload["Nodes"], payload["NodeNames"]) == ("filter", None, ["n1", "n2"])


def test_an_extender_without_a_node_cache_gets_and_returns_nodes():
    one = extender({"filter": {"Nodes": {"items": [{"metadata": {"name": "n1"}}]}}}, cache=False)

    passed = chain(one).filter(POD, [N1, N2])

    assert (passed.nodes, passed.refused) == ([N1], {})
    sent = one.asked[0][1]
    assert sent["NodeNames"] is None
    assert [each["metadata"]["name"] for each in sent["Nodes"]["items"]] == ["n1", "n2"]


def test_extenders_are_called_in_turn_with_the_remaining_nodes():
    first = extender({"filter": {"NodeNames": ["n3", "n2"]}})
    second = extender({"filter": {"NodeNames": ["n2"]}})
    third = extender({"filter": {"NodeNames": []}})
    never = extender({"filter": {"NodeNames": []}})

    passed = chain(first, second, third, never).filter(POD, [N1, N2, N3])

    assert passed.nodes == []
    assert second.asked[0][1]["NodeNames"] == ["n3", "n2"]
    assert never.asked == []


def test_a_reason_that_preemption_can_not_change_overrides_one_that_it_can():
    reply = {
        "NodeNames": [],
        "FailedNodes": {"n1": "full", "n2": "full"},
        "FailedAndUnresolvableNodes": {"n1": "broken", "elsewhere": "unknown"},
    }

    passed = chain(extender({"filter": reply})).filter(POD, [N1, N2])

    assert passed.refused == {
        "n1": refused(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "broken"),
        "n2": refused(Code.UNSCHEDULABLE, "full"),
        "elsewhere": refused(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "unknown"),
    }


def test_an_extender_that_names_an_unknown_node_fails():
    one = extender({"filter": {"NodeNames": ["n9"]}})

    with pytest.raises(ExtenderError, match='claims a filtered node "n9" which is not found'):
        chain(one).filter(POD, [N1])


def test_a_failure_ends_the_filter_unless_the_extender_is_ignorable():
    failing = {"filter": {"Error": "no licence"}}

    with pytest.raises(ExtenderError, match=r"^no licence$"):
        chain(extender(failing)).filter(POD, [N1])
    assert chain(extender(failing, ignorable=True)).filter(POD, [N1]).nodes == [N1]


def test_an_extender_without_the_verb_keeps_every_node():
    assert chain(extender({})).filter(POD, [N1, N2]).nodes == [N1, N2]


def test_only_pods_that_request_a_managed_resource_are_sent():
    mine = extender({"filter": {}}, managed=("x/gpu",))
    other = extender({"filter": {}}, managed=("y/fpga",))

    assert chain(other, mine).handles(POD.facts)
    assert not chain(other).handles(POD.facts)
    assert chain(other).filter(POD, [N1]).nodes == [N1]
    assert not chain(extender({"bind": {}})).handles(POD.facts)


def test_scores_are_weighted_scaled_and_summed_and_failures_count_zero():
    first = extender({"prioritize": [{"Host": "n1", "Score": 4}, {"host": "n2", "score": 10}]})
    second = extender({"prioritize": [{"Host": "n1", "Score": 1}, {"Host": "n9"}]})
    failing = extender({"prioritize": ExtenderError("gone")})

    scores = chain(first, failing, second, extender({})).prioritize(POD, [N1, N2])

    assert scores == {"n1": 150, "n2": 300, "n9": 0}


def test_the_chain_supports_the_verbs_of_all_its_extenders():
    all_of_it = chain(extender({"filter": {}}), extender({"prioritize": []}))

    assert len(all_of_it) == 2
    assert (all_of_it.any_filters, all_of_it.any_prioritizers) == (True, True)
    assert not all_of_it.has_binder_for(POD.facts)
    assert not all_of_it.preempts(POD.facts)
    assert chain(extender({"filter": {}})).wants_manifests is False
    assert chain(extender({"filter": {}}, cache=False)).wants_manifests is True


def test_the_first_interested_binder_binds():
    skipped = extender({"bind": ExtenderError("gone")}, ignorable=True)
    binder = extender({"bind": {"Error": ""}})

    took = chain(extender({}), skipped, binder)

    assert took.has_binder_for(POD.facts)
    assert took.bind(POD.identity, POD.facts, "n1") is True
    assert binder.asked == [
        ("bind", {"PodName": "p", "PodNamespace": "ns", "PodUID": "uid-p", "Node": "n1"})
    ]
    assert binder.url == "http://127.0.0.1:1/scheduler"
    assert chain(skipped).bind(POD.identity, POD.facts, "n1") is False
    with pytest.raises(ExtenderError, match="taken"):
        chain(extender({"bind": {"Error": "taken"}})).bind(POD.identity, POD.facts, "n1")


A, B = (ExtenderPod(PodIdentity(f"uid-{name}", "ns", name), PodFacts("ns")) for name in "ab")
CANDIDATES = {"n1": Victims((A,), 1), "n2": Victims((A, B))}


def test_an_extender_chooses_among_the_candidates_of_a_preemption():
    reply = {"n2": {"Pods": [{"UID": "uid-b"}], "NumPDBViolations": 2}}
    one = extender({"preempt": {"NodeNameToMetaVictims": reply}})

    assert chain(one).preempts(POD.facts)
    assert chain(extender({}), one).process_preemption(POD, CANDIDATES) == {"n2": Victims((B,), 2)}
    payload = one.asked[0][1]
    assert payload["NodeNameToVictims"] is None
    assert payload["NodeNameToMetaVictims"] == {
        "n1": {"Pods": [{"UID": "uid-a"}], "NumPDBViolations": 1},
        "n2": {"Pods": [{"UID": "uid-a"}, {"UID": "uid-b"}], "NumPDBViolations": 0},
    }


def test_a_victim_that_is_listed_twice_is_one_victim():
    reply = {"n2": {"Pods": [{"UID": "uid-b"}, {"UID": "uid-a"}, {"UID": "uid-b"}]}}
    one = extender({"preempt": {"NodeNameToMetaVictims": reply}})

    assert chain(one).process_preemption(POD, CANDIDATES) == {"n2": Victims((B, A))}


def test_an_extender_without_a_node_cache_gets_complete_victims():
    one = extender({"preempt": {}}, cache=False)
    last = extender({"preempt": {}})

    assert chain(one, last).process_preemption(POD, CANDIDATES) == {}
    sent = one.asked[0][1]["NodeNameToVictims"]["n2"]["Pods"]
    assert [each["metadata"]["uid"] for each in sent] == ["uid-a", "uid-b"]
    assert last.asked == []


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"n1": {"Pods": [{"UID": "uid-z"}]}}, "claims to preempt pod"),
        ({"n9": {"Pods": [{"UID": "uid-a"}]}}, 'nodeinfo not found for node name "n9"'),
        ({"n1": {"Pods": []}, "n2": {"Pods": [{"UID": "uid-a"}]}}, "expected at least one victim"),
    ],
)
def test_invalid_victims_are_refused_or_ignored(reply, why):
    replies = {"preempt": {"NodeNameToMetaVictims": reply}}

    with pytest.raises(ExtenderError, match=why):
        chain(extender(replies)).process_preemption(POD, CANDIDATES)
    left = chain(extender(replies, ignorable=True)).process_preemption(POD, CANDIDATES)
    assert left == (CANDIDATES if "expected" not in why else {"n2": Victims((A,))})


@pytest.mark.parametrize(
    ("read", "reply", "why"),
    [
        (read_binding, [], "the reply: list of 0 is not an object"),
        (read_binding, {"error": 5}, "Error: 5 is not a string"),
        (read_priorities, {"Host": "n"}, "the reply: dict of 1 is not a list"),
        (read_priorities, [{"Host": "n", "Score": 1.5}], "Score: 1.5 is not a whole number"),
        (read_priorities, [{"Host": "n", "Score": True}], "Score: True is not a whole number"),
        (read_priorities, [{"Score": 2**63}], "is not a number of 64 bits"),
        (read_victims, {"NodeNameToMetaVictims": {"n": {"Pods": [1]}}}, "a victim: 1 is not"),
    ],
)
def test_replies_of_another_shape_are_reported(read, reply, why):
    with pytest.raises(ExtenderError, match=f"gave an invalid answer: .*{why}"):
        read(reply)


@pytest.mark.parametrize(
    "reply",
    [
        {"NodeNames": "n1"},
        {"NodeNames": [1]},
        {"FailedNodes": {"n1": 3}},
        {"FailedNodes": []},
        {"Error": []},
        "n1",
    ],
)
def test_filter_replies_of_another_shape_are_reported(reply):
    with pytest.raises(ExtenderError, match="gave an invalid answer"):
        read_filter(reply, names_first=True)


def test_null_equals_a_missing_value():
    result = read_filter({"Nodes": None, "FailedNodes": None, "error": None}, names_first=True)

    assert (result.names, result.failed, result.unresolvable) == (None, {}, {})
    assert read_priorities(None) == []
    assert chain(extender({"filter": None})).filter(POD, [N1]).nodes == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["NodeNames", "Nodes", "items", "metadata", "Error", "Pods", "Host"])
            | st.sampled_from(["name", "FailedNodes", "Score", "UID", "NodeNameToMetaVictims"]),
            inner,
            max_size=4,
        )
    ),
)


@given(JSON)
def test_no_reply_causes_more_than_a_failure(reply):
    filters = [partial(read_filter, names_first=names_first) for names_first in (True, False)]

    failures = [
        failure_of(partial(read, reply))
        for read in (read_binding, read_priorities, read_victims, *filters)
    ]

    assert all(each is None or each for each in failures), "a failure has a message"


def failure_of(read):
    """The text of a read's ExtenderError, None without one."""
    try:
        read()
    except ExtenderError as failure:
        return str(failure)
    return None


def test_a_node_is_sent_with_all_its_known_fields():
    facts = NodeFacts(
        "n1",
        labels=(("zone", "a"),),
        allocatable=(("cpu", 4000), ("memory", 1024)),
        allocatable_pods=10,
        taints=(Taint("t", "", "NoSchedule"),),
        unschedulable=True,
        images=(("i:1", 5),),
    )

    amounts = {"cpu": "4000m", "memory": "1024", "pods": "10"}
    assert node_manifest(facts) == {
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}], "unschedulable": True},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "images": [{"names": ["i:1"], "sizeBytes": 5}],
        },
    }


def test_a_pod_is_sent_with_all_its_known_fields():
    zone = Requirement("zone", "In", ("a",))
    named = Requirement("metadata.name", "In", ("n1",))
    facts = PodFacts(
        "ns",
        priority=5,
        requests=(("cpu", 100),),
        tolerations=(Toleration("t", "Exists"),),
        host_ports=(HostPort("0.0.0.0", "TCP", 80),),
        images=("i:1", "j:2"),
        required_node_terms=(NodeSelectorTerm((zone,), (named,)),),
        preferred_node_terms=(PreferredNodeTerm(7, NodeSelectorTerm((zone,))),),
        nominated_node_name="n1",
    )

    manifest = pod_manifest(PodIdentity("u", "ns", "p"), facts)

    expression = {"key": "zone", "operator": "In", "values": ["a"]}
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    port = {"hostIP": "0.0.0.0", "hostPort": 80, "containerPort": 80, "protocol": "TCP"}
    assert manifest["metadata"] == {"name": "p", "namespace": "ns", "uid": "u"}
    assert manifest["status"] == {"phase": "Pending", "nominatedNodeName": "n1"}
    assert manifest["spec"] == {
        "schedulerName": "default-scheduler",
        "priority": 5,
        "preemptionPolicy": "PreemptLowerPriority",
        "containers": [
            {
                "name": "container-0",
                "image": "i:1",
                "resources": {"requests": {"cpu": "100m"}},
                "ports": [port],
            },
            {"name": "container-1", "image": "j:2"},
        ],
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [expression], "matchFields": [field]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "preference": {"matchExpressions": [expression]}}
                ],
            }
        },
    }


@pytest.mark.parametrize("name", sorted(each.name for each in fields(PodFacts)))
def test_a_fact_of_a_pod_is_sent_or_listed_as_not_sent(name):
    one, *others = (
        pod_manifest(POD.identity, replace(POD.facts, **{name: value}))
        for value in (getattr(POD.facts, name), *VALUES.get(name, ("another",)))
    )
    is_sent = any(each != one for each in others)

    assert is_sent is (name not in NOT_SENT), (
        f"send {name} in extenders/manifests.py or add it to NOT_SENT in this module, not both"
    )


def test_a_url_is_shown_without_its_password():
    assert shown_url("http://u:p@h:1/a@b") == "http://h:1/a@b"
    assert shown_url("http://h") == "http://h"


def test_a_chain_of_real_servers_is_called_in_order():
    def answer(verb, payload):
        if verb == "filter":
            return {"NodeNames": payload["NodeNames"][1:]}
        return [{"Host": name, "Score": 5} for name in payload["NodeNames"]]

    with Server(answer) as server:
        fields = {"filter_verb": "filter", "prioritize_verb": "rate", "weight": 2}
        config = config_of(server.port, node_cache_capable=True, **fields)
        extenders = Extenders.build([config], HttpCaller)

        assert extenders.filter(POD, [N1, N2]).nodes == [N2]
        assert extenders.prioritize(POD, [N2]) == {"n2": 100}
