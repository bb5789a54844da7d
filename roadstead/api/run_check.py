"""Checks of simulated runs, by their tables alone.

docs/simulate.md explains the tables and their columns. This module reads their rows;
`roadstead.invariants.simulated_run` checks them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from roadstead.invariants.simulated_rows import (
    AllocationRow,
    ClassSampleRow,
    DeviceRow,
    NodeRow,
    PodRow,
    RunRows,
    RunViolation,
    SampleRow,
)
from roadstead.invariants.simulated_run import check_run
from roadstead.protocol.errors import InputError
from roadstead.report.parquet import Decoder

# Columns that the checks read, by table; the rows that are read have their values in this order.
PODS = (
    *("number", "uid", "class", "created_us", "bound_us", "started_us", "ended_us"),
    *("ending", "node", "namespace", "name", "owner", "first_tried_us", "waited_us"),
)
# from_devices: names of extended resources that devices may serve.
CLASSES = ("class", "requests", "from_devices", "claims")
DEVICES = ("driver", "pool", "device", "slice", "node", "capacity", "consumes", "counters")
CLASS_SAMPLES = ("time_us", "class", "created", "pending", "running", "finished", "removed")
ALLOCATIONS = (
    *("time_us", "what", "claim", "pod", "driver", "pool", "device"),
    *("request", "admin_access", "share", "consumed"),
)

POD_COUNT_METRICS = frozenset({"pending", "running", "ended"})
"""Metrics of samples that are numbers of pods."""


def runs_in(folder: Path) -> list[Path]:
    """Return the folders of simulated runs of a folder: itself, or those in it."""
    if (folder / "pods").is_dir() and (folder / "samples").is_dir():
        return [folder]
    if not folder.is_dir():
        return []
    return sorted(each for each in folder.iterdir() if (each / "pods").is_dir())


@dataclass(frozen=True, slots=True)
class RunCheck:
    """The result for one run. run: its folder. pods: number of pods that were checked."""

    run: Path
    pods: int
    violations: tuple[RunViolation, ...]


def check_folder(folder: Path) -> RunCheck:
    """Check the tables of one run. Raises InputError for one that cannot be read."""
    with Decoder() as decoder:
        tables = _read_run(folder, decoder)
    return RunCheck(folder, len(tables.pods), tuple(check_run(tables)))


def _read_run(folder: Path, decoder: Decoder) -> RunRows:
    """Read the tables of a run. Raises InputError for one that cannot be read."""

    def rows_of(table: str, columns: Sequence[str]) -> list[tuple[object, ...]]:
        return _rows_of_table(decoder, folder / table, columns)

    pods = [_pod(row) for row in rows_of("pods", PODS)]
    classes = rows_of("classes", CLASSES)
    attempts = rows_of("attempts", ("time_us", "pod", "outcome", "node"))
    first_attempts: dict[int, int] = {}
    # The table of pods records the first attempt, too. It is computed here from the attempts, and
    # without their order, so that the checker can compare both.
    for time_us, number, *_ in attempts:
        at_us, pod = cast("int", time_us), cast("int", number)
        first_attempts[pod] = min(at_us, first_attempts.get(pod, at_us))
    nodes = rows_of("nodes", ("time_us", "node", "allocatable", "pods", "zone"))
    samples = rows_of("samples", ("time_us", "zone", "metric", "value"))
    return RunRows(
        pods,
        requests={
            cast("int", number): json.loads(str(requests)) for number, requests, *_ in classes
        },
        nodes=[
            NodeRow(
                cast("int", time_us),
                str(node),
                None if allocatable is None else json.loads(str(allocatable)),
                cast("int", pods_max or 0),
                cast("str | None", zone),
            )
            for time_us, node, allocatable, pods_max, zone in nodes
        ],
        bound_attempts=[
            (cast("int", time_us), cast("int", pod), str(node))
            for time_us, pod, outcome, node in attempts
            if outcome == "bound"
        ],
        samples=[
            SampleRow(cast("int", time_us), str(metric), cast("float", value), str(zone))
            for time_us, zone, metric, value in samples
            # The checker computes these three again from the rows of pods.
            if metric in POD_COUNT_METRICS
        ],
        first_attempts=first_attempts,
        class_samples=[
            ClassSampleRow(*cast("tuple[int, int | None, int, int, int, int, int]", row))
            for row in rows_of("class_samples", CLASS_SAMPLES)
        ],
        from_devices={
            cast("int", number): frozenset(_names(names)) for number, _, names, _ in classes
        },
        claims={cast("int", number): _names(names) for number, _, _, names in classes},
        devices=[_device(row) for row in rows_of("devices", DEVICES)],
        allocations=[_allocation(row) for row in rows_of("allocations", ALLOCATIONS)],
    )


def _names(text: object) -> list[str]:
    """Split names that are separated by commas."""
    return [each for each in str(text or "").split(",") if each]


def _pod(row: tuple[object, ...]) -> PodRow:
    number, uid, pod_class, created_us, bound_us, started_us, ended_us, *last_columns = row
    ending, node, namespace, name, owner, first_tried_us, waited_us = last_columns
    return PodRow(
        cast("int", number),
        str(uid),
        cast("int", pod_class),
        cast("int", created_us),
        cast("int | None", bound_us),
        cast("int | None", started_us),
        cast("int | None", ended_us),
        cast("str | None", ending),
        cast("str | None", node),
        str(namespace),
        str(name),
        cast("str | None", owner),
        cast("int | None", first_tried_us),
        cast("int | None", waited_us),
    )


def _device(row: tuple[object, ...]) -> DeviceRow:
    driver, pool, device, slice_name, node, *mappings = row
    capacity, consumes, counters = (json.loads(str(each)) for each in mappings)
    device_id = str(driver), str(pool), str(device)
    return DeviceRow(
        device_id, str(slice_name), cast("str | None", node), capacity, consumes, counters
    )


def _allocation(row: tuple[object, ...]) -> AllocationRow:
    time_us, what, claim, pod, driver, pool, device, request, admin_access, share, consumed = row
    return AllocationRow(
        cast("int", time_us),
        str(what),
        str(claim),
        cast("int | None", pod),
        None if device is None else (str(driver), str(pool), str(device)),
        cast("str | None", request),
        bool(admin_access),
        cast("str | None", share),
        {} if consumed is None else json.loads(str(consumed)),
    )


def _rows_of_table(
    decoder: Decoder, table: Path, columns: Sequence[str]
) -> list[tuple[object, ...]]:
    """Return the named columns of a table, row by row. InputError if it cannot be read."""
    rows: list[tuple[object, ...]] = []
    parts = sorted(table.glob("part-*.parquet"))
    if not parts:
        raise InputError("has no parts", source=str(table))
    for part in parts:
        try:
            rows += zip(*decoder.read(part, columns), strict=True)
        except (OSError, ValueError) as unreadable:
            raise InputError(str(unreadable), source=str(part)) from unreadable
    return rows
