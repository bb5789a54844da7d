from dataclasses import replace

import pytest

from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.storage import ClaimReference
from roadstead.storage import AssumedClaims, StorageChange, StorageState
from roadstead.storage.claim_messages import AttemptBindings
from roadstead.storage.state import MAX_CHANGES_REMEMBERED
from tests.builders import GIB, node, pod
from tests.storage.world import DRIVER, HOST, claim, storage, using, volume, waiting, within

N1, N2 = (node(name, labels={HOST: name}) for name in ("n1", "n2"))


def asked(*bindings):
    return AttemptBindings("token", bindings)


def claims_of(*objects):
    return AssumedClaims(StorageState(storage(waiting("local"), waiting("made", DRIVER), *objects)))


def copied(found):
    """Return the storage of another process that applied every change."""
    return AssumedClaims(
        StorageState(
            storage(
                *found.storage.classes.values(),
                *found.storage.claims.values(),
                *found.storage.volumes.values(),
            )
        )
    )


def test_a_claim_is_bound_when_its_pod_is_assumed_and_free_when_it_is_forgotten():
    found = claims_of(claim("c"), volume("a"))

    reserved = found.assume("p", using("c"), N1)
    assert found.storage.claims["default/c"].volume_name == "a"
    assert reserved.changes == tuple(each.change for each in reserved.bindings)
    found.validate()

    (undone,) = found.forget("p")
    assert undone.claims == (claim("c"),)
    assert found.storage.claims["default/c"] == claim("c")
    assert found.storage.volumes["a"] == volume("a")
    found.validate()


def test_assuming_twice_equals_assuming_once():
    found = claims_of(claim("c"), volume("a"))

    first = found.assume("p", using("c"), N1)
    again = found.assume("p", using("c"), N1)

    assert again.bindings == first.bindings
    assert again.changes == ()


def test_pods_that_share_a_claim_keep_its_binding_until_the_last_is_forgotten():
    found = claims_of(claim("c"), volume("a"))
    first = found.assume("p", using("c"), N1)
    second = found.assume("q", using("c"), N1)

    assert second.bindings == first.bindings
    assert found.forget("p") == ()
    found.validate()
    assert len(found.forget("q")) == 1
    assert not found.storage.claims["default/c"].is_bound


def test_pods_with_assumed_claims_are_listed_until_they_are_forgotten_or_confirmed():
    found = claims_of(claim("c"), volume("a"))
    found.assume("p", using("c"), N1)
    found.assume("q", using("c"), N1)
    assert found.holders() == ("p", "q")
    assert found.keys_of("q") == ("default/c",)

    found.forget("p")
    found.confirm("q")

    assert found.holders() == found.keys_of("q") == ()


def test_a_claim_stays_bound_once_one_of_its_pods_is_committed():
    found = claims_of(claim("c"), volume("a"))
    found.assume("p", using("c"), N1)
    found.assume("q", using("c"), N1)

    found.confirm("q")

    assert found.forget("p") == ()
    assert found.storage.claims["default/c"].is_bound
    found.validate()


def test_a_volume_provisioned_for_a_pod_is_removed_with_it():
    found = claims_of(claim("c", storage_class="made"))

    found.assume("p", using("c"), N1)
    assert "pvc-uid-c" in found.storage.volumes
    (undone,) = found.forget("p")

    assert undone.removed == ("pvc-uid-c",)
    assert found.storage.volumes == {}


def test_a_pod_without_claims_assumes_nothing():
    found = claims_of()

    assert found.assume("p", pod(), N1).bindings == ()
    assert found.forget("p") == ()
    found.confirm("p")


@pytest.mark.parametrize(
    "objects", [(), (claim("c"),), (claim("c"), volume("a", node_terms=within(HOST, "n2")))]
)
def test_a_pod_with_unbindable_claims_changes_nothing(objects):
    found = claims_of(*objects)

    assert found.assume("p", using("c"), N1) is None
    assert found.storage.version == 0


def test_bindings_of_one_process_are_committed_by_another():
    cache = claims_of(claim("c"), claim("d", storage_class="made"), volume("a"))
    binder = copied(cache)
    bindings = cache.assume("p", using("c", "d"), N1).bindings

    assert binder.try_out(asked(*bindings), using("c", "d"), N1) is not None
    assert binder.try_out(asked(*bindings), using("c", "d"), N1) is not None

    assert binder.storage.claims == cache.storage.claims
    assert binder.storage.volumes == cache.storage.volumes


def test_bindings_are_committed_all_or_nothing():
    cache = claims_of(claim("c"), claim("d"), volume("a"), volume("b"))
    binder = copied(cache)
    bindings = cache.assume("p", using("c", "d"), N1).bindings
    binder.storage.apply(StorageChange(volumes=(volume("b", phase="Bound", claim=None),)))
    taken = binder.storage.volumes["b"]
    other = replace(taken, claim=replace(bindings[0].volume.claim, name="x", uid="uid-x"))
    binder.storage.apply(StorageChange(volumes=(other,)))

    assert binder.try_out(asked(*bindings), using("c", "d"), N1) is None
    assert not binder.storage.claims["default/c"].is_bound


def test_a_claim_bound_to_another_volume_meanwhile_is_not_committed_again():
    cache = claims_of(claim("c"), volume("a"), volume("b"))
    binder = copied(cache)
    (binding,) = cache.assume("p", using("c"), N1).bindings
    elsewhere = replace(binding.claim, volume_name="b")
    binder.storage.apply(StorageChange(claims=(elsewhere,)))

    assert binder.try_out(asked(binding), using("c"), N1) is None


def test_a_commit_must_bind_every_claim():
    found = claims_of(claim("c"), volume("a"))

    assert found.try_out(asked(), using("c"), N1) is None
    assert found.try_out(asked(), using("absent"), N1) is None


def test_a_volume_must_be_reachable_from_the_node():
    cache = claims_of(claim("c"), volume("a", node_terms=within(HOST, "n1")))
    binder = copied(cache)
    bindings = cache.assume("p", using("c"), N1).bindings

    assert binder.try_out(asked(*bindings), using("c"), N2) is None


def test_a_volume_that_the_class_would_not_provision_is_refused():
    cache = claims_of(claim("c", storage_class="made"))
    binder = copied(cache)
    (binding,) = cache.assume("p", using("c"), N1).bindings
    larger = replace(binding, volume=replace(binding.volume, capacity_bytes=1))

    assert binder.try_out(asked(larger), using("c"), N1) is None
    assert binder.try_out(asked(binding), using("c"), N1) is not None


def test_a_repeated_change_is_applied_once():
    state = StorageState(storage(claim("c"), volume("a")))
    change = StorageChange((replace(claim("c"), volume_name="a"),), (volume("a", phase="Bound"),))

    undo = state.apply(change)
    state.apply(change)
    assert state.index.free("local", 0) == []
    state.apply(undo)

    assert state.claims["default/c"] == claim("c")
    assert state.index.free("local", 0) == ["a"]
    state.validate()


def test_free_volumes_of_a_class_are_sorted_by_size_and_name():
    taken = volume("d", 1, claim=ClaimReference("default", "c"))
    index = StorageState(storage(volume("b", 5), volume("a", 9), volume("c", 5), taken)).index

    assert index.free("local", 0) == ["b", "c", "a"]
    assert index.free("local", 6 * GIB) == ["a"]
    assert index.free("other", 0) == []
    assert index.volumes_naming(claim("c")) == [taken]
    index.remove(taken)
    index.remove(volume("b", 5))
    index.add(volume("b", 7))
    assert index.free("local", 0) == ["c", "b", "a"]
    assert index.volumes_naming(claim("c")) == []


@pytest.mark.parametrize(
    ("terms", "label"),
    [
        (None, None),
        ((), None),
        (within(HOST, "n1"), (HOST, "n1")),
        (within(HOST, "n1", "n2"), None),
        ((*within(HOST, "n1"), *within(HOST, "n2")), None),
        ((NodeSelectorTerm((Requirement(HOST, "NotIn", ("n1",)),)),), None),
        ((NodeSelectorTerm(within(HOST, "n1")[0].expressions, error="bad"),), None),
    ],
)
def test_a_volume_with_a_single_label_value_is_distinguished_from_others(terms, label):
    only = volume("a", node_terms=terms)

    index = StorageState(storage(only)).index
    assert index.only_label(only) == index.only_label(only) == label


def test_changed_claims_are_listed_by_version_as_far_as_remembered():
    state = StorageState(storage(claim("c"), claim("d")))
    state.apply(StorageChange((claim("c"),)))
    state.apply(StorageChange((claim("d"),)))

    assert state.claims_changed_since(0) == {"default/c", "default/d"}
    assert state.claims_changed_since(1) == {"default/d"}
    assert state.claims_changed_since(2) == set()
    for _ in range(MAX_CHANGES_REMEMBERED):
        state.apply(StorageChange((claim("c"),)))
    assert state.claims_changed_since(1) is None


def test_an_unknown_claim_can_not_change():
    with pytest.raises(AssertionError, match="cannot change"):
        StorageState().apply(StorageChange((claim("c"),)))


def test_two_claims_of_one_volume_are_detected():
    twice = (claim("c", volume_name="a"), claim("d", volume_name="a"))

    with pytest.raises(AssertionError, match="a is default/c's and default/d's"):
        StorageState(storage(*twice, volume("a"))).validate()
