"""SQL over the tables of simulated runs. The only module that imports duckdb.

The table of a run is a folder of parts, files of Parquet; the tables of several runs form one view.

A user may have copied the statement from elsewhere, and the tables may be another user's. So a
statement may read these tables and nothing else, and has a bounded amount of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roadstead.api.run_folder import RecordedRun, run_folders
from roadstead.protocol.errors import InputError, RoadsteadError, cut_short, printable
from roadstead.simulator.tables import COLUMNS

if TYPE_CHECKING:
    from arro3.core import Table
    from duckdb import DuckDBPyConnection, StatementType

MEMORY_MB = 2048
"""Memory of duckdb for a statement; a statement that needs more fails."""

ROWS_PER_FETCH: Final = 1024
MAX_SQL_BYTES: Final = 1 << 20
MAX_ERROR_CHARS: Final = 300
"""Maximum length of an error of duckdb; it may quote a long statement."""

FAILED_ATTEMPTS: Final = (
    "SELECT message, count(*) FROM attempts WHERE outcome <> 'bound' GROUP BY 1"
)
"""Messages of failed attempts, with their number."""

Value = object
"""A value of any SQL type."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query. rows: can be read once. Reading raises RoadsteadError."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Value, ...]]


class RunQuery:
    """The tables of some runs as SQL views.

    With several runs, each view begins with the columns `config` and `seed`.
    """

    def __init__(self, folder: Path) -> None:
        """Open the runs of a folder, or the one run. Raises InputError."""
        self.runs: Sequence[tuple[Path, RecordedRun]] = run_folders(folder)
        self._connection = _connect()
        # Names of all files that a statement may read.
        files: list[str] = []
        for table in COLUMNS:
            folders = [(run, path.absolute() / table) for path, run in self.runs]
            parts = [(run, sorted(each.glob("part-*.parquet"))) for run, each in folders]
            with_parts = [(run, list(map(str, each))) for run, each in parts if each]
            files += [name for _, names in with_parts for name in names]
            self._create_view(table, with_parts)
        # After the views are made: from now on a statement may read these files only.
        self._connection.execute("SET allowed_paths = " + _sql_list(files))
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def execute(self, sql: str, values: Mapping[str, Value] | None = None) -> QueryResult:
        """Run one SELECT. values: of its parameters `$name`. Raises InputError."""
        from duckdb import Error

        self._check(sql)
        try:
            result = self._connection.execute(sql, dict(values) if values else None)
            columns = tuple(each[0] for each in result.description or ())
        except Error as error:
            raise _refusal(error) from error
        return QueryResult(columns, self._rows())

    def arrow(self, sql: str) -> Table:
        """Run one SELECT; return its result as an Arrow table. Raises InputError."""
        from arro3.core import Table
        from duckdb import Error

        self._check(sql)
        try:
            return Table.from_arrow(self._connection.sql(sql))
        except Error as error:
            raise _refusal(error) from error

    def _rows(self) -> Iterator[tuple[Value, ...]]:
        from duckdb import Error

        while True:
            try:
                rows = self._connection.fetchmany(ROWS_PER_FETCH)
            except Error as error:
                raise _refusal(error) from error
            if not rows:
                return
            yield from rows

    def _check(self, sql: str) -> None:
        """Raise InputError unless the text is one statement that only reads."""
        from duckdb import Error, StatementType

        try:
            size_bytes = len(sql.encode())
        except UnicodeEncodeError as error:
            # duckdb reports this as a TypeError.
            raise InputError("is not UTF-8 text", source="SQL") from error
        if size_bytes > MAX_SQL_BYTES:
            raise InputError(f"is longer than {MAX_SQL_BYTES:,} bytes", source="SQL")
        try:
            types = [each.type for each in self._connection.extract_statements(sql)]
        except Error as error:
            raise _refusal(error) from error
        if types == [StatementType.EXPLAIN]:
            types = self._types_explained(sql)
        if types != [StatementType.SELECT]:
            rule = "must be one SELECT (or FROM, WITH, DESCRIBE, SUMMARIZE), or EXPLAIN of one"
            raise InputError(rule, source="SQL", value=cut_short(sql))

    def _types_explained(self, sql: str) -> list[StatementType]:
        """Return the types of what an EXPLAIN explains; EXPLAIN ANALYZE executes it."""
        from duckdb import Error, token_type, tokenize

        # Offsets are in bytes. Comments may come first.
        text = sql.encode()
        starts = [at for at, kind in tokenize(sql) if kind != token_type.comment]
        starts.append(len(text))
        word = text[starts[1] : starts[2]].split()[0].lower()
        explained = text[starts[2 if word in (b"analyze", b"analyse") else 1] :].decode()
        try:
            return [each.type for each in self._connection.extract_statements(explained)]
        except Error:
            # Such as options in parentheses, which may be ANALYZE, too.
            return []

    def _create_view(self, table: str, runs: Sequence[tuple[RecordedRun, Sequence[str]]]) -> None:
        """Create the view of a table. runs: each run with the names of the parts of its table."""
        columns = ", ".join(f'"{name}"' for name in COLUMNS[table])
        selects = []
        for run, names in runs:
            of_run = f"{_sql_text(run.config)} AS config, CAST({run.seed:d} AS BIGINT) AS seed, "
            run_columns = of_run if len(self.runs) > 1 else ""
            selects.append(f"SELECT {run_columns}{columns} FROM read_parquet({_sql_list(names)})")  # noqa: S608
        if not selects:
            # No run has parts yet: a view without rows.
            types = ", ".join(f'NULL AS "{name}"' for name in COLUMNS[table])
            selects.append(f"SELECT {types} WHERE false")
        from duckdb import Error

        try:
            self._connection.execute(f'CREATE VIEW "{table}" AS ' + " UNION ALL ".join(selects))
        except Error as error:
            problem = f"cannot be read: {_one_line(error)}"
            raise InputError(problem, source=f"table {table}") from error


def _connect() -> DuckDBPyConnection:
    try:
        import duckdb
    except ImportError as error:
        raise RoadsteadError("queries need duckdb: pip install duckdb") from error
    return duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{MEMORY_MB}MB",
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # Otherwise a table's name may be that of a Python variable.
            "python_enable_replacements": "false",
        },
    )


def _refusal(error: Exception) -> InputError:
    return InputError(_one_line(error), source="SQL")


def _one_line(error: Exception) -> str:
    """Return a duckdb error as one line, without the excerpt of the statement."""
    text = str(error).partition("\n\nLINE ")[0]
    line = printable(" ".join(text.split()))
    return f"{line[:MAX_ERROR_CHARS]}…" if len(line) > MAX_ERROR_CHARS else line


def _sql_list(names: Sequence[str]) -> str:
    return "[" + ", ".join(map(_sql_text, names)) + "]"


def _sql_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
