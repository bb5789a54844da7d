"""Fields of objects that Kubernetes 1.34 does not have: mostly misspelled.

The API server drops them, with a warning unless strict validation is requested. Checked are the
parts that decide where a pod is placed: specs of workloads and pods down to selectors, affinity and
tolerations, budgets, quotas and limit ranges, and what devices are and are asked for.
Upstream: staging/src/k8s.io/api/{core,apps,batch,policy,resource}/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from roadstead.protocol.errors import InputError, cut_short

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


def _type(leaves: str = "", **typed: str) -> dict[str, str]:
    return dict.fromkeys(leaves.split(), "") | typed


_WITHIN_POD: Final[Mapping[str, Fields]] = {
    "PodSpec": dict.fromkeys(POD_SPEC, "")
    | _type(
        affinity="Affinity",
        containers="Container",
        ephemeralContainers="Container",
        initContainers="Container",
        resources="ResourceRequirements",
        tolerations="Toleration",
        topologySpreadConstraints="TopologySpreadConstraint",
    ),
    "Container": dict.fromkeys(CONTAINER, "")
    | _type(ports="ContainerPort", resources="ResourceRequirements"),
    "ContainerPort": _type("containerPort hostIP hostPort name protocol"),
    "ResourceRequirements": _type("claims limits requests"),
    "Toleration": _type("effect key operator tolerationSeconds value"),
    "TopologySpreadConstraint": _type(
        "matchLabelKeys maxSkew minDomains nodeAffinityPolicy nodeTaintsPolicy topologyKey "
        "whenUnsatisfiable",
        labelSelector="LabelSelector",
    ),
    "Affinity": _type(
        nodeAffinity="AffinityToNodes", podAffinity="PodAffinity", podAntiAffinity="PodAffinity"
    ),
    "AffinityToNodes": _type(
        requiredDuringSchedulingIgnoredDuringExecution="NodeSelector",
        preferredDuringSchedulingIgnoredDuringExecution="PreferredSchedulingTerm",
    ),
    "NodeSelector": _type(nodeSelectorTerms="NodeSelectorTerm"),
    "NodeSelectorTerm": _type(matchExpressions="Requirement", matchFields="Requirement"),
    "PreferredSchedulingTerm": _type("weight", preference="NodeSelectorTerm"),
    "PodAffinity": _type(
        requiredDuringSchedulingIgnoredDuringExecution="PodAffinityTerm",
        preferredDuringSchedulingIgnoredDuringExecution="WeightedPodAffinityTerm",
    ),
    "WeightedPodAffinityTerm": _type("weight", podAffinityTerm="PodAffinityTerm"),
    "PodAffinityTerm": _type(
        "matchLabelKeys mismatchLabelKeys namespaces topologyKey",
        labelSelector="LabelSelector",
        namespaceSelector="LabelSelector",
    ),
    "LabelSelector": _type("matchLabels", matchExpressions="Requirement"),
    "Requirement": _type("key operator values"),
}
_AROUND_POD: Final[Mapping[str, Fields]] = {
    "PodTemplateSpec": _type("metadata", spec="PodSpec"),
    "JobTemplateSpec": _type("metadata", spec="JobSpec"),
    "DeploymentSpec": _type(
        "minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit strategy",
        selector="LabelSelector",
        template="PodTemplateSpec",
    ),
    "ReplicaSetSpec": _type(
        "minReadySeconds replicas", selector="LabelSelector", template="PodTemplateSpec"
    ),
    "ReplicationControllerSpec": _type(
        "minReadySeconds replicas selector", template="PodTemplateSpec"
    ),
    "StatefulSetSpec": _type(
        "minReadySeconds ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy "
        "replicas revisionHistoryLimit serviceName updateStrategy volumeClaimTemplates",
        selector="LabelSelector",
        template="PodTemplateSpec",
    ),
    "DaemonSetSpec": _type(
        "minReadySeconds revisionHistoryLimit updateStrategy",
        selector="LabelSelector",
        template="PodTemplateSpec",
    ),
    "JobSpec": _type(
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions "
        "managedBy manualSelector maxFailedIndexes parallelism podFailurePolicy "
        "podReplacementPolicy successPolicy suspend ttlSecondsAfterFinished",
        selector="LabelSelector",
        template="PodTemplateSpec",
    ),
    "CronJobSpec": _type(
        "concurrencyPolicy failedJobsHistoryLimit schedule startingDeadlineSeconds "
        "successfulJobsHistoryLimit suspend timeZone",
        jobTemplate="JobTemplateSpec",
    ),
    "PodDisruptionBudgetSpec": _type(
        "maxUnavailable minAvailable unhealthyPodEvictionPolicy", selector="LabelSelector"
    ),
    "ResourceQuotaSpec": _type("hard scopeSelector scopes"),
    "LimitRangeSpec": _type(limits="LimitRangeItem"),
    "LimitRangeItem": _type("default defaultRequest max maxLimitRequestRatio min type"),
}
_OF_DEVICES: Final[Mapping[str, Fields]] = {
    "ResourceSliceSpec": _type(
        "allNodes driver nodeName perDeviceNodeSelection sharedCounters",
        devices="Device",
        nodeSelector="NodeSelector",
        pool="ResourcePool",
    ),
    "ResourcePool": _type("generation name resourceSliceCount"),
    "Device": _type(
        "allNodes allowMultipleAllocations attributes bindingConditions bindingFailureConditions "
        "bindsToNode capacity consumesCounters name nodeName taints",
        nodeSelector="NodeSelector",
    ),
    "DeviceClassSpec": _type("config extendedResourceName", selectors="DeviceSelector"),
    "DeviceSelector": _type("cel"),
    "ResourceClaimTemplateSpec": _type("metadata", spec="ResourceClaimSpec"),
    "ResourceClaimSpec": _type(devices="ClaimDevices"),
    "ClaimDevices": _type("config", constraints="DeviceConstraint", requests="ClaimDeviceRequest"),
    "DeviceConstraint": _type("distinctAttribute matchAttribute requests"),
    "ClaimDeviceRequest": _type(
        "name", exactly="ExactDeviceRequest", firstAvailable="ExactDeviceRequest"
    ),
    "ExactDeviceRequest": _type(
        "adminAccess allocationMode capacity count deviceClassName name",
        selectors="DeviceSelector",
        tolerations="Toleration",
    ),
    "DeviceTaintRuleSpec": _type("taint", deviceSelector="TaintedDevices"),
    "TaintedDevices": _type("device deviceClassName driver pool", selectors="DeviceSelector"),
}
TYPES: Final[Mapping[str, Fields]] = {**_WITHIN_POD, **_AROUND_POD, **_OF_DEVICES}

KINDS: Final = (
    *("Pod", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"),
    *("Job", "CronJob", "PodDisruptionBudget", "ResourceQuota", "LimitRange"),
    *("ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule"),
)
"""Kinds whose spec is checked."""


def unknown_fields(kind: str, document: Mapping[str, object]) -> Iterator[InputError]:
    """Yield an error for each unknown field, with the known fields that may be meant."""
    if kind in KINDS:
        yield from _of(document.get("spec"), f"{kind}Spec", "spec")


def _of(found: object, kind: str, where: str) -> Iterator[InputError]:
    """Yield the errors of a value of a type, or of each item of a list of them."""
    if isinstance(found, list):
        for index, each in enumerate(found):
            yield from _of(each, kind, f"{where}[{index}]")
    if not isinstance(found, Mapping):
        return
    known = TYPES[kind]
    for name, value in found.items():
        if name not in known:
            close = get_close_matches(str(name), known, n=1, cutoff=0.6)
            hint = f" (did you mean {close[0]}?)" if close else ""
            rule = f"is no field that Kubernetes has{hint}"
            yield InputError(rule, field=where, value=cut_short(name))
        elif known[name]:
            yield from _of(value, known[name], f"{where}.{name}")
