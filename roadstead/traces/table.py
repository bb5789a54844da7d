"""Any table of pods, CSV or Parquet, by a mapping file (`table_mapping`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import NEVER_MS, S_MS
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.names import dns_label_errors, qualified_name_errors
from roadstead.protocol.quantity import QuantityError, parse_quantity
from roadstead.report.parquet import Decoder
from roadstead.traces import table_mapping as mapped
from roadstead.traces.files import ProgressMeter
from roadstead.traces.rows import AMOUNT_MAX, Row, read_header_table, read_numbered_table
from roadstead.traces.sink import (
    COUNT_MAX,
    LeftOut,
    TraceSink,
    label_value,
    object_name,
    request_facts,
)

CLASS_LABEL = "class"
GPU_MILLI = 1000
PRIORITY_MAX = 1_000_000_000
PARQUET_ENDS = (".parquet", ".pq")

_ObjectMapping = mapped.PodMapping | mapped.NodeMapping
"""The columns of the table of pods, or of nodes."""


class _FixedValue(Row):
    """A value that the mapping states, for a row of the table. source: the mapping's file."""

    def error(self, column: str, problem: str) -> InputError:
        """Return an error that names the mapping and the row."""
        obj, value = f"line {self.line} of the table", cut_short(self.text(column))
        return InputError(problem, source=self.source, obj=obj, field=column, value=value)


@dataclass(slots=True)
class TableReader:
    """Read one table of pods and, if the mapping has one, one of nodes.

    In the methods, `spec` is what the mapping has for a value: a column or a fixed value. _nulls:
    texts that mean an empty cell.
    """

    sink: TraceSink
    mapping: mapped.TableMapping
    mapping_path: Path
    _nulls: frozenset[str] = field(default=frozenset())

    def read(self, path: Path, meter: ProgressMeter) -> None:
        """Read the tables; InputError for a column that is missing, or a cell that is wrong."""
        self._nulls = frozenset(self.mapping.csv.null)
        self._check_names()
        nodes = self.mapping.nodes
        nodes_path = None
        if nodes is not None and nodes.file is not None:
            nodes_path = self.mapping_path.parent / nodes.file
        meter.expect([path, *([nodes_path] if nodes_path else [])])
        if nodes_path is not None and nodes is not None:
            self.sink.handle_rows(self._rows(nodes_path, nodes, meter), self._node)
        elif nodes is not None:
            try:
                self._node(Row(str(self.mapping_path), 0, (), {}))
            except LeftOut as reason:
                self.sink.leave_out(str(reason), str(self.mapping_path))
        else:
            self.sink.notes.append("the mapping has no nodes")
        self.sink.namespaces.add(self.mapping.pods.namespace)
        self.sink.handle_rows(self._rows(path, self.mapping.pods, meter), self._pod)

    def _check_names(self) -> None:
        namespace = self.mapping.pods.namespace
        if rules := dns_label_errors(namespace):
            raise InputError(
                rules[0],
                source=str(self.mapping_path),
                field="pods.namespace",
                value=cut_short(namespace),
            )
        for columns in (self.mapping.pods, self.mapping.nodes):
            keys = [*columns.labels, *columns.resources] if columns is not None else []
            if columns is not None and columns.gpu:
                keys.append(columns.gpu.resource)
            for key in keys:
                if rules := qualified_name_errors(key):
                    source = str(self.mapping_path)
                    raise InputError(rules[0], source=source, value=cut_short(key))

    def _rows(self, path: Path, columns: _ObjectMapping, meter: ProgressMeter) -> Iterator[Row]:
        wanted = [name for each in mapped.columns_of(columns) if (name := each.column) is not None]
        rows = self._parquet(path, wanted, meter) if _is_parquet(path) else self._csv(path, meter)
        first = True
        for row in rows:
            if first:
                self._check_columns(row, wanted)
                first = False
            yield row

    def _csv(self, path: Path, meter: ProgressMeter) -> Iterator[Row]:
        table_format = self.mapping.csv
        if table_format.header:
            return read_header_table(path, meter, delimiter=table_format.delimiter)
        return read_numbered_table(path, meter, delimiter=table_format.delimiter)

    def _parquet(self, path: Path, wanted: Sequence[str], meter: ProgressMeter) -> Iterator[Row]:
        names = list(dict.fromkeys(wanted))
        index_of = {name: index for index, name in enumerate(names)}
        try:
            line = 0
            with Decoder() as decoder:
                for batch in decoder.stream(path, names):
                    for cells in zip(*batch, strict=True):
                        line += 1
                        texts = ["" if cell is None else str(cell) for cell in cells]
                        yield Row(str(path), line, texts, index_of)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read: {error}", source=str(path)) from error
        meter.count(path.stat().st_size)

    def _check_columns(self, row: Row, wanted: Sequence[str]) -> None:
        for name in wanted:
            if name not in row.columns:
                has = ", ".join(list(row.columns)[:20])
                problem = f"is no column of {row.source} (it has {has})"
                raise InputError(problem, source=str(self.mapping_path), value=cut_short(name))

    def _text(self, row: Row, spec: mapped.ColumnOrValue) -> str:
        """Return the text of a cell or of a fixed value; "" for null."""
        text = str(spec.value) if spec.column is None else row.text(spec.column)
        return "" if text in self._nulls else text

    def _cell(self, row: Row, spec: mapped.ColumnOrValue) -> tuple[Row, str]:
        """Return the row and column in which a value is read, and which errors name.

        A value that the mapping states is in a row of its own, `_FixedValue`.
        """
        if spec.column is not None:
            return row, spec.column
        values = (str(spec.value),)
        return _FixedValue(str(self.mapping_path), row.line, values, {"value": 0}), "value"

    def _time_ms(self, row: Row, spec: mapped.TimeColumn) -> int | None:
        text = self._text(row, spec)
        if not text:
            return None
        cell, column = self._cell(row, spec)
        if spec.unit != "datetime":
            return cell.time_ms(column, mapped.TIME_UNITS_S[spec.unit])
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise cell.error(column, "is not a date and time of ISO 8601") from None
        zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return round((zoned - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * S_MS)

    def _amount(
        self, row: Row, spec: mapped.ColumnOrValue, units: dict[str, float], scale: float
    ) -> int:
        cell, column = self._cell(row, spec)
        unit = str(getattr(spec, "unit", ""))
        if unit != "quantity":
            return cell.amount(column, units.get(unit, 1.0) * scale)
        try:
            amount = parse_quantity(self._text(row, spec))
        except QuantityError as error:
            raise cell.error(column, str(error)) from None
        is_cpu = isinstance(spec, mapped.CpuColumn)
        scaled = (amount.milli_value() if is_cpu else amount.value()) * scale
        if not 0 <= scaled <= AMOUNT_MAX:
            raise cell.error(column, f"is not an amount from 0 to {AMOUNT_MAX}")
        return round(scaled)

    def _amounts(self, row: Row, columns: _ObjectMapping) -> dict[str, int]:
        amounts: dict[str, int] = {}
        if columns.cpu is not None and self._text(row, columns.cpu):
            amounts["cpu"] = self._amount(row, columns.cpu, mapped.CPU_UNITS, columns.cpu.scale)
        if columns.memory is not None and self._text(row, columns.memory):
            scale = columns.memory.scale
            amounts["memory"] = self._amount(row, columns.memory, mapped.BYTE_UNITS, scale)
        if columns.gpu is not None and self._text(row, columns.gpu):
            gpus = self._amount(row, columns.gpu, mapped.GPU_UNITS, 1.0)
            amounts |= {columns.gpu.resource: gpus} if gpus else {}
        for name, spec in columns.resources.items():
            if self._text(row, spec):
                amounts[name] = self._amount(row, spec, {}, spec.scale)
        return amounts

    def _labels(self, row: Row, columns: _ObjectMapping) -> dict[str, str]:
        return {key: label_value(self._text(row, each)) for key, each in columns.labels.items()}

    def _count(self, row: Row, spec: mapped.NumberColumn | None, default: int = 1) -> int:
        if spec is None or not self._text(row, spec):
            return default
        cell, column = self._cell(row, spec)
        return cell.count(column, COUNT_MAX)

    def _node(self, row: Row) -> None:
        columns = self.mapping.nodes
        assert columns is not None, "only called with nodes"
        name = self._text(row, columns.name) if columns.name is not None else f"node-{row.line}"
        zone = label_value(self._text(row, columns.zone)) if columns.zone is not None else ""
        amounts, labels = self._amounts(row, columns), tuple(self._labels(row, columns).items())
        if not any(amounts.values()):
            raise LeftOut("node without capacity")
        count = self._count(row, columns.count)
        for index in range(count):
            each = f"{name}-{index}" if count > 1 else name
            self.sink.add_node(object_name(each), amounts, zone=zone, labels=labels)

    def _pod(self, row: Row) -> None:
        columns = self.mapping.pods
        name = self._text(row, columns.name) if columns.name is not None else f"row-{row.line}"
        if not name:
            raise LeftOut("no name")
        if not self.sink.is_sampled(name):
            return
        arrival_ms = self._time_ms(row, columns.arrival)
        if arrival_ms is None:
            raise LeftOut("no arrival")
        if arrival_ms < 0:
            raise LeftOut("negative arrival")
        duration_ms = self._duration_ms(row, columns, arrival_ms)
        count = self._count(row, columns.count)
        if not count:
            raise LeftOut("no pods")
        pod_class = self._class(row, columns)
        self.sink.add_pods(object_name(name), count, pod_class, arrival_ms, duration_ms, row)

    def _duration_ms(self, row: Row, columns: mapped.PodMapping, arrival_ms: int) -> int:
        duration_ms = None
        if columns.duration is not None:
            duration_ms = self._time_ms(row, columns.duration)
        elif columns.end is not None and (end_ms := self._time_ms(row, columns.end)) is not None:
            start_ms = (
                self._time_ms(row, columns.start) if columns.start is not None else arrival_ms
            )
            if start_ms is None:
                raise LeftOut("never started")
            duration_ms = end_ms - start_ms
        if duration_ms is not None and duration_ms < 0:
            raise LeftOut("negative duration")
        return NEVER_MS if duration_ms is None else duration_ms

    def _class(self, row: Row, columns: mapped.PodMapping) -> int:
        requests, labels = self._amounts(row, columns), self._labels(row, columns)
        if not any(requests.values()):
            raise LeftOut("no request")
        if columns.class_ is not None:
            labels[CLASS_LABEL] = label_value(self._text(row, columns.class_))
        priority = 0
        if columns.priority is not None and self._text(row, columns.priority):
            cell, column = self._cell(row, columns.priority)
            priority = cell.integer(column)
            if abs(priority) > PRIORITY_MAX:
                raise cell.error(column, f"is not within {PRIORITY_MAX}")

        def make() -> PodFacts:
            return request_facts(columns.namespace, requests, labels=labels, priority=priority)

        key = (tuple(requests.items()), tuple(labels.items()), priority)
        return self.sink.pod_class(key, make)


def _is_parquet(path: Path) -> bool:
    return path.suffix in PARQUET_ENDS
