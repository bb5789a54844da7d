"""Collection of the nodes and pods of an import, and of the reasons for rows without any."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from roadstead.facts.cluster import NAME_LABEL
from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts
from roadstead.facts.pod import Labels, PodFacts
from roadstead.facts.requests import DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.fleet.trace import NEVER_MS, TIME_MAX_MS
from roadstead.fleet.trace_frames import CLASSES_MAX
from roadstead.fleet.trace_reader import NODES_MAX
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.names import is_label_value, is_subdomain
from roadstead.traces.rows import Row
from roadstead.traces.spool import Spool, SpooledPod

IMAGE = "trace/task:1"
"""The image of all pods: traces do not state images."""

PODS_PER_NODE = 250
"""Traces do not state how many pods a node may have."""

PODS_MAX = 1_000_000_000
COUNT_MAX = 1_000_000
"""Maximum number of pods that one row of a trace becomes."""

REASONS_MAX = 100
"""Maximum number of different reasons; later ones are counted together."""

_NAME_CHARS = 40
_HASH_CHARS = 10
_NOT_ALLOWED = re.compile(r"[^a-z0-9]+")
T = TypeVar("T")
"""The type of the rows of a trace."""


class LeftOut(Exception):
    """A row is valid and becomes no pod or node; the text is the reason."""


@dataclass(slots=True)
class LeftOutReason:
    """Number of rows that were left out for a reason, and the position of the first."""

    count: int
    first: str


@dataclass(slots=True)
class TraceSink:
    """Collect a trace. A row is a record of the file: a line of a table, or an object.

    skips_errors: a wrong row is left out and counted; else it raises.
    namespace: of all pods, unless the trace states namespaces; namespaces: those that it states.
    is_sampled: whether a job (by its id) is in the sample that is imported. left_out: by reason.
    notes: messages for the user that are no errors. rows, pods: numbers so far.
    """

    spool: Spool
    namespace: str
    skips_errors: bool = False
    is_sampled: Callable[[str], bool] = lambda job: True
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    namespaces: set[str] = field(default_factory=set)
    classes: list[PodFacts] = field(default_factory=list)
    left_out: dict[str, LeftOutReason] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rows: int = 0
    pods: int = 0
    # Key that was passed to `pod_class` → number of the class, an index into `classes`.
    _class_numbers: dict[Hashable, int] = field(default_factory=dict)

    def handle_rows(self, rows: Iterable[T], handle: Callable[[T], None]) -> None:
        """Call `handle` with each row; count rows for which it raises LeftOut, and wrong ones."""
        iterator = iter(rows)
        while (row := next(iterator, None)) is not None:
            self.rows += 1
            try:
                handle(row)
            except LeftOut as reason:
                self.leave_out(str(reason), _position(row))
            except InputError as error:
                if not self.skips_errors:
                    source, line = getattr(row, "source", ""), getattr(row, "line", "")
                    raise error.at(source=source, obj=f"line {line}" if line else "") from None
                column = f"{error.field} " if error.field else ""
                self.leave_out(f"{column}{error.rule}", _position(row))

    def leave_out(self, reason: str, position: str = "", count: int = 1) -> None:
        """Count rows that have no pod or node. position: of the first."""
        if reason not in self.left_out and len(self.left_out) >= REASONS_MAX:
            reason = "other reasons"
        self.left_out.setdefault(reason, LeftOutReason(0, position)).count += count

    def add_node(
        self, name: str, allocatable: Mapping[str, int], *, zone: str = "", labels: Labels = ()
    ) -> None:
        """Add a node; InputError if one has its name, or there are too many."""
        if name in self.nodes:
            raise InputError("is the name of another node", field="node", value=cut_short(name))
        if len(self.nodes) == NODES_MAX:
            raise InputError(f"has more than {NODES_MAX} nodes")
        all_labels = {HOSTNAME_LABEL: name, **dict(labels)} | ({ZONE_LABEL: zone} if zone else {})
        self.nodes[name] = NodeFacts(
            name=name,
            labels=tuple(sorted(all_labels.items())),
            allocatable=tuple(sorted(allocatable.items())),
            allocatable_pods=PODS_PER_NODE,
        )

    def pod_class(self, key: Hashable, make: Callable[[], PodFacts]) -> int:
        """Return the number of the class of a key; `make` builds the class when the key is new.

        key: the values of a row from which `make` builds the class.
        """
        number = self._class_numbers.get(key)
        if number is None:
            if len(self.classes) == CLASSES_MAX:
                problem = (
                    f"has more than {CLASSES_MAX} distinct requests; make it smaller by --sample"
                )
                raise InputError(problem)
            number = self._class_numbers[key] = len(self.classes)
            self.classes.append(make())
        return number

    def add_pod(
        self,
        name: str,
        pod_class: int,
        creation_ms: int,
        duration_ms: int,
        row: Row | None = None,
        *,
        deletion_ms: int | None = None,
    ) -> None:
        """Add a pod; `importing` later moves the first pod to the start of the trace.

        row: its row in the trace; errors name the row's position. deletion_ms: its recorded end, if
        that is not creation plus duration; NEVER_MS for none. Raises InputError past `PODS_MAX`
        pods, or for times beyond int64 nanoseconds.
        """
        self.add_pods(name, 1, pod_class, creation_ms, duration_ms, row, deletion_ms=deletion_ms)

    def add_pods(
        self,
        name: str,
        count: int,
        pod_class: int,
        creation_ms: int,
        duration_ms: int,
        row: Row | None = None,
        *,
        deletion_ms: int | None = None,
    ) -> None:
        """Add equal pods as `add_pod` does: a single pod is NAME, several are NAME-0, NAME-1, …"""
        if count > COUNT_MAX:
            raise InputError(f"has {count} pods, more than {COUNT_MAX}", obj=name)
        if self.pods + count > PODS_MAX:
            raise InputError(f"has more than {PODS_MAX} pods; make it smaller by --sample")
        if deletion_ms is None:
            deletion_ms = NEVER_MS if duration_ms == NEVER_MS else creation_ms + duration_ms
        if creation_ms < 0:
            raise InputError("arrives before time 0", obj=name)
        if max(creation_ms, deletion_ms, duration_ms) > TIME_MAX_MS:
            raise InputError("has a time of more than 292 years (int64 nanoseconds)", obj=name)
        self.pods += count
        names = [f"{name}-{index}" for index in range(count)] if count > 1 else [name] * count
        line_id = 0 if row is None else self.spool.line_id(row.source, row.line)
        times_ms = (creation_ms, deletion_ms, duration_ms)
        self.spool.add_pods([SpooledPod(each, pod_class, *times_ms, line_id) for each in names])


def _position(row: object) -> str:
    source, line = getattr(row, "source", ""), getattr(row, "line", "")
    return f"{source}: line {line}" if source else ""


def object_name(*parts: str) -> str:
    """Return a name that Kubernetes allows, of ids joined by "-".

    If the joined ids are not a valid name, a hash is appended, so that different ids have different
    names.
    """
    joined = "-".join(parts)
    if len(joined) <= 2 * _NAME_CHARS and is_subdomain(joined):
        return joined
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    plain = _NOT_ALLOWED.sub("-", joined[:_NAME_CHARS].lower()).strip("-")
    return "-".join(part for part in (plain, digest[:_HASH_CHARS]) if part)


def label_value(text: str) -> str:
    """Return a text as the value of a label; one that is not allowed gets a hash as well."""
    return text if is_label_value(text) else object_name(text)


def request_facts(
    namespace: str,
    requests: Mapping[str, int],
    *,
    labels: Mapping[str, str] | None = None,
    priority: int = 0,
    node_labels: Mapping[str, tuple[str, ...]] | None = None,
) -> PodFacts:
    """Return the facts of a pod with one container. requests: cpu in milli-CPU, others in units.

    node_labels: required values of labels of its node, by key.
    """
    terms = tuple(Requirement(key, "In", values) for key, values in (node_labels or {}).items())
    return PodFacts(
        namespace=namespace,
        labels=tuple(sorted((labels or {}).items())),
        priority=priority,
        requests=tuple(sorted(requests.items())),
        nonzero_cpu_milli=requests.get("cpu", DEFAULT_CPU_MILLI),
        nonzero_memory_bytes=requests.get("memory", DEFAULT_MEMORY_BYTES),
        required_node_terms=(NodeSelectorTerm(expressions=terms),) if terms else None,
        images=(IMAGE,),
        container_count=1,
    )


def namespace_labels(name: str) -> tuple[str, Labels]:
    """Return the name and the labels of a namespace of a trace."""
    return name, ((NAME_LABEL, name),)
