"""Upstream's sampling, naively: the feasible nodes that a search finds, and the start of the next
search.

Upstream: pkg/scheduler/schedule_one.go (findNodesThatPassFilters, numFeasibleNodesToFind) with one
goroutine, and pkg/scheduler/backend/cache (node_tree.go, list; cache.go, UpdateSnapshot).
"""

from itertools import zip_longest

LEAST_NODES = 100
LEAST_SHARE = 5


class Sampling:
    """shares: percentageOfNodesToScore by scheduler name, of the profiles that sample.

    start: where in the order of all nodes the next search begins. is_content: scheduler names whose
    searches end with the first feasible node, since no plugin scores it.
    """

    def __init__(self, plan):
        self.shares = (
            plan.config().sampling_percentages() if plan.settings.score_nodes == "config" else {}
        )
        self._zones, self._order = {}, []
        self.start, self.is_content = 0, set()

    def node_comes(self, facts):
        names = self._zones.setdefault(facts.zone, [])
        if facts.name not in names:
            names.append(facts.name)

    def node_removed(self, name):
        for zone, names in list(self._zones.items()):
            if name in names:
                names.remove(name)
                if not names:
                    del self._zones[zone]

    def look(self):
        """Begin a cycle: nodes that were removed and added again meanwhile keep their position."""
        names = self._by_turns()
        if set(names) != set(self._order):
            self._order = names

    def names(self):
        """All nodes in their order; None where new nodes would have another order."""
        self.look()
        return self._order if self._order == self._by_turns() else None

    def _by_turns(self):
        """All nodes, one of each zone by turns."""
        turns = zip_longest(*self._zones.values())
        return [name for turn in turns for name in turn if name is not None]

    def search(self, scheduler_name, feasible, failing=(), named=None, also_refused=()):
        """Return the feasible names that one search finds, in order; all names that it reaches; and
        the failing name that ends it, or None. The next search starts after the last name, or at
        the failing one.

        named: nodes that PreFilter leaves; the search reaches no others. also_refused: nodes
        refused earlier, which count as reached.
        """
        every = self._order
        order = [name for name in every if named is None or name in named]
        wanted = self._wanted(scheduler_name, len(order))
        met, refused, failed = [], set(), None
        for step in range(len(order)):
            name = order[(self.start + step) % len(order)]
            if name in failing:
                failed = name
                break
            if name not in feasible:
                refused.add(name)
            elif len(met) == wanted:
                break
            else:
                met.append(name)
        seen = {*met, *refused}
        self.start = (self.start + len(met) + len(refused | {*also_refused})) % len(every)
        return met, seen, failed

    def _wanted(self, scheduler_name, nodes):
        share = self.shares.get(scheduler_name)
        if share is not None and scheduler_name in self.is_content:
            return 1
        if share is None or nodes < LEAST_NODES or share >= 100:
            return nodes
        if share == 0:
            share = max(LEAST_SHARE, 50 - nodes // 125)
        return max(LEAST_NODES, nodes * share // 100)
