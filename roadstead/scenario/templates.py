"""Pod templates of a scenario: read from files or the scenario, admitted, compiled to facts."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from roadstead.config.files import read_bytes
from roadstead.config.reader import MAX_TEXT_BYTES
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.values import Percentage, percentage
from roadstead.facts.compile import FactsPool, compile_pod, name_in_errors
from roadstead.facts.pod import PodFacts
from roadstead.manifests import Manifests, read_manifests
from roadstead.manifests.creation import create
from roadstead.manifests.defaults import EVICTED_AFTER_S, default_pod, has_default_tolerations
from roadstead.manifests.files import STDIN
from roadstead.protocol.documents import read_documents
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.objects import ApiObject, CronJob, Pod, PodTemplate, Toleration
from roadstead.protocol.objects.meta import TemplateMeta
from roadstead.protocol.quantity import QuantityError
from roadstead.simulator.scenario import PodLifecycle, TimedToleration
from roadstead.simulator.times import NEVER_US

SECOND_US: Final = 1_000_000
GRACE_MAX_S: Final = 10**9
SHARE_MAX: Final = 1_000_000
"""Maximum of maxSurge and maxUnavailable as numbers."""

NO_EXECUTE: Final = "NoExecute"
_GRACE: Final = "terminationGracePeriodSeconds"
_SPECS: Final = (("spec",), ("spec", "template", "spec"))

KeyPath = Sequence[str | int]
"""A path in the scenario."""


@dataclass(frozen=True, slots=True)
class TemplateObject:
    """An object with a pod template. manifest: the object, which may be a Pod.

    document: the object as written, for fields that scheduling never reads. grace_us: grace period
    of its pods; None if the template sets none.
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
            found = percentage(value)
        except ValueError as error:
            raise self._refusal(path, str(error)) from error
        if isinstance(found, Percentage) or found is None:
            return found
        if type(found) is not int or not 0 <= found <= SHARE_MAX:
            raise self._refusal(path, f"must be a percentage, or a number from 0 to {SHARE_MAX}")
        return found

    def _refusal(self, path: Sequence[str], rule: str) -> InputError:
        field, value = ".".join(path), cut_short(self.value_at(path))
        obj = name_in_errors(self.manifest)
        return InputError(rule, source=self.source, obj=obj, field=field, value=value)


class Templates:
    """Reads and compiles templates; equal facts and equal lifecycles become one object.

    grace_us: grace period of pods whose template sets none. tolerated_us: duration of the
    tolerations that the API server adds. served: extended resources that device classes provide.
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
        # Quotas bound the objects that exist at one time, which depends on the run.
        self._cluster = replace(cluster, resource_quotas=())
        self._classes = {each.metadata.name: each for each in cluster.priority_classes}
        self._pool = FactsPool()
        self._lifecycles: dict[PodLifecycle, PodLifecycle] = {}
        self._by_path: dict[str, TemplateObject] = {}
        self.notes: dict[str, None] = {}

    def read(self, at: KeyPath, template: str | Mapping[str, object]) -> TemplateObject:
        """Read the one object with a pod template of a file or of the scenario itself.

        Raises:
            InputError: no such file, an object that is wrong, or not one object.
        """
        if not isinstance(template, str):
            return self._inline(at, template)
        path = self._file.existing_file(at, template)
        found = self._by_path.get(str(path))
        if found is None:
            text = read_bytes(path, MAX_TEXT_BYTES)
            found = self._by_path[str(path)] = self._one_object(text, str(path), is_strict=False)
        return found

    def _inline(self, at: KeyPath, template: Mapping[str, object]) -> TemplateObject:
        document = dict(template)
        if "kind" not in document:
            metadata = document.get("metadata")
            named = {"name": "pod", **metadata} if isinstance(metadata, dict) else metadata
            document |= {"apiVersion": "v1", "kind": "Pod", "metadata": named or {"name": "pod"}}
        text = json.dumps(document).encode()
        return self._one_object(text, self._file.place(at), is_strict=True)

    def _one_object(self, text: bytes, source: str, *, is_strict: bool) -> TemplateObject:
        try:
            manifests = read_manifests(
                [STDIN],
                stdin=io.BytesIO(text),
                priority_classes=tuple(self._classes.values()),
                is_strict=is_strict,
            )
        except InputError as error:
            raise InputError(
                error.rule, source=source, obj=error.obj, field=error.field, value=error.value
            ) from error
        objects = [(each, template_of(each)) for each in _objects(manifests)]
        if len(objects) != 1:
            rule = f"holds {len(objects)} objects with a pod template (want one)"
            raise InputError(rule, source=source)
        self.notes |= dict.fromkeys(f"Left out: {each}" for each in manifests.unknown)
        ((found, template),) = objects
        document = _document_of(text, source, type(found).__name__)
        return TemplateObject(found, template, source, document, _grace_us(document))

    def compile(self, pod: Pod, template: TemplateObject) -> tuple[PodFacts, PodLifecycle]:
        """Admit a pod as `roadstead schedule` does, and compile it.

        Raises:
            InputError: a rule of the API server or of the cluster refuses it.
        """
        made = default_pod(pod, self._classes, source=template.source)
        created = create(self._cluster, [made], [])
        for refused in created.refused:
            rule = f"would not be created: {refused.reason}"
            raise InputError(rule, source=template.source, obj=name_in_errors(refused.manifest))
        (admitted,) = created.pods
        for volume in admitted.spec.volumes:
            if volume.ephemeral is not None:
                rule = "is ephemeral: a scenario does not create a claim for each pod"
                where = f"spec.volumes: {volume.name}"
                raise InputError(rule, source=template.source, obj=name_in_errors(pod), field=where)
        for index, claim in enumerate(admitted.spec.resource_claims):
            name = claim.resource_claim_template_name
            named = {each.name for each in admitted.status.resource_claim_statuses}
            if name is not None and claim.name not in named:
                rule = "names no ResourceClaimTemplate of the cluster"
                where = f"spec.resourceClaims[{index}].resourceClaimTemplateName"
                obj, value = name_in_errors(pod), cut_short(name)
                raise InputError(rule, source=template.source, obj=obj, field=where, value=value)
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
            # Each pod gets claims of its own when it is created.
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
        """Return the one object of equal facts."""
        return self._pool.intern(facts)

    def lifecycle_of(self, pod: Pod, grace_us: int | None = None) -> PodLifecycle:
        """Return the lifecycle of an admitted pod; equal ones are one object."""
        tolerations = pod.spec.tolerations
        timed = tuple(self._timed(each) for each in tolerations if each.effect in ("", NO_EXECUTE))
        made = PodLifecycle(timed, self._grace_us if grace_us is None else grace_us)
        return self._lifecycles.setdefault(made, made)

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
        made = PodLifecycle((*own, *added), self._grace_us)
        return self._lifecycles.setdefault(made, made)

    def _timed(self, each: Toleration) -> TimedToleration:
        seconds = each.toleration_seconds
        if seconds is None:
            tolerated_us = NEVER_US
        elif seconds == EVICTED_AFTER_S and has_default_tolerations((each,)):
            tolerated_us = self._tolerated_us
        else:
            # A negative number evicts at once, as 0 does.
            tolerated_us = min(max(0, seconds), GRACE_MAX_S) * SECOND_US
        return TimedToleration(each.key, each.operator or "Equal", each.value, tolerated_us)


def template_of(found: ApiObject) -> PodTemplate:
    """Return the pod template of a workload; of a pod, one with its own labels and spec."""
    if isinstance(found, Pod):
        own = TemplateMeta(labels=found.metadata.labels, annotations=found.metadata.annotations)
        # A daemon set's controller adds these tolerations without an end, as the API server does
        # with one.
        kept = tuple(
            each for each in found.spec.tolerations if not has_default_tolerations((each,))
        )
        return PodTemplate(metadata=own, spec=found.spec.model_copy(update={"tolerations": kept}))
    if isinstance(found, CronJob):
        return found.spec.job_template.spec.template
    template = found.spec.template  # type: ignore[attr-defined]
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
    """Return the document of the one object of a kind that a text has."""
    documents = list(read_documents(text, source=source))
    for each in documents:
        documents += _at(each, ("items",)) or [] if isinstance(each, dict) else []
    return next((each for each in documents if _at(each, ("kind",)) == kind), None)


def _grace_us(document: object) -> int | None:
    for path in _SPECS:
        value = _at(document, (*path, _GRACE))
        if type(value) is int:
            # The API server reads a negative number as 1.
            return min(1 if value < 0 else value, GRACE_MAX_S) * SECOND_US
    return None


def _at(value: Any, path: Iterable[str]) -> Any:  # noqa: ANN401 - a document is any plain data.
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def file_stem(template: object) -> str:
    """Return a name for the pods of a template without one: that of its file."""
    return Path(template).stem if isinstance(template, str) else ""
