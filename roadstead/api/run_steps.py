"""The steps of a run that the command line and the Python API share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from roadstead.api.stopwatch import Stopwatch
from roadstead.facts.pod import Pod
from roadstead.inputs.loaded import Loaded
from roadstead.protocol.errors import InputError
from roadstead.report.node_use import node_use
from roadstead.report.paths import JOURNAL_FOLDER
from roadstead.report.result import InputDigest, Json, NodeUse, RunResult, installed_versions
from roadstead.run import Launcher, Progress, RunOutcome, RunPlan


def schedule(
    launcher: Launcher,
    loaded: Loaded,
    plan: RunPlan,
    progress: Callable[[Progress], None],
    *,
    watch: Stopwatch,
    command: tuple[str, ...] = (),
) -> RunResult:
    """Carry out the plan. Raises RoadsteadError if the run fails.

    watch: has measured the phases before the run. command: for the result. The journal of the run,
    if any, can be resumed until `launcher.finish` is called.
    """
    outcome = launcher.run(loaded.inputs, plan, progress)
    return RunResult(
        source=loaded.source,
        placements=outcome.placements,
        pending=outcome.pending,
        preempted=outcome.preempted,
        devices=outcome.devices,
        concurrency=outcome.concurrency,
        ray_nodes=outcome.ray_nodes,
        node_use=_node_use(loaded, outcome),
        scheduling_s=outcome.scheduling_s,
        elapsed_s=watch.elapsed_s,
        timings_s={**watch.timings_s, **outcome.timings_s},
        seed=plan.settings.seed,
        command=command,
        settings=plan.settings.model_dump(mode="json"),
        not_created=loaded.not_created,
        notes=loaded.notes,
        config_notes=plan.loaded_config().notes if plan.config_text else (),
    )


def _node_use(loaded: Loaded, outcome: RunOutcome) -> NodeUse:
    """Return the requested resources of each node, before and after the run."""
    # By UID.
    facts_of = {identity.uid: facts for identity, facts in loaded.inputs.pending}
    running = loaded.inputs.running
    preempted = {each.uid for each in outcome.preempted}
    return node_use(
        loaded.inputs.nodes,
        ((node, facts) for _, facts, node in running),
        ((each.node, facts_of[each.uid]) for each in outcome.placements),
        ((node, facts) for identity, facts, node in running if identity.uid in preempted),
    )


def write_result(
    directory: Path, result: RunResult, plan: RunPlan, digests: tuple[InputDigest, ...]
) -> None:
    """Write the output directory. Raises InputError if it cannot be written.

    digests: of all inputs, the configuration and the settings file.
    """
    from roadstead.report.output import write_output

    settings = dict(result.settings)
    if plan.settings.journal == directory / JOURNAL_FOLDER:
        # The default place is not recorded: a run in another directory has the same settings.
        settings["journal"] = None
    complete = replace(
        result,
        inputs=digests,
        config=_effective_config(plan),
        versions=installed_versions(),
        settings=settings,
    )
    write_output(directory, complete)


def _effective_config(plan: RunPlan) -> Mapping[str, Json]:
    """Return the configuration with every default, so that a later release can run with it.

    percentageOfNodesToScore is left out unless the configuration sets it: a written default of 0
    would count as set when the document is read again.
    """
    from roadstead.config.presets import load_preset

    loaded = plan.loaded_config() if plan.config_text else load_preset("default")
    if loaded.config.percentage_is_set:
        return loaded.document
    return {
        key: value for key, value in loaded.document.items() if key != "percentageOfNodesToScore"
    }


def check_output(directory: Path, *, may_replace: bool, force: str = "--force") -> None:
    """Raise InputError for a directory that holds other files, or results that must be kept.

    force: the flag or argument that replaces the results of another run, for the error text.
    """
    from roadstead.report.output import check_directory, holds_results

    check_directory(directory)
    if not may_replace and holds_results(directory):
        problem = f"holds the results of another run; {force} replaces them"
        raise InputError(problem, source=str(directory))


def reported_pods(loaded: Loaded, result: RunResult) -> list[Pod]:
    """Return the pods that were to be scheduled, and the running pods that were preempted."""
    preempted = {each.uid for each in result.preempted}
    pods = [*loaded.inputs.pending]
    pods += [
        (identity, facts)
        for identity, facts, _ in loaded.inputs.running
        if identity.uid in preempted
    ]
    return pods
