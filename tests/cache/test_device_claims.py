"""Claims of devices at the cache, as its pods are assumed, forgotten and evicted."""

from roadstead.cache import Assumption, CacheSettings, ClusterState, SchedulerCache
from roadstead.devices.state import DeviceState
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodIdentity
from roadstead.storage import BindingProfiles, StorageState
from tests.builders import node, pod
from tests.devices.fleet import devices, owned, with_template

BINDING = BindingProfiles(devices=frozenset({"default-scheduler"}))
P = Assumption("p", "default/p", with_template("p", "c-p"), "n1", "scheduler-0/1/1")


class Sent:
    """Receives changes; only those of claims are kept."""

    def __init__(self):
        self.claims = []

    def send(self, deltas):
        return None

    send_nodes = send_versions = send

    def send_storage(self, changes):
        self.claims += [(each.device_claims, each.removed_claims) for each in changes]


def world(*claims, **options):
    storage = StorageState(devices=DeviceState(devices(*(claims or (owned("c-p", "p"),)))))
    state = ClusterState.empty(storage, BINDING, CacheSettings(), partitions=1, **options)
    sent = Sent()
    cache = SchedulerCache(state, sent)
    cache.add_nodes(NodeList.of([node("n1")]))
    return cache, state, sent


def test_the_claim_of_a_victim_ends_though_its_assumption_was_forgotten_before():
    cache, state, sent = world()
    assert not cache.assume([P], 0.0).refused
    cache.finish_attempts([(P.uid, P.token)], (), (), (), 0.0)
    urgent = PodIdentity("u", "default", "u"), pod(cpu=100, priority=10)

    cache.nominate([urgent], ["n1"], [True], ["p"])

    assert not state.volumes.assumed_claims.storage.devices.claims
    assert sent.claims[-1] == ((), ("default/c-p",))


def test_the_claim_of_an_assumed_victim_ends_and_its_device_is_free():
    cache, state, _ = world()
    cache.assume([P], 0.0)
    found = state.volumes.assumed_claims.storage.devices

    cache.nominate([], [], [], ["p"])

    assert not found.claims
    assert not found.allocator.in_use.ids()
    state.volumes.assumed_claims.validate()


def test_devices_of_pods_that_end_before_a_new_cache_loads_commits_are_free_afterwards():
    """The binder sends its changes; a pod ends at binder and cache; then the changes arrive."""
    claims = owned("c-p", "p"), owned("c-q", "q")
    cache, state, _ = world(*claims)
    q = Assumption("q", "default/q", with_template("q", "c-q"), "n1", "scheduler-0/1/2")
    cache.assume([P, q], 0.0)
    cache.finish_attempts((), (), [P.uid, q.uid], (), 0.0)
    committed = tuple(state.volumes.log)

    cache, state, sent = world(*claims, awaits_commits=True)
    cache.remove_pods(["p"], revision=1)
    cache.load_storage(committed)

    found = state.volumes.assumed_claims.storage.devices
    assert [*found.claims] == ["default/c-q"]
    assert len(found.allocator.in_use.ids()) == 1
    assert [change for each in state.volumes.log for change in each.device_claims] == [
        change for claims, _ in sent.claims for change in claims
    ]
