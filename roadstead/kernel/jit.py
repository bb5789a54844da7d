"""How functions of the kernel are compiled, and what all of them need."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles without the Python interpreter, divides by zero as NumPy, keeps the machine code."""
    return cast(
        Callable[P, R], numba.njit(cache=True, error_model="numpy", boundscheck=False)(function)
    )


@compiled
def rank_of(order: np.uint64, draw: np.uint64, use_draw: bool) -> np.uint64:
    """The rank of a row among equals for one draw; see `framework/tie_break.py`."""
    mixed = order
    if use_draw:
        mixed = mixed ^ draw
        mixed = (mixed ^ (mixed >> _S30)) * _MIX_1
        mixed = (mixed ^ (mixed >> _S27)) * _MIX_2
        mixed = mixed ^ (mixed >> _S31)
    return mixed
