"""Claims of assumed pods: bindings, changes, and pods that bind nothing."""

from roadstead.cache.volumes import NOTHING_RESERVED, CacheVolumes
from roadstead.storage import BindingProfiles, StorageState
from roadstead.storage.claim_messages import NumberedStorageChanges
from tests.builders import node, pod
from tests.storage.world import claim, storage, using, volume, waiting

N1 = node("n1")


def cache_over(**options):
    facts = storage(waiting("local"), claim("c"), volume("a"))
    binding = BindingProfiles(frozenset({"default-scheduler"}))
    return CacheVolumes(StorageState(facts), binding, **options)


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


def test_a_cache_that_replaces_another_one_undoes_assumptions_before_it_loads_commits():
    """A message of an earlier scheduler may arrive first; the claim then stays bound as committed,
    also when that attempt is forgotten.
    """
    before = cache_over()
    before.assume("p", using("c"), N1)
    committed = before.log
    cache = cache_over(awaits_commits=True)
    cache.assume("q", using("c"), N1)

    cache.load(committed)
    cache.load(committed)
    cache.forget(["q"])

    assert cache.log[-len(committed) :] == committed
    assert cache.assumed_claims.holders() == ()
    assert cache.assumed_claims.storage.claims["default/c"].volume_name == "a"


def test_a_cache_that_begins_loads_commits_only_before_its_own_changes():
    cache = cache_over()
    cache.assume("p", using("c"), N1)
    before = list(cache.log)

    cache.load(before)

    assert cache.log == before
