"""Arrow tables from Python values. Only this module creates columns and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, Final

from arro3.core import Array, ChunkedArray, DataType, Field, Table, list_array, struct_array

CHUNK_ROWS: Final = 1 << 16
"""Rows in a chunk of a column. A chunk holds at most 2 GiB of text, because offsets are int32."""

STRING: Final = DataType.string()
INT64: Final = DataType.int64()
FLOAT64: Final = DataType.float64()
BOOL: Final = DataType.bool()


def list_of(item: DataType) -> DataType:
    """The type of lists of `item`; the field has the name that Parquet prescribes."""
    return DataType.list(Field("element", item))


def struct_of(fields: Mapping[str, DataType]) -> DataType:
    """The type of dictionaries with these keys."""
    return DataType.struct([Field(name, kind) for name, kind in fields.items()])


def type_of(values: Sequence[bool | int | float | str]) -> DataType:
    """The narrowest type that holds all values: bool, int64, float64 or string."""
    for kind, accepted in ((BOOL, bool), (INT64, int), (FLOAT64, int | float)):
        if all(isinstance(value, accepted) for value in values):
            return kind
    return STRING


def column(values: Sequence[Any], kind: DataType) -> ChunkedArray:
    """A column of `kind`. None becomes null, except in lists and structs, which have no nulls.

    Raises TypeError for a value of another type, OverflowError for an integer beyond int64.
    """
    # One empty chunk if there are no values: arro3 makes no NumPy array from zero chunks.
    starts = range(0, max(len(values), 1), CHUNK_ROWS)
    return ChunkedArray([_array(values[at : at + CHUNK_ROWS], kind) for at in starts], kind)


def make_table(columns: Mapping[str, ChunkedArray]) -> Table:
    """A table of columns of equal length."""
    return Table(dict(columns))


def _array(values: Sequence[Any], kind: DataType) -> Array:
    if (item := kind.value_type) is not None:
        # arro3 builds lists and structs only from arrays.
        offsets = Array(list(accumulate(map(len, values), initial=0)), DataType.int32())
        return list_array(offsets, _array(list(chain.from_iterable(values)), item), type=kind)
    if DataType.is_struct(kind):
        parts = [_array([value[each.name] for value in values], each.type) for each in kind.fields]
        return struct_array(parts, fields=kind.fields)
    return Array(values, kind)
