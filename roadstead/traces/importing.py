"""Import of a published trace: read, sort by arrival, write, report."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roadstead.fleet.trace_writer import trace_writer
from roadstead.traces.files import ProgressMeter
from roadstead.traces.rewriting import ReportProgress, write_spooled
from roadstead.traces.sink import LeftOutReason, TraceSink, namespace_labels
from roadstead.traces.spool import Spool

OnError = Literal["stop", "skip"]
REASON_REPEATED = "the name of an earlier pod"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import. sample: the share of jobs that are imported, chosen by seed and id."""

    on_error: OnError = "stop"
    sample: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Summary of an import.

    rows: of the files. classes: number of pod classes. left_out: rows without a pod or node, by
    reason. digest: hash of the content of the trace file.
    """

    source: str
    rows: int
    nodes: int
    pods: int
    classes: int
    left_out: dict[str, LeftOutReason]
    notes: tuple[str, ...]
    digest: str


def import_trace(
    name: str,
    namespace: str,
    read: Callable[[TraceSink, ProgressMeter], None],
    path: Path,
    options: ImportOptions,
    report: ReportProgress,
) -> ImportResult:
    """Write what `read` adds to the sink to the trace file `path`.

    Pods are sorted by arrival, and times are shifted so that the first pod arrives at 0.

    Raises InputError for invalid input, SpoolError if the temporary file cannot be written.
    """
    with closing(Spool()) as spool:
        is_sampled = sampler(options.sample, options.seed)
        sink = TraceSink(spool, namespace, options.on_error == "skip", is_sampled)
        read(sink, ProgressMeter(lambda done, total: report("reading", done, total)))
        report("sorting", 0, 0)
        if sink.skips_errors:
            if repeated := spool.drop_repeated():
                sink.leave_out(REASON_REPEATED, count=repeated)
                sink.pods -= repeated
        else:
            spool.check_unique()
        namespaces = sink.namespaces or {namespace}
        with trace_writer(path, name, map(namespace_labels, namespaces)) as writer:
            for node in sink.nodes.values():
                writer.add_node(node)
            start_ms = spool.first_ms()
            write_spooled(writer, spool, sink.classes, report, pods=sink.pods, start_ms=start_ms)
            digest = writer.end()
    return ImportResult(
        source=name,
        rows=sink.rows,
        nodes=len(sink.nodes),
        pods=sink.pods,
        classes=len(sink.classes),
        left_out=sink.left_out,
        notes=tuple(sink.notes),
        digest=digest,
    )


def sampler(share: float, seed: int) -> Callable[[str], bool]:
    """Return a predicate that is true for a share of all ids, chosen by the seed alone."""
    if share >= 1:
        return lambda _: True
    bound, salt = int(share * (1 << 64)), b"%d/" % seed

    def is_sampled(text: str) -> bool:
        digest = hashlib.blake2b(salt + text.encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(digest, "big") < bound

    return is_sampled
