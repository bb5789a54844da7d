"""Arrow tables as pandas frames. pandas is optional."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from roadstead.protocol.errors import RoadsteadError

if TYPE_CHECKING:
    import pandas as pd


def as_frame(table: pa.Table) -> pd.DataFrame:
    """The table as a frame. RoadsteadError where pandas is not installed."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        rule = "to_pandas needs pandas, which is not installed: pip install pandas"
        raise RoadsteadError(f"{rule} (to_arrow needs nothing more)") from error
    return table.to_pandas()
