"""A plugin under test, alone or with the default plugins, and its answers in comparable form.

`PodClasses` groups pods with equal facts. An `Evaluation` has the answers of a profile's plugins
for one class and all rows of a table, and brings them up to date after changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from roadstead.api.plugin_choice import PLUGIN_OPTION, ChosenPlugins, load_with
from roadstead.config.model import (
    DEFAULT_SCHEDULER_NAME,
    PluginRef,
    ProfileConfig,
    SchedulerConfig,
    default_config,
)
from roadstead.config.plugin_args import PluginArgs
from roadstead.config.settings import Settings
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import EXTENSION_POINTS, Extremes, Handle, Plugin
from roadstead.framework.profile import Profile
from roadstead.framework.registry import Registry, extension_points
from roadstead.framework.scoring import PreScoreOutcome
from roadstead.framework.user_plugins import factories_of
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.errors import InputError
from roadstead.run import RunPlan

ANSWER_POINTS = frozenset({"preFilter", "filter", "preScore", "score"})
"""Extension points whose answers for nodes can be compared."""

NAMESPACES = "demo", "other"
"""Sample pods are in `demo`; their copies with another namespace are in `other`."""

NO_CLUSTER = ClusterFacts()
"""A cluster without claims, volumes, disruption budgets and namespaces."""

BATCH = 16
"""Pods per batch; small, so that most pods are decided after placements of earlier batches."""


@dataclass(frozen=True, slots=True)
class PluginUnderTest:
    """A plugin under test, the `subject` of the checks of `roadstead plugin test`.

    points: its extension points. registry: makes the in-tree plugins and this one. config: enables
    the default plugins and this one. plan: a run with that configuration.
    """

    plugin_class: type[Plugin]
    points: frozenset[str]
    registry: Registry
    config: SchedulerConfig
    plan: RunPlan

    @property
    def name(self) -> str:
        return self.plugin_class.name

    @property
    def filters_or_scores(self) -> bool:
        """Whether it filters or scores, and so has answers to compare."""
        return bool(self.points & ANSWER_POINTS)

    def build(self) -> Plugin:
        """Make a new instance, with the arguments of the configuration."""
        return self.registry.build(self.name, self._args().get(self.name), self._handle())

    def profiles_with(self, classes: PodClasses) -> Mapping[str, Profile]:
        """Build the profile of the default plugins and this one; by scheduler name."""
        (profile,) = self.config.profiles
        return {DEFAULT_SCHEDULER_NAME: Profile(profile, self.registry, self._handle(classes))}

    def profiles_without(self, classes: PodClasses) -> Mapping[str, Profile]:
        """Build the profile of the default plugins without this one; by scheduler name."""
        return default_profiles(classes, self._handle(classes).cluster)

    def only_this_plugin(self, classes: PodClasses) -> Profile:
        """Build a profile in which only this plugin filters and scores."""
        refs: dict[str, tuple[PluginRef, ...]] = dict.fromkeys(EXTENSION_POINTS, ())
        refs |= dict.fromkeys(self.points & ANSWER_POINTS, (PluginRef(self.name),))
        # A profile must sort its queue; nothing is queued here.
        refs["queueSort"] = (PluginRef("PrioritySort"),)
        config = ProfileConfig(DEFAULT_SCHEDULER_NAME, None, refs, self._args())
        return Profile(config, self.registry, self._handle(classes))

    def _args(self) -> Mapping[str, PluginArgs]:
        return self.config.profiles[0].args

    def _handle(self, classes: PodClasses | None = None) -> Handle:
        return Handle(classes or PodClasses(), self.plan.cluster)


def default_profiles(classes: PodClasses, cluster: ClusterFacts) -> Mapping[str, Profile]:
    """Build the default profile, by scheduler name."""
    (profile,) = default_config().profiles
    return {DEFAULT_SCHEDULER_NAME: Profile(profile, in_tree_registry(), Handle(classes, cluster))}


def plugin_under_test(
    chosen: ChosenPlugins, args: object = None, cluster: ClusterFacts = NO_CLUSTER
) -> PluginUnderTest:
    """Prepare the chosen plugin for the checks.

    args: its arguments, as in pluginConfig. Raises ConfigError for wrong arguments, InputError if
    several plugins are chosen.
    """
    if len(chosen.types) > 1:
        names = ", ".join(chosen.types)
        raise InputError(f"defines {names}: name one, as FILE.py:CLASS", obj="plugin")
    (plugin_class,) = chosen.types.values()
    text = chosen.as_config(args)
    loaded = load_with(chosen, text, PLUGIN_OPTION)
    # Strict: a failure of the plugin is raised, so that a check fails; in a run it is caught.
    registry = in_tree_registry().merged(factories_of(chosen.types, is_strict=True))
    plan = RunPlan(
        Settings(runtime="inline", batch=BATCH),
        config_text=text,
        config_source=PLUGIN_OPTION,
        cluster=_with_sample_namespaces(cluster),
        plugins=chosen.paths,
        plugin_dir=chosen.directory,
    )
    subject = PluginUnderTest(
        plugin_class, extension_points(plugin_class), registry, loaded.config, plan
    )
    # An error of the constructor is reported before any check.
    subject.build()
    return subject


def _with_sample_namespaces(cluster: ClusterFacts) -> ClusterFacts:
    """Return the cluster with `NAMESPACES` added."""
    known = {name for name, _ in cluster.namespaces}
    # A namespace is its name and labels.
    added = tuple((name, ()) for name in NAMESPACES if name not in known)
    return replace(cluster, namespaces=(*cluster.namespaces, *added))


@dataclass(frozen=True, slots=True)
class PluginAnswers:
    """The answers of a plugin alone for one class on one table; can be compared between tables.

    pre: outcomes of PreFilter and PreScore. refusals: per row, "" if it passes. raw, scores: of the
    feasible rows, before and after normalization; None if the plugin does not score the pod. error:
    why PreScore or Score failed.
    """

    pre: str
    refusals: tuple[str, ...]
    raw: tuple[int, ...] | None
    scores: tuple[int, ...] | None
    error: str = ""


def answers(subject: PluginUnderTest, facts: PodFacts, table: NodeTable) -> PluginAnswers:
    """Compute all answers for a pod with a new instance of the plugin."""
    return answers_of(
        Evaluation(subject.only_this_plugin(table.classes), table.classes.pod_class(facts), table)
    )


def answers_of(evaluation: Evaluation, pre_score: PreScoreOutcome | None = None) -> PluginAnswers:
    """Bring an evaluation up to date with its table, and return the answers.

    The evaluation must be of a profile with this plugin alone: the first score plugin is read.
    pre_score: an earlier outcome of PreScore; with it, neither PreFilter nor PreScore is called.
    """
    is_new = pre_score is None
    evaluation.update(evaluation.run_pre_filter() if is_new else evaluation.pre_filter)
    outcome = evaluation.pre_filter
    if not outcome.status.is_success:
        return PluginAnswers(repr(outcome), (), None, None)
    # Code of a row: 0 if it passes, k for the kth status, negative if PreFilter excludes it.
    texts = ["", *(repr(status) for status in evaluation.statuses)]
    refusals = tuple(texts[code] if code >= 0 else "excluded" for code in evaluation.codes.tolist())
    status, _ = evaluation.update_scores(pre_score or evaluation.run_pre_score())
    pre = f"{outcome} {status}"
    raw = evaluation.raw[0] if status.is_success and evaluation.raw else None
    if raw is None or not evaluation.feasible.any():
        return PluginAnswers(pre, refusals, None, None, status.message)
    feasible: I64 = np.asarray(raw)[evaluation.feasible]
    plugin = evaluation.profile.score[0].plugin
    scores = feasible
    if plugin.normalizes:
        scores = plugin.normalize(
            evaluation.score_state, evaluation.pod, feasible, Extremes.of(feasible)
        )
    return PluginAnswers(pre, refusals, tuple(feasible.tolist()), tuple(scores.tolist()))
