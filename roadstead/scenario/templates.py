"""Pod templates of a scenario: read from files or the scenario, admitted, compiled to facts.

    template ──► TemplateObject ──► a pod as the API server would store it ──► facts and lifecycle

The lifecycle has what a simulation needs beyond the facts, to decide when a pod leaves its node.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from roadstead.config.files import MAX_TEXT_BYTES, read_bytes
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.values import Percentage, percentage
from roadstead.facts.compile import FactsPool, compile_pod, name_in_errors
from roadstead.facts.pod import PodFacts
from roadstead.manifests import Manifests, read_manifests
from roadstead.manifests.creation import create
from roadstead.manifests.daemons import NO_EXECUTE
from roadstead.manifests.defaults import default_pod, is_default_toleration
from roadstead.manifests.files import STDIN
from roadstead.protocol.documents import read_documents
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.objects import ApiObject, CronJob, Pod, PodTemplate, Toleration
from roadstead.protocol.objects.meta import TemplateMeta
from roadstead.protocol.quantity import QuantityError
from roadstead.simulator.scenario import PodLifecycle, TimedToleration
from roadstead.simulator.times import NEVER_US, SECOND_US

PERIOD_MAX_S: Final = 10**9
"""Longer grace periods and tolerations are cut to this many seconds: 31 years."""

SHARE_MAX: Final = 1_000_000
"""Upper limit of maxSurge and of maxUnavailable if they are numbers, not percentages."""

_GRACE: Final = "terminationGracePeriodSeconds"
_POD_SPEC_PATHS: Final = (
    ("spec",),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
)
"""Where a document has its pod's spec: in a Pod, in a controller, and in a CronJob."""

KeyPath = Sequence[str | int]
"""The path of a key in the scenario file, for errors."""


@dataclass(frozen=True, slots=True)
class TemplateObject:
    """An object with a pod template. manifest: the object, which may be a Pod.

    source: its file or place, for errors. document: the object as written, for fields that
    scheduling never reads. grace_us: grace period of its pods; None if the template sets none.
    """

    manifest: ApiObject
    template: PodTemplate
    source: str
    document: object = None
    grace_us: int | None = None

    @property
    def name(self) -> str:
        return self.manifest.metadata.name

    def value_at(self, path: Sequence[str]) -> object:
        """Return the value at a path of the document; None if it has none."""
        return _at(self.document, path)

    def share(self, path: Sequence[str]) -> int | Percentage | None:
        """Return a number or percentage of the document. InputError for anything else."""
        value = self.value_at(path)
        try:
            share = percentage(value)
        except ValueError as error:
            raise self._refusal(path, str(error)) from error
        if isinstance(share, Percentage) or share is None:
            return share
        if type(share) is not int or not 0 <= share <= SHARE_MAX:
            raise self._refusal(path, f"must be a percentage, or a number from 0 to {SHARE_MAX}")
        return share

    def _refusal(self, path: Sequence[str], problem: str) -> InputError:
        field, value = ".".join(path), cut_short(self.value_at(path))
        obj = name_in_errors(self.manifest)
        return InputError(problem, source=self.source, obj=obj, field=field, value=value)


class Templates:
    """Read and compile templates; equal facts and equal lifecycles become one object.

    A lifecycle (`PodLifecycle`) is how long a pod tolerates NoExecute taints, and its grace period.

    cluster: the objects by which pods are admitted. grace_us: grace period of pods whose template
    sets none. tolerated_us: duration of the tolerations of not-ready and unreachable nodes, which
    the API server adds. served: extended resources that a DeviceClass names: devices are allocated
    for them. notes: as keys, texts for the user on unknown fields of templates, which were left
    out.
    """

    def __init__(
        self,
        file: ScenarioFile,
        cluster: Manifests,
        *,
        grace_us: int,
        tolerated_us: int,
        served: frozenset[str] = frozenset(),
    ) -> None:
        self._file, self._grace_us, self._tolerated_us = file, grace_us, tolerated_us
        self.served = served
        # Quotas are not applied: they limit the objects that exist at one time, which only the
        # run determines.
        self._cluster = replace(cluster, resource_quotas=())
        self._priority_classes = {each.metadata.name: each for each in cluster.priority_classes}
        self._pool = FactsPool()
        self._lifecycles: dict[PodLifecycle, PodLifecycle] = {}
        self._by_path: dict[str, TemplateObject] = {}
        self.notes: dict[str, None] = {}

    def read(self, at: KeyPath, template: str | Mapping[str, object]) -> TemplateObject:
        """Read a template: the one object of a file, by its name, or as written in the scenario.

        Raises:
            InputError: no such file, an object that is wrong, or not exactly one object.
        """
        if not isinstance(template, str):
            return self._inline(at, template)
        path = self._file.existing_file(at, template)
        parsed = self._by_path.get(str(path))
        if parsed is None:
            text = read_bytes(path, MAX_TEXT_BYTES)
            parsed = self._by_path[str(path)] = self._one_object(text, str(path), is_strict=False)
        return parsed

    def _inline(self, at: KeyPath, template: Mapping[str, object]) -> TemplateObject:
        """Read a template without a kind as a Pod; a Pod without a name is named "pod"."""
        document = dict(template)
        if "kind" not in document:
            metadata = document.get("metadata")
            named = {"name": "pod", **metadata} if isinstance(metadata, dict) else metadata
            document |= {"apiVersion": "v1", "kind": "Pod", "metadata": named or {"name": "pod"}}
        text = json.dumps(document).encode()
        return self._one_object(text, self._file.place(at), is_strict=True)

    def _one_object(self, text: bytes, source: str, *, is_strict: bool) -> TemplateObject:
        """Read a text with one object.

        is_strict: an unknown field is an error; else a note, as when `roadstead schedule` reads
        files.
        """
        try:
            manifests = read_manifests(
                [STDIN],
                stdin=io.BytesIO(text),
                priority_classes=tuple(self._priority_classes.values()),
                is_strict=is_strict,
            )
        except InputError as error:
            raise InputError(
                error.rule, source=source, obj=error.obj, field=error.field, value=error.value
            ) from error
        objects = [(each, template_of(each)) for each in _objects(manifests)]
        if len(objects) != 1:
            problem = f"holds {len(objects)} objects with a pod template (want one)"
            raise InputError(problem, source=source)
        self.notes |= dict.fromkeys(f"Left out: {each}" for each in manifests.unknown)
        ((manifest, template),) = objects
        document = _document_of(text, source, type(manifest).__name__)
        return TemplateObject(manifest, template, source, document, _grace_us(document))

    def compile(self, pod: Pod, template: TemplateObject) -> tuple[PodFacts, PodLifecycle]:
        """Admit a pod as `roadstead schedule` does, and compile it.

        Raises:
            InputError: a rule of the API server or of the cluster refuses it.
        """
        defaulted = default_pod(pod, self._priority_classes, source=template.source)
        created = create(self._cluster, [defaulted], [])
        for refused in created.refused:
            problem = f"would not be created: {refused.reason}"
            raise InputError(problem, source=template.source, obj=name_in_errors(refused.manifest))
        (admitted,) = created.pods
        for volume in admitted.spec.volumes:
            if volume.ephemeral is not None:
                problem = "is ephemeral: a scenario does not create a claim for each pod"
                where = f"spec.volumes: {volume.name}"
                raise InputError(
                    problem, source=template.source, obj=name_in_errors(pod), field=where
                )
        for index, claim in enumerate(admitted.spec.resource_claims):
            name = claim.resource_claim_template_name
            # `create` writes a status for each claim whose template exists.
            with_template = {each.name for each in admitted.status.resource_claim_statuses}
            if name is not None and claim.name not in with_template:
                problem = "names no ResourceClaimTemplate of the cluster"
                where = f"spec.resourceClaims[{index}].resourceClaimTemplateName"
                obj, value = name_in_errors(pod), cut_short(name)
                raise InputError(problem, source=template.source, obj=obj, field=where, value=value)
        if admitted.spec.node_name:
            raise InputError(
                "must be empty: the scheduler places the pods of a scenario",
                source=template.source,
                obj=name_in_errors(pod),
                field="spec.nodeName",
                value=cut_short(admitted.spec.node_name),
            )
        facts = self.facts_of(admitted)
        if facts.device_claims:
            # The simulator creates claims for each pod. So these are forgotten: the claims that
            # `create` made (`generated`), and this pod as their owner (`claims_as`).
            claims = (replace(each, generated=None) for each in facts.device_claims)
            facts = self.intern(replace(facts, device_claims=tuple(claims), claims_as=None))
        return facts, self.lifecycle_of(admitted, template.grace_us)

    def facts_of(self, pod: Pod) -> PodFacts:
        """Return the facts of an admitted pod; equal ones are one object."""
        try:
            _, facts = compile_pod(pod, self.served)
        except QuantityError as error:
            raise InputError(
                str(error), obj=name_in_errors(pod), field="spec.containers"
            ) from error
        return self.intern(facts)

    def intern(self, facts: PodFacts) -> PodFacts:
        """Return the object that is used for all facts equal to these."""
        return self._pool.intern(facts)

    def lifecycle_of(self, pod: Pod, grace_us: int | None = None) -> PodLifecycle:
        """Return the lifecycle of an admitted pod; equal ones are one object."""
        tolerations = pod.spec.tolerations
        timed = tuple(self._timed(each) for each in tolerations if each.effect in ("", NO_EXECUTE))
        lifecycle = PodLifecycle(timed, self._grace_us if grace_us is None else grace_us)
        return self._lifecycles.setdefault(lifecycle, lifecycle)

    def lifecycle_of_facts(self, facts: PodFacts) -> PodLifecycle:
        """Return the lifecycle of a pod of a trace, whose manifest is not known.

        Its tolerations never end; the tolerations that the API server adds are added if missing.
        """
        own = tuple(
            TimedToleration(each.key, each.operator or "Equal", each.value, NEVER_US)
            for each in facts.tolerations
            if each.effect in ("", NO_EXECUTE)
        )
        keys = {each.key for each in own}
        added = tuple(
            TimedToleration(f"node.kubernetes.io/{name}", "Exists", "", self._tolerated_us)
            for name in ("not-ready", "unreachable")
            if not keys & {"", f"node.kubernetes.io/{name}"}
        )
        lifecycle = PodLifecycle((*own, *added), self._grace_us)
        return self._lifecycles.setdefault(lifecycle, lifecycle)

    def _timed(self, toleration: Toleration) -> TimedToleration:
        seconds = toleration.toleration_seconds
        if seconds is None:
            tolerated_us = NEVER_US
        elif is_default_toleration(toleration):
            # Added by the API server; its duration is a setting of the scenario.
            tolerated_us = self._tolerated_us
        else:
            # A negative number evicts at once, as 0 does.
            tolerated_us = min(max(0, seconds), PERIOD_MAX_S) * SECOND_US
        operator = toleration.operator or "Equal"
        return TimedToleration(toleration.key, operator, toleration.value, tolerated_us)


def template_of(manifest: ApiObject) -> PodTemplate:
    """Return the pod template of a workload; of a pod, one with its own labels and spec."""
    if isinstance(manifest, Pod):
        own = TemplateMeta(
            labels=manifest.metadata.labels, annotations=manifest.metadata.annotations
        )
        # Without the tolerations of not-ready and unreachable nodes that were added when the pod
        # was read. They are added again to each pod: with a duration by the API server, without one
        # by the controller of a daemon set.
        tolerations = tuple(
            each for each in manifest.spec.tolerations if not is_default_toleration(each)
        )
        spec = manifest.spec.model_copy(update={"tolerations": tolerations})
        return PodTemplate(metadata=own, spec=spec)
    if isinstance(manifest, CronJob):
        return manifest.spec.job_template.spec.template
    template = manifest.spec.template  # type: ignore[attr-defined]
    assert isinstance(template, PodTemplate)
    return template


def _objects(manifests: Manifests) -> Iterable[ApiObject]:
    return chain[ApiObject](
        manifests.pods,
        manifests.finished_pods,
        manifests.deployments,
        manifests.replica_sets,
        manifests.replication_controllers,
        manifests.stateful_sets,
        manifests.daemon_sets,
        manifests.jobs,
        manifests.cron_jobs,
    )


def _document_of(text: bytes, source: str, kind: str) -> object:
    """Return the first document of this kind in the text; documents inside of a List count."""
    documents = list(read_documents(text, source=source))
    for each in documents:
        # The items of a List are appended, and visited by this same loop.
        documents += _at(each, ("items",)) or []
    return next((each for each in documents if _at(each, ("kind",)) == kind), None)


def _grace_us(document: object) -> int | None:
    for path in _POD_SPEC_PATHS:
        value = _at(document, (*path, _GRACE))
        if type(value) is int:
            # The API server reads a negative number as 1.
            return min(1 if value < 0 else value, PERIOD_MAX_S) * SECOND_US
    return None


def _at(value: Any, path: Iterable[str]) -> Any:  # noqa: ANN401 - a document is any plain data.
    """Return the value at a path of keys; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def file_stem(template: object) -> str:
    """Return the name of a template's file, to name its pods; "" for one in the scenario."""
    return Path(template).stem if isinstance(template, str) else ""
