#!/usr/bin/env python3
"""Time of the binder's recovery: from a journal of many binds to the state they left.

    scripts/recovery.py                      a million binds: from records, then from a snapshot
    scripts/recovery.py --pods 100000 --nodes 1000

Writes a journal as the binder does, batch by batch, into a temporary folder, and recovers it in a
process that knows nothing yet, with the garbage collector set as for an actor. Prints its progress
on standard error, and JSON: seconds of the clock and of the processor, what 20 million additions in
a Python loop took just before, and the processor time scaled to a machine on which they take 1.05 s
(`calibrated_s`). The bound of `calibrated_s` for a million binds is 10 s.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from roadstead.actors.binder.actor import BinderActor  # noqa: E402
from roadstead.actors.interface import ActorLostError, Ref  # noqa: E402
from roadstead.bench.calibration import calibrate  # noqa: E402
from roadstead.bench.machine import commit_of, this_machine  # noqa: E402
from roadstead.binder import AppendJournal, BinderCore  # noqa: E402
from roadstead.binder.pods import BindRequest  # noqa: E402
from roadstead.binder.recovery import snapshot_records  # noqa: E402
from roadstead.config.settings import Settings  # noqa: E402
from roadstead.facts.node import NodeFacts  # noqa: E402
from roadstead.facts.node_list import NodeList  # noqa: E402
from roadstead.facts.pod import PodFacts  # noqa: E402
from roadstead.garbage_collection import raise_gc_thresholds  # noqa: E402
from roadstead.journal import Records  # noqa: E402
from roadstead.journal.disk import RealDisk  # noqa: E402
from roadstead.journal.files import FileJournal  # noqa: E402
from roadstead.placements import TableStore  # noqa: E402
from roadstead.protocol.status import SUCCESS  # noqa: E402
from roadstead.run import RunPlan  # noqa: E402

BATCH = 2048
SHAPES = [
    PodFacts(requests=(("cpu", 100 * (n + 1)),), nonzero_cpu_milli=100 * (n + 1)) for n in range(10)
]


class Steps:
    """Print progress on standard error, ten times on the way."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done, self._tenths = what, max(1, total), 0, 0

    def add(self, count: int) -> None:
        self._done += count
        tenths = 10 * self._done // self._total
        if tenths > self._tenths:
            self._tenths = tenths
            print(f"{self._what}: {self._done:,} of {self._total:,}", file=sys.stderr, flush=True)


class ProgressJournal(FileJournal):
    """A journal that prints how much of it is read."""

    def __init__(self, folder: Path, records: int) -> None:
        super().__init__(RealDisk(folder))
        self._steps = Steps("recovered records", records)

    def recovered_groups(self) -> Iterator[Records]:
        for group in super().recovered_groups():
            yield group
            self._steps.add(len(group))


def binder() -> BinderCore:
    """Return a binder that accepts each bind without filters, since only its journal is needed."""
    return BinderCore(TableStore(), lambda request: SUCCESS, journals_all=True, verify_prefix=len)


def batches(pods: int) -> Iterator[list[tuple[str, str, PodFacts]]]:
    """Yield (uid, key, facts) of the pods, batch by batch."""
    for start in range(0, pods, BATCH):
        numbers = range(start, min(start + BATCH, pods))
        yield [(f"uid-{n:07}", f"default/pod-{n:07}", SHAPES[n % len(SHAPES)]) for n in numbers]


def write(folder: Path, nodes: int, pods: int, *, snapshot: bool) -> None:
    """Write a journal of pods that were accepted, then bound."""
    core, journal = binder(), FileJournal(RealDisk(folder))
    list(journal.recovered())

    def perform(commands: list[object]) -> None:
        for each in commands:
            if isinstance(each, AppendJournal):
                journal.append(each.records)
                core.flushed(each.last_lsn)

    perform(core.add_nodes(NodeList.of([NodeFacts(f"node-{n:07}") for n in range(nodes)])))
    written = Steps("written records", nodes + 2 * pods)
    written.add(nodes)
    for batch in batches(pods):
        perform(core.add_pods(batch))
        written.add(len(batch))
    for first, batch in enumerate(batches(pods)):
        written.add(len(batch))
        perform(
            core.bind(
                [
                    BindRequest(
                        f"scheduler-0/1/{uid}/1",
                        *(uid, key, f"node-{(first * BATCH + place) % nodes:07}", facts),
                        *("scheduler-0", 1),
                    )
                    for place, (uid, key, facts) in enumerate(batch)
                ]
            )
        )
    journal.flush()
    if snapshot:
        journal.snapshot(snapshot_records(core))


def recovered(folder: Path, records: int) -> dict[str, float]:
    """Return the seconds of a recovery, and how many pods are bound after it."""
    plan = RunPlan(Settings(runtime="inline", journal=str(folder)))
    calibration = calibrate()
    raise_gc_thresholds()
    gc.collect()
    clock_s, processor_s = time.perf_counter(), time.process_time()
    actor = BinderActor(plan, Nobody(), ProgressJournal(folder, records))
    clock_s, processor_s = time.perf_counter() - clock_s, time.process_time() - processor_s
    return {
        "bound": len(actor.core.placements),
        "seconds": round(clock_s, 2),
        "processor_s": round(processor_s, 2),
        "calibration_s": round(calibration.seconds, 2),
        "calibration_processor_s": round(calibration.processor_s, 2),
        "calibrated_s": round(calibration.scaled(processor_s), 2),
    }


class Nobody:
    """The directory of actors for a run with only a binder."""

    def find(self, name: str) -> Ref:
        raise ActorLostError(f"there is no actor {name}")


def in_own_process(work: object, *arguments: object, **named: object) -> object:
    """Call a function in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments, named)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=1_000_000, help="binds (default 1000000)")
    parser.add_argument("--nodes", type=int, default=5_000, help="number of nodes (default 5000)")
    options = parser.parse_args()
    found: dict[str, object] = {
        "commit": commit_of(ROOT),
        "machine": asdict(this_machine()),
        "nodes": options.nodes,
    }
    for name in ("records", "snapshot"):
        with tempfile.TemporaryDirectory() as folder:
            how = {"snapshot": name == "snapshot"}
            in_own_process(write, Path(folder), options.nodes, options.pods, **how)
            records = options.nodes + options.pods * (1 if how["snapshot"] else 2)
            found[name] = in_own_process(recovered, Path(folder), records)
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
