"""The parity command: recorded decisions of the real kube-scheduler, replayed and compared."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TextIO

from roadstead.local.decision_paths import BATCHES, PLAIN, without_kernel
from roadstead.protocol.errors import InputError
from scripts.recordings.cases import find_files
from scripts.recordings.dump import write_answers
from scripts.recordings.report import Report
from scripts.recordings.suites import Answer, run_file

DEFAULT_PATHS = "plain,batches,batches+runs,1,2,5"
MAX_WORKERS = 1024
LINES_OF_PROGRESS = 20

OK, DIFFERENT, WRONG_USE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all decisions were compared and match, else 1; 2 for misuse."""
    options = _parser().parse_args(arguments)
    try:
        files = find_files([Path(each) for each in options.paths_of_cases])
    except InputError as error:
        sys.stderr.write(f"parity: {error}\n")
        return WRONG_USE
    if not files:
        sys.stderr.write("parity: no recorded cases there (*.json.gz)\n")
        return WRONG_USE
    report = Report()
    for done, answers in enumerate(_answers(files, options.paths, options.jobs), start=1):
        if options.dump is not None:
            write_answers(Path(options.dump), answers)
        for answer in answers:
            report.add(answer)
        show_progress(sys.stderr, done, len(files), answers[0].file.name)
    sys.stdout.write("\n".join(report.lines(options.show)) + "\n")
    return DIFFERENT if report.mismatches or report.unsupported else OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/parity.py",
        description="Replays recorded decisions of the real kube-scheduler and compares ours.",
    )
    parser.add_argument(
        "paths_of_cases", nargs="+", metavar="PATH", help="a recorded file, or a folder of them"
    )
    parser.add_argument(
        "--paths",
        type=_path_names,
        default=_path_names(DEFAULT_PATHS),
        help=f"ways to decide: plain, batches, or a number of workers, each alone, with +kernel "
        f"or with +runs (default {DEFAULT_PATHS})",
    )
    parser.add_argument("--dump", metavar="DIR", help="write our own answer for each case there")
    parser.add_argument(
        "--jobs", type=_positive, default=os.cpu_count() or 1, help="processes (default: all cores)"
    )
    parser.add_argument(
        "--show", type=int, default=10, help="mismatches shown per suite and path (default 10)"
    )
    return parser


def _path_names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        way = without_kernel(name)
        workers = int(way) if way.isascii() and way.isdigit() else 0
        if way not in (PLAIN, BATCHES) and not 1 <= workers <= MAX_WORKERS:
            raise argparse.ArgumentTypeError(
                f'"{name}" is no path (want plain, batches, or 1 to {MAX_WORKERS} workers)'
            )
    return names


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of at least 1')
    return number


def _answers(files: list[Path], path_names: Sequence[str], jobs: int) -> Iterator[list[Answer]]:
    """Yield each file's answers, in the order of the files, from any number of processes."""
    if jobs == 1:
        yield from map(partial(run_file, path_names=path_names), files)
        return
    with ProcessPoolExecutor(min(jobs, len(files))) as pool:
        yield from pool.map(run_file, files, repeat(path_names))


def show_progress(out: TextIO, done: int, total: int, name: str) -> None:
    """Write progress: on a terminal one line that is updated, elsewhere an occasional line."""
    if out.isatty():
        end = "\n" if done == total else ""
        out.write(f"\r\x1b[K{done}/{total} {name}{end}")
    elif (
        done == total or done * LINES_OF_PROGRESS // total > (done - 1) * LINES_OF_PROGRESS // total
    ):
        out.write(f"{done}/{total} {name}\n")
    out.flush()
