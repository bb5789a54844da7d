"""Compilation of the kernel's functions, and the arithmetic that all of them share."""

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

    The function may not allocate: without reference counts of arrays, it compiles in half the time.
    """
    return cast(Callable[P, R], numba.njit(cache=True, **_OPTIONS)(function))


def internal(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled code calls: it has no entry point for Python.

    Its machine code is cached as part of its callers' and not by itself: all machine code that may
    be out of date is in one folder (`start.is_compiled`).
    """
    return cast(Callable[P, R], numba.njit(no_cpython_wrapper=True, **_OPTIONS)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Inline a function into its one or two callers, which compiles faster.

    A function compiled by itself is optimized there, and again in each of its callers.
    """
    return cast(Callable[P, R], numba.njit(inline="always", **_OPTIONS)(function))


@internal
def rank_of(sort_key: np.uint64, tie_hash: np.uint64, is_random: bool) -> np.uint64:
    """Return the rank of a row among rows with equal totals; see `framework/tie_break.py`."""
    if not is_random:
        return sort_key
    mixed = sort_key ^ tie_hash
    mixed = (mixed ^ (mixed >> _S30)) * _MIX_1
    mixed = (mixed ^ (mixed >> _S27)) * _MIX_2
    mixed = mixed ^ (mixed >> _S31)
    return (position_of_bucket(sort_key >> _REST, tie_hash) << _REST) | (mixed >> _BITS)


@compiled
def position_of_bucket(bucket: np.uint64, tie_hash: np.uint64) -> np.uint64:
    """Return the position of a bucket in the order of a tie-break hash."""
    position = ((bucket ^ (tie_hash & _MASK)) * (((tie_hash >> _BITS) & _MASK) | _ONE)) & _MASK
    position = position ^ (position >> _HALF)
    position = (
        (position + ((tie_hash >> _S24) & _MASK)) * (((tie_hash >> _S36) & _MASK) | _ONE)
    ) & _MASK
    return (position ^ (position >> _HALF)) ^ ((tie_hash >> _S48) & _MASK)


@compiled
def bucket_at(position: np.uint64, tie_hash: np.uint64, is_random: bool) -> np.int64:
    """Return the bucket at a position: the inverse of `position_of_bucket`."""
    if not is_random:
        return np.int64(position)
    found = position ^ ((tie_hash >> _S48) & _MASK)
    found = (found ^ (found >> _HALF)) * _inverse(((tie_hash >> _S36) & _MASK) | _ONE)
    found = (found - ((tie_hash >> _S24) & _MASK)) & _MASK
    found = (found ^ (found >> _HALF)) * _inverse(((tie_hash >> _BITS) & _MASK) | _ONE)
    return np.int64((found & _MASK) ^ (tie_hash & _MASK))


@internal
def _inverse(odd: np.uint64) -> np.uint64:
    """Return the inverse of an odd number modulo 2**12, by Newton's method.

    An odd number is its own inverse modulo 2**3; each of two steps doubles the correct bits.
    """
    found = odd * (_TWO - odd * odd)
    return found * (_TWO - odd * found)


EXACT = 1 << 52
"""Bound of integers whose quotient as float64 differs from the exact one by at most 1."""


@internal
def quotient(dividend: int, divisor: int) -> int:
    """Return dividend // divisor for divisor > 0.

    Divide as float64 first, which is faster and differs by at most 1 up to 2**52. Larger numbers,
    and those that have wrapped around, are divided as integers.
    """
    if 0 <= dividend < EXACT and divisor < EXACT:
        found = np.int64(np.float64(dividend) / np.float64(divisor))
        rest = dividend - found * divisor
        # Correct by 1 without a branch.
        return int(found + np.int64(rest >= divisor) - np.int64(rest < 0))
    return dividend // divisor
