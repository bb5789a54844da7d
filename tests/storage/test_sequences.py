"""Pods with claims in turn: every path places them alike, and no volume has two claims."""

import pytest

from roadstead.facts.storage import READ_WRITE_ONCE_POD
from roadstead.storage.claims import claim_keys
from tests.storage.world import Batches, Plain, random_fleet


@pytest.mark.parametrize("seed", range(6))
def test_pods_with_claims_are_placed_alike_in_batches_and_one_by_one(seed):
    nodes, facts, pods = random_fleet(seed)
    plain, batches = Plain(nodes, facts), Batches(nodes, facts)

    assert batches.run(pods) == plain.run(pods)
    assert batches.storage.claims == plain.storage.claims
    assert batches.storage.volumes == plain.storage.volumes


@pytest.mark.parametrize("seed", range(6))
def test_no_volume_is_bound_twice_and_no_exclusive_claim_used_twice(seed):
    nodes, facts, pods = random_fleet(seed)
    plain = Plain(nodes, facts)

    placed = [
        (name, pod, actual[0])
        for (name, pod), actual in zip(pods, plain.run(pods), strict=True)
        if actual[0] is not None
    ]

    plain.storage.validate()
    used = [key for _, pod, _ in placed for key in claim_keys(pod)]
    exclusive = {
        key
        for key, each in plain.storage.claims.items()
        if READ_WRITE_ONCE_POD in each.access_modes
    }
    assert all(used.count(key) == 1 for key in exclusive & set(used))
    assert all(plain.storage.claims[key].is_bound for key in used)
    assert placed


@pytest.mark.parametrize("seed", range(3))
def test_forgotten_pods_leave_the_storage_unchanged(seed):
    nodes, facts, pods = random_fleet(seed, pods=8)
    plain = Plain(nodes, facts)
    before = dict(plain.storage.claims), dict(plain.storage.volumes)

    prepared = [plain.prepared(name, each) for name, each in pods]
    decided = [plain.cycle.decide(each) for each in prepared]
    for decision in reversed(decided):
        if decision.node_name is not None:
            plain.cycle.forget(decision.pod, decision.node_name)

    assert (plain.storage.claims, plain.storage.volumes) == before
    assert plain.run(pods) == [
        (each.node_name, each.feasible, each.error, _message(each)) for each in decided
    ]


def _message(decision):
    return decision.diagnosis.message("") if decision.diagnosis is not None else ""
