"""Loading of the compiled code: numba, its cache, and compilation if nothing is cached.

Code is called once for empty arrays, so that numba compiles it or loads its machine code (warm-up).
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

import numpy as np

from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.kernel.arrays import U64, Chunk, Lists, PodArrays, RowArrays, Totals, new_chunk
from roadstead.kernel.best_rows import no_lists
from roadstead.kernel.compile_process import TOTALS, compile_in_child, start_compiling, wait_for
from roadstead.kernel.counter_arrays import CounterArrays
from roadstead.kernel.counter_layout import lay_out_counters, with_classes
from roadstead.kernel.layout import empty_totals
from roadstead.kernel.lowering.lowerings import ClassArrays, lay_out_classes
from roadstead.kernel.mirror import Mirror
from roadstead.kernel.static_scores import StaticScores
from roadstead.nodes.columns import I32, I64
from roadstead.nodes.table import NodeTable

NUMBA_SETTINGS = ".numba_config.yaml"
"""File of settings that numba reads from the working directory.

A setting names the folder from which machine code is loaded: with this file, code that someone put
next to the user's manifests would be executed (see `roadstead.isolation`).
"""


class Stats(Protocol):
    """Statistics of a function that numba compiled."""

    cache_path: str


class CompiledFunction(Protocol):
    """A function that numba compiled."""

    stats: Stats


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """The compiled functions, see `roadstead.kernel.compiled`. started_s: seconds of loading."""

    decide_pods: Callable[
        [RowArrays, ClassArrays, Totals, CounterArrays, Lists, PodArrays, int], tuple[int, int]
    ]
    build: Callable[[RowArrays, ClassArrays, Totals, I64, int, Chunk], None]
    renormalize: Callable[[RowArrays, ClassArrays, Totals, int, I32], None]
    list_best: Callable[[RowArrays, Totals, int, np.uint64, I64, I32, U64], tuple[int, int, int]]
    started_s: float = 0.0


_loaded: list[CompiledCode] = []
"""The compiled code of this process; empty before `load` has ended."""


def loaded() -> CompiledCode | None:
    """Return the compiled code of this process; None if it is not loaded yet."""
    return _loaded[0] if _loaded else None


def load(report: Callable[[str], None] | None = None) -> CompiledCode:
    """Import numba and the compiled code.

    numba caches machine code next to the module or in the user's cache folder; if neither is
    writable, in a temporary folder that no later process uses. If nothing is cached and `report` is
    given, another process compiles (some seconds), so that this one is not slowed down meanwhile;
    `report` is called with a message. Raises ImportError if numba is not installed, or would read
    its settings from the working directory.
    """
    if (known := loaded()) is not None:
        return known
    if os.path.lexists(NUMBA_SETTINGS):
        raise ImportError(f"{NUMBA_SETTINGS} in the working directory would have numba's settings")
    started = time.perf_counter()
    try:
        from roadstead.kernel import compiled
    except RuntimeError:
        # numba found no writable folder for machine code.
        cache_temporarily()
        from roadstead.kernel import compiled
    code = _code_of(compiled)
    # Called also without `report`, because it deletes outdated machine code.
    is_cached = is_compiled()
    if report is not None and not is_cached:
        report("compiling the kernel, once for this machine")
        compile_in_child()
    warm_up_totals(code)
    warm_up_decisions(code)
    code = replace(code, started_s=time.perf_counter() - started)
    _loaded[:] = [code]
    return code


def is_compiled() -> bool:
    """Whether machine code of the present sources is cached here; delete outdated machine code.

    numba compiles a function again if its module has changed, but not if the module of a function
    that it calls has. Only functions that Python calls are cached, all in one folder
    (`jit.internal`). ImportError without numba.
    """
    compiled = compiled_of()
    folder = Path(cast(CompiledFunction, compiled.decide_pods).stats.cache_path)
    modules = sources(Path(str(compiled.__file__)).parent)
    newest = max(module.stat().st_mtime for module in modules)
    cached = [index for module in modules for index in folder.glob(f"{module.stem}.*.nbi")]
    is_cached = False
    for index in cached:
        # Another process may delete the same file at this moment.
        with contextlib.suppress(OSError):
            if index.stat().st_mtime < newest:
                index.unlink()
            else:
                is_cached |= index.match("*.decide_pods-*")
    return is_cached


def _code_of(compiled: ModuleType) -> CompiledCode:
    return CompiledCode(
        compiled.decide_pods, compiled.build, compiled.renormalize, compiled.list_best
    )


def compiled_of() -> ModuleType:
    """Return the compiled module, which imports numba."""
    from roadstead.kernel import compiled

    return compiled


def sources(folder: Path) -> list[Path]:
    """Return the modules from which machine code is compiled: if one is newer, it is outdated.

    folder: of the package `kernel`. All modules of `lowering` count, also those that are not
    compiled.
    """
    others = [folder / name for name in ("jit.py", "arrays.py", "counter_arrays.py")]
    # Numbers are part of the machine code, also those from other packages.
    others.append(folder.parent / "framework" / "tie_break.py")
    return [*folder.glob("compiled*.py"), *folder.glob("lowering/*.py"), *others]


def cache_temporarily() -> None:
    """Let numba cache machine code in a folder that is removed when this process ends."""
    from numba.core import config

    folder = tempfile.mkdtemp(prefix="roadstead-numba-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
    cast(Callable[[], None], config.reload_config)()


def compile_in_process(part: str = "") -> None:
    """Compile in this process what is not cached.

    part: TOTALS to compile only the functions that compute totals of all rows. "" to compile
    everything: another process compiles those at the same time.
    """
    code = _code_of(compiled_of())
    if part == TOTALS:
        with _only_compiler(code, part):
            warm_up_totals(code)
        return
    other = start_compiling(TOTALS)
    with _only_compiler(code, "decide_pods"):
        warm_up_decisions(code)
    wait_for(other)


@contextlib.contextmanager
def _only_compiler(code: CompiledCode, part: str) -> Iterator[None]:
    """Wait until no other process compiles this part; then its machine code is cached.

    Schedulers and workers that start together would compile the same code, each for a minute of
    processor time.
    """
    folder = Path(cast(CompiledFunction, code.decide_pods).stats.cache_path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / f"{part}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        # The folder cannot be written: then nothing is cached there, either.
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def warm_up_totals(code: CompiledCode) -> None:
    """Call the code for totals on a table without rows, so that it is compiled or loaded."""
    row_arrays, class_arrays, totals, _ = _empty_arrays()
    code.build(row_arrays, class_arrays, totals, np.zeros(0, np.int64), 0, new_chunk(2))
    code.renormalize(row_arrays, class_arrays, totals, 0, np.zeros(1, np.int32))
    code.list_best(
        *(row_arrays, totals, 0, np.uint64(0)),
        *(np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.uint64)),
    )


def warm_up_decisions(code: CompiledCode) -> None:
    """Call the code that decides pods on a table without rows, so that it is compiled or loaded."""
    row_arrays, class_arrays, totals, pod_arrays = _empty_arrays()
    counters = with_classes(_no_counters(), np.zeros(1, np.int64))
    code.decide_pods(
        row_arrays, class_arrays, totals, counters, no_lists(1, row_arrays), pod_arrays, 0
    )


def _no_counters() -> CounterArrays:
    counters = lay_out_counters((), NodeTable(), (), 1)
    assert counters is not None, "no counters are not too many"
    return counters


def _empty_arrays() -> tuple[RowArrays, ClassArrays, Totals, PodArrays]:
    none, one, flag = np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(1, np.bool_)
    class_arrays, ports_in_use = lay_out_classes([], [], np.zeros((1, 1), np.bool_), one, one)
    row_arrays = Mirror(NodeTable(), Chooser(TieBreak()), ports_in_use).row_arrays
    narrow, raw = np.zeros(0, np.int32), np.zeros((0, 1), np.int64)
    static = StaticScores(narrow.astype(np.bool_), narrow, narrow, raw, ())
    totals = empty_totals(1, [static], 1, row_arrays.row_at)
    pod_arrays = PodArrays(
        none, np.zeros(0, np.uint64), none, none, none, none, none, one,
        np.zeros(0, np.int32), flag, none, one, none, one, none,
    )  # fmt: skip
    return row_arrays, class_arrays, totals, pod_arrays
