"""Playing one run of a scenario: its engine with all parts, and where its tables go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roadstead.config.settings import Settings
from roadstead.cycle.batch import Accelerator
from roadstead.run import RunPlan
from roadstead.simulator.component import Component
from roadstead.simulator.delay import Delay
from roadstead.simulator.engine import Engine, Recorder
from roadstead.simulator.pod_lives import ON_NODE, Ending, LifeState
from roadstead.simulator.recorder import TableRecorder
from roadstead.simulator.scenario import Plan
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


def run_plan(plan: Plan, variant: Variant) -> RunPlan:
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


def build_engine(
    plan: Plan,
    variant: Variant,
    recorder: Recorder,
    accelerator: Accelerator | None,
    components: Sequence[Component] = (),
    delay: Delay | None = None,
) -> Engine:
    """Return the engine of one run, ready to `run`."""
    engine = Engine(plan, recorder, components, seed=variant.seed)
    cluster = VirtualCluster(run_plan(plan, variant), accelerator, engine.report)
    engine.attach(cluster, delay)
    return engine


def play_to_horizon(
    plan: Plan,
    variant: Variant,
    recorder: Recorder,
    accelerator: Accelerator | None,
    on_step: Callable[[Engine], None] | None = None,
) -> Engine:
    """Play a scenario to its horizon, with tables or without, and return its engine."""
    engine = build_engine(plan, variant, recorder, accelerator)
    engine.run(on_step)
    engine.validate()
    return engine


def play(
    plan: Plan,
    variant: Variant,
    directory: Path,
    accelerator: Accelerator | None,
    on_step: Callable[[Engine], None] | None = None,
    *,
    read_processor_s: Callable[[], float],
    watch: Callable[[Recorder], Recorder] | None = None,
) -> RunSummary:
    """Play a scenario, write its tables, and return its figures.

    read_processor_s: the processor time of this process. watch: returns a recorder that passes
    everything to the one of the tables. Raises OSError, QueueFullError.
    """
    began_s = read_processor_s()
    recorder = TableRecorder(directory, plan)
    watching = watch(recorder) if watch else recorder
    engine = play_to_horizon(plan, variant, watching, accelerator, on_step)
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
