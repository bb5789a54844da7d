"""FGD over single GPUs: place a pod where it adds least to the GPU that typical pods could not use.

After "Beware of Fragmentation" (Weng et al., USENIX ATC'23), for GPUs that are devices with a
capacity of 1,000 each (`trace_gpus: devices`). What is free on a node is a fragment to a typical
pod that does not fit there; on another node, what is free of the GPUs that are too full for it.
DynamicResources chooses the GPU within a node: the first one with enough left.
"""

from collections.abc import Hashable

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.arguments import PluginArguments
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Extremes, Handle, Reads, ScorePlugin
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table

GPU = 1000
"""The capacity of one device."""


class Arguments(PluginArguments):
    gpu: str = "alibabacloud.com/gpu-milli"
    typical: tuple[tuple[int, int, int], ...]  # cpu in milli-CPU, GPU in thousandths, how many


class FGDofGPUs(ScorePlugin):
    name = "FGDofGPUs"
    reads = Reads.CLUSTER  # claims are not in the rows of the table
    normalizes = True
    arguments = Arguments

    def __init__(self, args: Arguments, handle: Handle) -> None:
        self.args = args
        self.devices = handle.storage.devices
        self.in_use = self.devices.allocator.in_use
        self.gpus_of: dict[str, list[tuple[str, str, str]]] = {}
        for each in self.devices.slices.values():
            gpus = self.gpus_of.setdefault(each.pool, [])
            gpus += ((each.driver, each.pool, device.name) for device in each.devices)
        # The pool of a node has its name. The last place is that of nodes without GPUs.
        self.place_of = {pool: place for place, pool in enumerate(self.gpus_of)}
        width = max(map(len, self.gpus_of.values()), default=1)
        # [GPU, node]: what is free of each GPU; 0 where a node has fewer.
        self.free = np.zeros((width, len(self.gpus_of) + 1), dtype=np.int64)
        self.changed = set(self.gpus_of)
        self.in_use.watch(lambda pool: self.changed.add(pool[1]))

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        gpus = self.free_gpus(table)
        code = table.resource_code("cpu")
        cpu = table.allocatable(code) - table.requested(code)
        asked = [pod.request_of.get(name, 0) for name in ("cpu", self.args.gpu)]
        return self.fragments(cpu, gpus) - self.fragments(cpu - asked[0], less(gpus, asked[1]))

    def free_gpus(self, table: Table) -> I64:
        for pool in self.changed & self.gpus_of.keys():
            for index, gpu in enumerate(sorted(self.gpus_of[pool])):
                used = self.in_use.consumed(gpu).get("milli")
                self.free[index, self.place_of[pool]] = GPU - (used.value() if used else 0)
        self.changed.clear()
        names, without = table.columns.names, len(self.place_of)
        places = [self.place_of.get(names[row], without) for row in table.row_index.tolist()]
        return self.free[:, places]

    def fragments(self, cpu: I64, gpus: I64) -> I64:
        """Return the GPU of each node that typical pods cannot use, by how many there are."""
        free, usable = gpus.sum(axis=0), dict[int, I64]()
        total = np.zeros_like(free)
        for asked_cpu, asked_gpu, how_many in self.args.typical:
            if asked_gpu not in usable:
                serves = gpus >= min(asked_gpu, GPU)
                fits = serves.sum(axis=0) >= -(-asked_gpu // GPU)
                usable[asked_gpu] = np.where(serves, gpus, 0).sum(axis=0) * fits
            total += how_many * (free - np.where(cpu >= asked_cpu, usable[asked_gpu], 0))
        return total

    def normalize(self, state: CycleState, pod: PodClass, raw: I64, extremes: Extremes) -> I64:
        spread = max(1, extremes.maximum - extremes.minimum)
        return 100 * (raw - extremes.minimum) // spread

    def sign(self, pod: PodFacts) -> Hashable:
        return pod.requests

    def state_version(self, pod: PodClass) -> Hashable:
        return self.devices.version


def less(gpus: I64, asked: int) -> I64:
    """Return what is free of each GPU after a pod: the first ones with enough left serve it."""
    gpus = gpus.copy()
    while asked > 0:
        part = min(asked, GPU)
        first = (gpus >= part).argmax(axis=0)
        gpus[first, np.arange(gpus.shape[1])] -= part
        asked -= part
    return gpus
