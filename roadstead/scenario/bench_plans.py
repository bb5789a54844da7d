"""Scenarios for `roadstead bench simulate`, built in code, and the values that are required."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import Trace
from roadstead.scenario.arrival_times import ActiveWindow, PoissonTimes
from roadstead.scenario.arrivals import DrawnArrivals, PodChoice, TraceArrivals
from roadstead.scenario.durations import ExponentialTimes
from roadstead.simulator.limits import MIB_BYTES
from roadstead.simulator.node_events import NodeEventPlan, NodeTarget
from roadstead.simulator.scenario import (
    Arrival,
    ArrivalSource,
    CompiledScenario,
    ControllerTimings,
    Limits,
    PodLifecycle,
)
from roadstead.simulator.share import Share
from roadstead.simulator.times import HOUR_US, SECOND_US

DAY_US: Final = 24 * HOUR_US
CLASSES: Final = 10
"""Number of pod classes, unless pods are distinct."""

DISTINCT_CPU_AMOUNTS: Final = 900
"""Number of CPU amounts of distinct pods; the memory is different for each pod."""

OPENB_HORIZON_US: Final = 150 * DAY_US
"""The last pod of openb, Alibaba's trace of a GPU cluster, arrives on day 100."""

LIFECYCLE: Final = PodLifecycle(no_execute=(), grace_us=0)
TIMINGS: Final = ControllerTimings(
    node_monitor_grace_us=40 * SECOND_US,
    eviction_per_s=0.1,
    secondary_eviction_per_s=0.01,
    unhealthy_zone_basis_points=5_500,
    large_cluster_nodes=50,
)
LIMITS: Final = Limits(pods=10**7, rows=10**8, memory_bytes=4 << 30)


@dataclass(frozen=True, slots=True)
class PoissonSize:
    """Size of a scenario in which each arrival is one pod.

    arrivals: expected until the horizon. life_us: mean time that a pod runs.
    """

    nodes: int
    arrivals: int
    life_us: int
    horizon_us: int


SMALL: Final = PoissonSize(
    nodes=5_000, arrivals=60_000, life_us=1_000 * SECOND_US, horizon_us=3_000 * SECOND_US
)
LARGE: Final = PoissonSize(nodes=50_000, arrivals=1_000_000, life_us=DAY_US, horizon_us=30 * DAY_US)


@dataclass(frozen=True, slots=True)
class Floor:
    """The required performance of a scenario.

    figure: "events_per_s", which must be at least `value`, or "processor_s", which must be at most
    `value`. memory_bytes: maximum memory; 0 for no maximum.
    """

    figure: str
    value: float
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """A scenario to measure. is_slow: it takes minutes.

    needs_openb: the argument of `make` is the trace openb, otherwise None.
    """

    name: str
    title: str
    floor: Floor
    make: Callable[[Trace | None], CompiledScenario]
    is_slow: bool = False
    needs_openb: bool = False


def uniform_nodes(count: int) -> tuple[NodeFacts, ...]:
    """Return nodes as in scheduler_perf's SchedulingBasic: 4 CPU, 32 GiB, 110 pods."""
    room = (("cpu", 4_000), ("memory", 32 << 30))
    names = (f"node-{number}" for number in range(count))
    return tuple(NodeFacts(name, allocatable=room, allocatable_pods=110) for name in names)


def small_pod(cpu_milli: int, memory_bytes: int) -> PodFacts:
    """Return the facts of a pod with these requests and nothing else."""
    return PodFacts(
        scheduler_name="default-scheduler",
        requests=(("cpu", cpu_milli), ("memory", memory_bytes)),
        nonzero_cpu_milli=cpu_milli,
        nonzero_memory_bytes=memory_bytes,
    )


@dataclass(frozen=True, slots=True)
class DistinctArrivals:
    """The arrivals of another source, with pods of which no two are equal."""

    source: DrawnArrivals

    @property
    def index(self) -> int:
        return self.source.index

    @property
    def name(self) -> str:
        return self.source.name

    def expected(self, horizon_us: int) -> tuple[float, float]:
        return self.source.expected(horizon_us)

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        for number, arrival in enumerate(self.source.arrivals(seed)):
            facts = small_pod(100 + number % DISTINCT_CPU_AMOUNTS, 100 * MIB_BYTES + 4_096 * number)
            yield arrival._replace(pods=tuple((name, facts) for name, _ in arrival.pods))


def poisson(size: PoissonSize, *, are_distinct: bool = False) -> CompiledScenario:
    """Return single arrivals of CLASSES classes at a constant rate, or of distinct pods."""
    choices = (
        PodChoice(f"pod-{number}", small_pod(100 + number, (100 + 10 * number) << 20), LIFECYCLE)
        for number in range(CLASSES)
    )
    drawn = DrawnArrivals(
        index=0,
        name="poisson",
        times=PoissonTimes(size.arrivals * HOUR_US / size.horizon_us),
        window=ActiveWindow(),
        durations=ExponentialTimes(size.life_us),
        choices=tuple(choices),
    )
    source: ArrivalSource = DistinctArrivals(drawn) if are_distinct else drawn
    return _plan("poisson", uniform_nodes(size.nodes), size.horizon_us, source)


def with_losses(plan: CompiledScenario) -> CompiledScenario:
    """Return a plan in which 1% of the nodes is lost each day, and back after four hours."""
    lose = NodeEventPlan(
        0,
        "lose",
        at_us=DAY_US,
        every_us=DAY_US,
        for_us=4 * HOUR_US,
        target=NodeTarget(share=Share(basis_points=100)),
    )
    return replace(plan, node_events=(lose,))


def openb(trace: Trace | None) -> CompiledScenario:
    """Return the whole trace, with its own times of arrival and its own lifetimes."""
    assert trace is not None, "openb is played without its trace"
    lifecycles = (LIFECYCLE,) * len(trace.pod_classes)
    source = TraceArrivals(0, "openb", trace, lifecycles)
    plan = _plan("openb", tuple(trace.nodes()), OPENB_HORIZON_US, source, sample_us=6 * HOUR_US)
    return replace(plan, cluster=ClusterFacts(namespaces=trace.namespaces))


def _plan(
    name: str,
    nodes: tuple[NodeFacts, ...],
    horizon_us: int,
    source: ArrivalSource,
    sample_us: int = HOUR_US,
) -> CompiledScenario:
    return CompiledScenario(
        name,
        nodes,
        horizon_us,
        sample_us,
        start_delay_us=0,
        timings=TIMINGS,
        limits=LIMITS,
        sources=(source,),
    )


BENCH_PLANS: Final = (
    BenchPlan(
        "openb",
        "openb with its own arrivals and lifetimes",
        Floor("processor_s", 10.0),
        openb,
        needs_openb=True,
    ),
    BenchPlan(
        "ten-classes",
        "5,000 nodes, single arrivals of 10 classes",
        Floor("events_per_s", 8_000.0),
        lambda _: poisson(SMALL),
    ),
    BenchPlan(
        "all-distinct",
        "5,000 nodes, single arrivals, every pod distinct",
        Floor("events_per_s", 2_500.0),
        lambda _: poisson(SMALL, are_distinct=True),
    ),
    BenchPlan(
        "month",
        "50,000 nodes, 1,000,000 pods in 30 days, 1% of nodes lost a day",
        Floor("processor_s", 300.0, 4_000_000_000),
        lambda _: with_losses(poisson(LARGE)),
        is_slow=True,
    ),
)
