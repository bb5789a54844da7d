"""A batch of pods with claims of devices is committed as if its pods came one after another."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from roadstead.binder import BinderSettings, BindRequest, Bound
from roadstead.binder.binder import Binder
from roadstead.binder.binder_journal import RunDescription
from roadstead.binder.verification import Verifier
from roadstead.config.model import default_config
from roadstead.facts.devices import AllocatedDevice, Allocation
from roadstead.facts.node_list import NodeList
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.journal import NullJournal
from roadstead.placements import TableStore
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.storage.claim_messages import AttemptBindings
from tests.builders import node, pod
from tests.devices.fleet import DRIVER, claim, cluster, owned, slice_of, using, with_template

NAMES = ("n1", "n2")
PODS = 12


def world():
    """Return a cluster of two nodes with three devices each; a claim for each pod, one shared."""
    own = [owned(f"c-p{n}", f"p{n}", count=1 + n % 2) for n in range(PODS)]
    slices = [slice_of(name, "d0", "d1", "d2") for name in NAMES]
    return cluster(*own, claim("shared"), slices=slices)


FACTS = world()


def begun():
    store = TableStore()
    handle = Handle(store.table.classes, FACTS)
    profiles = default_config().profiles
    found = {each.scheduler_name: Profile(each, in_tree_registry(), handle) for each in profiles}
    run = RunDescription(FACTS, profiles)
    binder = Binder(store, found, NullJournal(), run, BinderSettings())
    binder.add_nodes(NodeList.of([node(name, cpu=1000) for name in NAMES]))
    return binder


def allocated(each, node_name, devices):
    """Return a claim in flight with some devices of a node."""
    results = tuple(AllocatedDevice("r", DRIVER, node_name, name) for name in devices)
    return each.assumed_with(Allocation(results))


def requested(number, kind, node_name, devices, cpu_milli):
    """Return a bind request for a pod, and the bindings of its claims: the first devices."""
    uid = f"p{number}"
    own, shared = FACTS.devices.claims[number], FACTS.devices.claims[-1]
    facts, claims = {
        "own": lambda: (with_template(uid, own.name, cpu=cpu_milli), [own]),
        "shared": lambda: (using(uid, "shared", cpu=cpu_milli), [shared]),
        "unbound": lambda: (with_template(uid, own.name, cpu=cpu_milli), []),
        "plain": lambda: (pod(cpu=cpu_milli), []),
    }[kind]()
    request = BindRequest(f"t-{uid}", uid, f"default/{uid}", node_name, facts, "s", 1)
    # As a cache proposes them: as many as the claim requests.
    in_flight = tuple(
        allocated(each, node_name, devices[: each.spec.requests[0].count]) for each in claims
    )
    return request, AttemptBindings(request.token, (), in_flight)


def outcomes(results):
    return {
        token: ("bound", each.node_name)
        if isinstance(each, Bound)
        else (str(each.cause), each.status.code, each.status.reasons)
        for token, each in results.items()
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["own"] * 5 + ["shared", "unbound", "plain"]),
            st.sampled_from(NAMES),
            st.permutations(["d0", "d1", "d2"]),
            st.sampled_from([0, 100, 100, 400]),
        ),
        min_size=2,
        max_size=PODS,
    )
)
@settings(max_examples=150, deadline=None)
def test_a_batch_is_committed_as_pods_one_after_another(rows):
    asked = [
        requested(n, kind, name, devices, cpu) for n, (kind, name, devices, cpu) in enumerate(rows)
    ]
    at_once, singly = begun(), begun()
    for binder in (at_once, singly):
        binder.add_pending([(each.uid, each.key, each.facts) for each, _ in asked])
        # Once the classes are known, their results are cached for all rows.
        for each, _ in asked * 3:
            binder.verifier.verify(each.facts, each.node_name)

    found = at_once.bind([each for each, _ in asked], [volumes for _, volumes in asked])
    wanted = {}
    for each, volumes in asked:
        wanted |= singly.bind([each], [volumes])

    assert outcomes(found) == outcomes(wanted)
    assert dict(at_once.volumes.device_claims) == dict(singly.volumes.device_claims)
    assert at_once.volumes.log == singly.volumes.log
    event(f"bound: {sum(isinstance(each, Bound) for each in found.values()) // 3 * 3}")


def test_pods_with_claims_of_their_own_are_verified_together(monkeypatch):
    names = [NAMES[number // 2 % 2] for number in range(4)]
    devices = [["d0"], ["d1", "d2"], ["d0"], ["d1", "d2"]]
    asked = [requested(n, "own", names[n], devices[n], 100) for n in range(4)]
    binder, singly = begun(), []
    binder.add_pending([(each.uid, each.key, each.facts) for each, _ in asked])
    verify = Verifier.verify
    for each, _ in asked * 3:
        binder.verifier.verify(each.facts, each.node_name)
    monkeypatch.setattr(Verifier, "verify", lambda *what: singly.append(what) or verify(*what))

    found = binder.bind([each for each, _ in asked], [volumes for _, volumes in asked])

    assert all(isinstance(each, Bound) for each in found.values())
    assert not singly


def test_a_batch_that_fails_frees_all_its_devices(monkeypatch):
    asked = [requested(n, "own", "n1", [f"d{n}"], 100) for n in (0, 2)]
    binder = begun()
    binder.add_pending([(each.uid, each.key, each.facts) for each, _ in asked])
    for each, _ in asked * 3:
        binder.verifier.verify(each.facts, each.node_name)
    before, commit = dict(binder.volumes.device_claims), binder.volumes.commit

    def fails_for_the_second(token, facts, on):
        if token == asked[1][0].token:
            raise ZeroDivisionError
        return commit(token, facts, on)

    monkeypatch.setattr(binder.volumes, "commit", fails_for_the_second)
    try:
        binder.bind([each for each, _ in asked], [volumes for _, volumes in asked])
    except ZeroDivisionError:
        assert dict(binder.volumes.device_claims) == before
        assert binder.volumes.log == []
        binder.core.validate()
    else:
        raise AssertionError("the second commit failed")
