"""Workloads: objects whose controllers create pods (apps/v1, batch/v1, core/v1)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from roadstead.protocol.objects.base import ApiModel, ListOf, StringMap, empty_map
from roadstead.protocol.objects.meta import ApiObject, TemplateMeta
from roadstead.protocol.objects.pod import PodTemplate
from roadstead.protocol.objects.selectors import LabelSelector
from roadstead.protocol.objects.storage import PersistentVolumeClaimSpec

REPLICAS_MAX = 10_000_000
"""Bound of this project, so that a typing error does not fill the memory with pods."""

Replicas = Annotated[int, Field(ge=0, le=REPLICAS_MAX)]


class ReplicationControllerSpec(ApiModel):
    replicas: Replicas = 1
    selector: StringMap = Field(default_factory=empty_map)
    template: PodTemplate = PodTemplate()


class ReplicationController(ApiObject):
    """A replication controller; its selector is a label map."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(ApiModel):
    replicas: Replicas = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class ReplicaSet(ApiObject):
    """A replica set."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class Deployment(ApiObject):
    """A deployment: replica sets of consecutive templates."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class ClaimTemplate(ApiModel):
    """Template of a claim that each pod of a stateful set gets."""

    metadata: TemplateMeta = TemplateMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class Ordinals(ApiModel):
    """The number of a stateful set's first pod."""

    start: Annotated[int, Field(ge=0, le=REPLICAS_MAX)] = 0


class StatefulSetSpec(ApiModel):
    replicas: Replicas = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    volume_claim_templates: ListOf[ClaimTemplate] = ()
    ordinals: Ordinals = Ordinals()


class StatefulSet(ApiObject):
    """Numbered pods with claims of their own."""

    spec: StatefulSetSpec = StatefulSetSpec()


class DaemonSetSpec(ApiModel):
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class DaemonSet(ApiObject):
    """One pod on each eligible node."""

    spec: DaemonSetSpec = DaemonSetSpec()


class JobSpec(ApiModel):
    """Parallel pods up to a number of completions; 1 each where the manifest names neither."""

    parallelism: Replicas | None = None
    completions: Replicas | None = None
    completion_mode: str = ""
    suspend: bool = False
    template: PodTemplate = PodTemplate()


class Job(ApiObject):
    """Pods that run to completion."""

    spec: JobSpec = JobSpec()


class JobTemplate(ApiModel):
    metadata: TemplateMeta = TemplateMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(ApiModel):
    schedule: str = ""
    suspend: bool = False
    job_template: JobTemplate = JobTemplate()


class CronJob(ApiObject):
    """A job that is created again and again."""

    spec: CronJobSpec = CronJobSpec()
