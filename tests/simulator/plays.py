"""Plans made by hand, and a recorder that keeps what happened."""

from dataclasses import dataclass, field

from roadstead.cycle.batch import CompiledKernel
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.simulator.play import Variant, build_engine
from roadstead.simulator.scenario import (
    Arrival,
    CompiledScenario,
    ControllerTimings,
    Limits,
    PodLifecycle,
)

SECOND_US = 1_000_000
TIMINGS = ControllerTimings(40 * SECOND_US, 0.1, 0.01, 5_500, 50)


@dataclass
class Listed:
    """A source with arrivals that a test lists: (time in s, name, facts, duration in s)."""

    listed: list
    grace_s: float = 0.0
    index: int = 0
    name: str = "listed"
    per_hour: float = 0.0
    pods_per_hour: float = 0.0

    def arrivals(self, seed):
        lifecycle = PodLifecycle((), int(self.grace_s * SECOND_US))
        for at_s, name, facts, duration_s in self.listed:
            pods = tuple((each, facts) for each in name.split(","))
            duration_us = -1 if duration_s is None else int(duration_s * SECOND_US)
            yield Arrival(int(at_s * SECOND_US), self.index, pods, duration_us, lifecycle)


def plan_of(nodes, arrivals=(), *, horizon_s=100.0, grace_s=0.0, **more):
    sources = (Listed(list(arrivals), grace_s),) if arrivals else ()
    return CompiledScenario(
        name="by hand",
        nodes=tuple(nodes),
        horizon_us=int(horizon_s * SECOND_US),
        sample_us=more.pop("sample_us", 10 * SECOND_US),
        start_delay_us=more.pop("start_delay_us", 0),
        timings=TIMINGS,
        limits=more.pop("limits", Limits(10**6, 10**7, 1 << 32)),
        sources=sources,
        **more,
    )


@dataclass
class Heard:
    """Events that a recorder received: (time in s, event, pod or node, more)."""

    rows: list = field(default_factory=list)
    nodes: list = field(default_factory=list)
    samples: int = 0

    def pod_ended(self, life):
        self.rows.append((life.ended_us / SECOND_US, str(life.ends_as), life.identity.name))

    def bound(self, now_us, life):
        self.rows.append((now_us / SECOND_US, "bound", life.identity.name, life.node))

    def not_bound(self, now_us, life, note, nominated, victims):
        self.rows.append((now_us / SECOND_US, "pending", life.identity.name, nominated))

    def claims(self, world, changed, removed):
        pass

    def note(self, now_us, note):
        self.rows.append((now_us / SECOND_US, note.what, note.subject))

    def node(self, now_us, name, facts, *, is_new):
        self.nodes.append((now_us / SECOND_US, name, facts))

    def sample(self, engine):
        engine.validate()
        self.samples += 1

    def of(self, *what):
        return [row for row in self.rows if row[1] in what]


def played(plan, *components, delay=None, seed=0, has_kernel=True):
    """Play a plan; return the recorder and the engine."""
    heard = Heard()
    compiled_kernel = CompiledKernel(load(), DecisionCounts()) if has_kernel else None
    engine = build_engine(plan, Variant(seed), heard, compiled_kernel, components, delay)
    engine.run()
    engine.validate()
    engine.cluster.table.validate()
    return heard, engine
