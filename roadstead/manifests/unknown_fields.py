"""Fields of objects that Kubernetes 1.34 does not have: mostly misspelled.

The API server drops such fields, with a warning unless strict validation is requested. This module
checks the parts that decide where a pod is placed: specs of workloads and pods down to selectors,
affinity and tolerations, budgets, quotas and limit ranges, and specs of devices and their claims.
Upstream: staging/src/k8s.io/api/{core,apps,batch,policy,resource}/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from roadstead.protocol.errors import InputError, cut_short

# Types of upstream: their fields.
POD_SPEC: Final = frozenset(
    [
        "activeDeadlineSeconds",
        "affinity",
        "automountServiceAccountToken",
        "containers",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "ephemeralContainers",
        "hostAliases",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostUsers",
        "hostname",
        "hostnameOverride",
        "imagePullSecrets",
        "initContainers",
        "nodeName",
        "nodeSelector",
        "os",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "readinessGates",
        "resourceClaims",
        "resources",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "schedulingGates",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
    ]
)
CONTAINER: Final = frozenset(
    [
        "args",
        "command",
        "env",
        "envFrom",
        "image",
        "imagePullPolicy",
        "lifecycle",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "resizePolicy",
        "resources",
        "restartPolicy",
        "restartPolicyRules",
        "securityContext",
        "startupProbe",
        "stdin",
        "stdinOnce",
        "targetContainerName",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "tty",
        "volumeDevices",
        "volumeMounts",
        "workingDir",
    ]
)

Fields = Mapping[str, str]
"""Field → the type of its value, or of the items of a list; "" if nothing below is checked."""


def _fields(unchecked: str = "", **typed: str) -> dict[str, str]:
    """Return the fields of a type.

    unchecked: names, separated by spaces, of fields below which nothing is checked. typed: other
    fields, and the type of each one's value (a key of `TYPES`).
    """
    return dict.fromkeys(unchecked.split(), "") | typed


_POD_TYPES: Final[Mapping[str, Fields]] = {
    "PodSpec": dict.fromkeys(POD_SPEC, "")
    | _fields(
        affinity="Affinity",
        containers="Container",
        ephemeralContainers="Container",
        initContainers="Container",
        resources="ResourceRequirements",
        tolerations="Toleration",
        topologySpreadConstraints="TopologySpreadConstraint",
    ),
    "Container": dict.fromkeys(CONTAINER, "")
    | _fields(ports="ContainerPort", resources="ResourceRequirements"),
    "ContainerPort": _fields("containerPort hostIP hostPort name protocol"),
    "ResourceRequirements": _fields("claims limits requests"),
    "Toleration": _fields("effect key operator tolerationSeconds value"),
    "TopologySpreadConstraint": _fields(
        "matchLabelKeys maxSkew minDomains nodeAffinityPolicy nodeTaintsPolicy topologyKey "
        "whenUnsatisfiable",
        labelSelector="LabelSelector",
    ),
    "Affinity": _fields(
        nodeAffinity="AffinityToNodes", podAffinity="PodAffinity", podAntiAffinity="PodAffinity"
    ),
    "AffinityToNodes": _fields(
        requiredDuringSchedulingIgnoredDuringExecution="NodeSelector",
        preferredDuringSchedulingIgnoredDuringExecution="PreferredSchedulingTerm",
    ),
    "NodeSelector": _fields(nodeSelectorTerms="NodeSelectorTerm"),
    "NodeSelectorTerm": _fields(matchExpressions="Requirement", matchFields="Requirement"),
    "PreferredSchedulingTerm": _fields("weight", preference="NodeSelectorTerm"),
    "PodAffinity": _fields(
        requiredDuringSchedulingIgnoredDuringExecution="PodAffinityTerm",
        preferredDuringSchedulingIgnoredDuringExecution="WeightedPodAffinityTerm",
    ),
    "WeightedPodAffinityTerm": _fields("weight", podAffinityTerm="PodAffinityTerm"),
    "PodAffinityTerm": _fields(
        "matchLabelKeys mismatchLabelKeys namespaces topologyKey",
        labelSelector="LabelSelector",
        namespaceSelector="LabelSelector",
    ),
    "LabelSelector": _fields("matchLabels", matchExpressions="Requirement"),
    "Requirement": _fields("key operator values"),
}
_WORKLOAD_TYPES: Final[Mapping[str, Fields]] = {
    "PodTemplateSpec": _fields("metadata", spec="PodSpec"),
    "JobTemplateSpec": _fields("metadata", spec="JobSpec"),
    "DeploymentSpec": _fields(
        "minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit strategy",
        selector="LabelSelector",
        template="PodTemplateSpec",
    ),
    "ReplicaSetSpec": _fields(
        "minReadySeconds replicas", selector="LabelSelector", template="PodTemplateSpec"
    ),
    "ReplicationControllerSpec": _fields(
        "minReadySeconds replicas selector", template="PodTemplateSpec"
    ),
    "StatefulSetSpec": _fields(
        "minReadySeconds ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy "
        "replicas revisionHistoryLimit serviceName updateStrategy volumeClaimTemplates",
        selector="LabelSelector",
        template="PodTemplateSpec",
    ),
    "DaemonSetSpec": _fields(
        "minReadySeconds revisionHistoryLimit updateStrategy",
        selector="LabelSelector",
        template="PodTemplateSpec",
    ),
    "JobSpec": _fields(
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions "
        "managedBy manualSelector maxFailedIndexes parallelism podFailurePolicy "
        "podReplacementPolicy successPolicy suspend ttlSecondsAfterFinished",
        selector="LabelSelector",
        template="PodTemplateSpec",
    ),
    "CronJobSpec": _fields(
        "concurrencyPolicy failedJobsHistoryLimit schedule startingDeadlineSeconds "
        "successfulJobsHistoryLimit suspend timeZone",
        jobTemplate="JobTemplateSpec",
    ),
    "PodDisruptionBudgetSpec": _fields(
        "maxUnavailable minAvailable unhealthyPodEvictionPolicy", selector="LabelSelector"
    ),
    "ResourceQuotaSpec": _fields("hard scopeSelector scopes"),
    "LimitRangeSpec": _fields(limits="LimitRangeItem"),
    "LimitRangeItem": _fields("default defaultRequest max maxLimitRequestRatio min type"),
}
_DEVICE_TYPES: Final[Mapping[str, Fields]] = {
    "ResourceSliceSpec": _fields(
        "allNodes driver nodeName perDeviceNodeSelection sharedCounters",
        devices="Device",
        nodeSelector="NodeSelector",
        pool="ResourcePool",
    ),
    "ResourcePool": _fields("generation name resourceSliceCount"),
    "Device": _fields(
        "allNodes allowMultipleAllocations attributes bindingConditions bindingFailureConditions "
        "bindsToNode capacity consumesCounters name nodeName taints",
        nodeSelector="NodeSelector",
    ),
    "DeviceClassSpec": _fields("config extendedResourceName", selectors="DeviceSelector"),
    "DeviceSelector": _fields("cel"),
    "ResourceClaimTemplateSpec": _fields("metadata", spec="ResourceClaimSpec"),
    "ResourceClaimSpec": _fields(devices="ClaimDevices"),
    "ClaimDevices": _fields(
        "config", constraints="DeviceConstraint", requests="ClaimDeviceRequest"
    ),
    "DeviceConstraint": _fields("distinctAttribute matchAttribute requests"),
    "ClaimDeviceRequest": _fields(
        "name", exactly="ExactDeviceRequest", firstAvailable="DeviceSubRequest"
    ),
    "ExactDeviceRequest": _fields(
        "adminAccess allocationMode capacity count deviceClassName",
        selectors="DeviceSelector",
        tolerations="Toleration",
    ),
    "DeviceSubRequest": _fields(
        "allocationMode capacity count deviceClassName name",
        selectors="DeviceSelector",
        tolerations="Toleration",
    ),
    "DeviceTaintRuleSpec": _fields("taint", deviceSelector="TaintedDevices"),
    "TaintedDevices": _fields("device deviceClassName driver pool", selectors="DeviceSelector"),
}
TYPES: Final[Mapping[str, Fields]] = {**_POD_TYPES, **_WORKLOAD_TYPES, **_DEVICE_TYPES}
"""Name of a type (mostly upstream's) → its fields."""

KINDS: Final = (
    *("Pod", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"),
    *("Job", "CronJob", "PodDisruptionBudget", "ResourceQuota", "LimitRange"),
    *("ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule"),
)
"""Kinds whose spec is checked."""


def unknown_fields(kind: str, document: Mapping[str, object]) -> Iterator[InputError]:
    """Yield an error for each unknown field, with the known field that may be meant."""
    if kind in KINDS:
        yield from _errors_of(document.get("spec"), f"{kind}Spec", "spec")


def _errors_of(checked: object, type_name: str, path: str) -> Iterator[InputError]:
    """Yield the errors of a value, or of each item of a list of values.

    type_name: of the value, in `TYPES`. path: of the value.
    """
    if isinstance(checked, list):
        for index, each in enumerate(checked):
            yield from _errors_of(each, type_name, f"{path}[{index}]")
    if not isinstance(checked, Mapping):
        return
    known = TYPES[type_name]
    for name, value in checked.items():
        if name not in known:
            close = get_close_matches(str(name), known, n=1, cutoff=0.6)
            hint = f" (did you mean {close[0]}?)" if close else ""
            problem = f"is no field that Kubernetes has{hint}"
            yield InputError(problem, field=path, value=cut_short(name))
        elif known[name]:
            yield from _errors_of(value, known[name], f"{path}.{name}")
