"""Plugins of a user that fail, for tests and for simulated runs.

    RunPlan(settings, config_with("RaisesAtScoreForSome"), plugins=faulty("RaisesAtScoreForSome"))

Plugins named "ForSome" fail for pods whose CPU is an odd number of tenths of a core, and let all
other pods pass. All plugins sign pods by this parity, so that there are few classes.
"""

import json
import os
import sys
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import yaml

from roadstead.framework.per_node import NodePlugin
from roadstead.framework.plugin import (
    Effect,
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)
from roadstead.protocol.status import SUCCESS

MODULE = __name__
TENTH_MILLI = 100
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def faulty(*names):
    """Return the names of these plugins for a plan's `plugins`."""
    return tuple(f"{MODULE}:{name}" for name in names)


def config_with(*names, config=""):
    """Return a KubeSchedulerConfiguration that adds these plugins to those of each profile of
    `config`, or to the default ones."""
    sorting = [name for name in names if issubclass(globals()[name], QueueSortPlugin)]
    others = [{"name": name} for name in names if name not in sorting]
    document = yaml.safe_load(config) if config else HEAD
    document = {**document, "profiles": document.get("profiles") or [{}]}
    for profile in document["profiles"]:
        plugins = profile.setdefault("plugins", {})
        enabled = plugins.setdefault("multiPoint", {}).setdefault("enabled", [])
        enabled += others
        if sorting:
            enabled = [{"name": name} for name in sorting]
            plugins["queueSort"] = {"disabled": [{"name": "*"}], "enabled": enabled}
    return json.dumps(document)


def is_odd(facts):
    """Whether the plugins "ForSome" fail for a pod."""
    return dict(facts.requests).get("cpu", 0) // TENTH_MILLI % 2 == 1


class Faulty(Plugin):
    """A plugin that signs pods by whether it fails for them, and raises the error of `fail`."""

    reads = Reads.ROW

    def sign(self, pod) -> Hashable:
        return is_odd(pod)

    def fail(self):
        raise RuntimeError("the oracle is silent")


class RaisesAtPreEnqueueForSome(Faulty, PreEnqueuePlugin):
    name = "RaisesAtPreEnqueueForSome"

    def pre_enqueue(self, pod):
        return self.fail() if is_odd(pod) else SUCCESS


class RaisesAtQueueSort(Faulty, QueueSortPlugin):
    name = "RaisesAtQueueSort"

    def sort_key(self, pod, queued_s):
        return self.fail()


class RaisesAtPreFilterForSome(Faulty, PreFilterPlugin):
    name = "RaisesAtPreFilterForSome"

    def pre_filter(self, state, pod, table):
        return self.fail() if is_odd(pod.facts) else PreFilterResult()


class RaisesAtFilterForSome(Faulty, FilterPlugin):
    name = "RaisesAtFilterForSome"

    def filter(self, state, pod, table):
        return self.fail() if is_odd(pod.facts) else FilterResult()


class RaisesAtPostFilter(Faulty, PostFilterPlugin):
    name = "RaisesAtPostFilter"

    def post_filter(self, pod, failed):
        return self.fail()


class RaisesAtPreScoreForSome(Faulty, PreScorePlugin):
    name = "RaisesAtPreScoreForSome"

    def pre_score(self, state, pod, table, feasible):
        return self.fail() if is_odd(pod.facts) else SUCCESS


class RaisesAtScoreForSome(Faulty, ScorePlugin):
    name = "RaisesAtScoreForSome"

    def score(self, state, pod, table):
        return self.fail() if is_odd(pod.facts) else np.zeros(len(table), np.int64)


class RaisesAtNormalizeForSome(Faulty, ScorePlugin):
    name = "RaisesAtNormalizeForSome"
    normalizes = True

    def score(self, state, pod, table):
        return np.zeros(len(table), np.int64)

    def normalize(self, state, pod, raw, extremes):
        return self.fail() if is_odd(pod.facts) else raw


class RaisesAtReserveForSome(Faulty, ReservePlugin):
    name = "RaisesAtReserveForSome"

    def reserve(self, pod, facts, node_name):
        return self.fail() if is_odd(facts) else SUCCESS

    def unreserve(self, pod, facts, node_name):
        self.fail()


class RaisesAtPermitForSome(Faulty, PermitPlugin):
    name = "RaisesAtPermitForSome"

    def permit(self, pod, facts, node_name):
        return self.fail() if is_odd(facts) else (SUCCESS, 0.0)


class RaisesAtPreBindForSome(Faulty, PreBindPlugin):
    name = "RaisesAtPreBindForSome"

    def pre_bind(self, pod, facts, node_name):
        return self.fail() if is_odd(facts) else SUCCESS


class RaisesAtPostBind(Faulty, PostBindPlugin):
    name = "RaisesAtPostBind"

    def post_bind(self, pod, facts, node_name):
        self.fail()


class RaisesInHints(Faulty, FilterPlugin, EnqueueExtensions):
    """Refuses every node, and raises when its hints are called."""

    name = "RaisesInHints"

    def filter(self, state, pod, table):
        return FilterResult()

    def events_to_register(self):
        return self.fail()


class RaisesAtFirst(Faulty, ScorePlugin):
    """Fails at the first call of each instance."""

    name = "RaisesAtFirst"

    def __init__(self):
        self.was_asked = False

    def score(self, state, pod, table):
        if not self.was_asked:
            self.was_asked = True
            self.fail()
        return np.zeros(len(table), np.int64)


class ExitsAtScoreForSome(Faulty, ScorePlugin):
    name = "ExitsAtScoreForSome"

    def score(self, state, pod, table):
        if is_odd(pod.facts):
            sys.exit(0)
        return np.zeros(len(table), np.int64)


class Answers(Faulty, ScorePlugin):
    """Scores odd pods with `wrong(rows)`, all others with 0."""

    name = "Answers"

    def wrong(self, rows):
        raise NotImplementedError

    def score(self, state, pod, table):
        return self.wrong(len(table)) if is_odd(pod.facts) else np.zeros(len(table), np.int64)


class ScoresTooHighForSome(Answers):
    name = "ScoresTooHighForSome"

    def wrong(self, rows):
        return np.full(rows, 500)


class ScoresTooHighByLabelsForSome(ScoresTooHighForSome):
    """The same fault in a plugin that declares that it reads NODE facts only."""

    name = "ScoresTooHighByLabelsForSome"
    reads = Reads.NODE


class NormalizesTooLowForSome(Answers):
    name = "NormalizesTooLowForSome"
    normalizes = True

    def wrong(self, rows):
        return np.full(rows, -7)


class ScoresNaNForSome(Answers):
    name = "ScoresNaNForSome"

    def wrong(self, rows):
        return np.full(rows, np.nan)


class ScoresFractionsForSome(Answers):
    name = "ScoresFractionsForSome"

    def wrong(self, rows):
        return np.full(rows, 0.5)


class ScoresTooFewForSome(Answers):
    name = "ScoresTooFewForSome"

    def wrong(self, rows):
        return np.zeros(max(rows - 1, 0), np.int64)


class ScoresNoneForSome(Answers):
    name = "ScoresNoneForSome"

    def wrong(self, rows):
        return None


class FiltersNoneForSome(Faulty, FilterPlugin):
    name = "FiltersNoneForSome"

    def filter(self, state, pod, table):
        return None if is_odd(pod.facts) else FilterResult()


class FiltersUnknownCodesForSome(Faulty, FilterPlugin):
    name = "FiltersUnknownCodesForSome"

    def filter(self, state, pod, table):
        return FilterResult(np.full(len(table), 3 if is_odd(pod.facts) else 0, np.int32))


class NodeScoresNoneForSome(NodePlugin):
    name = "NodeScoresNoneForSome"
    reads = Reads.NODE

    def score(self, pod, node):
        return None if is_odd(pod.facts) else 1

    def sign(self, pod):
        return is_odd(pod)


class NodeFiltersNoneForSome(NodePlugin):
    name = "NodeFiltersNoneForSome"

    def filter(self, pod, node):
        return None if is_odd(pod.facts) else SUCCESS

    def sign(self, pod):
        return is_odd(pod)


class LoopsAtScoreForSome(Faulty, ScorePlugin):
    """Loops forever in Python at Score; only for runs whose plugins are watched."""

    name = "LoopsAtScoreForSome"

    def score(self, state, pod, table):
        while is_odd(pod.facts):
            pass
        return np.zeros(len(table), np.int64)


class CrashesAtScoreForSome(Faulty, ScorePlugin):
    """Ends its process like a crash of native code; only for processes that may end."""

    name = "CrashesAtScoreForSome"

    def score(self, state, pod, table):
        if is_odd(pod.facts):
            os.abort()
        return np.zeros(len(table), np.int64)


@dataclass(frozen=True, slots=True)
class Count:
    """The number of nodes."""

    nodes: int


class LooksAcross(Faulty, PreFilterPlugin, FilterPlugin):
    """Lets every node pass, and counts the nodes."""

    name = "LooksAcross"
    reads = Reads.CLUSTER

    def pre_filter(self, state, pod, table):
        state.write(self.name, Count(len(table)))
        return PreFilterResult()

    def filter(self, state, pod, table):
        return FilterResult()


class FailsToCountForSome(LooksAcross):
    name = "FailsToCountForSome"

    def pre_filter(self, state, pod, table):
        return self.fail() if is_odd(pod.facts) else super().pre_filter(state, pod, table)


class FailsToWeighForSome(Faulty, PreScorePlugin, ScorePlugin):
    name = "FailsToWeighForSome"
    reads = Reads.CLUSTER

    def pre_score(self, state, pod, table, feasible):
        state.write(self.name, Count(len(table)))
        return self.fail() if is_odd(pod.facts) else SUCCESS

    def score(self, state, pod, table):
        return np.zeros(len(table), np.int64)


class RaisesInAdvice(LooksAcross):
    """Answers every phase, and fails at every question about what may be reused."""

    name = "RaisesInAdvice"

    def sign(self, pod):
        return self.fail()

    def state_version(self, pod):
        return self.fail()

    def effect(self, placed):
        if is_odd(placed.facts):
            return Effect(placed, lambda pod: self.fail())
        return self.fail()

    def count_passing(self, pods, table, rows):
        return self.fail()
