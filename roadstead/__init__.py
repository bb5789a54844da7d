"""Roadstead: a Kubernetes-compatible scheduler that runs as actors on Ray.

    cluster = roadstead.load("nodes.yaml", "app/")
    result = cluster.schedule(seed=1)
    result.placements, result.pending, result.to_arrow()
    cluster.explain("web").best

See `docs/python.md`. The names are imported at their first use.
"""

from __future__ import annotations

from roadstead.version import __version__

# Not from `typing`: with `python -m roadstead` the working directory is first on the path until
# `__main__` removes it, and a module `typing` there would be executed.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from roadstead.api.cluster import Cluster, load, load_config
    from roadstead.api.comparison import Comparison, compare
    from roadstead.api.explanation import PodExplanation
    from roadstead.api.pod_life import PodLife
    from roadstead.api.result import Result
    from roadstead.api.run_check import RunCheck
    from roadstead.api.scenario import Scenario
    from roadstead.api.scenario_entries import Fleet, Workload
    from roadstead.api.simulation import SimulationResult, load_run, simulate
    from roadstead.api.sweep import SweepResult, sweep
    from roadstead.protocol.errors import InputError, RoadsteadError, UnsupportedError
    from roadstead.report.drain_result import DrainResult
    from roadstead.report.fit_result import FitResult
    from roadstead.report.grow_result import GrowResult, ShrinkResult

__all__ = [
    "Cluster",
    "Comparison",
    "DrainResult",
    "FitResult",
    "Fleet",
    "GrowResult",
    "InputError",
    "PodExplanation",
    "PodLife",
    "Result",
    "RoadsteadError",
    "RunCheck",
    "Scenario",
    "ShrinkResult",
    "SimulationResult",
    "SweepResult",
    "UnsupportedError",
    "Workload",
    "__version__",
    "compare",
    "load",
    "load_config",
    "load_run",
    "simulate",
    "sweep",
]

_MODULES = {
    **dict.fromkeys(("Cluster", "load", "load_config"), "api.cluster"),
    **dict.fromkeys(("Comparison", "compare"), "api.comparison"),
    "DrainResult": "report.drain_result",
    "FitResult": "report.fit_result",
    **dict.fromkeys(("GrowResult", "ShrinkResult"), "report.grow_result"),
    "PodExplanation": "api.explanation",
    "PodLife": "api.pod_life",
    "Result": "api.result",
    "RunCheck": "api.run_check",
    "Scenario": "api.scenario",
    **dict.fromkeys(("Fleet", "Workload"), "api.scenario_entries"),
    **dict.fromkeys(("SimulationResult", "load_run", "simulate"), "api.simulation"),
    **dict.fromkeys(("SweepResult", "sweep"), "api.sweep"),
    **dict.fromkeys(("InputError", "RoadsteadError", "UnsupportedError"), "protocol.errors"),
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use (PEP 562): `import roadstead` stays cheap."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
