"""Where the compiled code comes from: numba, its cache, and a message where it must be built."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

import numpy as np

from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.kernel.apart import TOTALS, compile_apart, start_compiling
from roadstead.kernel.arrays import U64, Lists, Log, Numbers, Piece, Totals, new_piece
from roadstead.kernel.layout import empty_totals
from roadstead.kernel.lists import no_lists
from roadstead.kernel.lowering.lowerings import Specs, lay_out_specs
from roadstead.kernel.mirror import Mirror
from roadstead.kernel.relation_arrays import Relations
from roadstead.kernel.relation_layout import relate, with_classes
from roadstead.kernel.stills import Still
from roadstead.nodes.columns import I32, I64
from roadstead.nodes.table import NodeTable

NUMBA_SETTINGS = ".numba_config.yaml"
"""In the working directory numba takes settings from it; one names the folder of machine code."""


class Stats(Protocol):
    """What numba tells of a function."""

    cache_path: str


class Dispatcher(Protocol):
    """A function as numba compiles it."""

    stats: Stats


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """The compiled functions; see `roadstead.kernel.compiled`. started_s: how long loading took."""

    run: Callable[[Numbers, Specs, Totals, Relations, Lists, Log, int], tuple[int, int]]
    build: Callable[[Numbers, Specs, Totals, I64, int, Piece], None]
    renormalize: Callable[[Numbers, Specs, Totals, int, I32], None]
    list_best: Callable[[Numbers, Totals, int, np.uint64, I64, I32, U64], tuple[int, int, int]]
    started_s: float = 0.0


_here: list[CompiledCode] = []


def loaded() -> CompiledCode | None:
    """The compiled code, where this process has it; None where nobody loaded it yet."""
    return _here[0] if _here else None


def load(tell: Callable[[str], None] | None = None) -> CompiledCode:
    """Imports numba and the compiled code. ImportError where numba is not installed or not safe.

    numba keeps machine code beside the module or in the user's cache folder; where neither can be
    written, it lives as long as the process. Where nothing is kept yet, with `tell` another process
    compiles (some seconds), so that this one is not slowed down meanwhile; `tell` is told so.
    """
    known = loaded()
    if known is not None:
        return known
    if os.path.lexists(NUMBA_SETTINGS):
        raise ImportError(f"{NUMBA_SETTINGS} in the working directory would have numba's settings")
    started = time.perf_counter()
    try:
        from roadstead.kernel import compiled
    except RuntimeError:
        _cache_nowhere()
        from roadstead.kernel import compiled
    code = _code_of(compiled)
    is_kept = _is_kept(_sources(Path(compiled.__file__).parent))
    if tell is not None and not is_kept:
        tell("compiling the kernel, once for this machine; the reference decides meanwhile")
        compile_apart()
    warm_up_totals(code)
    warm_up_run(code)
    found = replace(code, started_s=time.perf_counter() - started)
    _here[:] = [found]
    return found


def _code_of(compiled: ModuleType) -> CompiledCode:
    return CompiledCode(compiled.run, compiled.build, compiled.renormalize, compiled.list_best)


def compiled_of() -> ModuleType:
    """The compiled module, which imports numba."""
    from roadstead.kernel import compiled

    return compiled


def _sources(folder: Path) -> list[Path]:
    """Modules whose changes are changes of machine code; lowerings need not be named one by one."""
    others = [folder / name for name in ("jit.py", "arrays.py", "relation_arrays.py")]
    return [*folder.glob("compiled*.py"), *folder.glob("lowering/*.py"), *others]


def _is_kept(modules: Sequence[Path]) -> bool:
    """Whether machine code of `run` is there; what is older than any of the modules goes.

    numba looks at the module of a function, and not at those of the functions that it calls. Only
    functions that Python calls are kept, all in one folder (`jit.internal`).
    """
    folder = Path(cast(Dispatcher, compiled_of().run).stats.cache_path)
    newest = max(module.stat().st_mtime for module in modules)
    kept = [index for module in modules for index in folder.glob(f"{module.stem}.*.nbi")]
    is_kept = False
    for index in kept:
        # Another process may do the same at this moment.
        with contextlib.suppress(OSError):
            if index.stat().st_mtime < newest:
                index.unlink()
            else:
                is_kept |= index.match("*.run-*")
    return is_kept


def _cache_nowhere() -> None:
    from numba.core import config

    os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="roadstead-numba-")
    cast(Callable[[], None], config.reload_config)()


def compile_here(part: str = "") -> None:
    """Compiles in this process what is not kept; with "totals" one half, which no other part needs.

    Without, another process compiles that half meanwhile.
    """
    code = _code_of(compiled_of())
    if part == TOTALS:
        warm_up_totals(code)
        return
    other = start_compiling(TOTALS)
    warm_up_run(code)
    other.wait()


def warm_up_totals(code: CompiledCode) -> None:
    """Calls what finds totals on a table without rows, so that it is compiled or loaded."""
    numbers, specs, totals, _ = _nothing()
    code.build(numbers, specs, totals, np.zeros(0, np.int64), 0, new_piece(2))
    code.renormalize(numbers, specs, totals, 0, np.zeros(1, np.int32))
    code.list_best(
        *(numbers, totals, 0, np.uint64(0)),
        *(np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.uint64)),
    )


def warm_up_run(code: CompiledCode) -> None:
    """Likewise of what decides pods."""
    numbers, specs, totals, log = _nothing()
    relations = with_classes(_no_relations(), np.zeros(1, np.int64))
    code.run(numbers, specs, totals, relations, no_lists(1, numbers), log, 0)


def _no_relations() -> Relations:
    found = relate((), NodeTable(), (), 1)
    assert found is not None
    return found


def _nothing() -> tuple[Numbers, Specs, Totals, Log]:
    none, one, flags = np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(1, np.bool_)
    specs, blocked = lay_out_specs([], [], np.zeros((1, 1), np.bool_), one, one)
    numbers = Mirror(NodeTable(), Chooser(TieBreak()), blocked).numbers
    narrow, groups = np.zeros(0, np.int32), np.zeros((0, 1), np.int64)
    still = Still(narrow.astype(np.bool_), narrow, narrow, groups, ())
    totals = empty_totals(1, [still], 1, numbers.row_at)
    log = Log(
        none, np.zeros(0, np.uint64), none, none, none, none, none, one,
        np.zeros(0, np.int32), flags, none, one, none, one, none,
    )  # fmt: skip
    return numbers, specs, totals, log
