"""A copy of what the cache counts, made of its deltas alone, as those that hold nodes make it."""

from roadstead.placements import DeltaKind


class CacheCopy:
    """nodes: by name. pods, named: uid → (node, facts), of those counted on known nodes and those
    nominated to one. problems: deltas that do not follow from those before.
    """

    def __init__(self):
        self.nodes, self.pods, self.named = {}, {}, {}
        self.version, self.problems = 0, []

    def begin(self, deltas, version):
        """All there is, as deltas of one version."""
        for delta in deltas:
            if delta.version != version:
                self.problems.append(f"a snapshot of {version} has {delta}")
            self._take(delta)
        self.version = version

    def come(self, nodes):
        """Nodes of which nothing was known, without deltas."""
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
