"""Rounded statistics of openb, a published trace of a GPU cluster: sizes of nodes and pods.

From the lists of "Beware of Fragmentation" (USENIX ATC'23): the node sizes by count, the
most frequent pod sizes by their share of all pods, GPU model constraints by their share of one-GPU
pods (the list with constraints on 33% of the GPU pods), and the minimum, the 5% to 95% quantiles
and the maximum of the gaps between arrivals and of lifetimes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

GPUS = "nvidia.com/gpu"
_CPUS = (4, 8, 16, 32, 64, 96, 128)


@dataclass(frozen=True, slots=True)
class NodeSize:
    """A size of node; `weight` is its count relative to those of the other sizes."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str
    weight: int


@dataclass(frozen=True, slots=True)
class PodSize:
    """A size of pod. gpu_milli: request of each of `gpus`. weight: per ten thousand pods.

    qos: as openb names it: LS is latency-sensitive, BE best effort.
    """

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    qos: str
    weight: int


NODE_SIZES = (
    NodeSize(96_000, 393_216, 8, "G2", 549),
    NodeSize(104_000, 524_288, 2, "T4", 387),
    NodeSize(32_000, 262_144, 0, "", 129),
    NodeSize(16_000, 122_880, 2, "P100", 107),
    NodeSize(96_000, 524_288, 0, "", 80),
    NodeSize(128_000, 786_432, 8, "G3", 39),
    NodeSize(96_000, 393_216, 0, "", 30),
    NodeSize(32_000, 131_072, 4, "V100M16", 28),
    NodeSize(32_000, 131_072, 0, "", 33),
    NodeSize(64_000, 262_144, 2, "P100", 25),
    NodeSize(64_000, 524_288, 0, "", 34),
    NodeSize(96_000, 786_432, 8, "V100M32", 21),
    NodeSize(8_000, 32_768, 1, "V100M16", 19),
    NodeSize(96_000, 393_216, 4, "T4", 17),
    NodeSize(48_000, 376_832, 4, "V100M32", 9),
    NodeSize(64_000, 262_144, 8, "V100M16", 8),
    NodeSize(8_000, 61_440, 1, "P100", 5),
    NodeSize(128_000, 1_048_576, 1, "A10", 3),
)

NAMED_NODE_SIZES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        **{f"cpu-{cpus}": {"cpu": str(cpus), "memory": f"{4 * cpus}Gi"} for cpus in _CPUS},
        **{f"mem-{cpus}": {"cpu": str(cpus), "memory": f"{8 * cpus}Gi"} for cpus in _CPUS},
        "gpu-1xT4": {"cpu": "8", "memory": "32Gi", GPUS: "1"},
        "gpu-4xT4": {"cpu": "64", "memory": "256Gi", GPUS: "4"},
        "gpu-8xV100": {"cpu": "96", "memory": "768Gi", GPUS: "8"},
        "gpu-8xA100": {"cpu": "96", "memory": "1152Gi", GPUS: "8"},
        "gpu-8xH100": {"cpu": "192", "memory": "2048Gi", GPUS: "8"},
    }
)
"""Sizes of nodes as clouds offer them, by name: allocatable resources as in a manifest."""

POD_SIZES = (
    PodSize(3_152, 5_600, 1, 810, "BE", 1340),
    PodSize(11_300, 49_152, 1, 1000, "LS", 1100),
    PodSize(11_400, 48_128, 1, 1000, "LS", 690),
    PodSize(3_152, 5_600, 1, 1000, "BE", 600),
    PodSize(11_908, 47_104, 1, 470, "LS", 500),
    PodSize(12_500, 57_344, 0, 0, "LS", 480),
    PodSize(8_000, 30_517, 1, 470, "BE", 460),
    PodSize(32_000, 49_152, 0, 0, "BE", 370),
    PodSize(18_708, 64_512, 1, 1000, "LS", 330),
    PodSize(11_908, 47_104, 1, 650, "LS", 310),
    PodSize(9_810, 41_560, 1, 1000, "LS", 300),
    PodSize(12_000, 24_576, 1, 1000, "LS", 290),
    PodSize(4_000, 22_888, 1, 320, "BE", 270),
    PodSize(8_000, 30_517, 0, 0, "BE", 220),
    PodSize(15_700, 58_368, 1, 1000, "LS", 320),
    PodSize(11_908, 47_104, 1, 1000, "BE", 200),
    PodSize(15_400, 51_200, 0, 0, "LS", 280),
    PodSize(8_000, 16_384, 1, 1000, "LS", 250),
    PodSize(16_000, 32_768, 1, 1000, "LS", 190),
    PodSize(4_000, 24_576, 1, 1000, "LS", 180),
    PodSize(4_000, 30_517, 1, 230, "BE", 210),
    PodSize(24_200, 93_184, 1, 1000, "LS", 150),
    PodSize(4_152, 10_600, 1, 550, "BE", 210),
    PodSize(3_152, 5_600, 1, 590, "BE", 100),
    PodSize(11_400, 77_824, 1, 1000, "LS", 160),
    PodSize(4_000, 15_258, 1, 160, "BE", 130),
    PodSize(12_000, 24_576, 1, 1000, "Burstable", 80),
    PodSize(6_000, 6_144, 1, 460, "LS", 120),
    PodSize(1_000, 4_096, 1, 320, "BE", 50),
    PodSize(88_000, 327_680, 8, 1000, "Burstable", 25),
    PodSize(64_200, 263_168, 8, 1000, "LS", 28),
    PodSize(32_200, 132_096, 4, 1000, "LS", 18),
    PodSize(16_000, 65_536, 2, 1000, "LS", 20),
    PodSize(7_000, 30_720, 1, 1000, "Guaranteed", 9),
)

# (GPU models, weight); () for no constraint.
MODEL_CONSTRAINTS: tuple[tuple[tuple[str, ...], int], ...] = (
    ((), 662),
    (("T4",), 183),
    (("G2",), 47),
    (("P100",), 40),
    (("V100M16", "V100M32"), 23),
    (("P100", "V100M16", "V100M32"), 15),
    (("G3",), 12),
    (("G2", "P100", "T4", "V100M16", "V100M32"), 6),
    (("P100", "T4", "V100M16", "V100M32"), 5),
    (("A10", "G2", "T4", "V100M16", "V100M32"), 4),
    (("V100M32",), 3),
)

ARRIVAL_GAPS_S = (
    *(0, 1, 6, 18, 32, 45, 59, 79, 103, 130),
    *(161, 197, 238, 287, 356, 436, 544, 694, 948, 1467, 7200),
)

LIFETIMES_S = (
    *(1, 48, 80, 112, 146, 167, 202, 244, 301, 405),
    *(540, 691, 883, 1122, 1420, 1971, 2699, 4005, 6573, 16398, 604_800),
)
