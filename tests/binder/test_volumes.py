"""Claims that are bound together with their pods, or not at all."""

from dataclasses import replace

from roadstead.binder.volumes import BinderVolumes
from roadstead.config.model import default_config
from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.storage import AssumedClaims, StorageState
from roadstead.storage.claim_messages import AttemptBindings
from tests.builders import node
from tests.storage.world import claim, profiles_of, storage, using, volume, waiting

N1 = node("n1")
FACTS = storage(waiting("local"), claim("c"), volume("a"))


def asking(token):
    """The bindings that a cache found for the claim of an attempt, and the binder that gets
    them.
    """
    reserved = AssumedClaims(StorageState(FACTS)).assume("p", using("c"), N1)
    binder = BinderVolumes(profiles_of(FACTS)(PodClasses()))
    binder.begin([AttemptBindings(token, reserved.bindings)])
    return binder


def test_the_binder_binds_claims_with_the_pod_or_refuses_it():
    binder = asking("t1")

    refused = binder.commit("unknown", using("c"), N1)
    assert refused.reasons == ("the volumes of its claims are in use",)
    assert binder.commit("t1", using("c"), N1).is_success
    assert binder.commit("unknown", using("c"), N1).is_success


def test_without_binding_at_reserve_a_pod_has_no_claims():
    (config,) = default_config().profiles
    refs = {point: config.at(point) for point in config.plugins}
    refs["reserve"] = [each for each in refs["reserve"] if each.name != "VolumeBinding"]
    config = replace(config, plugins=refs)
    handle = Handle(PodClasses(), ClusterFacts(storage=FACTS))
    profile = Profile(config, in_tree_registry(), handle)
    binder = BinderVolumes({profile.scheduler_name: profile})

    assert binder.commit("t1", using("c"), N1).is_success
    assert not binder.batch_changes()


def test_a_failed_batch_frees_its_own_claims_only():
    binder = asking("t1")
    assert binder.commit("t1", using("c"), N1).is_success
    assert len(binder.batch_changes()) == 1

    binder.undo()

    assert not binder.batch_changes()
    assert not binder.commit("unknown", using("c"), N1).is_success
    assert binder.commit("t1", using("c"), N1).is_success
    binder.begin([])
    binder.undo()
    assert (len(binder.log), len(binder.batch_changes())) == (1, 0)
    assert binder.commit("unknown", using("c"), N1).is_success
