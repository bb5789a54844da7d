"""Measure what a second copy of the journal costs, on three hosts of this machine.

    python scripts/journal_copy_cost.py                     4 pairs of runs for each batch size
    python scripts/journal_copy_cost.py --pairs 8 --batches 64,2048
    python scripts/journal_copy_cost.py --replies           how long a reply of the binder takes

Root on Linux. Runs with and without `--journal-copy` alternate; `control` (queue, cache and binder)
is on the second host, the copy on another one. All hosts use one disk of this
machine, so that both copies wait for it. A line of JSON per run: batch size, whether it had a copy,
pods per second, and whether journal and copy have the same bytes; then the medians for each batch
size. With --replies, two binders on one Ray, one of them with a copy, get the same messages in
turn; a line has the medians in ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.cluster_faults import ROADSTEAD, write_fleet  # noqa: E402
from tests.cluster.hosts import Host, hosts  # noqa: E402

AT = {"place": "x"}

REPLIES = 300
"""Messages of each size to each binder."""


def run_one(
    all_hosts: Sequence[Host], fleet: tuple[str, ...], batch: int, has_copy: bool
) -> dict[str, object]:
    """Schedule the fleet and return its line."""
    with tempfile.TemporaryDirectory(prefix="copy-cost-", dir="/var/tmp") as temporary:
        folder = Path(temporary)
        settings = folder / "roadstead.yaml"
        settings.write_text(yaml.safe_dump({"ray": {"labels": {"control": AT}}}))
        journal, copy = folder / "journal", folder / "copy"
        command = (
            *(ROADSTEAD, "schedule", *fleet, "--ray-address", "auto"),
            *("--settings", str(settings), "--batch", str(batch)),
            *("--output", str(folder / "out"), "--journal", str(journal)),
            *(("--journal-copy", str(copy)) if has_copy else ()),
        )
        ended = all_hosts[0].run(*command)
        assert ended.returncode == 0, ended.stderr
        summary = json.loads((folder / "out" / "summary.json").read_text())
        names = [path.name for path in journal.glob("*.segment")]
        is_same = has_copy and all(
            (journal / name).read_bytes() == (copy / name).read_bytes() for name in names
        )
    return {
        "batch": batch,
        "copy": has_copy,
        "pods_per_s": summary["pods_per_s"],
        "same_bytes": is_same if has_copy else None,
    }


async def replies() -> None:
    """Print how long two binders, with and without a copy, take for one message."""
    from roadstead.actors.binder.actor import BinderActor
    from roadstead.actors.journal_copy.actor import JournalCopyActor
    from roadstead.actors.messages import ADD_PENDING, pod_list
    from roadstead.actors.names import BINDER, JOURNAL_COPY
    from roadstead.actors.runtime.ray_runtime import RayRuntime
    from roadstead.config.settings import Settings
    from roadstead.facts.pod import PodFacts, PodIdentity
    from roadstead.run import RunPlan

    with tempfile.TemporaryDirectory(prefix="copy-replies-", dir="/var/tmp") as temporary:
        folder = Path(temporary)
        plain = RunPlan(Settings(journal=folder / "plain"))
        copied = RunPlan(Settings(journal=folder / "journal", journal_copy=folder / "copy"))
        runtime = RayRuntime(processes=3, limits=plain.limits)
        builds = {
            "plain": partial(BinderActor, plain),
            BINDER: partial(BinderActor, copied),
            JOURNAL_COPY: partial(JournalCopyActor, copied),
        }
        groups = {name: {name: build} for name, build in builds.items()}
        refs = await runtime.start(groups, timeout_s=120.0)
        for pods in (1, 64, 1024):
            took_ms: dict[str, list[float]] = {"plain": [], BINDER: []}
            for number in range(REPLIES):
                names = [f"p-{pods}-{number}-{index}" for index in range(pods)]
                message = pod_list(
                    (PodIdentity(name, "default", name), PodFacts()) for name in names
                )
                for name, found in took_ms.items():
                    began_s = time.perf_counter()
                    await refs[name].call(ADD_PENDING, message, timeout_s=60.0)
                    found.append(1000 * (time.perf_counter() - began_s))
            without, with_copy = (statistics.median(each) for each in took_ms.values())
            line = {"pods": pods, "ms": round(without, 2), "ms_with_copy": round(with_copy, 2)}
            print(json.dumps(line), flush=True)
        await runtime.stop()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=4, help="pairs of runs for each batch size")
    parser.add_argument("--batches", default="256,2048", help="batch sizes, with commas")
    parser.add_argument("--replies", action="store_true", help="measure replies, not runs")
    options = parser.parse_args(arguments)
    if options.replies:
        asyncio.run(replies())
        return 0
    found: defaultdict[tuple[int, bool], list[float]] = defaultdict(list)
    with (
        tempfile.TemporaryDirectory(prefix="copy-cost-fleet-") as folder,
        hosts(3, cpus=4, labels=("", "place=x", "")) as all_hosts,
    ):
        fleet = write_fleet(Path(folder))
        for pair in range(options.pairs):
            for batch in map(int, options.batches.split(",")):
                # The order alternates, too.
                for has_copy in (False, True) if pair % 2 else (True, False):
                    line = run_one(all_hosts, fleet, batch, has_copy)
                    found[batch, has_copy].append(float(str(line["pods_per_s"])))
                    print(json.dumps(line), flush=True)
    for (batch, has_copy), rates in sorted(found.items()):
        median = round(statistics.median(rates), 1)
        print(json.dumps({"batch": batch, "copy": has_copy, "median_pods_per_s": median}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
