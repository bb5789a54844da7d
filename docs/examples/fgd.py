"""FGD: place a pod where it adds least to the GPU that typical pods could not use.

After "Beware of Fragmentation" (Weng et al., USENIX ATC'23), over the GPU of whole nodes: what is
free on a node is a fragment to a typical pod that does not fit there.
"""

from collections.abc import Hashable

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.arguments import PluginArguments
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Extremes, Reads, ScorePlugin
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table


class Arguments(PluginArguments):
    gpu: str = "alibabacloud.com/gpu-milli"
    typical: tuple[tuple[int, int, int], ...]  # cpu in milli-CPU, GPU in thousandths, how many


class FGD(ScorePlugin):
    name = "FGD"
    reads = Reads.ROW  # a row's answer depends on the numbers of that row
    normalizes = True
    arguments = Arguments

    def __init__(self, args: Arguments) -> None:
        self.args = args

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        free = [self.free(name, table) for name in ("cpu", self.args.gpu)]
        asked = [pod.request_of.get(name, 0) for name in ("cpu", self.args.gpu)]
        return self.fragments(*free) - self.fragments(free[0] - asked[0], free[1] - asked[1])

    def free(self, name: str, table: Table) -> I64:
        code = table.resource_code(name)
        return table.allocatable(code) - table.requested(code)

    def fragments(self, cpu: I64, gpu: I64) -> I64:
        unusable = (
            how_many * np.where((cpu >= asked_cpu) & (gpu >= asked_gpu), 0, gpu)
            for asked_cpu, asked_gpu, how_many in self.args.typical
        )
        return sum(unusable, np.zeros_like(gpu))

    def normalize(self, state: CycleState, pod: PodClass, raw: I64, extremes: Extremes) -> I64:
        spread = max(1, extremes.maximum - extremes.minimum)
        return 100 * (raw - extremes.minimum) // spread

    def sign(self, pod: PodFacts) -> Hashable:
        return pod.requests
