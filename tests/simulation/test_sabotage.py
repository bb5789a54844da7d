"""Sabotaged journals show that a checker without a rule is detected; shadows detect more."""

import ast
import re
from pathlib import Path

import pytest

from roadstead.attempts.attempt_transitions import AttemptTransitions
from roadstead.binder.verification import Verifier
from roadstead.invariants import checker, claim_binding
from roadstead.invariants.evictions import EvictionChecks
from roadstead.invariants.history import PodHistory, TokenHistory
from roadstead.protocol.status import SUCCESS
from tests.builders import node, pod
from tests.docs.modules import modules_in
from tests.invariants.history import started
from tests.simulation.sabotage import unreported
from tests.simulation.simulation import FAULTS, simulate

SEEDS = range(6)
MORE_SEEDS = range(40)
"""Number of seeds until a difference is found: pods that share a disk are rare."""
ACCOUNTS = (
    (PodHistory, "add"),
    (PodHistory, "bind"),
    (PodHistory, "load"),
    (PodHistory, "release"),
    (TokenHistory, "commit"),
    (EvictionChecks, "evict"),
)
"""Methods that keep an account of pods or tokens and yield violations."""
OTHERS = ("checker.py", "claim_binding.py")
"""Modules whose rules are lost one by one, or have sabotage of their own."""
SABOTAGE = ("sabotage.py", "devices_sabotage.py", "recount.py", "wrong_claims.py")
INVARIANT = re.compile(r"I\d+")


def journal():
    history = started().node(node("n2", labels={"zone": "a"}))
    for name in ("default/a", "default/b"):
        history.accept(name, pod(cpu=50)).bind(name, facts=pod(cpu=50))
    return history.records


def noticed():
    """Whether a seed finds a difference, or the incomplete checker fails."""
    try:
        return any(unreported(journal(), seed) for seed in MORE_SEEDS)
    except (AssertionError, LookupError):
        return True


def invariants_in(tree):
    """Return the invariants that a syntax tree contains as constants."""
    values = (each.value for each in ast.walk(tree) if isinstance(each, ast.Constant))
    return {value for value in values if isinstance(value, str) and INVARIANT.fullmatch(value)}


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


@pytest.mark.parametrize(("owner", "method"), ACCOUNTS)
def test_a_checker_that_does_not_report_from_an_account_is_detected(owner, method, monkeypatch):
    original = getattr(owner, method)

    def silent(self, *about):
        list(original(self, *about))
        return iter(())

    monkeypatch.setattr(owner, method, silent)

    assert noticed(), f"let sabotage.py violate what {owner.__name__}.{method} checks"


def test_each_account_of_the_checker_is_silenced_once():
    reporting = {
        f"{owner.name}.{method.name}"
        for path, module in modules_in("roadstead/invariants").items()
        if path.name not in OTHERS
        for owner in module.tree.body
        if isinstance(owner, ast.ClassDef)
        for method in owner.body
        if isinstance(method, ast.FunctionDef) and invariants_in(method)
    }

    missing = reporting - {f"{owner.__name__}.{method}" for owner, method in ACCOUNTS}
    assert not missing, "add it to ACCOUNTS"


def test_sabotage_expects_each_invariant_that_the_checker_reports():
    modules = modules_in("roadstead/invariants").values()
    reported = {each for module in modules for each in invariants_in(module.tree)}
    trees = [ast.parse((Path(__file__).parent / name).read_text()) for name in SABOTAGE]
    expected = {each for tree in trees for each in invariants_in(tree)}

    assert not reported - expected, "let sabotage.py violate this invariant"


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
