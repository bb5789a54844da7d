"""Models of the API objects that scheduling reads.

Each model names only the fields that scheduling reads; `validate` turns plain data into one.
"""

from roadstead.protocol.objects.base import (
    ApiModel as ApiModel,
)
from roadstead.protocol.objects.base import (
    without_nulls as without_nulls,
)
from roadstead.protocol.objects.devices import (
    DeviceClass as DeviceClass,
)
from roadstead.protocol.objects.devices import (
    DeviceTaintRule as DeviceTaintRule,
)
from roadstead.protocol.objects.devices import (
    ResourceClaim as ResourceClaim,
)
from roadstead.protocol.objects.devices import (
    ResourceClaimTemplate as ResourceClaimTemplate,
)
from roadstead.protocol.objects.devices import (
    ResourceSlice as ResourceSlice,
)
from roadstead.protocol.objects.meta import (
    ApiObject as ApiObject,
)
from roadstead.protocol.objects.meta import (
    ObjectMeta as ObjectMeta,
)
from roadstead.protocol.objects.meta import (
    OwnerReference as OwnerReference,
)
from roadstead.protocol.objects.meta import (
    TemplateMeta as TemplateMeta,
)
from roadstead.protocol.objects.node import (
    ContainerImage as ContainerImage,
)
from roadstead.protocol.objects.node import (
    Node as Node,
)
from roadstead.protocol.objects.node import (
    NodeSpec as NodeSpec,
)
from roadstead.protocol.objects.node import (
    NodeStatus as NodeStatus,
)
from roadstead.protocol.objects.pod import (
    Container as Container,
)
from roadstead.protocol.objects.pod import (
    ContainerPort as ContainerPort,
)
from roadstead.protocol.objects.pod import (
    ContainerStatus as ContainerStatus,
)
from roadstead.protocol.objects.pod import (
    Pod as Pod,
)
from roadstead.protocol.objects.pod import (
    PodCondition as PodCondition,
)
from roadstead.protocol.objects.pod import (
    PodResourceClaim as PodResourceClaim,
)
from roadstead.protocol.objects.pod import (
    PodSpec as PodSpec,
)
from roadstead.protocol.objects.pod import (
    PodStatus as PodStatus,
)
from roadstead.protocol.objects.pod import (
    PodTemplate as PodTemplate,
)
from roadstead.protocol.objects.pod import (
    ResourceRequirements as ResourceRequirements,
)
from roadstead.protocol.objects.pod import (
    SchedulingGate as SchedulingGate,
)
from roadstead.protocol.objects.policy import (
    DisruptionBudgetSpec as DisruptionBudgetSpec,
)
from roadstead.protocol.objects.policy import (
    DisruptionBudgetStatus as DisruptionBudgetStatus,
)
from roadstead.protocol.objects.policy import (
    LimitRange as LimitRange,
)
from roadstead.protocol.objects.policy import (
    LimitRangeItem as LimitRangeItem,
)
from roadstead.protocol.objects.policy import (
    LimitRangeSpec as LimitRangeSpec,
)
from roadstead.protocol.objects.policy import (
    Namespace as Namespace,
)
from roadstead.protocol.objects.policy import (
    Overhead as Overhead,
)
from roadstead.protocol.objects.policy import (
    PodDisruptionBudget as PodDisruptionBudget,
)
from roadstead.protocol.objects.policy import (
    PodGroup as PodGroup,
)
from roadstead.protocol.objects.policy import (
    PriorityClass as PriorityClass,
)
from roadstead.protocol.objects.policy import (
    ResourceQuota as ResourceQuota,
)
from roadstead.protocol.objects.policy import (
    RuntimeClass as RuntimeClass,
)
from roadstead.protocol.objects.policy import (
    RuntimeScheduling as RuntimeScheduling,
)
from roadstead.protocol.objects.policy import (
    ScopeRequirement as ScopeRequirement,
)
from roadstead.protocol.objects.policy import (
    Service as Service,
)
from roadstead.protocol.objects.policy import (
    ServiceSpec as ServiceSpec,
)
from roadstead.protocol.objects.selectors import (
    Affinity as Affinity,
)
from roadstead.protocol.objects.selectors import (
    LabelSelector as LabelSelector,
)
from roadstead.protocol.objects.selectors import (
    NodeAffinity as NodeAffinity,
)
from roadstead.protocol.objects.selectors import (
    NodeSelector as NodeSelector,
)
from roadstead.protocol.objects.selectors import (
    NodeSelectorTerm as NodeSelectorTerm,
)
from roadstead.protocol.objects.selectors import (
    PodAffinity as PodAffinity,
)
from roadstead.protocol.objects.selectors import (
    PodAffinityTerm as PodAffinityTerm,
)
from roadstead.protocol.objects.selectors import (
    PreferredSchedulingTerm as PreferredSchedulingTerm,
)
from roadstead.protocol.objects.selectors import (
    SelectorRequirement as SelectorRequirement,
)
from roadstead.protocol.objects.selectors import (
    Taint as Taint,
)
from roadstead.protocol.objects.selectors import (
    Toleration as Toleration,
)
from roadstead.protocol.objects.selectors import (
    TopologySpreadConstraint as TopologySpreadConstraint,
)
from roadstead.protocol.objects.selectors import (
    WeightedPodAffinityTerm as WeightedPodAffinityTerm,
)
from roadstead.protocol.objects.storage import (
    AttachmentSource as AttachmentSource,
)
from roadstead.protocol.objects.storage import (
    ClaimReference as ClaimReference,
)
from roadstead.protocol.objects.storage import (
    ClaimResources as ClaimResources,
)
from roadstead.protocol.objects.storage import (
    CSIDriver as CSIDriver,
)
from roadstead.protocol.objects.storage import (
    CsiDriverSpec as CsiDriverSpec,
)
from roadstead.protocol.objects.storage import (
    CSINode as CSINode,
)
from roadstead.protocol.objects.storage import (
    CsiNodeSpec as CsiNodeSpec,
)
from roadstead.protocol.objects.storage import (
    CSIStorageCapacity as CSIStorageCapacity,
)
from roadstead.protocol.objects.storage import (
    CsiVolume as CsiVolume,
)
from roadstead.protocol.objects.storage import (
    DriverLimit as DriverLimit,
)
from roadstead.protocol.objects.storage import (
    NodeDriver as NodeDriver,
)
from roadstead.protocol.objects.storage import (
    PersistentVolume as PersistentVolume,
)
from roadstead.protocol.objects.storage import (
    PersistentVolumeClaim as PersistentVolumeClaim,
)
from roadstead.protocol.objects.storage import (
    PersistentVolumeClaimSpec as PersistentVolumeClaimSpec,
)
from roadstead.protocol.objects.storage import (
    PersistentVolumeSpec as PersistentVolumeSpec,
)
from roadstead.protocol.objects.storage import (
    StorageClass as StorageClass,
)
from roadstead.protocol.objects.storage import (
    TopologyRequirement as TopologyRequirement,
)
from roadstead.protocol.objects.storage import (
    TopologySelectorTerm as TopologySelectorTerm,
)
from roadstead.protocol.objects.storage import (
    VolumeAttachment as VolumeAttachment,
)
from roadstead.protocol.objects.storage import (
    VolumeAttachmentSpec as VolumeAttachmentSpec,
)
from roadstead.protocol.objects.storage import (
    VolumeAttachmentStatus as VolumeAttachmentStatus,
)
from roadstead.protocol.objects.storage import (
    VolumeNodeAffinity as VolumeNodeAffinity,
)
from roadstead.protocol.objects.storage import (
    VolumePhase as VolumePhase,
)
from roadstead.protocol.objects.validation import (
    API_GROUPS as API_GROUPS,
)
from roadstead.protocol.objects.validation import (
    API_VERSIONS as API_VERSIONS,
)
from roadstead.protocol.objects.validation import (
    KINDS as KINDS,
)
from roadstead.protocol.objects.validation import (
    describe as describe,
)
from roadstead.protocol.objects.validation import (
    field_path as field_path,
)
from roadstead.protocol.objects.validation import (
    validate as validate,
)
from roadstead.protocol.objects.volumes import (
    AwsDisk as AwsDisk,
)
from roadstead.protocol.objects.volumes import (
    AzureDisk as AzureDisk,
)
from roadstead.protocol.objects.volumes import (
    AzureFile as AzureFile,
)
from roadstead.protocol.objects.volumes import (
    CinderDisk as CinderDisk,
)
from roadstead.protocol.objects.volumes import (
    ClaimSource as ClaimSource,
)
from roadstead.protocol.objects.volumes import (
    EphemeralSource as EphemeralSource,
)
from roadstead.protocol.objects.volumes import (
    GceDisk as GceDisk,
)
from roadstead.protocol.objects.volumes import (
    Iscsi as Iscsi,
)
from roadstead.protocol.objects.volumes import (
    PortworxVolume as PortworxVolume,
)
from roadstead.protocol.objects.volumes import (
    Rbd as Rbd,
)
from roadstead.protocol.objects.volumes import (
    Volume as Volume,
)
from roadstead.protocol.objects.volumes import (
    VsphereDisk as VsphereDisk,
)
from roadstead.protocol.objects.workloads import (
    ClaimTemplate as ClaimTemplate,
)
from roadstead.protocol.objects.workloads import (
    CronJob as CronJob,
)
from roadstead.protocol.objects.workloads import (
    CronJobSpec as CronJobSpec,
)
from roadstead.protocol.objects.workloads import (
    DaemonSet as DaemonSet,
)
from roadstead.protocol.objects.workloads import (
    DaemonSetSpec as DaemonSetSpec,
)
from roadstead.protocol.objects.workloads import (
    Deployment as Deployment,
)
from roadstead.protocol.objects.workloads import (
    Job as Job,
)
from roadstead.protocol.objects.workloads import (
    JobSpec as JobSpec,
)
from roadstead.protocol.objects.workloads import (
    JobTemplate as JobTemplate,
)
from roadstead.protocol.objects.workloads import (
    Ordinals as Ordinals,
)
from roadstead.protocol.objects.workloads import (
    ReplicaSet as ReplicaSet,
)
from roadstead.protocol.objects.workloads import (
    ReplicaSetSpec as ReplicaSetSpec,
)
from roadstead.protocol.objects.workloads import (
    ReplicationController as ReplicationController,
)
from roadstead.protocol.objects.workloads import (
    ReplicationControllerSpec as ReplicationControllerSpec,
)
from roadstead.protocol.objects.workloads import (
    StatefulSet as StatefulSet,
)
from roadstead.protocol.objects.workloads import (
    StatefulSetSpec as StatefulSetSpec,
)
