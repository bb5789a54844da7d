"""BestFit: place a pod where the least is left after it.

What is left of each resource, divided by the largest node's, as the baseline of "Beware of
Fragmentation" (Weng et al., USENIX ATC'23) computes it: the smallest mean is best. `MostAllocated`
of NodeResourcesFit divides by what the node itself has, so a large node may have much more left.
"""

from collections.abc import Hashable

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.arguments import PluginArguments
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Reads, ScorePlugin
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table

MILLION = 1_000_000


class Arguments(PluginArguments):
    largest: dict[str, int]  # resource: amount of the largest node, in units of the table


class BestFit(ScorePlugin):
    name = "BestFit"
    reads = Reads.ROW  # a row's answer depends on the numbers of that row
    arguments = Arguments

    def __init__(self, args: Arguments) -> None:
        self.args = args

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        left = (
            (self.free(name, table) - pod.request_of.get(name, 0)) * MILLION // largest
            for name, largest in self.args.largest.items()
        )
        total = sum(left, np.zeros(len(table), dtype=np.int64))
        score = 100 - 100 * total // (len(self.args.largest) * MILLION)
        return np.clip(score, 0, 100)  # nodes larger than the largest, or overfull

    def free(self, name: str, table: Table) -> I64:
        code = table.resource_code(name)
        return table.allocatable(code) - table.requested(code)

    def sign(self, pod: PodFacts) -> Hashable:
        return pod.requests
