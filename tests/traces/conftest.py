"""Imports into a file of the test, and what was written there."""

import csv
import gzip
from pathlib import Path

import pytest

from roadstead.fleet.trace_file import read_trace
from roadstead.protocol.errors import InputError
from roadstead.traces.importing import ImportOptions, import_trace


class Importer:
    """Calls an importer; the trace and the result are kept for the test."""

    def __init__(self, folder):
        self.folder = folder
        self.trace = self.result = None

    def __call__(self, make, source, **options):
        """make: a function from a sink to a reader with `read`."""
        path = self.folder / "out.trace"
        self.result = import_trace(
            "test",
            "test",
            lambda sink, meter: make(sink).read(source, meter),
            path,
            ImportOptions(**options),
            lambda phase, done, total: None,
        )
        self.trace = read_trace(path)
        return self.trace

    def refusal(self, make, source, **options):
        with pytest.raises(InputError) as caught:
            self(make, source, **options)
        assert not (self.folder / "out.trace").exists(), "a failed import writes nothing"
        assert len(str(caught.value)) < 600, "values are cut short"
        return str(caught.value)

    @property
    def left_out(self):
        return {reason: found.count for reason, found in self.result.left_out.items()}

    @property
    def pods(self):
        """(name, requests, creation, duration) of every pod."""
        times = zip(self.trace.creation_s.tolist(), self.trace.duration_s.tolist(), strict=True)
        return [
            (identity.name, dict(facts.requests), *time)
            for (identity, facts), time in zip(self.trace.pods(), times, strict=True)
        ]

    @property
    def nodes(self):
        return {node.name: dict(node.allocatable) for node in self.trace.nodes()}


@pytest.fixture
def imported(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return Importer(folder)


def write_csv(path: Path, rows) -> Path:
    """Write rows of a table without header; packed if the name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    return path
