"""Where the compiled code comes from: numba, its cache, and a message where it must be built."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from roadstead.kernel.arrays import Log, Numbers, Specs, Totals
from roadstead.nodes.columns import I32, I64


class Stats(Protocol):
    """What numba tells of a function."""

    cache_path: str


class Dispatcher(Protocol):
    """A function as numba compiles it."""

    stats: Stats


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """The compiled functions; see `roadstead.kernel.compiled`. started_s: how long loading took."""

    run: Callable[[Numbers, Specs, Totals, Log, int], tuple[int, int]]
    build: Callable[[Numbers, Specs, Totals, I64, int], None]
    renormalize: Callable[[Specs, Totals, int, I32], None]
    started_s: float = 0.0


@cache
def load(tell: Callable[[str], None] | None = None) -> CompiledCode:
    """Imports numba and the compiled code. ImportError where numba is not installed.

    numba keeps machine code beside the module or in the user's cache folder; where neither can be
    written, it lives as long as the process. Where nothing is kept yet, with `tell` another process
    compiles (some seconds), so that this one is not slowed down meanwhile; `tell` is told so.
    """
    started = time.perf_counter()
    try:
        from roadstead.kernel import compiled
    except RuntimeError:
        _cache_nowhere()
        from roadstead.kernel import compiled
    code = CompiledCode(compiled.run, compiled.build, compiled.renormalize)
    if tell is not None and not _is_kept(Path(compiled.__file__)):
        tell("compiling the kernel, once for this machine; the reference decides meanwhile")
        _compile_apart()
    warm_up(code)
    return CompiledCode(code.run, code.build, code.renormalize, time.perf_counter() - started)


def _is_kept(module: Path) -> bool:
    """Whether machine code of a module is there that is not older than its source."""
    from roadstead.kernel import compiled

    folder = Path(cast(Dispatcher, compiled.run).stats.cache_path)
    kept = [index.stat().st_mtime for index in folder.glob(f"{module.stem}.run-*.nbi")]
    return bool(kept) and max(kept) >= module.stat().st_mtime


def _compile_apart() -> None:
    """Compiles in another process, which goes on where this one ends."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(
        [sys.executable, "-m", "roadstead.kernel"],
        env=environment,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _cache_nowhere() -> None:
    from numba.core import config

    os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="roadstead-numba-")
    cast(Callable[[], None], config.reload_config)()


def warm_up(code: CompiledCode) -> None:
    """Calls every function once on a table without rows, so that it is compiled or loaded."""
    numbers, specs, totals, log = _nothing()
    code.build(numbers, specs, totals, np.zeros(0, np.int64), 0)
    code.renormalize(specs, totals, 0, np.zeros(1, np.int32))
    code.run(numbers, specs, totals, log, 0)


def _nothing() -> tuple[Numbers, Specs, Totals, Log]:
    none = np.zeros(0, np.int64)
    one = np.zeros(1, np.int64)
    lines = np.zeros((1, 0, 2), np.int64)
    matrix = np.zeros((0, 2), np.int64)
    numbers = Numbers(
        matrix, matrix, matrix, none, none, np.zeros(0, np.uint64), np.zeros((0, 1), np.bool_)
    )
    specs = Specs(
        lines, lines, np.zeros((1, 2), np.int64), np.zeros((1, 0), np.int64),
        np.zeros((1, 3), np.int64), np.zeros((1, 0, 4), np.int64), np.zeros((0, 101), np.int64),
        one, lines, np.zeros((0, 0), np.bool_), np.zeros((1, 1), np.bool_), one,
    )  # fmt: skip
    flags = np.zeros(1, np.bool_)
    totals = Totals(
        np.zeros((1, 0), np.bool_), np.zeros((1, 0), np.int32), np.zeros((1, 0), np.int32),
        np.zeros((1, 0), np.int32), np.zeros((1, 0), np.int32), np.zeros((1, 1), np.int64),
        np.zeros((1, 1), np.int32), one, one, one, flags, flags, flags,
    )  # fmt: skip
    log = Log(none, np.zeros(0, np.uint64), none, none, none, none, none, one, flags)
    return numbers, specs, totals, log
