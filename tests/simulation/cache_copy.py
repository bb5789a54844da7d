"""A copy of the cache's counts built from its deltas alone, as node tables build it."""

from roadstead.placements import DeltaKind


class CacheCopy:
    """nodes: by name. pods, named: uid → (node, facts) of the pods counted on known nodes and of
    the pods nominated to one. problems: deltas that do not follow from the deltas before them.
    """

    def __init__(self):
        self.nodes, self.pods, self.named = {}, {}, {}
        self.version, self.problems = 0, []

    def begin(self, deltas, version):
        """Apply the whole state as deltas of one version."""
        for delta in deltas:
            if delta.version != version:
                self.problems.append(f"a snapshot of {version} has {delta}")
            self._take(delta)
        self.version = version

    def come(self, nodes):
        """Add nodes that were unknown before, without deltas."""
        self.nodes |= {facts.name: facts for facts in nodes}
        self.version += len(nodes)

    def take(self, deltas):
        for delta in deltas:
            self.version += 1
            if delta.version != self.version:
                self.problems.append(f"{delta} comes after version {self.version - 1}")
            self._take(delta)

    def _take(self, delta):
        _, kind, node_name, uid, pod, node = delta
        if (kind is not DeltaKind.ADD_NODE) and node_name not in self.nodes:
            self.problems.append(f"{delta} is of a node that is not there")
        elif kind in (DeltaKind.ADD_NODE, DeltaKind.UPDATE_NODE):
            if (kind is DeltaKind.ADD_NODE) == (node_name in self.nodes):
                self.problems.append(f"{delta}: the node is known, or is not")
            self.nodes[node_name] = node
        elif kind is DeltaKind.REMOVE_NODE:
            del self.nodes[node_name]
            if left := [u for u, (n, _) in (self.pods | self.named).items() if n == node_name]:
                self.problems.append(f"{delta} leaves {left}")
        elif kind in (DeltaKind.ADD_POD, DeltaKind.NOMINATE):
            here = self.pods if kind is DeltaKind.ADD_POD else self.named
            if uid in here:
                self.problems.append(f"{delta} comes twice")
            here[uid] = node_name, pod
        else:
            here = self.pods if kind is DeltaKind.REMOVE_POD else self.named
            if here.pop(uid, None) != (node_name, pod):
                self.problems.append(f"{delta} takes what is not there")
