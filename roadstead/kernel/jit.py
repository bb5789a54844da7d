"""Compilation of the kernel's functions, and the arithmetic that all of them share.

Rows with equal totals are chosen by rank (`framework/tie_break.py`). Rows are in 4096 buckets by
the first bits of their sort keys. A pod's tie-break hash orders the buckets, and the rows in each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np

from roadstead.framework.tie_break import BUCKET_BITS
from roadstead.kernel.arrays import BUCKETS

P = ParamSpec("P")
R = TypeVar("R")

# The constants of SplitMix64, as in `framework/tie_break.py`.
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S24, _S27, _S30, _S31 = np.uint64(24), np.uint64(27), np.uint64(30), np.uint64(31)
_S36, _S48 = np.uint64(36), np.uint64(48)
_ONE, _TWO, _HALF = np.uint64(1), np.uint64(2), np.uint64(BUCKET_BITS // 2)
_BITS, _REST = np.uint64(BUCKET_BITS), np.uint64(64 - BUCKET_BITS)
_MASK = np.uint64(BUCKETS - 1)

_OPTIONS = {"error_model": "numpy", "boundscheck": False, "no_cfunc_wrapper": True, "_nrt": False}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile without Python objects, divide by zero as NumPy does, and cache the machine code.

    The function may not allocate: without reference counts of arrays (numba's `_nrt`), it compiles
    in half the time.
    """
    return cast(Callable[P, R], numba.njit(cache=True, **_OPTIONS)(function))


def internal(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled code calls: it has no entry point for Python.

    Its machine code is part of its callers' cached machine code. It has no cache of its own, so
    that `kernel.compiled_code.is_compiled`, which looks for outdated code, finds all of it in one
    folder.
    """
    return cast(Callable[P, R], numba.njit(no_cpython_wrapper=True, **_OPTIONS)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Inline a function into its one or two callers, which compiles faster.

    Without inlining, numba would optimize the function once by itself and again in each caller.
    """
    return cast(Callable[P, R], numba.njit(inline="always", **_OPTIONS)(function))


@internal
def rank_of(sort_key: np.uint64, tie_hash: np.uint64, is_random: bool) -> np.uint64:
    """Return the rank of a row among rows with equal totals, of which the highest is chosen.

    sort_key: a hash of the node's name; if not is_random, its reversed rank in order of names.
    tie_hash: a hash of seed and pod.
    """
    if not is_random:
        return sort_key
    mixed = sort_key ^ tie_hash
    mixed = (mixed ^ (mixed >> _S30)) * _MIX_1
    mixed = (mixed ^ (mixed >> _S27)) * _MIX_2
    mixed = mixed ^ (mixed >> _S31)
    return (position_of_bucket(sort_key >> _REST, tie_hash) << _REST) | (mixed >> _BITS)


@compiled
def position_of_bucket(bucket: np.uint64, tie_hash: np.uint64) -> np.uint64:
    """Return the position of a bucket in the order of a tie-break hash; the highest is first."""
    # A permutation: additions, multiplications by odd numbers and xor-shifts modulo BUCKETS can all
    # be reversed.
    position = ((bucket ^ (tie_hash & _MASK)) * (((tie_hash >> _BITS) & _MASK) | _ONE)) & _MASK
    position = position ^ (position >> _HALF)
    position = (
        (position + ((tie_hash >> _S24) & _MASK)) * (((tie_hash >> _S36) & _MASK) | _ONE)
    ) & _MASK
    return (position ^ (position >> _HALF)) ^ ((tie_hash >> _S48) & _MASK)


@compiled
def bucket_at(position: np.uint64, tie_hash: np.uint64, is_random: bool) -> np.int64:
    """Return the bucket at a position: the inverse of `position_of_bucket`, if is_random.

    Else the position itself: buckets are in the order of their sort keys.
    """
    if not is_random:
        return np.int64(position)
    found = position ^ ((tie_hash >> _S48) & _MASK)
    found = (found ^ (found >> _HALF)) * _inverse(((tie_hash >> _S36) & _MASK) | _ONE)
    found = (found - ((tie_hash >> _S24) & _MASK)) & _MASK
    found = (found ^ (found >> _HALF)) * _inverse(((tie_hash >> _BITS) & _MASK) | _ONE)
    return np.int64((found & _MASK) ^ (tie_hash & _MASK))


@internal
def _inverse(odd: np.uint64) -> np.uint64:
    """Return the inverse of an odd number modulo 2**12 (BUCKETS), by Newton's method.

    An odd number is its own inverse modulo 2**3. Two steps make 3 correct bits 6, and then 12.
    """
    found = odd * (_TWO - odd * odd)
    return found * (_TWO - odd * found)


FLOAT_BOUND = 1 << 52
"""The quotient as float64 of integers below this differs from the exact one by at most 1."""


@internal
def quotient(dividend: int, divisor: int) -> int:
    """Return dividend // divisor for divisor > 0.

    Divide as float64 first, which is faster, and differs by at most 1 below FLOAT_BOUND. Larger
    numbers, and negative ones (after an overflow), are divided as integers.
    """
    if 0 <= dividend < FLOAT_BOUND and divisor < FLOAT_BOUND:
        found = np.int64(np.float64(dividend) / np.float64(divisor))
        rest = dividend - found * divisor
        # Correct by 1 without a branch.
        return int(found + np.int64(rest >= divisor) - np.int64(rest < 0))
    return dividend // divisor
