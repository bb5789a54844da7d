"""Plugins of a user that do unusual things, each a function of a pod or a node alone.

    RunPlan(settings, config_with("LikesDigits"), plugins=peculiar("LikesDigits"))

Their answers are repeatable, so an independent check can call them, too. The plugins of the second
half refuse or fail a pod at its first attempt in their process, and let it pass after that.
"""

import json
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from roadstead.framework.plugin import (
    Effect,
    FilterPlugin,
    FilterResult,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)
from roadstead.protocol.status import SKIP, SUCCESS, Code, Status, error, unschedulable

MODULE = __name__
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
WAIT = Status(Code.WAIT)


def peculiar(*names):
    """Return the names of these plugins for a plan's `plugins`."""
    return tuple(f"{MODULE}:{name}" for name in names)


def config_with(*names, config=""):
    """Return a KubeSchedulerConfiguration that adds these plugins to each profile of `config`."""
    document = json.loads(config) if config else {}
    document = {**HEAD, **document, "profiles": document.get("profiles") or [{}]}
    for profile in document["profiles"]:
        plugins = profile.setdefault("plugins", {}).setdefault("multiPoint", {})
        plugins.setdefault("enabled", []).extend({"name": name} for name in names)
    return json.dumps(document)


def _cpu(facts):
    return dict(facts.requests).get("cpu", 0)


def _last_digits(table):
    """Return int64[row]: the last digit of each node's name."""
    names = [table.facts(row).name for row in range(len(table))]
    return np.array([int(name[-1]) if name[-1].isdecimal() else 0 for name in names], np.int64)


class _Signed:
    """Signs pods by the facts that all these plugins read."""

    reads = Reads.NODE

    def sign(self, pod) -> Hashable:
        return _cpu(pod), pod.labels, pod.priority


class FailsOnSomeNodes(_Signed, FilterPlugin):
    """Fails for some pods on some nodes, and refuses other nodes to other pods."""

    name = "FailsOnSomeNodes"

    def filter(self, state, pod, table):
        digits = _last_digits(table)
        if _cpu(pod.facts) == 250:
            return FilterResult((digits == 3).astype(np.int32), (error("the oracle is silent"),))
        codes = np.where(digits == 4, 1, np.where(digits == 5, 2, 0)).astype(np.int32)
        refusals = unschedulable("not here", "nor there"), Status(Code.PENDING, ("not yet",))
        return FilterResult(codes if _cpu(pod.facts) == 100 else None, refusals)


class NamesSomeNodes(_Signed, PreFilterPlugin):
    """Allows some pods only nodes of even numbers, and refuses a few pods everywhere."""

    name = "NamesSomeNodes"

    def pre_filter(self, state, pod, table):
        if pod.facts.priority == 5:
            return PreFilterResult(Status(Code.UNSCHEDULABLE, ("no luck today",)))
        if _cpu(pod.facts) not in (500, 600):
            return PreFilterResult()
        names = (f"{kind}{number}" for kind in "nwks" for number in range(0, 150, 2))
        return PreFilterResult(node_names=frozenset(names))


class NamesOtherNodes(_Signed, PreFilterPlugin):
    """Allows some pods, some of them the same, only every third node."""

    name = "NamesOtherNodes"

    def pre_filter(self, state, pod, table):
        if _cpu(pod.facts) not in (100, 500, 600):
            return PreFilterResult()
        names = (f"{kind}{number}" for kind in "nwks" for number in range(0, 150, 3))
        return PreFilterResult(node_names=frozenset(names))


@dataclass(frozen=True)
class Crowd:
    """The number of pods of one size."""

    pods: int


class SeesCrowds(_Signed, PreFilterPlugin, FilterPlugin):
    """Refuses nodes of odd numbers to pods if two of the same size are on any nodes.

    It fails to count pods of one size.
    """

    name = "SeesCrowds"
    reads = Reads.CLUSTER

    def effect(self, placed):
        size = _cpu(placed.facts)
        return Effect(size, lambda pod: _cpu(pod.facts) == size)

    def pre_filter(self, state, pod, table):
        size = _cpu(pod.facts)
        if size == 900:
            raise RuntimeError("too many to count")
        pods = sum(n for each, n in table.class_counts.items() if _cpu(each.facts) == size)
        if pods <= 1:
            return PreFilterResult(SKIP)
        state.write(self.name, Crowd(pods))
        return PreFilterResult()

    def filter(self, state, pod, table):
        return FilterResult.refuse(_last_digits(table) % 2 == 1, unschedulable("full"))


class IsMoody(FilterPlugin):
    """Refuses some nodes, or fails on some, depending on its mood.

    Its known state is its mood.
    """

    name = "IsMoody"
    reads = Reads.NODE
    shares_by_shape = True
    mood = 0
    """The mood of all instances; 0 refuses no node."""

    def sign(self, pod):
        return ()

    def state_version(self, pod):
        return IsMoody.mood

    def filter(self, state, pod, table):
        refused = _last_digits(table) % (1 + IsMoody.mood) == 1
        fails = IsMoody.mood == 2
        status = error("in no mood at all") if fails else unschedulable("not in the mood")
        return FilterResult.refuse(refused, status)


class FailsToScore(_Signed, PreScorePlugin, ScorePlugin):
    """Skips most pods; fails at PreScore, at Score, and with scores out of range."""

    name = "FailsToScore"

    def pre_score(self, state, pod, table, feasible):
        if _cpu(pod.facts) == 500:
            return error("nothing to compare")
        return SUCCESS if _cpu(pod.facts) in (300, 900) else SKIP

    def score(self, state, pod, table):
        if _cpu(pod.facts) == 300:
            return np.full(len(table), 50) + 60 * (_last_digits(table) == 1)
        raise RuntimeError("the oracle is silent")


class LooksTwice(_Signed, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Prepares for Filter and for Score, and returns Skip for one of them, or fails."""

    name = "LooksTwice"

    def pre_filter(self, state, pod, table):
        if _cpu(pod.facts) == 900:
            return PreFilterResult(error("nothing to see"))
        return PreFilterResult(SKIP if _cpu(pod.facts) in (100, 300, 500) else SUCCESS)

    def filter(self, state, pod, table):
        return FilterResult.refuse(_last_digits(table) == 2, unschedulable("twice"))

    def pre_score(self, state, pod, table, feasible):
        return SKIP if _cpu(pod.facts) in (250, 300, 600) else SUCCESS

    def score(self, state, pod, table):
        return 5 * _last_digits(table)


class LikesDigits(_Signed, ScorePlugin):
    """Normalizes by the lowest and the highest digit; equal digits get a constant."""

    name = "LikesDigits"
    normalizes = True

    def score(self, state, pod, table):
        return 1000 * (_last_digits(table) % 3)

    def normalize(self, state, pod, raw, extremes):
        low, high = extremes.minimum, extremes.maximum
        if _cpu(pod.facts) == 700:
            raise RuntimeError("the oracle is silent")
        return np.full_like(raw, 30) if low == high else 100 * (raw - low) // (high - low)


class LikesFewPods(_Signed, ScorePlugin):
    """Normalizes by the lowest and the highest number of pods; equal numbers get a constant."""

    name = "LikesFewPods"
    reads = Reads.ROW
    normalizes = True

    def score(self, state, pod, table):
        return np.asarray(table.pod_count, np.int64).copy()

    def normalize(self, state, pod, raw, extremes):
        low, high = extremes.minimum, extremes.maximum
        return np.full_like(raw, 70) if low == high else 100 - 100 * (raw - low) // (high - low)


class Overshoots(_Signed, ScorePlugin):
    """Normalizes to scores above the maximum, for pods of some sizes on some nodes."""

    name = "Overshoots"
    normalizes = True

    def score(self, state, pod, table):
        return _last_digits(table)

    def normalize(self, state, pod, raw, extremes):
        return np.where(raw % 3 == 1, 101 if _cpu(pod.facts) % 100 else 90, 10 + raw)


class _AtFirst(_Signed):
    """A plugin that remembers the pods that it has met."""

    def __init__(self):
        self._met = set()

    def meets(self, pod, digit):
        """Whether this is the first call for a pod with this last digit in its name."""
        is_new = pod.name.endswith(digit) and pod.uid not in self._met
        self._met.add(pod.uid)
        return is_new


class RefusesToReserve(_AtFirst, ReservePlugin):
    name = "RefusesToReserve"

    def reserve(self, pod, facts, node_name):
        if self.meets(pod, "1"):
            return unschedulable("not now")
        return SUCCESS

    def unreserve(self, pod, facts, node_name):
        if pod.name.endswith("5"):
            raise RuntimeError("the oracle is silent")


class FailsToReserve(_AtFirst, ReservePlugin):
    name = "FailsToReserve"

    def reserve(self, pod, facts, node_name):
        return error("out of order") if self.meets(pod, "2") else SUCCESS

    def unreserve(self, pod, facts, node_name):
        pass


class MakesWait(_AtFirst, PermitPlugin):
    """Makes some pods wait at Permit until their time is over."""

    name = "MakesWait"

    def permit(self, pod, facts, node_name):
        if self.meets(pod, "3"):
            return WAIT, 0.4
        return SUCCESS, 0.0


class MakesWaitToo(_AtFirst, PermitPlugin):
    name = "MakesWaitToo"

    def permit(self, pod, facts, node_name):
        return (WAIT, 0.2) if self.meets(pod, "3") else (SUCCESS, 0.0)


class FailsToPrepare(_AtFirst, PreBindPlugin):
    name = "FailsToPrepare"

    def pre_bind(self, pod, facts, node_name):
        if self.meets(pod, "6"):
            return error("no disk")
        return SUCCESS


class RefusesToPrepare(_AtFirst, PreBindPlugin):
    name = "RefusesToPrepare"

    def pre_bind(self, pod, facts, node_name):
        return unschedulable("no disk for it") if self.meets(pod, "7") else SUCCESS


class FailsAfterwards(_AtFirst, PostBindPlugin):
    name = "FailsAfterwards"

    def post_bind(self, pod, facts, node_name):
        if pod.name.endswith("8"):
            raise RuntimeError("the oracle is silent")


DECIDING = (
    FailsOnSomeNodes,
    NamesSomeNodes,
    NamesOtherNodes,
    FailsToScore,
    LooksTwice,
    LikesDigits,
    LikesFewPods,
)
ACROSS = (SeesCrowds,)
"""Their answers depend on other pods, too."""
BINDING = (
    RefusesToReserve,
    FailsToReserve,
    MakesWait,
    MakesWaitToo,
    FailsToPrepare,
    RefusesToPrepare,
    FailsAfterwards,
)
