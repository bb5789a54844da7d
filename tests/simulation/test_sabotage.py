"""Sabotaged journals show that a checker without one of its rules is detected; shadows detect
more.
"""

import pytest

from roadstead.attempts.attempt_transitions import AttemptTransitions
from roadstead.binder.verification import Verifier
from roadstead.invariants import checker, claim_binding
from roadstead.invariants.evictions import Evictions
from roadstead.invariants.history import PodHistory, TokenHistory
from roadstead.protocol.status import SUCCESS
from tests.builders import node, pod
from tests.invariants.history import started
from tests.simulation.sabotage import unreported
from tests.simulation.simulation import FAULTS, simulate

SEEDS = range(6)
MORE_SEEDS = range(40)
"""Number of seeds until a difference is found: pods that share a disk are rare."""


def journal():
    history = started().node(node("n2", labels={"zone": "a"}))
    for name in ("default/a", "default/b"):
        history.accept(name, pod(cpu=50)).bind(name, facts=pod(cpu=50))
    return history.records


def noticed():
    return any(unreported(journal(), seed) for seed in MORE_SEEDS)


def test_a_checker_with_all_rules_reports_every_planted_violation():
    assert [unreported(journal(), seed) for seed in SEEDS] == [[]] * len(SEEDS)


@pytest.mark.parametrize("lost", range(len(checker.RULES)))
def test_a_checker_without_a_rule_is_detected(lost, monkeypatch):
    invariant, plugin, _ = checker.RULES[lost]
    rules = list(checker.RULES)
    rules[lost] = invariant, plugin, lambda world, facts, host: iter(())
    monkeypatch.setattr(checker, "RULES", tuple(rules))

    assert noticed()


@pytest.mark.parametrize("lost", range(len(claim_binding.STORAGE_RULES)))
def test_a_checker_without_a_volume_rule_is_detected(lost, monkeypatch):
    rules = claim_binding.STORAGE_RULES
    monkeypatch.setattr(claim_binding, "STORAGE_RULES", (*rules[:lost], *rules[lost + 1 :]))

    assert noticed()


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        (PodHistory, "bind"),
        (PodHistory, "load"),
        (TokenHistory, "commit"),
        (Evictions, "evict"),
    ],
)
def test_a_checker_without_an_account_is_detected(owner, method, monkeypatch):
    monkeypatch.setattr(owner, method, lambda self, *about: iter(()))

    assert noticed()


def test_a_core_that_does_not_forget_a_refused_attempt_is_detected(monkeypatch):
    original = AttemptTransitions._end

    def end(self, record, event, out, verdict):
        before = list(out.forget)
        original(self, record, event, out, verdict)
        out.forget[:] = before

    monkeypatch.setattr(AttemptTransitions, "_end", end)

    assert any("shadow of scheduler" in each for each in problems("modes"))


def test_a_verifier_that_accepts_a_node_permanently_is_detected(monkeypatch):
    monkeypatch.setattr(Verifier, "verify", lambda self, facts, name: SUCCESS)

    assert any("shadow of the verifier" in each for each in problems("modes"))


def problems(among):
    """Yield the problems of seeds until the caller has found what it looks for."""
    for seed in range(4):
        yield from simulate(seed, FAULTS, among=among, rambles=False).problems
