"""Extenders in preemption: they select among its candidates and victims.

Upstream: pkg/scheduler/framework/preemption/preemption.go (callExtenders).
"""

from __future__ import annotations

from dataclasses import replace

from roadstead.cycle.batch import PodInCycle
from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.extender import ExtenderPod, Victims
from roadstead.extenders.sequence import Extenders
from roadstead.facts.pod import PodFacts, identity_of
from roadstead.framework.victims import Candidate, DryRunResult, Victim


def call_extenders(
    extenders: Extenders | None, pod: PodInCycle, dry_run_result: DryRunResult
) -> DryRunResult:
    """Return the candidates and victims that extenders select among those of a dry run.

    Blocks until the extenders have answered. A failed extender that is not ignorable ends the
    preemption.
    """
    if (
        extenders is None
        or not dry_run_result.candidates
        or not extenders.preempts(pod.pod_class.facts)
    ):
        return dry_run_result
    known = {victim.uid: victim for each in dry_run_result.candidates for victim in each.victims}
    victims_by_node = {each.node_name: _victims(each) for each in dry_run_result.candidates}
    extender_pod = ExtenderPod(identity_of(pod.uid, pod.key), pod.pod_class.facts)
    try:
        selected = extenders.process_preemption(extender_pod, victims_by_node)
    except ExtenderError as failure:
        return DryRunResult(errors=(str(failure),))
    candidates = tuple(
        Candidate(
            each.node_name,
            tuple(known[pod.identity.uid] for pod in selected[each.node_name].pods),
            selected[each.node_name].pdb_violations,
        )
        for each in dry_run_result.candidates
        if each.node_name in selected
    )
    return replace(dry_run_result, candidates=candidates, refused_by_extenders=not candidates)


def _victims(candidate: Candidate) -> Victims:
    return Victims(tuple(map(_extender_pod, candidate.victims)), candidate.violations)


def _extender_pod(victim: Victim) -> ExtenderPod:
    """Return a victim as it is sent to extenders: identity and priority."""
    identity = identity_of(victim.uid, victim.key)
    return ExtenderPod(identity, PodFacts(identity.namespace, priority=victim.priority))
