"""Claims of assumed pods: bindings, changes, and pods that bind nothing."""

from roadstead.cache.volumes import NOTHING_RESERVED, CacheVolumes
from roadstead.storage import BindingProfiles, StorageState
from roadstead.storage.claim_messages import NumberedStorageChanges
from tests.builders import node, pod
from tests.storage.world import claim, storage, using, volume, waiting

N1 = node("n1")


def cache_over():
    facts = storage(waiting("local"), claim("c"), volume("a"))
    return CacheVolumes(StorageState(facts), BindingProfiles(frozenset({"default-scheduler"})))


def test_the_cache_returns_the_changes_since_a_version():
    cache = cache_over()

    (binding,) = cache.assume("p", using("c"), N1).bindings
    cache.forget(["p"])

    assert cache.changes_since(0).changes[0] == binding.change
    assert cache.changes_since(1) == NumberedStorageChanges(1, (cache.log[1],))
    assert cache.changes_since(2) == NumberedStorageChanges(2)


def test_the_cache_ignores_pods_that_bind_nothing():
    cache = cache_over()

    assert cache.assume("p", pod(), N1) == NOTHING_RESERVED
    assert cache.assume("p", using("c"), None) == NOTHING_RESERVED
    assert cache.assume("p", using("c", scheduler_name="another"), N1) == NOTHING_RESERVED
    assert cache.assume("p", using("absent"), N1) is None
    assert cache.log == []


def test_pods_of_a_profile_without_claim_binding_bind_none():
    state = StorageState(storage(waiting("local"), claim("c"), volume("a")))
    cache = CacheVolumes(state, BindingProfiles(frozenset({"another"})))

    assert cache.assume("p", using("c"), N1) == NOTHING_RESERVED
