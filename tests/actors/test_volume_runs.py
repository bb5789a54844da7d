"""Whole runs of pods with claims: equal for any number of workers, any batch and both runtimes."""

from collections import Counter
from dataclasses import replace

import pytest

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.cache.volumes import CacheVolumes
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.storage import READ_WRITE_ONCE_POD
from roadstead.scheduler.volumes import SchedulerVolumes
from roadstead.storage import BindingProfiles, StorageState
from roadstead.storage.claim_messages import AttemptBindings, NumberedStorageChanges
from roadstead.storage.claims import claim_keys
from tests.actors.world import identity, inputs_of, placed, plan_of
from tests.builders import node
from tests.storage.world import claim, random_fleet, storage, using, volume, waiting

N1 = node("n1")


def run(seed, **settings):
    """Run over a random fleet; return the outcome and the inputs."""
    nodes, facts, pods = random_fleet(seed)
    inputs = inputs_of(nodes, [(identity(name), each) for name, each in pods])
    plan = replace(plan_of(**settings), cluster=ClusterFacts(storage=facts))
    outcome = ActorLauncher().run(inputs, plan, lambda progress: None)
    messages = {each.pod: each.message for each in outcome.pending}
    return placed(outcome), messages, facts, dict(pods)


@pytest.mark.parametrize("seed", range(3))
def test_runs_of_any_shape_place_pods_with_claims_alike(seed):
    wanted = run(seed, batch=1)[:2]

    for workers, batch in ((0, 64), (2, 7)):
        assert run(seed, workers=workers, batch=batch)[:2] == wanted


@pytest.mark.parametrize("schedulers", [1, 3])
def test_an_exclusive_claim_has_one_pod_whichever_scheduler_decides(schedulers):
    nodes, _, facts, pods = run(5, workers=2, batch=4, schedulers=schedulers)

    used = Counter(key for name in nodes for key in claim_keys(pods[name.partition("/")[2]]))
    exclusive = {each.key for each in facts.claims if READ_WRITE_ONCE_POD in each.access_modes}
    assert {key for key in exclusive if used[key] > 1} == set()
    assert nodes


@pytest.mark.ray
def test_a_run_with_claims_on_ray_places_like_an_inline_run():
    wanted = run(1, workers=3, batch=8)[:2]
    nodes, facts, pods = random_fleet(1)
    inputs = inputs_of(nodes, [(identity(name), each) for name, each in pods])
    plan = replace(plan_of(workers=2), cluster=ClusterFacts(storage=facts))
    settings = plan.settings.model_copy(update={"runtime": "ray", "batch": 16})

    outcome = ActorLauncher().run(inputs, replace(plan, settings=settings), lambda progress: None)

    assert (placed(outcome), {each.pod: each.message for each in outcome.pending}) == wanted


def facts_of(*objects):
    return storage(waiting("local"), claim("c"), volume("a"), *objects)


def cache_over(*objects):
    return CacheVolumes(
        StorageState(facts_of(*objects)), BindingProfiles(frozenset({"default-scheduler"}))
    )


def test_a_scheduler_applies_changes_once_and_not_before_it_catches_up():
    cache = cache_over()
    cache.assume("p", using("c"), N1)
    cache.forget(["p"])
    state = StorageState(facts_of())
    scheduler = SchedulerVolumes(state)

    scheduler.store_changes(cache.changes_since(0))
    scheduler.store_changes(NumberedStorageChanges(1, cache.changes_since(1).changes))
    assert (state.version, scheduler.known) == (0, 2)
    scheduler.catch_up()
    scheduler.catch_up()

    assert state.version == 2
    assert state.claims == StorageState(facts_of()).claims


def test_a_scheduler_keeps_the_bindings_of_its_attempts():
    scheduler = SchedulerVolumes(StorageState())
    bound = AttemptBindings("t1", cache_over().assume("p", using("c"), N1))

    scheduler.store_changes(NumberedStorageChanges(), [bound])
    assert scheduler.of(["t1", "t2"]) == (bound,)
    scheduler.drop(["t1", "t2"])

    assert scheduler.of(["t1"]) == ()
