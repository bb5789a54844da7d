"""The checks of `roadstead plugin test`, each over several sample fleets.

A failed check names the pod and the seed, so that the failure can be reproduced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from roadstead.cli.plugin.hooks import hooks_check
from roadstead.cli.plugin.impact import impact_checks
from roadstead.cli.plugin.outcome import Check, CheckOutcome, failed_check
from roadstead.cli.plugin.play import play
from roadstead.cli.plugin.plugin_under_test import (
    PluginAnswers,
    PluginUnderTest,
    answers,
    answers_of,
)
from roadstead.cli.plugin.samples import SampleFleet, pods_with_one_change
from roadstead.facts.pod import PodFacts
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import MAX_NODE_SCORE, Effect, Plugin, Reads
from roadstead.framework.plugin_source import LOCATION_OF_SCORES, with_location
from roadstead.framework.scoring import PreScoreOutcome
from roadstead.local.decision_paths import open_path
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable

WORKERS = ("1", "5")
"""Numbers of workers with which decisions are compared; also names of decision paths."""

CLASSES_MAX = 25
"""Maximum number of pod classes of a fleet for which answers are compared, to save time."""

SPEED_CALLS = 20
"""Maximum number of pod classes for which the plugin is timed."""

Fleets = Sequence[SampleFleet]
CaseResults = Iterator[str | None]
"""For each case, the text of a failure, or None."""
CheckFunction = Callable[[PluginUnderTest, SampleFleet], CaseResults]
"""Checks the subject on one fleet. An exception is a failure of the plugin."""


def run_checks(subject: PluginUnderTest, fleets: Fleets) -> list[Check]:
    """Run all checks, in the order in which a user would read them.

    If the plugin fails the first check, which calls it for every pod, no other check is made. The
    number of signatures and the speed are measured only if no check failed.
    """
    checks: list[Check] = []
    if subject.filters_or_scores:
        checks = [_run_check("answers", _ANSWERS_ARE_VALID, _check_answers, subject, fleets)]
        if checks[0].outcome is CheckOutcome.FAILED:
            return checks
        # These warn if the plugin decided nothing, so that the other checks prove little.
        checks += impact_checks(subject, fleets)
    hooks = hooks_check(subject, fleets[0])
    if hooks is not None:
        checks.append(hooks)
    checks += [
        _run_check(name, success_text, check, subject, fleets)
        for name, check, success_text in _comparing_checks(subject)
    ]
    if subject.filters_or_scores and not any(
        each.outcome is CheckOutcome.FAILED for each in checks
    ):
        checks += [_count_signatures(subject, fleets), _measure_speed(subject, fleets[0])]
    return checks


_ANSWERS_ARE_VALID = f"answers for every pod and node; scores within 0..{MAX_NODE_SCORE}"


def _comparing_checks(subject: PluginUnderTest) -> list[tuple[str, CheckFunction, str]]:
    """Return (name, check, text on success) of the checks that compare answers."""
    named: list[tuple[str, CheckFunction, str]] = [
        (
            "workers",
            _check_workers,
            f"same decisions without and with {' and '.join(WORKERS)} workers",
        ),
    ]
    if subject.filters_or_scores:
        named += [
            ("deterministic", _check_second_call, "same answers on a second call"),
            ("leaves the table", _check_table, "the plugin does not change the table"),
            ("reads", check_reads, "updated answers equal newly computed ones"),
            ("signature", _check_signature, "equal signature, equal answers"),
        ]
    # Each class declares `shares_by_shape` for itself: that of a base class does not count.
    if subject.filters_or_scores and vars(subject.plugin_class).get("shares_by_shape", False):
        named.append(("shapes", check_shapes, "same answers for other requested amounts"))
    if subject.filters_or_scores and subject.plugin_class.effect is not Plugin.effect:
        named.append(("effects", check_effects, "equal effect, the same pods affected"))
    return named


def _run_check(
    name: str,
    success_text: str,
    check: CheckFunction,
    subject: PluginUnderTest,
    fleets: Fleets,
) -> Check:
    """Run one check on all fleets, up to the first failure."""
    cases = 0
    for fleet in fleets:
        try:
            for wrong in check(subject, fleet):
                cases += 1
                if wrong is not None:
                    return Check(name, CheckOutcome.FAILED, fleet.labelled(wrong), cases)
        except Exception as failure:
            # The plugin is the user's: any exception is a finding.
            return failed_check(name, fleet, failure, cases)
    return Check(name, CheckOutcome.OK, success_text if cases else "nothing to compare", cases)


def _check_workers(subject: PluginUnderTest, fleet: SampleFleet) -> CaseResults:
    # "plain" is the reference path; a number is the path with so many workers.
    expected = play(open_path("plain", subject.profiles_with), fleet)
    # An error that names the plugin is a failure of its own.
    for each in expected:
        yield each.text if f'"{subject.name}"' in each.error else None
    for workers in WORKERS:
        decided = play(open_path(workers, subject.profiles_with), fleet)
        for with_workers, without in zip(decided, expected, strict=True):
            wrong = f"with {workers} workers {with_workers.text}; without, {without.text}"
            yield None if with_workers == without else wrong


def _classes(fleet: SampleFleet) -> list[PodFacts]:
    return fleet.classes()[:CLASSES_MAX]


def _check_second_call(subject: PluginUnderTest, fleet: SampleFleet) -> CaseResults:
    table = fleet.make_table()
    evaluations = [_evaluation(subject, facts, table) for facts in _classes(fleet)]
    for evaluation in evaluations:
        first = answers_of(evaluation)
        for again in (
            answers(subject, evaluation.pod.facts, table),
            _answers_of_same_plugin(evaluation),
        ):
            yield _difference(
                first, again, fleet.describe_pod(evaluation.pod.facts), "on a second call"
            )


def _answers_of_same_plugin(evaluation: Evaluation) -> PluginAnswers:
    """Compute all answers again, with the same instance of the plugin."""
    return answers_of(Evaluation(evaluation.profile, evaluation.pod, evaluation.table))


def _evaluation(subject: PluginUnderTest, facts: PodFacts, table: NodeTable) -> Evaluation:
    return Evaluation(
        subject.only_this_plugin(table.classes), table.classes.pod_class(facts), table
    )


def _check_table(subject: PluginUnderTest, fleet: SampleFleet) -> CaseResults:
    classes = PodClasses()
    table, untouched = fleet.make_table(classes), fleet.make_table(classes)
    for facts in _classes(fleet):
        answers(subject, facts, table)
        differences = table.differences(untouched)
        yield f"the plugin changed the table: {differences[0]}" if differences else None


def check_reads(subject: PluginUnderTest, fleet: SampleFleet) -> CaseResults:
    """Add and remove pods, and compare updated answers with newly computed ones.

    An update evaluates only the rows that changed in what the plugin declares to read.
    """
    table = fleet.make_table()
    evaluations = [_evaluation(subject, facts, table) for facts in _classes(fleet)]
    pre_scores: list[PreScoreOutcome | None] = []
    for evaluation in evaluations:
        answers_of(evaluation)
        pre_scores.append(evaluation.run_pre_score())
    _change_pods(table, fleet)
    if subject.plugin_class.reads is Reads.CLUSTER:
        # Only for such plugins are PreFilter and PreScore called again after a change.
        pre_scores = [None for _ in evaluations]
    for evaluation, pre_score in zip(evaluations, pre_scores, strict=True):
        computed = answers(subject, evaluation.pod.facts, table)
        hint = f"after pods changed; does `reads = Reads.{subject.plugin_class.reads.name}` hold?"
        yield _difference(
            answers_of(evaluation, pre_score),
            computed,
            fleet.describe_pod(evaluation.pod.facts),
            hint,
        )


def _change_pods(table: NodeTable, fleet: SampleFleet) -> None:
    """Add a pod to every second node, and remove one from each of the others."""
    for index, node in enumerate(fleet.nodes):
        on_node = list(table.pods(table.row_of(node.name)))
        if index % 2 and on_node:
            table.remove_pod(node.name, on_node[0])
        elif not index % 2:
            _, facts = fleet.pods[index % len(fleet.pods)]
            table.add_pod(node.name, table.classes.pod_class(facts))


def _check_answers(subject: PluginUnderTest, fleet: SampleFleet) -> CaseResults:
    table = fleet.make_table()
    location = LOCATION_OF_SCORES.get(subject.name, "")
    for facts in fleet.classes():
        answered = answers(subject, facts, table)
        if answered.error:
            yield f"{answered.error}, for {fleet.describe_pod(facts)}"
        # One case for each node.
        yield from (None for _ in answered.refusals)
        for score in answered.scores or ():
            if not 0 <= score <= MAX_NODE_SCORE:
                text = with_location(f"a score of {score}, want 0..{MAX_NODE_SCORE}", location)
                yield f"{text}, for {fleet.describe_pod(facts)}"


def _check_signature(subject: PluginUnderTest, fleet: SampleFleet) -> CaseResults:
    """Pods that differ in one fact but have equal signatures must have equal answers."""
    table = fleet.make_table()
    plugin = subject.build()
    for facts in _classes(fleet):
        signature = plugin.sign(facts)
        # A signature that cannot be hashed is a failure.
        hash(signature)
        expected = None
        for name, other in pods_with_one_change(facts):
            if signature is None or plugin.sign(other) != signature:
                continue
            expected = expected or answers(subject, facts, table)
            pod = fleet.describe_pod(facts)
            hint = f"and the same with another {name}, which the signature leaves out"
            yield _difference(expected, answers(subject, other, table), pod, hint)


def check_shapes(subject: PluginUnderTest, fleet: SampleFleet) -> CaseResults:
    """Pods that differ only in requested amounts must have equal answers (`shares_by_shape`)."""
    table = fleet.make_table()
    for facts in _classes(fleet):
        pair = [answers(subject, each, table) for each in (facts, _larger(facts))]
        if subject.plugin_class.reads is Reads.ROW:
            # A row may have room for only one of them, or its score may depend on the requests.
            # Such plugins may differ here: their signature contains the requested amounts
            # (`Profile.signature_of`), so only pods of equal amounts share an answer.
            pair = [replace(each, refusals=(), raw=None, scores=None) for each in pair]
        hint = "and the same with larger requests; does `shares_by_shape` hold?"
        yield _difference(pair[0], pair[1], fleet.describe_pod(facts), hint)


def check_effects(subject: PluginUnderTest, fleet: SampleFleet) -> CaseResults:
    """Placed pods of equal effect must change the answers for the same pods."""
    table = fleet.make_table()
    profile = subject.only_this_plugin(table.classes)
    for facts in _classes(fleet):
        pod_class = table.classes.pod_class(facts)
        # By effects of a placed pod: whether each effect may change the answers for `pod_class`.
        may_change: dict[tuple[Effect, ...], list[bool]] = {}
        for each in (facts, *(other for _, other in pods_with_one_change(facts))):
            effects = profile.effects(table.classes.pod_class(each))
            changed = [effect.may_change(pod_class) for effect in effects]
            expected = may_change.setdefault(effects, changed)
            hint = "and a pod of equal effect change the answers for different pods"
            yield None if changed == expected else f"{fleet.describe_pod(facts)} {hint}"


def _larger(facts: PodFacts) -> PodFacts:
    """Return the pod with three times its requests."""
    return replace(
        facts,
        requests=tuple((name, 3 * amount) for name, amount in facts.requests),
        nonzero_cpu_milli=3 * facts.nonzero_cpu_milli,
        nonzero_memory_bytes=3 * facts.nonzero_memory_bytes,
    )


def _count_signatures(subject: PluginUnderTest, fleets: Fleets) -> Check:
    plugin = subject.build()
    pods = [facts for fleet in fleets for facts in _classes(fleet)]
    unsigned = sum(plugin.sign(facts) is None for facts in pods)
    if not unsigned:
        classes = len({plugin.sign(facts) for facts in pods})
        text = f"different pods: {len(set(pods))}; different signatures: {classes}"
        return Check("signs", CheckOutcome.OK, text, len(pods))
    text = (
        f"sign() returns None for {unsigned} of {len(pods)} pods: each is evaluated separately, "
        "which is slow"
    )
    return Check("signs", CheckOutcome.WARNING, text, len(pods))


def _measure_speed(subject: PluginUnderTest, fleet: SampleFleet) -> Check:
    """Measure the time of the plugin alone, for one pod on the fleet's table."""
    table = fleet.make_table()
    spent_s = []
    for facts in islice(_classes(fleet), SPEED_CALLS):
        evaluation = _evaluation(subject, facts, table)
        started = time.perf_counter()
        answers_of(evaluation)
        spent_s.append(time.perf_counter() - started)
    median_s = sorted(spent_s)[len(spent_s) // 2]
    per_node = median_s / len(table)
    text = (
        f"{median_s * 1e3:.2f} ms for a pod on {len(table)} nodes, {per_node * 1e6:.2f} µs a node"
    )
    return Check("speed", CheckOutcome.OK, text, len(spent_s))


def _difference(one: PluginAnswers, other: PluginAnswers, pod: str, when: str) -> str | None:
    """Return the first difference as a text, with the pod and the case; None if there is none."""
    if one == other:
        return None
    return f"{_first_difference(one, other)} for {pod} {when}"


def _first_difference(one: PluginAnswers, other: PluginAnswers) -> str:
    pairs = {
        "filter": (one.refusals, other.refusals),
        "raw scores": (one.raw, other.raw),
        "scores": (one.scores, other.scores),
    }
    for what, (answers_of_one, answers_of_other) in pairs.items():
        # Other lengths follow from another difference, which is reported.
        rows = zip(answers_of_one or (), answers_of_other or (), strict=False)
        different = next((row for row in rows if row[0] != row[1]), None)
        if different is not None:
            a, b = (each if each != "" else "passes" for each in different)
            return f"{what}: {a} is not {b}"
    return f"{one.pre} is not {other.pre}"
