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
from roadstead.simulator.engine import Engine
from roadstead.simulator.limits import LimitExceededError, check_memory
from roadstead.simulator.nodes.component import NodeLifecycle, needs_node_lifecycle
from roadstead.simulator.recorder import TableRecorder
from roadstead.simulator.recording import Recorder, Recorders
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.simulated_pods import ON_NODE, Ending, LifeState
from roadstead.simulator.summary import RunSummary
from roadstead.simulator.times import SECOND_US
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


def run_plan(scenario: CompiledScenario, variant: Variant) -> RunPlan:
    """Return the plan of the scheduler's run. InputError for settings or plugins that are wrong."""
    settings = Settings.model_validate(dict(scenario.settings))
    # One scheduler in this thread, in place of the actors of a live run.
    update = {"runtime": "inline", "schedulers": 1, "workers": 0, "journal": None}
    decision = scenario.decision
    if decision.durations is not None or decision.pod_us or decision.is_measured:
        # All pods of a batch are bound when the whole batch is over; each pod has a time of its
        # own, so each is a batch.
        update["batch"] = 1
    settings = settings.model_copy(update={**update, "seed": variant.seed})
    return RunPlan(
        settings,
        variant.config,
        variant.config_source,
        scenario.cluster,
        plugins=variant.plugins,
        plugin_dir=variant.plugin_dir,
    )


def components_of(scenario: CompiledScenario, seed: int) -> tuple[Component, ...]:
    """Return the components that a scenario needs, in the order in which they react."""
    components: list[Component] = []
    components += [Controllers(scenario.controllers, seed)] if scenario.controllers else []
    components += [NodeLifecycle(scenario, seed)] if needs_node_lifecycle(scenario) else []
    return tuple(components)


def build_engine(
    scenario: CompiledScenario,
    variant: Variant,
    recorder: Recorder,
    compiled_kernel: CompiledKernel | None,
    components: Sequence[Component] = (),
    delay: Delay | None = None,
) -> Engine:
    """Return the engine of one run, ready to `run`."""
    engine = Engine(scenario, recorder, components, seed=variant.seed)
    cluster = VirtualCluster(run_plan(scenario, variant), compiled_kernel, engine.report)
    engine.attach(cluster, delay)
    return engine


def delay_of(
    scenario: CompiledScenario, seed: int, read_processor_s: Callable[[], float]
) -> Delay | None:
    """Return the time that decisions take; None if they take none."""
    decision = scenario.decision
    if decision.is_measured:
        # The first argument, a time for each decision, is not read when there is a clock.
        return Delay(repeat(0), read_us=lambda: round(read_processor_s() * SECOND_US))
    if decision.durations is not None:
        # Random streams 0, 1, … are those of the controllers, by index.
        return Delay(decision.durations.draws(seed, len(scenario.controllers)))
    return Delay(repeat(decision.pod_us)) if decision.pod_us else None


def prepare_engine(
    scenario: CompiledScenario,
    variant: Variant,
    recorder: Recorder,
    compiled_kernel: CompiledKernel | None,
    read_processor_s: Callable[[], float],
) -> Engine:
    """Return the engine of one run with the components and the delay that its scenario needs.

    read_processor_s: of this process, for decisions whose time is measured.
    """
    components = components_of(scenario, variant.seed)
    delay = delay_of(scenario, variant.seed, read_processor_s)
    return build_engine(scenario, variant, recorder, compiled_kernel, components, delay)


def play_to_horizon(
    scenario: CompiledScenario,
    variant: Variant,
    recorder: Recorder,
    compiled_kernel: CompiledKernel | None,
    on_progress: Callable[[Engine], None] | None = None,
    *,
    read_processor_s: Callable[[], float],
    read_memory_bytes: Callable[[], int],
) -> Engine:
    """Play a scenario to its horizon and return its engine. on_progress: see `Engine.run`.

    read_processor_s, read_memory_bytes: of this process. Raises InputError, QueueFullError,
    LimitExceededError.
    """
    engine = prepare_engine(scenario, variant, recorder, compiled_kernel, read_processor_s)

    def check_limits(engine: Engine) -> None:
        check_memory(scenario.limits.memory_bytes, read_memory_bytes())
        if on_progress is not None:
            on_progress(engine)

    try:
        engine.run(check_limits)
        engine.validate()
    except LimitExceededError as error:
        raise LimitExceededError(f"at {time_text(engine.now_us)}: {error}") from error
    return engine


def play(
    scenario: CompiledScenario,
    variant: Variant,
    directory: Path,
    compiled_kernel: CompiledKernel | None,
    on_progress: Callable[[Engine], None] | None = None,
    *,
    read_processor_s: Callable[[], float],
    read_memory_bytes: Callable[[], int],
    also: Recorder | None = None,
) -> RunSummary:
    """Play a scenario, write its tables, and return its figures.

    Parts of tables that are in the directory must be equal to those of this run; they are compared,
    not written again. read_processor_s, read_memory_bytes: of this process. also: another recorder.
    Raises QueueFullError, LimitExceededError, PartDiffersError, and InputError if a table cannot be
    written.
    """
    began_s = read_processor_s()
    # Names of the schedulers with a plugin that allocates devices to the claims of their pods.
    reserving = run_plan(scenario, variant).binding_profiles().devices
    recorder = TableRecorder(directory, scenario, reserving)
    recorder.devices(device_rows(scenario.cluster.devices.slices))
    recorders = recorder if also is None else Recorders(recorder, also)
    engine = play_to_horizon(
        scenario,
        variant,
        recorders,
        compiled_kernel,
        on_progress,
        read_processor_s=read_processor_s,
        read_memory_bytes=read_memory_bytes,
    )
    # Pods that have not ended are counted when their rows are written: waits and endings are
    # complete only after this call.
    recorder.close(engine)
    counts, (waits, waits_of) = engine.simulated_pods.counts, recorder.counts.waits()
    return RunSummary(
        scenario=scenario.name,
        config=variant.config_source or "default",
        seed=variant.seed,
        horizon_us=scenario.horizon_us,
        created=engine.simulated_pods.created,
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
