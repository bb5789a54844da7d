"""A plugin under test, alone or beside the default ones, and its answers in a form to compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roadstead.cli.plugin_choice import SOURCE_OF_FLAGS, ChosenPlugins, load_with
from roadstead.config.model import DEFAULT_SCHEDULER_NAME, PluginRef, ProfileConfig, SchedulerConfig
from roadstead.config.plugin_args import PluginArgs
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import EXTENSION_POINTS, Extremes, Handle, Plugin
from roadstead.framework.profile import Profile
from roadstead.framework.registry import Registry, extension_points
from roadstead.framework.user_plugins import factories_of
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry

ASKED_IN_A_CYCLE = frozenset({"preFilter", "filter", "preScore", "score"})


@dataclass(frozen=True, slots=True)
class Subject:
    """kind: the class. registry: the in-tree plugins and it. config: it beside the default ones."""

    kind: type[Plugin]
    registry: Registry
    config: SchedulerConfig

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def points(self) -> frozenset[str]:
        return extension_points(self.kind)

    @property
    def is_asked(self) -> bool:
        """Whether it filters or scores, and so has answers to compare."""
        return bool(self.points & ASKED_IN_A_CYCLE)

    def build(self) -> Plugin:
        """A new one, with its arguments."""
        return self.registry.build(self.name, self._args().get(self.name), _handle(PodClasses()))

    def profiles(self, classes: PodClasses) -> Mapping[str, Profile]:
        """The default plugins and this one, built for one process."""
        (profile,) = self.config.profiles
        return {DEFAULT_SCHEDULER_NAME: Profile(profile, self.registry, _handle(classes))}

    def alone(self, classes: PodClasses) -> Profile:
        """A profile in which nothing else filters or scores."""
        refs = {
            point: (PluginRef(self.name),) if point in self.points & ASKED_IN_A_CYCLE else ()
            for point in EXTENSION_POINTS
        }
        refs["queueSort"] = (PluginRef("PrioritySort"),)
        config = ProfileConfig(DEFAULT_SCHEDULER_NAME, None, refs, self._args())
        return Profile(config, self.registry, _handle(classes))

    def _args(self) -> Mapping[str, PluginArgs]:
        return self.config.profiles[0].args


def subject_of(chosen: ChosenPlugins, args: object = None) -> Subject:
    """The only plugin that is chosen. ConfigError for arguments that are wrong."""
    (kind,) = chosen.kinds.values()
    loaded = load_with(chosen, chosen.as_config(args), SOURCE_OF_FLAGS)
    registry = in_tree_registry().merged(factories_of(chosen.kinds, is_strict=True))
    subject = Subject(kind, registry, loaded.config)
    subject.build()
    return subject


def _handle(classes: PodClasses) -> Handle:
    return Handle(classes, ClusterFacts(namespaces=(("demo", ()), ("other", ()))))


@dataclass(frozen=True, slots=True)
class Answers:
    """What a plugin alone says of one class on one table, free of codes.

    pre: PreFilter and PreScore. refusals: per row, "" where it passes. raw, scores: of the feasible
    rows, before and after normalization; None where the plugin does not score the pod. error: why
    PreScore or Score failed.
    """

    pre: str
    refusals: tuple[str, ...]
    raw: tuple[int, ...] | None
    scores: tuple[int, ...] | None
    error: str = ""


def answers(subject: Subject, facts: PodFacts, table: NodeTable) -> Answers:
    """A new instance of the plugin, asked from scratch."""
    return answers_of(Evaluation(subject.alone(table.classes), table.classes.info(facts), table))


def answers_of(evaluation: Evaluation) -> Answers:
    """The answers of an evaluation, brought up to date with its table."""
    table = evaluation.table
    evaluation.update(len(table), evaluation.own_filter_summaries())
    outcome = evaluation.pre_filter
    if not outcome.status.is_success:
        return Answers(repr(outcome), (), None, None)
    names = ["", *(repr(status) for status in evaluation.statuses)]
    refusals = tuple(names[code] if code >= 0 else "excluded" for code in evaluation.codes.tolist())
    status, _ = evaluation.update_scores(evaluation.own_score_summaries())
    pre = f"{outcome} {status}"
    raw = evaluation.raw[0] if status.is_success and evaluation.raw else None
    if raw is None or not evaluation.feasible.any():
        return Answers(pre, refusals, None, None, status.message)
    feasible: I64 = np.asarray(raw)[evaluation.feasible]
    plugin = evaluation.profile.score[0].plugin
    scores = feasible
    if plugin.normalizes:
        scores = plugin.normalize(evaluation.state, evaluation.pod, feasible, Extremes.of(feasible))
    return Answers(pre, refusals, tuple(feasible.tolist()), tuple(scores.tolist()))
