"""Pods that the verifier accepts as a batch are those that it would accept one by one."""

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from roadstead.binder import BinderCore, BindRequest
from roadstead.binder.verification import Verifier
from roadstead.config.model import default_config
from roadstead.facts.pod import HostPort
from roadstead.framework.plugin import (
    ON_NONE,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
)
from roadstead.framework.profile import Profile
from roadstead.placements import TableStore
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.status import SUCCESS, unschedulable
from tests.actors import fleets
from tests.builders import GPU, node, pod, profile_of, put, table_of

WEB = fleets.apps("web")
HTTP = (HostPort("0.0.0.0", "TCP", 80),)
KINDS = {
    "small": pod(cpu=500),
    "wide": pod(cpu=1000, memory=1000),
    "gpu": pod(cpu=100, others={GPU: 1}),
    "nothing": pod(),
    "port": pod(cpu=100, host_ports=HTTP),
    "placed": pod(cpu=100, node_selector={"topology.kubernetes.io/zone": "a"}),
    "web": pod(cpu=100, labels={"app": "web"}),
    "alone": pod(cpu=100, labels={"app": "web"}, pod_anti_affinity=(fleets.near(WEB),)),
    "beside": pod(cpu=100, labels={"app": "web"}, pod_affinity=(fleets.near(WEB),)),
    "even": pod(cpu=100, labels={"app": "web"}, spread_constraints=(fleets.spread(selector=WEB),)),
}


class Binder:
    """A binder over the real filters. at_once: it may accept batches as a whole."""

    def __init__(self, *, at_once):
        store = TableStore()
        handle = Handle(store.table.classes)
        self.table = store.table
        verifier = Verifier(
            self.table,
            {p.scheduler_name: Profile(p, in_tree_registry(), handle) for p in all_profiles()},
        )
        self.whole = self.at_once = self.singly = self.tries = 0
        self.verifier = verifier

        def verify_prefix(requests):
            found = verifier.verify_prefix(
                [each.facts for each in requests], [each.node_name for each in requests]
            )
            self.whole += found == len(requests)
            self.at_once += found
            self.tries += 1
            return found

        def verify(request):
            self.singly += 1
            return verifier.verify(request.facts, request.node_name)

        self.core = BinderCore(
            store,
            verify,
            verify_prefix=verify_prefix if at_once else lambda _: 0,
        )

    def bind(self, number, wanted):
        """Bind a batch of (kind, node); return its answer."""
        pods = [(f"{number}.{place}", kind, name) for place, (kind, name) in enumerate(wanted)]
        self.core.add_pods((uid, uid, KINDS[kind]) for uid, kind, _ in pods)
        effects = self.core.bind(
            [
                BindRequest(f"t{uid}", uid, uid, name, KINDS[kind], "scheduler-0", 1)
                for uid, kind, name in pods
            ]
        )
        return effects, self.core.flushed(self.core.last_lsn)


def all_profiles():
    return default_config().profiles


def both(*nodes):
    found = Binder(at_once=False), Binder(at_once=True)
    for binder in found:
        for facts in nodes:
            binder.core.add_node(facts)
    return found


def fleet():
    zones = ("a", "a", "b", "b")
    return [
        node(
            f"n{number}",
            cpu=8000,
            memory=9000,
            pods=40,
            others={GPU: 2},
            labels={"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": f"n{number}"},
        )
        for number, zone in enumerate(zones)
    ]


batches = st.lists(
    st.lists(
        st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(["n0", "n1", "n2", "n3"])),
        min_size=1,
        max_size=14,
    ),
    min_size=1,
    max_size=5,
)
few_kinds = st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2, unique=True).flatmap(
    lambda kinds: st.lists(
        st.lists(
            st.tuples(st.sampled_from(kinds), st.sampled_from(["n0", "n1", "n2", "n3"])),
            min_size=1,
            max_size=14,
        ),
        min_size=2,
        max_size=5,
    )
)


@given(batches | few_kinds)
@settings(max_examples=200, deadline=None)
def test_batch_commits_and_answers_equal_those_one_by_one(wanted):
    singly, at_once = both(*fleet())

    for number, batch in enumerate(wanted):
        assert at_once.bind(number, batch) == singly.bind(number, batch)

    event(f"batches let through as a whole: {min(at_once.whole, 3)}")
    event(f"pods let through at once: {at_once.at_once // 10 * 10}")
    assert singly.table.differences(at_once.table) == []
    at_once.core.validate()


@pytest.mark.parametrize(
    ("kind", "names", "number"),
    [
        ("small", ["n0"] * 16, 16),
        ("small", ["n0"] * 17, 16),
        ("small", [*["n1"] * 3, *["n0"] * 17, *["n1"] * 9], 19),
        ("gpu", ["n0", "n1", "n0", "n1"], 4),
        ("gpu", ["n0", "n1", "n0", "n0", "n1"], 3),
        ("port", ["n0", "n1"], 2),
        ("port", ["n0", "n0", "n1"], 1),
        ("placed", ["n0", "n1"], 2),
        ("placed", ["n0", "n2", "n1"], 1),
        ("alone", ["n0", "n2"], 2),
        ("alone", ["n0", "n1", "n2"], 1),
        ("beside", ["n0", "n1"], 0),
        ("even", ["n0", "n2", "n1", "n3"], 4),
        ("even", ["n0", "n1", "n2", "n3"], 1),
        ("even", ["n0", "n2", "n1", "n0", "n3"], 3),
    ],
)
def test_the_first_pods_are_accepted_as_far_as_each_fits_with_the_others(kind, names, number):
    _, binder = both(*fleet(), node("spare", cpu=90_000, others={GPU: 9}))
    # After a few pods of a class, its results by NODE facts are cached for all rows.
    for batch in range(5):
        binder.bind(batch, [(kind, "spare")])
    facts = [KINDS[kind]] * len(names)

    assert binder.verifier.verify_prefix(facts, names) == number


@pytest.mark.parametrize("refused", [0, 1, 200, 255, 256, 399])
def test_pods_after_one_that_does_not_fit_are_accepted_as_a_batch_too(refused):
    singly, at_once = both(
        *(node(f"n{number}", cpu=1000) for number in range(400)), node("full", cpu=100)
    )
    batch = [("small", f"n{number}") for number in range(400)]
    batch[refused] = ("small", "full")

    answers = [binder.bind(0, batch) for binder in (singly, at_once)]

    assert answers[0] == answers[1]
    assert at_once.singly == 1


def test_a_batch_without_fitting_pods_is_mostly_checked_once():
    singly, at_once = both(node("full", cpu=100))

    answers = [binder.bind(0, [("small", "full")] * 400) for binder in (singly, at_once)]

    assert answers[0] == answers[1]
    assert at_once.singly == 400
    assert at_once.tries < 20, "one check for many pods, not one each"


class OneInAll(PreFilterPlugin):
    """Accepts one pod in the whole cluster."""

    name = "OneInAll"
    reads = Reads.CLUSTER

    def sign(self, pod):
        return ""

    def pre_filter(self, state, pod, table):
        there = int(table.pod_count.sum())
        return PreFilterResult(unschedulable("one is there") if there else SUCCESS)


class AnyNumber(OneInAll):
    """Accepts all pods in the cluster, though it looks at them."""

    name = "AnyNumber"

    def effect(self, placed):
        return ON_NONE

    def pre_filter(self, state, pod, table):
        return PreFilterResult(SUCCESS)


@pytest.mark.parametrize(
    ("plugins", "fits"),
    [([OneInAll], False), ([AnyNumber], True), ([AnyNumber, OneInAll], False)],
)
def test_pods_that_a_users_plugin_separates_are_not_accepted_as_a_batch(plugins, fits):
    profile = profile_of({"preFilter": [each.name for each in plugins]}, plugins=plugins)
    table = table_of(*fleet())
    verifier = Verifier(table, {"default-scheduler": profile})
    pods, names = [pod()] * 3, ["n0", "n1", "n2"]

    assert all(
        verifier.verify(each, name).is_success for each, name in zip(pods, names, strict=True)
    )
    assert verifier.verify_prefix(pods, names) == (3 if fits else 0)
    assert verifier.verify_prefix(pods, names) == (3 if fits else 0)

    put(table, "n0", pod())

    assert verifier.verify(pod(), "n1").is_success is fits
    assert verifier.verify(pod(), "n1").is_success is fits


def test_a_new_class_is_checked_pod_by_pod():
    _, binder = both(*fleet())

    assert binder.verifier.verify_prefix([KINDS["small"]] * 2, ["n0", "n0"]) == 0


def test_a_single_pod_is_checked_once_with_any_cache():
    table = table_of(*fleet())
    verifier = Verifier(table, {"default-scheduler": profile_of({"preFilter": []}, plugins=[])})

    assert verifier.verify_prefix([pod()], ["n0"])
    with pytest.raises(KeyError):
        verifier.verify_prefix([pod()], ["nowhere"])


def test_a_class_with_many_pods_is_evaluated_as_a_batch():
    _, binder = both(*fleet())

    binder.bind(0, [("small", "n0")] * 3)

    assert binder.whole == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda core: core.bind([BindRequest("t9.0", "x", "x", "n1", KINDS["small"], "s", 1)]),
        lambda core: core.advance_epoch("scheduler-0", 2),
        lambda core: core.delete(["9.0"]),
        lambda core: core.void(["t9.0"]),
        lambda core: core.remove_node("n0"),
        lambda core: core.update_pods([("9.0", KINDS["wide"])]),
    ],
)
def test_a_batch_with_one_refused_bind_is_checked_pod_by_pod(spoil):
    singly, at_once = both(*fleet(), node("spare", cpu=90_000))
    for binder in (singly, at_once):
        for number in range(5):
            binder.bind(number, [("small", "spare")])
        binder.core.add_pods([("9.0", "9.0", KINDS["small"]), ("x", "x", KINDS["small"])])
        spoil(binder.core)
    before = at_once.whole

    requests = [
        BindRequest(f"t9.{n}", f"9.{n}", f"9.{n}", f"n{n}", KINDS["small"], "scheduler-0", 1)
        for n in range(2)
    ]
    answers = []
    for binder in (singly, at_once):
        binder.core.add_pods([("9.1", "9.1", KINDS["small"])])
        try:
            answers.append(binder.core.bind(requests))
        except Exception as refused:
            answers.append(str(refused))

    assert answers[0] == answers[1]
    assert at_once.whole == before


def test_a_batch_with_two_epochs_of_an_owner_is_checked_pod_by_pod():
    singly, at_once = both(*fleet(), node("spare", cpu=90_000))
    answers = []
    for binder in (singly, at_once):
        binder.bind(0, [("small", "spare")] * 5)
        binder.core.add_pods((uid, uid, KINDS["small"]) for uid in ("x", "y"))
        requests = [
            BindRequest(f"t{uid}", uid, uid, "n0", KINDS["small"], "scheduler-0", epoch)
            for uid, epoch in (("x", 2), ("y", 1))
        ]
        answers.append(binder.core.bind(requests))

    assert answers[0] == answers[1]
    assert [str(each.result.cause) for each in answers[0][:1]] == ["stale_epoch"]
