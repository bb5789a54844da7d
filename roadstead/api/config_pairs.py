"""Paired differences of the configurations of a simulation, which are played with the same seeds.

FOLDER/compare.json lists these differences. They are computed from the tables that each run wrote
(FOLDER/RUN/TABLE) and nothing else, so equal tables give an equal file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

from roadstead.api.paired_runs import Comparison, RunGroup, compare_groups, read_simulated
from roadstead.api.run_folder import COMPARISON_FILE, read_record, replace_text

PAIRS_MAX: Final = 10
"""Maximum number of pairs: up to five configurations are all compared with each other, more only
with the first."""


def compare_configs(folder: Path, names: Iterable[str]) -> tuple[Comparison, ...]:
    """Compare each two configurations of a folder of finished runs; empty for one configuration.

    names: of the runs, each CONFIGURATION-SEED, such as binpack-3. Raises InputError for tables
    that cannot be read.
    """
    # The seed is read from the record, because the name cannot be split at a "-": a configuration
    # may end with one, and a negative seed begins with one.
    seeds = {run.name: run.seed for run in read_record(folder).runs}
    by_config: dict[str, list[str]] = {}
    for name in names:
        by_config.setdefault(name.removesuffix(f"-{seeds[name]}"), []).append(name)
    if len(by_config) < 2:
        return ()
    groups = [_group(folder, config, runs) for config, runs in by_config.items()]
    return tuple(compare_groups(a, b) for a, b in _pairs(groups))


def _group(folder: Path, config: str, names: Iterable[str]) -> RunGroup:
    runs = [read_simulated(folder / name) for name in names]
    return RunGroup(config, {run.seed: run for run in runs})


def _pairs(groups: list[RunGroup]) -> Iterator[tuple[RunGroup, RunGroup]]:
    if len(groups) * (len(groups) - 1) // 2 <= PAIRS_MAX:
        yield from combinations(groups, 2)
    else:
        yield from ((groups[0], each) for each in groups[1:])


def write_comparisons(folder: Path, comparisons: Iterable[Comparison]) -> None:
    """Write compare.json of a folder of simulated runs. Raises InputError."""
    document = {"comparisons": [each.document() for each in comparisons]}
    text = json.dumps(document, indent=2, ensure_ascii=False)
    replace_text(folder / COMPARISON_FILE, f"{text}\n")
