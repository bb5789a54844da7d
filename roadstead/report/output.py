"""The output directory of a run.

    placements.parquet, placements.json   pod, uid, node; sorted by pod
    pending.parquet, pending.json         pod, uid, message, reasons, plugins; sorted by pod
    preempted.parquet, preempted.json     pod, uid, node, preemptor; sorted by pod
    not_created.parquet, not_created.json kind, name, workload, source, reason; sorted by kind, name
    devices.parquet, devices.json         claim, request, driver, pool, device, pods of each
    nodes.parquet, nodes.json             per node and resource: allocatable, before, after
    run.json                              all that a repetition needs, and digests of the above
    summary.json                          the figures; written last
    journal, journal.1 ...                what the binder committed, in this run and in earlier ones

A new directory is renamed into place when it is complete; during the run it holds only a journal.
In an existing directory each file is replaced atomically. summary.json is missing while the files
belong to different runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from roadstead.protocol.errors import InputError
from roadstead.report.concurrency import concurrency_part
from roadstead.report.parquet import write_parquet
from roadstead.report.paths import entries
from roadstead.report.result import (
    Json,
    NodeUse,
    RunResult,
    digest_of_file,
)
from roadstead.report.summary import summarize, summary_document
from roadstead.report.tables import COLUMNS, arrow_nodes, arrow_table, table_rows

RUN_FORMAT = "roadstead-run"
RUN_VERSION = 1
RUN_FILE = "run.json"
RUN_FILE_MAX_BYTES = 1 << 26
SUMMARY_FILE = "summary.json"
JOURNAL = re.compile(r"journal(\.\d+)?")
DIGESTED = tuple(f"{name}.json" for name in (*COLUMNS, "nodes"))
"""Files whose digests are written to run.json, so that two runs can be compared."""


def write_output(directory: Path, result: RunResult) -> None:
    """Write all files of a run into `directory`, replacing those of an earlier run.

    The same placements and pending pods give the same bytes. Raises InputError if the directory
    holds other files, or cannot be written.
    """
    check_directory(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        try:
            _write_files(staged, result)
            _put_in_place(staged, directory)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(directory)) from error


def check_directory(directory: Path) -> None:
    """Raise InputError unless `directory` is missing, empty, or holds a Roadstead run or journal.

    Also raised for a directory that cannot be created or written.
    """
    if not all(map(is_journal, entries(directory))) and not _is_ours(directory / RUN_FILE):
        problem = f"holds files, but no {RUN_FILE} of Roadstead; name an empty or new directory"
        raise InputError(problem, source=str(directory))


def holds_results(directory: Path) -> bool:
    """Whether the directory holds the results of a run."""
    return (directory / RUN_FILE).exists()


def is_journal(path: Path) -> bool:
    """Whether the path is the journal of a run, or one that was renamed by a later run."""
    return JOURNAL.fullmatch(path.name) is not None and path.is_dir()


def _is_ours(run_file: Path) -> bool:
    try:
        with run_file.open("rb") as file:
            document = json.loads(file.read(RUN_FILE_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("format") == RUN_FORMAT


def _put_in_place(staged: Path, directory: Path) -> None:
    if not directory.exists():
        staged.chmod(0o755)
        staged.rename(directory)
        return
    # While summary.json is missing, files of two runs may be mixed; see the module's docstring.
    (directory / SUMMARY_FILE).unlink(missing_ok=True)
    names = sorted(path.name for path in staged.iterdir())
    for name in sorted(names, key=lambda name: name == SUMMARY_FILE):
        os.replace(staged / name, directory / name)


def _write_files(folder: Path, result: RunResult) -> None:
    for name in COLUMNS:
        rows = table_rows(result, name)
        _write_rows(folder / f"{name}.json", rows)
        write_parquet(folder / f"{name}.parquet", arrow_table(name, rows))
    _write_nodes(folder, result.node_use)
    digests = {name: digest_of_file(folder / name).sha256 for name in DIGESTED}
    _write_json(folder / RUN_FILE, run_document(result, digests))
    _write_json(folder / SUMMARY_FILE, _summary(result))


def _write_nodes(folder: Path, use: NodeUse) -> None:
    write_parquet(folder / "nodes.parquet", arrow_nodes(use))
    kinds = {"allocatable": use.allocatable, "before": use.before, "after": use.after}
    lists = {kind: amounts.tolist() for kind, amounts in kinds.items()}
    _write_rows(
        folder / "nodes.json",
        (
            {
                "node": name,
                "zone": zone,
                **{
                    kind: dict(zip(use.resources, amounts[row], strict=True))
                    for kind, amounts in lists.items()
                },
            }
            for row, (name, zone) in enumerate(zip(use.nodes, use.zones, strict=True))
        ),
    )


def run_document(result: RunResult, digests: Mapping[str, str]) -> dict[str, Json]:
    """Content of `run.json`: inputs by digest, seed, settings, configuration, versions, command.

    With several schedulers, also their figures.
    """
    return {
        "format": RUN_FORMAT,
        "version": RUN_VERSION,
        "source": result.source,
        "command": list(result.command),
        "seed": result.seed,
        "inputs": [asdict(entry) for entry in result.inputs],
        "settings": dict(result.settings),
        "config": dict(result.config),
        "versions": dict(result.versions),
        "output_sha256": dict(digests),
        **concurrency_part(result.concurrency),
    }


def _summary(result: RunResult) -> dict[str, Json]:
    inputs: list[Json] = [asdict(entry) for entry in result.inputs]
    extra: dict[str, Json] = {
        "seed": result.seed,
        "versions": dict(result.versions),
        "inputs": inputs,
    }
    return summary_document(summarize(result)) | extra


def _write_json(path: Path, document: Mapping[str, Json]) -> None:
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_rows(path: Path, rows: Iterable[Mapping[str, Json]]) -> None:
    """Write a JSON list with one row per line, so that two runs can be compared with `diff`."""
    encode: Callable[[object], str] = json.JSONEncoder(ensure_ascii=False).encode
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for index, row in enumerate(rows):
            file.write((",\n" if index else "\n") + encode(row))
        file.write("\n]\n")
