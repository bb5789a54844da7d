"""What-if questions about pods with claims: decided by complete runs, without an illegal event."""

from dataclasses import replace

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.inputs.find_pod import InputPod
from roadstead.whatif import grow as grow_module
from roadstead.whatif.drain import drain
from roadstead.whatif.evictions import EvictionRules
from roadstead.whatif.fit import CountedSpec, FitQuestion, fit
from roadstead.whatif.grow import grow
from roadstead.whatif.sandbox import Sandbox
from roadstead.whatif.shrink import shrink
from tests.actors.world import identity, inputs_of, plan_of, run_virtually
from tests.storage.world import random_fleet
from tests.whatif.test_grow import catalog, counts_of, shape, with_added


@pytest.fixture(params=range(3))
def moment(request):
    nodes, facts, pods = random_fleet(request.param)
    inputs = inputs_of(nodes, [(identity(name), each) for name, each in pods])
    return inputs, replace(plan_of(), cluster=ClusterFacts(storage=facts))


def test_the_given_pods_are_placed_with_their_claims_as_by_a_run(moment):
    inputs, plan = moment

    first = Sandbox(inputs, plan).result_of_inputs

    outcome = run_virtually(inputs, plan)
    assert first.placed == {each.uid: each.node for each in outcome.placements}


def test_every_question_has_an_answer(moment):
    inputs, plan = moment
    who, facts = inputs.pending[0]
    asked = CountedSpec("x", InputPod(who, facts, ""))

    result = fit(inputs, plan, FitQuestion((asked,), max_replicas=200))
    assert result.is_limited or result.next.message
    drained = drain(inputs, plan, inputs.nodes[:1], EvictionRules(with_bare=True))
    assert len(drained.pods) == sum(drained.counts.values())
    gone = {each.node for each in shrink(inputs, plan, inputs.nodes).nodes}
    chosen = [each for each in inputs.nodes if each.name in gone]
    assert drain(inputs, plan, chosen, EvictionRules(with_bare=True)).is_complete


def test_added_nodes_are_proven_by_complete_runs(moment, monkeypatch):
    inputs, plan = moment
    monkeypatch.setattr(grow_module, "TRIALS_FROM", 0)

    result = grow(inputs, plan, catalog(shape("small")))

    nodes = with_added(inputs.nodes, [shape("small")], counts_of(result))
    outcome = run_virtually(replace(inputs, nodes=tuple(nodes)), plan)
    assert {each.pod for each in outcome.pending} == {each.pod for each in result.pending}
