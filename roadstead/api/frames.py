"""Conversion of Arrow tables to pandas frames. pandas is optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from arro3.core import ChunkedArray, DataType, Table
from numpy.typing import NDArray

from roadstead.protocol.errors import RoadsteadError

if TYPE_CHECKING:
    import pandas as pd


def as_frame(table: Table) -> pd.DataFrame:
    """Return the table as a frame. Raises RoadsteadError if pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        problem = "to_pandas needs pandas, which is not installed: pip install 'roadstead[pandas]'"
        raise RoadsteadError(f"{problem} (to_arrow needs nothing more)") from error
    columns = {name: frame_values(table.column(name)) for name in table.column_names}
    # Without a dtype, pandas would choose one at will for an empty column or one of nulls.
    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=dtype) for name, (values, dtype) in columns.items()}
    )


def frame_values(column: ChunkedArray) -> tuple[NDArray[Any] | list[Any], np.dtype[Any] | type]:
    """(values, dtype) of a column for a frame.

    Null becomes None, or NaN in a column of numbers, which is then float64, as with pyarrow.
    """
    if DataType.is_string(column.type):
        return column.to_pylist(), str
    if not DataType.is_numeric(column.type):
        return column.to_pylist(), object
    if column.null_count:
        return column.to_pylist(), np.dtype(np.float64)
    if not len(column):
        # A column without chunks has no NumPy array.
        return [], np.dtype(np.float64 if DataType.is_floating(column.type) else np.int64)
    values = column.to_numpy()
    return values, values.dtype
