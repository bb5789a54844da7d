"""Writing the report of a folder of simulated runs, from their tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from roadstead.api.config_pairs import compare_configs, write_comparisons
from roadstead.api.paired_runs import Comparison
from roadstead.api.run_folder import REPORT_FILE, RecordedRun, replace_text, run_folders
from roadstead.api.run_query import RunQuery
from roadstead.config.scenario.values import time_text
from roadstead.report.result import installed_versions
from roadstead.report.simulated_page import EVENTS_LISTED, simulated_page
from roadstead.report.simulated_plots import EVENTS_MAX, RUNS_MAX, SampledRun
from roadstead.simulator.summary import RunSummary

HEADS = ("run", "pods", "bound", "pending", "running", "ended", "p50", "p90", "p99", "max")
"""Heads of a summary's columns; the last four are quantiles of the pods' waits for their bind."""
SAMPLES = """SELECT metric, resource, time_us, value FROM samples
WHERE zone = '' AND metric IN ('running', 'pending', 'allocatable', 'requested', 'fragmentation')
ORDER BY time_us"""
EVENTS = """SELECT time_us, what, arg_min(subject, number), arg_min(detail, number), count(*)
FROM (SELECT *, row_number() OVER () AS number FROM events)
WHERE $evictions OR what NOT LIKE '%evict%'
GROUP BY time_us, what ORDER BY time_us, min(number) LIMIT $count_max"""
"""The first events, with how often each occurred.

Events of one kind at one time are one: a lost zone is not an event for each of its nodes.
"""


def wait_text(us: float) -> str:
    """A waiting time in seconds."""
    return f"{us / 1e6:,.1f} s"


def summary_row(name: str, summary: RunSummary) -> tuple[str, ...]:
    """Return the cells of a run under HEADS."""
    waits = summary.waits.quantiles_us
    counts = (summary.created, summary.bound, summary.pending, summary.running)
    return (
        name,
        *(f"{each:,}" for each in (*counts, sum(summary.endings.values()))),
        *(wait_text(waits[each]) for each in HEADS[6:]),
    )


def write_report(
    folder: Path, names: Sequence[str], summaries: Sequence[RunSummary]
) -> tuple[Comparison, ...]:
    """Write `report.html`, and with several configurations `compare.json`; return the comparisons.

    Raises InputError for tables that cannot be read, and if a file cannot be written.
    """
    heads = (*HEADS[:6], *(f"wait {each}" for each in HEADS[6:]))
    rows = [summary_row(name, each) for name, each in zip(names, summaries, strict=True)]
    runs = [sampled_run(path, run.name) for path, run in drawn_runs(run_folders(folder))]
    compared = compare_configs(folder, names)
    if compared:
        write_comparisons(folder, compared)
    page = simulated_page(
        summaries[0].scenario,
        heads,
        rows,
        runs,
        installed_versions(),
        [(each.a, each.b, each.differences) for each in compared],
    )
    replace_text(folder / REPORT_FILE, page)
    return compared


def drawn_runs(runs: Sequence[tuple[Path, RecordedRun]]) -> list[tuple[Path, RecordedRun]]:
    """Choose the runs that plots show: as many of each configuration, with the first seeds."""
    counts: Counter[str] = Counter()
    ranked = []
    for index, (_, run) in enumerate(runs):
        ranked.append((counts[run.config], index))
        counts[run.config] += 1
    return [runs[index] for index in sorted(index for _, index in sorted(ranked)[:RUNS_MAX])]


def sampled_run(path: Path, name: str) -> SampledRun:
    """Read the samples and first events of a run. Raises InputError."""
    query = RunQuery(path)
    samples: defaultdict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for metric, resource, time_us, value in query.execute(SAMPLES).rows:
        sample = cast("int", time_us), cast("float", value)
        samples[str(metric), str(resource)].append(sample)
    events = tuple(_events(query, EVENTS_LISTED + 1, has_evictions=True))
    # Events that the plots mark: evictions are too many.
    marks = tuple(_events(query, EVENTS_MAX + 1, has_evictions=False))
    return SampledRun(name, samples, events, marks)


def _events(query: RunQuery, count_max: int, *, has_evictions: bool) -> Iterator[tuple[int, str]]:
    """Yield the time and text of the first events."""
    values = {"count_max": count_max, "evictions": has_evictions}
    for time_us, what, subject, detail, count in query.execute(EVENTS, values).rows:
        # Shown to the millisecond.
        at_us, others = cast("int", time_us), cast("int", count) - 1
        more = f" ({detail})" if detail else ""
        and_others = f", and {others:,} more" if others else ""
        yield at_us, f"{time_text(at_us // 1000 * 1000)}: {what} {subject}{more}{and_others}"
