"""Fields of pods and of their templates that Kubernetes 1.34 does not have: mostly misspelled.

The API server drops them, with a warning where strict validation is not asked for. Looked at are
the pod's spec, its containers and what they ask for: what decides where a pod goes.
Upstream: staging/src/k8s.io/api/core/v1/types.go.
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
RESOURCES: Final = frozenset(("claims", "limits", "requests"))
AFFINITY: Final = frozenset(("nodeAffinity", "podAffinity", "podAntiAffinity"))

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"),
        ("spec", "template", "spec"),
    ),
}
"""Where the spec of a pod stands, by kind."""


def unknown_fields(kind: str, document: Mapping[str, object]) -> Iterator[InputError]:
    """A refusal for each field that is not known, with those that may be meant."""
    path = _TEMPLATES.get(kind)
    spec: object = document
    for part in path or ():
        spec = spec.get(part) if isinstance(spec, Mapping) else None
    if path is None or not isinstance(spec, Mapping):
        return
    where = ".".join(path)
    yield from _of(spec, POD_SPEC, where)
    yield from _of(spec.get("affinity"), AFFINITY, f"{where}.affinity")
    yield from _of(spec.get("resources"), RESOURCES, f"{where}.resources")
    for name in _CONTAINERS:
        containers = spec.get(name)
        for index, each in enumerate(containers if isinstance(containers, list) else ()):
            place = f"{where}.{name}[{index}]"
            yield from _of(each, CONTAINER, place)
            if isinstance(each, Mapping):
                yield from _of(each.get("resources"), RESOURCES, f"{place}.resources")


def _of(found: object, known: frozenset[str], where: str) -> Iterator[InputError]:
    if not isinstance(found, Mapping) or found.keys() <= known:
        return
    for name in found:
        if name not in known:
            close = get_close_matches(str(name), known, n=1, cutoff=0.6)
            hint = f" (did you mean {close[0]}?)" if close else ""
            rule = f"is no field that Kubernetes has{hint}"
            yield InputError(rule, field=where, value=cut_short(name))
