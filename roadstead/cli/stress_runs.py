"""The runs of a sweep: as tasks, in this process or others, and their stored results.

`Work` has the tasks as plain values, which other processes can receive; a run is one task.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from roadstead.cli.cores import usable_cores
from roadstead.cli.notes import echo_note
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions
from roadstead.cli.stress_plan import PRODUCT, SweepDefinition
from roadstead.cli.stress_product import journals_of
from roadstead.cli.sweep_progress import SweepProgress
from roadstead.config.ray import ADDRESS_VARIABLE, LOCAL
from roadstead.config.settings import Settings, load_settings, load_settings_file
from roadstead.interruption import Interrupted
from roadstead.lab.sweep import Sweep
from roadstead.protocol.errors import InputError
from roadstead.sweeps.carry_out import NoStore, Processes, ResultStore, SweepEnd, carry_out
from roadstead.sweeps.results_file import RESULTS_FILE_NAME, ResultsFile, header_of
from roadstead.sweeps.tasks import Plain, Work

if TYPE_CHECKING:
    from roadstead.inputs.loaded import Loaded

SECTIONS: Final = frozenset({"ray", "deadlines"})
"""The sections of a settings file that a sweep uses; parameters of the sweep replace the others."""

PARALLEL_ENGINES: Final = ("model", "virtual")
"""Engines whose runs use one core, and whose results do not depend on the machine."""


def check_jobs(engine: str, options: JobOptions, output: Path | None) -> None:
    """Raise InputError if the options do not fit the engine or each other."""
    if options.resume and output is None:
        raise InputError("needs the --output folder of the sweep to continue", source="--resume")
    # Reports a wrong settings file before any run.
    used_settings(options)
    if engine in PARALLEL_ENGINES:
        return
    if options.jobs is not None and options.jobs > 1:
        problem = (
            f"must be 1 with the engine {engine}: its runs measure real time, one after another"
        )
        raise InputError(problem, source="--jobs", value=str(options.jobs))
    if engine != "ray" and options.ray_address is not None:
        problem = f"has no use with the engine {engine}, which runs in this process"
        raise InputError(problem, source="--ray-address")


def used_settings(options: JobOptions) -> Settings:
    """Return the settings of a sweep. InputError for a file with settings that it does not use."""
    overrides = {"ray.address": options.ray_address}
    if options.settings is None:
        return load_settings(overrides=overrides)
    settings = load_settings_file(options.settings, overrides=overrides)
    if others := sorted(settings.model_fields_set - SECTIONS):
        raise InputError(
            "has no use in a sweep, whose parameters replace it: only ray and deadlines are used",
            source=str(options.settings),
            field=others[0],
        )
    return settings


def joins_cluster(engine: str, options: JobOptions) -> bool:
    """Whether the runs of a sweep are spread over an existing Ray cluster, which is joined.

    LOCAL: Ray is started on this machine, if it is needed at all.
    """
    address = used_settings(options).ray.address or os.environ.get(ADDRESS_VARIABLE) or LOCAL
    return engine in PARALLEL_ENGINES and address != LOCAL


def run_all(
    session: Session,
    definition: SweepDefinition,
    sweep: Sweep,
    loaded: Loaded | None,
    output: Path | None,
    options: JobOptions,
) -> SweepEnd:
    """Carry out a sweep, with progress on standard error.

    loaded: the user's input, None for a scenario.
    """
    runs = sweep.runs()
    progress = SweepProgress(lambda number: sweep.name_of(runs[number][0]))
    if joins_cluster(definition.engine, options):
        if output is not None and definition.study == PRODUCT:
            progress.note("The journals of runs on a cluster are checked there and not kept.")
        work = _work(definition, sweep, loaded, None, options)
    else:
        work = _work(definition, sweep, loaded, output, options)
    processes = processes_of(session, definition.engine, work, options, progress)
    try:
        with _store(definition, sweep, loaded, output, options) as store:
            return carry_out(work, processes, store, progress, monotonic)
    finally:
        progress.end()


def _work(
    definition: SweepDefinition,
    sweep: Sweep,
    loaded: Loaded | None,
    output: Path | None,
    options: JobOptions,
) -> Work:
    """Return the tasks of all runs, as plain values that can be sent to other processes.

    output: folder of the journals; None for temporary ones.
    """
    runs: list[dict[str, Plain]] = [
        {"values": cast("dict[str, Plain]", values), "seed": seed} for values, seed in sweep.runs()
    ]
    # Models need no input and no folder: their tasks stay small for processes on other machines.
    if definition.study != PRODUCT:
        return Work("model", {"study": definition.study}, tuple(runs))
    shared: dict[str, Plain] = {
        "engine": definition.engine,
        "settings": used_settings(options).model_dump(mode="json", include=set(SECTIONS))
        if definition.engine == "ray"
        else {},
        "inputs": None,
    }
    if loaded is not None:
        from roadstead.inputs.input_wire import encode_inputs

        shared["inputs"] = cast("Plain", encode_inputs(loaded.inputs, loaded.cluster))
    journals = journals_of(sweep, output)
    tasks = [{**run, "journal": folder} for run, folder in zip(runs, journals, strict=True)]
    return Work(PRODUCT, shared, tuple(tasks))


def processes_of(
    session: Session, engine: str, work: Work, options: JobOptions, progress: SweepProgress
) -> Processes | None:
    """Return the other processes that may run tasks; None if this process runs them all."""
    if engine not in PARALLEL_ENGINES:
        return None
    settings = used_settings(options)
    is_joined = joins_cluster(engine, options)
    # None: the number of cores of a joined cluster is not known yet.
    jobs = options.jobs or (None if is_joined else usable_cores())
    if jobs == 1 and not is_joined:
        return None
    return Processes(
        lambda: session.launcher().open_tasks(work, settings, jobs, progress.note),
        jobs,
        # Otherwise they are started when the measured time of runs shows that they save time.
        starts_at_once=is_joined or options.jobs is not None,
    )


@contextmanager
def _store(
    definition: SweepDefinition,
    sweep: Sweep,
    loaded: Loaded | None,
    output: Path | None,
    options: JobOptions,
) -> Iterator[ResultStore]:
    """Yield the storage of the results: a file in the output folder, if there is one."""
    if output is None:
        yield NoStore()
        return
    path = output / RESULTS_FILE_NAME
    header = header_of(_values_compared_on_resume(definition, sweep, loaded), len(sweep.runs()))
    opened = ResultsFile.resume(path, header) if options.resume else ResultsFile.begin(path, header)
    try:
        yield opened
    finally:
        opened.close()


def _values_compared_on_resume(
    definition: SweepDefinition, sweep: Sweep, loaded: Loaded | None
) -> dict[str, Plain]:
    """Return everything that decides the results; `--resume` refuses another sweep."""
    digests = () if loaded is None else loaded.digests
    return {
        "study": definition.study,
        "engine": definition.engine,
        "vary": [[name, list(values)] for name, values in sweep.axes],
        "set": dict(sweep.fixed),
        "seeds": list(sweep.seeds),
        "inputs": [each.sha256 for each in digests],
    }


def report_kept_results(end: SweepEnd, output: Path | None) -> None:
    """Name the file of finished runs in the message of an interruption, or in a note."""
    if end.stopped_by is None or output is None or not end.results:
        return
    stored = f"Finished runs are in {output / RESULTS_FILE_NAME}"
    kept = f"{stored}; the same command with --resume continues the sweep."
    if isinstance(end.stopped_by, Interrupted):
        end.stopped_by.kept = kept
    else:
        echo_note(kept)
