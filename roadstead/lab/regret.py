"""Score regret: how far the chosen nodes score below the best ones, in points of 100.

The binds are replayed in commit order on one table. Before each bind, a single scheduler that
scores every node computes the score of the best node and that of the chosen one. A run with a
single scheduler has no regret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.explain import Explanation
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable

Placed = tuple[PodIdentity, PodFacts, str]
"""A pod and the name of its node."""

SAMPLE = 100
"""Number of pods whose scores are computed."""


def score_regret(
    nodes: Iterable[NodeFacts],
    running: Iterable[Placed],
    placed: Sequence[Placed],
    classes: PodClasses,
    profiles: Mapping[str, Profile],
    sample: int = SAMPLE,
) -> float:
    """Mean over a sample of `placed`, evenly spaced; 0 if nothing is placed.

    A node that was no longer feasible counts as the lowest score, 0. classes: those with which
    the profiles were built. The node table is a new one.
    """
    table = NodeTable(classes)
    for node in nodes:
        table.add_node(node)
    for _, facts, node_name in running:
        table.add_pod(node_name, classes.pod_class(facts))
    cycle = PlainCycle(table, profiles, TieBreak("first"))
    every = max(1, -(-len(placed) // sample))
    regrets = []
    for index, (identity, facts, node_name) in enumerate(placed):
        pod_class = classes.pod_class(facts)
        if index % every == 0:
            profile = profiles[facts.scheduler_name]
            signature = profile.signature_of(pod_class, identity.uid)
            pod = PodInCycle(identity.uid, identity.key, pod_class, signature)
            regrets.append(_regret(cycle.explain(pod), node_name))
        # In the order of placement: each decision is compared with the best node of its own time.
        table.add_pod(node_name, pod_class)
    return sum(regrets) / len(regrets) if regrets else 0.0


def _regret(explanation: Explanation, node_name: str) -> float:
    weights = sum(line.weight for line in explanation.scores)
    if not len(explanation.total) or not weights:
        return 0.0
    names = [explanation.names[row] for row in explanation.feasible]
    chosen_total = int(explanation.total[names.index(node_name)]) if node_name in names else 0
    return (int(explanation.total.max()) - chosen_total) / weights
