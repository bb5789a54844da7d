"""Azure Trace for Packing 2020: virtual machines of one zone, in a SQLite database.

Schema: https://github.com/Azure/AzurePublicDataset/blob/master/AzureTracesForPacking2020.md
    vm(vmId, tenantId, vmTypeId, priority, starttime, endtime): times in days, the start negative
        for virtual machines that exist when the trace begins, the end NULL for those that outlive
        it; priority 0 is high, 1 low.
    vmType(id, vmTypeId, machineId, core, memory, hdd, ssd, nic): what a virtual machine of this
        type requests, as fractions of a machine of the type machineId.

The mapping: vmType has a row with the fractions, or shares, of a virtual machine for each type of
machine that it can run on. A pod has one request, so one type of machine is chosen, and virtual
machines that cannot run on it are left out. The shares of cores and memory are multiplied by the
size of a machine; those of hdd, ssd and nic are counted in millionths. High priority is
`HIGH_PRIORITY`, low is 0.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import NEVER_MS, S_MS, TIME_MAX_S
from roadstead.protocol.errors import InputError, cut_short
from roadstead.traces.files import ProgressMeter
from roadstead.traces.machines import MachineSpec, add_machines
from roadstead.traces.rows import Row
from roadstead.traces.sink import LeftOut, TraceSink, object_name, request_facts

DAY_S: Final = 86_400
MILLIONTHS: Final = 1_000_000
"""Amount of hdd, ssd and nic that a machine offers: fractions are counted in millionths."""

EXTENDED: Final = ("hdd", "ssd", "nic")
"""Columns that become extended resources."""

RESOURCE: Final = "roadstead.dev/{}-millionths"
HIGH_PRIORITY: Final = 1000
TYPES_MAX: Final = 1_000_000
"""Maximum number of rows of vmType, which are kept in memory."""

CELL_MAX_BYTES: Final = 1 << 20
PAGE_ROWS: Final = 4096
"""Number of virtual machines that are read together."""

_VM_COLUMNS: Final = ("vmId", "vmTypeId", "priority", "starttime", "endtime")
_TYPE_COLUMNS: Final = ("vmTypeId", "machineId", "core", "memory", *EXTENDED)
Shares = dict[str, float]
"""Column of vmType → requested fraction of a machine."""


class VmRow(NamedTuple):
    """A row of table vm; SQLite checks no types."""

    rowid: int
    vm_id: object
    vm_type: object
    priority: object
    start_days: object
    end_days: object


class AzureReader:
    """Read one database.

    machine: id of the machine type that is chosen; None for that with the most VM types.
    """

    def __init__(self, sink: TraceSink, machine_spec: MachineSpec, machine: int | None) -> None:
        self._sink, self._machine_spec, self._machine = sink, machine_spec, machine
        # VM type → its shares of the chosen machine type.
        self._shares: dict[object, Shares] = {}
        self._source = ""

    def read(self, path: Path, meter: ProgressMeter) -> None:
        """Read the database; InputError if it is none, or a value has the wrong type."""
        self._source = str(path)
        meter.expect([path])
        try:
            with closing(_open_read_only(path)) as database:
                self._check_table(database, "vmType", _TYPE_COLUMNS)
                self._check_table(database, "vm", _VM_COLUMNS)
                self._read_types(database)
                self._sink.handle_rows(self._vms(database, meter), self._vm)
        except sqlite3.Error as error:
            raise InputError(f"is no SQLite database: {error}", source=self._source) from error
        size = {"cpu": self._machine_spec.cpu_milli, "memory": self._machine_spec.memory_bytes}
        size |= {RESOURCE.format(column): MILLIONTHS for column in EXTENDED}
        add_machines(self._sink, "node", self._machine_spec.count or 0, size)

    def _check_table(
        self, database: sqlite3.Connection, table: str, columns: tuple[str, ...]
    ) -> None:
        entry = database.execute(
            "SELECT type, sql FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()
        # A view or a virtual table could compute without end.
        if entry is None or entry[0] != "table" or "VIRTUAL" in str(entry[1]).upper().split()[:2]:
            raise InputError("has no such table", source=self._source, obj=f"table {table}")
        existing = {str(each[1]) for each in database.execute(f"PRAGMA table_info({table})")}
        for column in columns:
            if column not in existing:
                rule = f"must be one of its columns (has {', '.join(sorted(existing))[:200]})"
                raise InputError(rule, source=self._source, obj=f"table {table}", field=column)

    def _read_types(self, database: sqlite3.Connection) -> None:
        query = f"SELECT rowid, {', '.join(_TYPE_COLUMNS)} FROM vmType"  # noqa: S608
        # Machine type → VM type → shares.
        of_machine: dict[object, dict[object, Shares]] = {}
        for count, (rowid, vm_type, machine, *shares) in enumerate(database.execute(query)):
            if count == TYPES_MAX:
                raise InputError(f"has more than {TYPES_MAX} types", source=self._source)
            named = zip(_TYPE_COLUMNS[2:], shares, strict=True)
            position = f"vmType row {rowid}"
            of_machine.setdefault(machine, {})[vm_type] = {
                name: self._share(position, name, share) for name, share in named
            }
        if not of_machine:
            raise InputError("is empty", source=self._source, obj="table vmType")
        chosen = self._machine
        if chosen is None:
            counts = Counter({key: len(types) for key, types in of_machine.items()})
            largest = max(counts.values())
            chosen = min((key for key in counts if counts[key] == largest), key=str)  # type: ignore[assignment]
            self._sink.notes.append(f"shares are those of machine {cut_short(chosen)}")
        if chosen not in of_machine:
            problem = f"is none of the machines {', '.join(sorted(map(str, of_machine)))[:200]}"
            raise InputError(problem, source=self._source, field="--machine", value=str(chosen))
        self._shares = of_machine[chosen]

    def _share(self, position: str, name: str, share: object) -> float:
        if share is None:
            return 0.0
        if type(share) not in (int, float) or not 0 <= float(share) <= 1000:  # type: ignore[arg-type]
            problem = "is not a share of a machine (want a number from 0)"
            raise InputError(
                problem, source=self._source, obj=position, field=name, value=cut_short(share)
            )
        return float(share)  # type: ignore[arg-type]

    def _vms(self, database: sqlite3.Connection, meter: ProgressMeter) -> Iterator[VmRow]:
        query = f"SELECT rowid, {', '.join(_VM_COLUMNS)} FROM vm"  # noqa: S608
        (rows,) = database.execute("SELECT max(rowid) FROM vm").fetchone()
        total, cursor = meter.total_bytes, database.execute(query)
        while page := cursor.fetchmany(PAGE_ROWS):
            if type(rows) is int and rows > 0:
                meter.count(min(total * len(page) // rows, total - meter.done_bytes))
            yield from (VmRow(*each) for each in page)

    def _vm(self, vm: VmRow) -> None:
        if type(vm.vm_id) is not int and type(vm.vm_id) is not str:
            raise self._error(vm, "vmId", vm.vm_id, "is no id")
        if not self._sink.is_sampled(str(vm.vm_id)):
            return
        if vm.start_days is None:
            raise LeftOut("no start time")
        start_ms = self._time_ms(vm, "starttime", vm.start_days)
        end_ms = None if vm.end_days is None else self._time_ms(vm, "endtime", vm.end_days)
        if end_ms is not None and end_ms < start_ms:
            raise LeftOut("negative lifetime")
        if end_ms is not None and end_ms <= 0:
            raise LeftOut("ended before the trace begins")
        shares = self._shares.get(vm.vm_type)
        if shares is None:
            raise LeftOut("its type does not run on this machine")
        if not any(shares.values()):
            raise LeftOut("no request")
        if vm.priority not in (0, 1):
            raise self._error(vm, "priority", vm.priority, "is neither 0 nor 1")
        start_ms = max(start_ms, 0)
        duration_ms = NEVER_MS if end_ms is None else end_ms - start_ms
        is_high = vm.priority == 0
        key = vm.vm_type, is_high
        pod_class = self._sink.pod_class(key, lambda: self._facts(shares, is_high=is_high))
        # The sink reads only the position of this row, for errors.
        location = Row(f"{self._source}: table vm", vm.rowid, (), {})
        self._sink.add_pod(
            object_name("vm", str(vm.vm_id)), pod_class, start_ms, duration_ms, location
        )

    def _facts(self, shares: Shares, *, is_high: bool) -> PodFacts:
        requests = {
            "cpu": round(shares["core"] * self._machine_spec.cpu_milli),
            "memory": round(shares["memory"] * self._machine_spec.memory_bytes),
        }
        extended = {RESOURCE.format(name): round(shares[name] * MILLIONTHS) for name in EXTENDED}
        requests |= {name: amount for name, amount in extended.items() if amount}
        priority = HIGH_PRIORITY if is_high else 0
        return request_facts(self._sink.namespace, requests, priority=priority)

    def _time_ms(self, vm: VmRow, column: str, days: object) -> int:
        if type(days) is not int and type(days) is not float:
            raise self._error(vm, column, days, "is not a number of days")
        if not -TIME_MAX_S <= days * DAY_S <= TIME_MAX_S:
            raise self._error(vm, column, days, "is more than 292 years (int64 nanoseconds)")
        return round(days * DAY_S * S_MS)

    def _error(self, vm: VmRow, column: str, value: object, problem: str) -> InputError:
        position = f"vm row {vm.rowid}"
        return InputError(
            problem, source=self._source, obj=position, field=column, value=cut_short(value)
        )


def _open_read_only(path: Path) -> sqlite3.Connection:
    """Open a database read-only; nothing that it contains is executed."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path)) from error
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    database = sqlite3.connect(address, uri=True)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, CELL_MAX_BYTES)
    database.execute("PRAGMA trusted_schema = OFF")
    return database
