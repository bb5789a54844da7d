"""Presets: named sweeps, each with the content of a sweep's YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from roadstead.lab.policies import POLICIES


@dataclass(frozen=True, slots=True)
class Preset:
    """A named sweep.

    vary: values of the swept parameters; set: values of others. engine: "model" for a study of
    `studies.py`, "inline" for the product's actors in one process. seeds: number of repeats.
    """

    title: str
    study: str
    vary: Mapping[str, tuple[object, ...]]
    set: Mapping[str, object] = field(default_factory=dict)
    seeds: int = 3
    engine: str = "model"


_DECISION_TIMES_S: Final = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        "quick": Preset(
            "A first look: conflicts against decision time",
            "omega",
            {"service_job_s": (0.1, 1.0, 10.0), "conflicts": ("fit", "version")},
            {"machines": 1000, "horizon_s": 1800.0, "batch_rate": 0.1},
        ),
        "omega-decision-time": Preset(
            "Conflicts and busyness against the service schedulers' decision time",
            "omega",
            {"service_job_s": _DECISION_TIMES_S, "placement": ("first-fit", "pack")},
            seeds=5,
        ),
        "omega-schedulers": Preset(
            "Conflicts and busyness against the number of batch schedulers",
            "omega",
            {"batch_schedulers": (1, 2, 4, 8, 16, 32), "batch_rate": (1.0, 2.0, 4.0, 8.0)},
            {"horizon_s": 3600.0},
        ),
        "omega-choices": Preset(
            "Coarse or fine detection, gang or incremental transactions",
            "omega",
            {
                "service_job_s": (0.1, 1.0, 10.0, 30.0, 100.0),
                "conflicts": ("fit", "version"),
                "transaction": ("incremental", "all-or-nothing"),
            },
            seeds=5,
        ),
        "omega-trace": Preset(
            "The cluster of the public trace, by what is published of it",
            "omega",
            {
                "service_job_s": (1.0, 10.0, 30.0, 100.0),
                "placement": ("first-fit", "pack", "spread"),
                "conflicts": ("fit", "version"),
            },
            {"cell": "trace", "machines": 12_583},
            seeds=5,
        ),
        "parsync-schedulers": Preset(
            "Extra slots against the number of schedulers",
            "extra-slots",
            {"schedulers": (10, 12, 15, 20, 30, 40, 60, 80), "partitions": (1, 20)},
            seeds=5,
        ),
        "parsync-gap": Preset(
            "Extra slots against the sync gap",
            "extra-slots",
            {"sync_gap_s": (0.1, 0.25, 0.5, 1.0, 2.0), "partitions": (1, 10, 20)},
            seeds=5,
        ),
        "parsync-variance": Preset(
            "Extra slots against the variance of the slots' scores",
            "extra-slots",
            {"variance": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0), "partitions": (1, 10, 20)},
            seeds=5,
        ),
        "parsync-partitions": Preset(
            "Extra slots against the number of partitions",
            "extra-slots",
            {
                "partitions": (1, 2, 5, 10, 15, 20, 40, 80, 160),
                "variance": (0.0, 1.0),
                "look": ("fresh", "all"),
            },
            seeds=5,
        ),
        "parsync-policies": Preset(
            "Where to look first, over phases of load",
            "policies",
            {"policy": POLICIES, "partitions": (5, 10, 20, 40)},
            {"phase_s": 10.0},
            seeds=5,
        ),
        "constraint-heavy": Preset(
            "Hard constraints under eight schedulers, with and without the re-check at the commit",
            "product",
            {"recheck": ("all", "node", "none")},
            {"workload": "constraint-heavy", "schedulers": 8, "mode": "shared", "batch": 64},
            engine="inline",
        ),
    }
)
