"""FGD over single GPUs: place a pod where it adds least to the GPU that typical pods could not use.

After "Beware of Fragmentation" (Weng et al., USENIX ATC'23), for GPUs that are devices with a
capacity of 1,000 each (`trace_gpus: devices`). What is free on a node is a fragment to a typical
pod that does not fit there; on another node, what is free of the GPUs that are too full for it.
DynamicResources chooses the GPU within a node: the first one with enough left.
"""

from collections.abc import Hashable

import numpy as np
from fgd import FGD, Arguments

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Handle, Reads
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table

GPU = 1000
"""The capacity of one device."""


class FGDofGPUs(FGD):
    name = "FGDofGPUs"
    reads = Reads.CLUSTER  # claims are not in the rows of the table

    def __init__(self, args: Arguments, handle: Handle) -> None:
        super().__init__(args)
        self.devices = handle.storage.devices
        self.in_use = self.devices.allocator.in_use
        pools: dict[str, list[tuple[str, str, str]]] = {}
        for each in self.devices.slices.values():
            pools.setdefault(each.pool, []).extend(
                (each.driver, each.pool, device.name) for device in each.devices
            )
        self.gpus_of = {pool: sorted(gpus) for pool, gpus in pools.items()}
        self.width = max(map(len, self.gpus_of.values()), default=1)
        self.free_of: dict[
            str, I64
        ] = {}  # by node: what is free of each GPU; 0 where there is none
        self.in_use.watch(lambda pool: self.free_of.pop(pool[1], None))

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        names = (table.columns.node(int(row)).name for row in table.row_index)
        gpus = np.array([self.free_on(name) for name in names])
        code = table.resource_code("cpu")
        cpu = table.allocatable(code) - table.requested(code)
        asked = [pod.request_of.get(name, 0) for name in ("cpu", self.args.gpu)]
        return self.fragments(cpu, gpus) - self.fragments(cpu - asked[0], less(gpus, asked[1]))

    def free_on(self, node: str) -> I64:
        free = self.free_of.get(node)
        if free is None:
            free = self.free_of[node] = np.zeros(self.width, dtype=np.int64)
            for index, gpu in enumerate(self.gpus_of.get(node, ())):
                used = self.in_use.consumed(gpu).get("milli")
                free[index] = GPU - (0 if used is None else used.value())
        return free

    def fragments(self, cpu: I64, gpu: I64) -> I64:
        """Return the fragments of each node. gpu: [node, GPU]."""
        total = np.zeros_like(cpu)
        free = gpu.sum(axis=1)
        for asked_cpu, asked_gpu, how_many in self.args.typical:
            serves = gpu >= min(asked_gpu, GPU)
            fits = (cpu >= asked_cpu) & (serves.sum(axis=1) >= -(-asked_gpu // GPU))
            total += how_many * np.where(fits, np.where(serves, 0, gpu).sum(axis=1), free)
        return total

    def state_version(self, pod: PodClass) -> Hashable:
        return self.devices.version


def less(gpus: I64, asked: int) -> I64:
    """Return what is free of each GPU after a pod: the first ones with enough left serve it."""
    gpus = gpus.copy()
    while asked > 0:
        part = min(asked, GPU)
        first = (gpus >= part).argmax(axis=1)
        gpus[np.arange(len(gpus)), first] -= part
        asked -= part
    return gpus
