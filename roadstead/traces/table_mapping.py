"""The mapping file of `roadstead trace import table`: which column of a table is what.

The file is YAML or JSON. `docs/traces.md` lists every key; a test compares it with this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from roadstead.config.files import read_bytes
from roadstead.protocol.documents import read_documents
from roadstead.protocol.errors import InputError, cut_short

MAPPING_MAX_BYTES: Final = 1 << 20

TIME_UNITS_S: Final = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0,
}  # fmt: skip
CPU_UNITS: Final = {"cores": 1000.0, "milli": 1.0, "percent": 10.0}
"""Unit → milli-CPU."""
BYTE_UNITS: Final = {
    "bytes": 1.0,
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGT", start=1)},
    **{f"{prefix}B": 1000.0**power for power, prefix in enumerate("KMGT", start=1)},
}
GPU_UNITS: Final = {"count": 1.0, "milli": 1.0, "percent": 10.0}
"""Unit → amount of the resource, which counts whole GPUs in "count", else thousandths of a GPU."""

TimeUnit = Literal["ns", "us", "ms", "s", "m", "h", "d", "datetime"]
CpuUnit = Literal["cores", "milli", "percent", "quantity"]
ByteUnit = Literal["bytes", "KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB", "quantity"]
GpuUnit = Literal["count", "milli", "percent"]
Name = Annotated[str, Field(min_length=1, max_length=1000)]


class _MappingModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ColumnOrValue(_MappingModel):
    """A value from a column, or the same one for every row."""

    column: Name | None = None
    value: str | int | float | None = None

    @model_validator(mode="after")
    def _one_source(self) -> ColumnOrValue:
        if (self.column is None) == (self.value is None):
            raise ValueError("wants either column or value")
        return self


class TextColumn(ColumnOrValue):
    """A text: a name, a label, a class."""


class TimeColumn(ColumnOrValue):
    """A time or a duration. datetime: ISO 8601; without an offset it is UTC."""

    unit: TimeUnit = "s"


class CpuColumn(ColumnOrValue):
    """Cores. quantity: a quantity of Kubernetes ("500m"). scale: as in `BytesColumn`."""

    unit: CpuUnit = "cores"
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class BytesColumn(ColumnOrValue):
    """Bytes of memory. scale: factor of the values; for shares of a machine, its size in `unit`."""

    unit: ByteUnit = "bytes"
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class GpuColumn(ColumnOrValue):
    """GPUs. resource: the extended resource that counts them, in whole ones or in thousandths."""

    unit: GpuUnit = "count"
    resource: Name = "nvidia.com/gpu"


class NumberColumn(ColumnOrValue):
    """A whole number: a count, a priority."""


class AmountColumn(ColumnOrValue):
    """The amount of any resource. scale: as in `BytesColumn`."""

    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class _ObjectMapping(_MappingModel):
    """The keys that pods and nodes share. resources, labels: by resource name, by label key."""

    name: TextColumn | None = None
    cpu: CpuColumn | None = None
    memory: BytesColumn | None = None
    gpu: GpuColumn | None = None
    count: NumberColumn | None = None
    resources: dict[Name, AmountColumn] = Field(default_factory=dict)
    labels: dict[Name, TextColumn] = Field(default_factory=dict)


class PodMapping(_ObjectMapping):
    """Columns of the pods. The duration has a column, or is the difference of start and end."""

    arrival: TimeColumn
    duration: TimeColumn | None = None
    start: TimeColumn | None = None
    end: TimeColumn | None = None
    class_: TextColumn | None = Field(default=None, alias="class")
    priority: NumberColumn | None = None
    namespace: Name = "table"


class NodeMapping(_ObjectMapping):
    """Columns of the table `file` of nodes; without `file`, all are values."""

    file: Name | None = None
    zone: TextColumn | None = None

    @model_validator(mode="after")
    def _values_without_file(self) -> NodeMapping:
        if self.file is None and any(each.column is not None for each in columns_of(self)):
            raise ValueError("wants file, the table of its columns, or values alone")
        return self


def columns_of(columns: PodMapping | NodeMapping) -> Iterator[ColumnOrValue]:
    """Yield all columns and values of pods or nodes."""
    for value in (getattr(columns, name) for name in type(columns).model_fields):
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, ColumnOrValue):
            yield value


class TableFormat(_MappingModel):
    """Format of the tables. null: texts of cells that count as empty."""

    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    header: bool = True
    null: tuple[str, ...] = Field(default=("", "NULL", "null", "NA", "NaN", "nan", "None"))


class TableMapping(_MappingModel):
    """A whole mapping file."""

    api_version: Literal["roadstead.dev/v1"] = Field(alias="apiVersion")
    kind: Literal["TraceMapping"]
    pods: PodMapping
    nodes: NodeMapping | None = None
    csv: TableFormat = Field(default_factory=TableFormat)


def read_mapping(path: Path) -> TableMapping:
    """Read a mapping file. Raises InputError that names the key, its value and the rule."""
    source = str(path)
    documents = list(
        read_documents(
            read_bytes(path, MAPPING_MAX_BYTES), source=source, max_bytes=MAPPING_MAX_BYTES
        )
    )
    if len(documents) != 1:
        raise InputError(f"has {len(documents)} documents, not one", source=source)
    try:
        return TableMapping.model_validate(_tuples(documents[0]))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        value = "" if first["type"] == "missing" else cut_short(first["input"])
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(problem, source=source, field=field, value=value) from None


def _tuples(value: object) -> object:
    """Return plain data with tuples for lists: strict validation accepts no list for a tuple."""
    if isinstance(value, list):
        return tuple(_tuples(each) for each in value)
    if isinstance(value, dict):
        return {key: _tuples(each) for key, each in value.items()}
    return value
