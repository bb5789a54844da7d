"""Upstream's sampling, naively: which feasible nodes a search meets, and where the next one starts.

Upstream: pkg/scheduler/schedule_one.go (findNodesThatPassFilters, numFeasibleNodesToFind) with one
goroutine, and pkg/scheduler/backend/cache/node_tree.go (list).
"""

from itertools import zip_longest

LEAST_NODES = 100
LEAST_SHARE = 5


class Sampling:
    """shares: percentageOfNodesToScore by scheduler name, of the profiles that sample."""

    def __init__(self, plan):
        self.shares = plan.config().shares() if plan.settings.score_nodes == "config" else {}
        self._zones = {}
        self._start = 0

    def node_comes(self, facts):
        names = self._zones.setdefault(facts.zone, [])
        if facts.name not in names:
            names.append(facts.name)

    def node_goes(self, name):
        for zone, names in list(self._zones.items()):
            if name in names:
                names.remove(name)
                if not names:
                    del self._zones[zone]

    def search(self, scheduler_name, feasible, failing=(), named=None):
        """The names that one search meets among the feasible ones, and a failing one that ends it
        or None; the next starts behind it, and in front of that.

        named: nodes that PreFilter leaves over; no other one is come to.
        """
        turns = zip_longest(*self._zones.values())
        every = [name for turn in turns for name in turn if name is not None]
        order = [name for name in every if named is None or name in named]
        wanted = self._wanted(scheduler_name, len(order))
        met, seen, failed = set(), 0, None
        for step in range(len(order)):
            name = order[(self._start + step) % len(order)]
            if name in failing:
                failed = name
                break
            if name in feasible:
                if len(met) == wanted:
                    break
                met.add(name)
            seen += 1
        self._start = (self._start + seen) % len(every)
        return met, failed

    def _wanted(self, scheduler_name, nodes):
        share = self.shares.get(scheduler_name)
        if share is None or nodes < LEAST_NODES or share >= 100:
            return nodes
        if share == 0:
            share = max(LEAST_SHARE, 50 - nodes // 125)
        return max(LEAST_NODES, nodes * share // 100)
