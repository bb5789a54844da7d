"""Playing one run of a scenario: its engine with all parts, and where its tables go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from roadstead.config.scenario.values import time_text
from roadstead.config.settings import Settings
from roadstead.cycle.batch import CompiledKernel
from roadstead.run import RunPlan
from roadstead.simulator.allocation_rows import device_rows
from roadstead.simulator.component import Component
from roadstead.simulator.controllers import Controllers
from roadstead.simulator.delay import Delay
from roadstead.simulator.engine import SECOND_US, Engine
from roadstead.simulator.limits import LimitExceededError, check_memory
from roadstead.simulator.nodes.component import NodeLifecycle, needs_node_lifecycle
from roadstead.simulator.recorder import TableRecorder
from roadstead.simulator.recording import Recorder, Recorders
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.simulated_pods import ON_NODE, Ending, LifeState
from roadstead.simulator.summary import RunSummary
from roadstead.simulator.virtual_cluster import VirtualCluster


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to play a scenario: a scheduler's configuration and a seed.

    config, config_source: the text of a KubeSchedulerConfiguration and its name; "" for the
    default. plugins: users' plugins, as in `RunPlan`.
    """

    seed: int = 0
    config: str = ""
    config_source: str = ""
    plugins: tuple[str, ...] = ()
    plugin_dir: str = ""


def run_plan(plan: CompiledScenario, variant: Variant) -> RunPlan:
    """Return the plan of the scheduler. InputError for settings or plugins that are wrong."""
    settings = Settings.model_validate(dict(plan.settings))
    one = {"runtime": "inline", "schedulers": 1, "workers": 0, "journal": None}
    if plan.decision.durations is not None or plan.decision.pod_us or plan.decision.is_measured:
        # One decision at a time, each with its own time.
        one["batch"] = 1
    settings = settings.model_copy(update={**one, "seed": variant.seed})
    return RunPlan(
        settings,
        variant.config,
        variant.config_source,
        plan.cluster,
        plugins=variant.plugins,
        plugin_dir=variant.plugin_dir,
    )


def components_of(plan: CompiledScenario, seed: int) -> tuple[Component, ...]:
    """Return the components that a plan needs, in the order in which they react."""
    found: list[Component] = []
    found += [Controllers(plan.controllers, seed)] if plan.controllers else []
    found += [NodeLifecycle(plan, seed)] if needs_node_lifecycle(plan) else []
    return tuple(found)


def build_engine(
    plan: CompiledScenario,
    variant: Variant,
    recorder: Recorder,
    compiled_kernel: CompiledKernel | None,
    components: Sequence[Component] = (),
    delay: Delay | None = None,
) -> Engine:
    """Return the engine of one run, ready to `run`."""
    engine = Engine(plan, recorder, components, seed=variant.seed)
    cluster = VirtualCluster(run_plan(plan, variant), compiled_kernel, engine.report)
    engine.attach(cluster, delay)
    return engine


def delay_of(
    plan: CompiledScenario, seed: int, read_processor_s: Callable[[], float]
) -> Delay | None:
    """Return the time that decisions take; None if they take none."""
    decision = plan.decision
    if decision.is_measured:
        return Delay(repeat(0), lambda: round(read_processor_s() * SECOND_US))
    if decision.durations is not None:
        return Delay(decision.durations.draws(seed, len(plan.controllers)))
    return Delay(repeat(decision.pod_us)) if decision.pod_us else None


def prepare_engine(
    plan: CompiledScenario,
    variant: Variant,
    recorder: Recorder,
    compiled_kernel: CompiledKernel | None,
    read_processor_s: Callable[[], float],
) -> Engine:
    """Return the engine of one run with the components and the delay that its plan needs.

    read_processor_s: of this process, for decisions whose time is measured.
    """
    components = components_of(plan, variant.seed)
    delay = delay_of(plan, variant.seed, read_processor_s)
    return build_engine(plan, variant, recorder, compiled_kernel, components, delay)


def play_to_horizon(
    plan: CompiledScenario,
    variant: Variant,
    recorder: Recorder,
    compiled_kernel: CompiledKernel | None,
    on_progress: Callable[[Engine], None] | None = None,
    *,
    read_processor_s: Callable[[], float],
) -> Engine:
    """Play a scenario to its horizon, with tables or without, and return its engine."""
    engine = prepare_engine(plan, variant, recorder, compiled_kernel, read_processor_s)
    try:
        engine.run(on_progress)
        engine.validate()
    except LimitExceededError as error:
        raise LimitExceededError(f"at {time_text(engine.now_us)}: {error}") from error
    return engine


def play(
    plan: CompiledScenario,
    variant: Variant,
    directory: Path,
    compiled_kernel: CompiledKernel | None,
    on_progress: Callable[[Engine], None] | None = None,
    *,
    read_processor_s: Callable[[], float],
    read_memory_bytes: Callable[[], int] = lambda: 0,
    also: Recorder | None = None,
) -> RunSummary:
    """Play a scenario, write its tables, and return its figures.

    Parts of tables that are in the directory must be those of this run; they are compared, not
    written again. read_processor_s, read_memory_bytes: of this process. also: another recorder.
    Raises OSError, QueueFullError, LimitExceededError, PartDiffersError.
    """
    began_s = read_processor_s()
    recorder = TableRecorder(directory, plan, run_plan(plan, variant).binding_profiles().devices)
    recorder.devices(device_rows(plan.cluster.devices.slices))

    def step(engine: Engine) -> None:
        check_memory(plan.limits.memory_bytes, read_memory_bytes())
        if on_progress is not None:
            on_progress(engine)

    recorders = recorder if also is None else Recorders(recorder, also)
    engine = play_to_horizon(
        plan, variant, recorders, compiled_kernel, step, read_processor_s=read_processor_s
    )
    recorder.close(engine)
    counts, (waits, waits_of) = engine.lives.counts, recorder.counts.waits()
    return RunSummary(
        scenario=plan.name,
        config=variant.config_source or "default",
        seed=variant.seed,
        horizon_us=plan.horizon_us,
        created=engine.lives.created,
        bound=waits.pods,
        pending=counts[LifeState.PENDING],
        running=sum(counts[state] for state in ON_NODE),
        endings={str(ending): recorder.counts.endings[ending] for ending in Ending},
        waits=waits,
        waits_of=waits_of,
        unplaced_attempts=recorder.counts.unplaced_attempts,
        nodes=len(engine.nodes),
        processor_s=read_processor_s() - began_s,
    )
