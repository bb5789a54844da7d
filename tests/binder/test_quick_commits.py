"""A quickly accepted batch has the same result as one that is decided request by request."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.binder import BindConflictError, BinderCore, BinderSettings, BindRequest, TableStore
from roadstead.binder.pods import BinderRecord
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import GroupMembership, PodFacts
from roadstead.protocol.status import SUCCESS
from tests.inside import counts_of

PLAIN, OTHER = PodFacts(requests=(("cpu", 100),)), PodFacts(requests=(("cpu", 200),))
GANG = replace(PLAIN, pod_group=GroupMembership("gang", 2))
FACTS = {"gang-0": GANG, "gang-1": GANG}
PODS = ("a", "b", "c", "d", "e", "f", "bound", "waits", "gone", *FACTS)


class Cores:
    """Two binders with one history, one of which may accept batches quickly."""

    def __init__(self, **chosen):
        self.verified = []
        self.both = [self._core(is_quick, **chosen) for is_quick in (False, True)]

    def _core(self, is_quick, **chosen):
        def verify(request):
            self.verified.append(is_quick)
            return SUCCESS

        core = BinderCore(
            TableStore(),
            verify,
            BinderSettings(**chosen),
            missing_members=lambda facts: 2 if facts.pod_group else 0,
            dry_run=lambda _: SUCCESS,
            verify_prefix=lambda asked: len(asked) if is_quick else 0,
            journals_all=True,
        )
        core.add_nodes(NodeList.of([NodeFacts("n0"), NodeFacts("n1")]))
        core.add_pods([(name, name, FACTS.get(name, PLAIN)) for name in PODS])
        core.bind([request("bound"), request("nobody")])
        core.delete(["gone"])
        core.void(["void"])
        core.flushed(core.last_lsn)
        core.bind([request("waits")])
        core.advance_epoch("fenced", 2)
        return core

    def bind(self, *requests):
        """Return the answer of both, which must be the same."""
        answers = []
        for core in self.both:
            try:
                effects = core.bind(requests)
            except BindConflictError as conflict:
                effects = [str(conflict)]
            answers.append(effects)
        singly, quick = self.both
        assert answers[0] == answers[1]
        assert pods_of(singly) == pods_of(quick)
        assert singly.placements.store.table.differences(quick.placements.store.table) == []
        assert counts_of(singly) == counts_of(quick)
        assert (singly.last_lsn, singly.version) == (quick.last_lsn, quick.version)
        for owner in ("s0", "s1", "fenced"):
            assert singly.current_epoch(owner) == quick.current_epoch(owner)
        for node_name in ("n0", "n1"):
            assert singly.row_versions.row(node_name) == quick.row_versions.row(node_name)
        quick.validate()
        return answers[0]

    def flush(self):
        singly, quick = self.both
        assert singly.flushed(singly.last_lsn) == quick.flushed(quick.last_lsn)


def pods_of(core):
    names = [each.name for each in fields(BinderRecord)]
    return [tuple(getattr(pod, name) for name in names) for pod in core.pods.present.values()]


def request(uid, node="n0", token="", owner="s0", epoch=1, facts=None, transaction="", read=99):
    facts = facts or FACTS.get(uid, PLAIN)
    return BindRequest(token or f"t-{uid}", uid, uid, node, facts, owner, epoch, read, transaction)


usual = st.builds(request, st.sampled_from(PODS[:6]), st.sampled_from(["n0", "n1"]))
peculiar = st.builds(
    request,
    st.sampled_from([*PODS, "nobody"]),
    st.sampled_from(["n0", "n0", "n1", "n9"]),
    st.sampled_from(["", "", "", "void", "same", "t-bound", "t-waits", "t-a"]),
    st.sampled_from(["s0", "s1", "fenced"]),
    st.sampled_from([1, 1, 2]),
    st.sampled_from([None, None, None, OTHER, replace(PLAIN)]),
    st.sampled_from(["", "", "", "job"]),
    st.sampled_from([0, 99]),
)
batches = st.one_of(
    st.lists(usual, max_size=6, unique_by=lambda each: each.uid),
    st.lists(st.one_of(usual, usual, peculiar), max_size=6),
)


@given(
    st.lists(batches, min_size=1, max_size=3),
    st.sampled_from([4, 5, 6, 100]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_quick_and_single_decisions_have_the_same_result(
    asked, max_unflushed, checks_versions, halts
):
    cores = Cores(max_unflushed=max_unflushed, checks_versions=checks_versions)
    for number, batch in enumerate(asked):
        cores.bind(*batch)
        if number == 1 and halts:
            for core in cores.both:
                core.flush_failed("disk is full")
        cores.flush()
    cores.bind(*asked[0])
    singly, quick = map(pods_of, cores.both)
    assert singly == quick


def test_a_batch_of_waiting_pods_is_accepted_without_checking_each():
    cores = Cores()
    cores.verified.clear()

    copies = [request(uid, facts=replace(PLAIN)) for uid in "ab"]
    (append,) = cores.bind(*copies, request("c", "n1", owner="s1"))

    assert [each.uid for each in append.records] == ["a", "b", "c"]
    assert set(cores.verified) == {False}


PECULIAR = {
    "nobody": [request("nobody", token="new")],
    "bound": [request("bound", token="new")],
    "waits": [request("waits", token="new")],
    "gone": [request("gone", token="new")],
    "other facts": [request("a", facts=OTHER)],
    "a copy and other facts": [request("a", facts=replace(PLAIN)), request("b", facts=OTHER)],
    "a gang of which one is missing": [request("gang-0")],
    "a broken transaction": [request("a", transaction="job"), request("gone", transaction="job")],
    "no node": [request("a", "n9")],
    "a void token": [request("a", token="void")],
    "a known token": [request("bound")],
    "a token that waits": [request("waits")],
    "a token twice": [request("a", token="t"), request("b", token="t")],
    "a pod twice": [request("a"), request("a", token="again")],
    "an old epoch": [request("a", owner="fenced", epoch=1)],
    "an old epoch beside others": [request("a"), request("b", owner="fenced", epoch=1)],
    "two epochs": [request("a", epoch=2), request("b", epoch=1)],
    "too many": [request(uid) for uid in "abcdef"],
}


@pytest.mark.parametrize("what", PECULIAR)
@pytest.mark.parametrize("usual_first", [False, True])
def test_a_batch_with_an_exceptional_request_is_decided_one_by_one(what, usual_first):
    cores = Cores(max_unflushed=6)

    cores.bind(*[request("e"), *PECULIAR[what]] if usual_first else PECULIAR[what])
    cores.flush()
    cores.bind(*PECULIAR[what], request("f"))
    singly, quick = map(pods_of, cores.both)
    assert singly == quick


def test_a_halted_or_version_checking_binder_decides_one_by_one():
    halted = Cores()
    for core in halted.both:
        core.flush_failed("disk is full")
    (answer,) = halted.bind(request("a"))
    assert answer.result.cause == "halted"

    (answer,) = Cores(checks_versions=True).bind(request("a", read=0, owner="s1"))
    assert answer.result.cause == "version"
