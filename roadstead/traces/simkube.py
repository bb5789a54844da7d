"""SimKube's traces: the workloads of a Kubernetes cluster as they were applied and deleted.

Schema: https://github.com/acrlabs/simkube, sk-core/src/trace/mod.rs, format version 2, written by
`rmp_serde::to_vec_named`: a msgpack map with `version`, `config`, `index`, `events` (each with `ts`
in seconds, `applied_objs` and `deleted_objs`, which are Kubernetes objects) and `pod_lifecycles`
(a map from [group/version.kind, namespace/name] of an owner to a map from a hash of a pod's spec
to a list of lifetimes: "Empty", {"Running": start} or {"Finished": [start, end]}).

An applied workload becomes the pods that its controllers create. When it is applied again, pods
that it no longer has, or that changed, are deleted, and missing ones are created. The n-th pod of
an owner has the owner's n-th recorded lifetime; after the last, the first is used again, as in
SimKube. A cron job becomes one pod for each recorded lifetime. Volumes, daemon sets and kinds
without pods are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import cast

import msgpack

from roadstead.facts.compile import DEFAULT_NAMESPACE, compile_pod
from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import NEVER_MS, NEVER_S, S_MS, TIME_MAX_S
from roadstead.manifests.collection import Manifests
from roadstead.manifests.defaults import default_pod
from roadstead.manifests.expansion import expand_workloads
from roadstead.manifests.object_checks import check_object
from roadstead.protocol import objects
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.quantity import QuantityError
from roadstead.traces.files import ProgressMeter, open_bytes
from roadstead.traces.sink import LeftOut, TraceSink

FORMAT_VERSION = 2
FILE_MAX_BYTES = 64 << 20
DEPTH_MAX = 64
# By kind: the field of `Manifests`.
WORKLOADS = {
    "Deployment": "deployments",
    "ReplicaSet": "replica_sets",
    "StatefulSet": "stateful_sets",
    "Job": "jobs",
    "ReplicationController": "replication_controllers",
}
Document = dict[str, object]
Lifetime = tuple[int, int]
"""Start and end in seconds; the end is NEVER_S if the pod still ran."""


@dataclass(slots=True)
class LivePod:
    """A pod that its owner has at present. number: how many pods the owner had before it."""

    name: str
    facts: PodFacts
    created_s: int
    number: int


@dataclass(slots=True)
class PodOwner:
    """A workload: an object that creates pods, or a pod itself.

    lifetimes: recorded ones of its pods. pods: those that it has at present, by name. created: how
    many pods it has created so far.
    """

    lifetimes: list[Lifetime]
    pods: dict[str, LivePod] = field(default_factory=dict)
    created: int = 0


class SimKubeReader:
    """Read one trace file."""

    def __init__(self, sink: TraceSink) -> None:
        self._sink = sink
        self._source = ""
        # By kind and namespace/name of the owner.
        self._lifetimes: dict[tuple[str, str], list[Lifetime]] = {}
        # By kind, namespace and name.
        self._owners: dict[tuple[str, str, str], PodOwner] = {}
        # Name in use → number in the suffix of the next pod of this name.
        self._names: dict[str, int] = {}

    def read(self, path: Path, meter: ProgressMeter) -> None:
        """Read the file; InputError for anything but a trace of version 2."""
        self._source = str(path)
        meter.expect([path])
        trace = self._unpack(path, meter)
        if trace.get("version") != FORMAT_VERSION:
            problem = f"is not the version that is read ({FORMAT_VERSION})"
            raise self._error(problem, "version", trace.get("version"))
        self._lifetimes = dict(self._read_lifetimes(trace.get("pod_lifecycles")))
        events = trace.get("events")
        if not isinstance(events, tuple):
            raise self._error("is not a list", "events", events)
        last_s = 0
        for number, event in enumerate(events):
            last_s = self._event(number, event, last_s)
        for owner in self._owners.values():
            for pod in owner.pods.values():
                self._add(pod, owner, deleted_s=None)
        self._sink.notes.append("volumes are left out: the trace has no PersistentVolumeClaims")

    def _unpack(self, path: Path, meter: ProgressMeter) -> Mapping[str, object]:
        with open_bytes(path, meter) as file:
            content = file.read(FILE_MAX_BYTES + 1)
        if len(content) > FILE_MAX_BYTES:
            raise InputError(f"is larger than {FILE_MAX_BYTES} bytes", source=self._source)
        try:
            # Some keys are pairs of strings, and a list cannot be a key: so all become tuples.
            trace = msgpack.unpackb(content, strict_map_key=False, use_list=False)
        except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
            text = cut_short(str(error) or type(error).__name__)
            raise InputError(f"is not msgpack: {text}", source=self._source) from None
        if not isinstance(trace, dict):
            raise InputError("is no trace of SimKube: not a map", source=self._source)
        return cast("Mapping[str, object]", trace)

    def _read_lifetimes(
        self, lifecycles: object
    ) -> Iterator[tuple[tuple[str, str], list[Lifetime]]]:
        if not isinstance(lifecycles, dict):
            raise self._error("is not a map", "pod_lifecycles", lifecycles)
        for key, by_hash in lifecycles.items():
            value_path = f"pod_lifecycles[{cut_short(key)}]"
            if not (isinstance(key, tuple) and len(key) == 2 and isinstance(by_hash, dict)):
                raise self._error("is not [kind, name] and a map", value_path, by_hash)
            kind, name = str(key[0]).rpartition(".")[2], str(key[1])
            for each in by_hash.values():
                if not isinstance(each, tuple):
                    raise self._error("is not a list", value_path, each)
            times = (self._lifetime(value_path, each) for each in chain(*by_hash.values()))
            yield (kind, name), [time for time in times if time is not None]

    def _lifetime(self, value_path: str, value: object) -> Lifetime | None:
        if value == "Empty":
            return None
        kind, times = next(iter(value.items())) if isinstance(value, dict) and value else ("", None)
        if kind == "Running":
            return self._seconds(value_path, times), NEVER_S
        if kind != "Finished" or not isinstance(times, tuple) or len(times) != 2:
            raise self._error("is none of Empty, Running, Finished", value_path, value)
        return self._seconds(value_path, times[0]), self._seconds(value_path, times[1])

    def _seconds(self, value_path: str, value: object) -> int:
        if type(value) is not int or not 0 <= value <= TIME_MAX_S:
            raise self._error("is not a time in seconds up to 292 years", value_path, value)
        return value

    def _event(self, number: int, event: object, last_s: int) -> int:
        value_path = f"events[{number}]"
        if not isinstance(event, dict):
            raise self._error("is not a map", value_path, event)
        time_s = self._seconds(f"{value_path}.ts", event.get("ts"))
        if time_s < last_s:
            problem = f"is earlier than the previous event ({last_s})"
            raise self._error(problem, f"{value_path}.ts", time_s)
        for list_name, handle in (("applied_objs", self._apply), ("deleted_objs", self._delete)):
            values = event.get(list_name, ())
            if not isinstance(values, tuple):
                raise self._error("is not a list", f"{value_path}.{list_name}", values)
            documents = [self._document(f"{value_path}.{list_name}", each) for each in values]
            self._sink.handle_rows(documents, lambda each, handle=handle: handle(each, time_s))  # type: ignore[misc]
        return time_s

    def _document(self, value_path: str, value: object) -> Document:
        if not isinstance(value, dict):
            raise self._error("is not an object", value_path, value)
        return cast("Document", self._with_lists(value_path, value, depth=0))

    def _with_lists(self, value_path: str, value: object, depth: int) -> object:
        """Return the value with lists for tuples, as manifests have them."""
        if depth > DEPTH_MAX:
            raise self._error(f"is nested deeper than {DEPTH_MAX}", value_path, value)
        if isinstance(value, dict):
            return {
                str(key): self._with_lists(value_path, each, depth + 1)
                for key, each in value.items()
            }
        if isinstance(value, tuple):
            return [self._with_lists(value_path, each, depth + 1) for each in value]
        return value

    def _apply(self, document: Document, time_s: int) -> None:
        kind, owner = self._owner_of(document)
        if kind == "CronJob":
            self._add_cron_job(document, owner)
            return
        wanted = self._pods_of(kind, document)
        for name in [name for name in owner.pods if wanted.get(name) != owner.pods[name].facts]:
            self._add(owner.pods.pop(name), owner, deleted_s=time_s)
        # In the controller's order, because the n-th pod has the n-th recorded lifetime.
        for name in [name for name in wanted if name not in owner.pods]:
            owner.pods[name] = LivePod(name, wanted[name], time_s, owner.created)
            owner.created += 1

    def _delete(self, document: Document, time_s: int) -> None:
        _, owner = self._owner_of(document)
        for pod in owner.pods.values():
            self._add(pod, owner, deleted_s=time_s)
        owner.pods.clear()

    def _owner_of(self, document: Document) -> tuple[str, PodOwner]:
        kind, metadata = document.get("kind"), document.get("metadata")
        if not isinstance(kind, str) or kind not in {*WORKLOADS, "Pod", "CronJob"}:
            raise LeftOut(f"object of kind {cut_short(kind)}")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise self._error("has no name", f"{kind}.metadata", metadata)
        namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE)
        name = metadata["name"]
        lifetimes = self._lifetimes.get((kind, f"{namespace}/{name}"), [])
        owner = self._owners.setdefault((kind, namespace, name), PodOwner(lifetimes))
        if not self._sink.is_sampled(f"{kind}/{namespace}/{name}"):
            raise LeftOut("not in the sample")
        return kind, owner

    def _pods_of(self, kind: str, document: Document) -> dict[str, PodFacts]:
        workload = objects.validate(kind, document, source=self._source)
        if isinstance(workload, objects.Pod):
            pods: tuple[objects.Pod, ...] = (default_pod(workload, {}, source=self._source),)
        else:
            check_object(kind, workload, source=self._source)
            # Its own owner, such as a Deployment, is not needed: only this object is expanded.
            manifests = Manifests(**{WORKLOADS[kind]: (workload,)})  # type: ignore[arg-type]
            pods = expand_workloads(manifests, ()).pods
        return dict(map(self._compile_pod, pods))

    def _compile_pod(self, pod: objects.Pod) -> tuple[str, PodFacts]:
        try:
            identity, facts = compile_pod(pod)
        except QuantityError as error:
            obj = f"Pod {cut_short(pod.metadata.name)}"
            raise InputError(str(error), source=self._source, obj=obj) from error
        # claims_as names the pod as the owner of its device claims; both are left out.
        facts = replace(facts, volumes=(), device_claims=(), claims_as=None)
        return identity.name, replace(facts, node_name="")

    def _add_cron_job(self, document: Document, owner: PodOwner) -> None:
        """Add one pod for each recorded lifetime when the cron job is first applied."""
        if owner.created:
            return
        if not owner.lifetimes:
            raise LeftOut("cron job without recorded lifetimes")
        cron_job = objects.validate("CronJob", document, source=self._source)
        check_object("CronJob", cron_job, source=self._source)
        manifests = Manifests(cron_jobs=(cast("objects.CronJob", cron_job),))
        for pod in expand_workloads(manifests, ()).pods:
            name, facts = self._compile_pod(pod)
            for start_s, _ in owner.lifetimes:
                self._add(LivePod(name, facts, start_s, owner.created), owner, deleted_s=None)
                owner.created += 1

    def _add(self, pod: LivePod, owner: PodOwner, *, deleted_s: int | None) -> None:
        """Add a pod to the trace, at its deletion or at the end of the file.

        deleted_s: None if it was not deleted. A recorded lifetime replaces the running time, and is
        the end of a pod that was not deleted.
        """
        duration_ms = NEVER_MS if deleted_s is None else (deleted_s - pod.created_s) * S_MS
        deletion_ms = NEVER_MS if deleted_s is None else deleted_s * S_MS
        if owner.lifetimes:
            start_s, end_s = owner.lifetimes[pod.number % len(owner.lifetimes)]
            if end_s != NEVER_S and end_s < start_s:
                self._sink.leave_out("negative duration", self._source)
                return
            duration_ms = NEVER_MS if end_s == NEVER_S else (end_s - start_s) * S_MS
            if end_s != NEVER_S and deleted_s is None:
                deletion_ms = max(end_s, pod.created_s) * S_MS
        # The facts themselves are the key of their class: too many values of the object decide
        # them to be listed as a key.
        class_number = self._sink.pod_class(pod.facts, lambda: pod.facts)
        self._sink.namespaces.add(pod.facts.namespace)
        created_ms = pod.created_s * S_MS
        name = self._unused_name(pod.name)
        self._sink.add_pod(name, class_number, created_ms, duration_ms, deletion_ms=deletion_ms)

    def _unused_name(self, wanted: str) -> str:
        """Return the name, or NAME-r1, NAME-r2, … if it is in use in any namespace."""
        name = wanted
        while name in self._names:
            name = f"{wanted}-r{self._names[wanted]}"
            self._names[wanted] += 1
        self._names[name] = 1
        return name

    def _error(self, problem: str, value_path: str, value: object) -> InputError:
        return InputError(problem, source=self._source, field=value_path, value=cut_short(value))
