"""The API server's validation of names, labels and amounts.

Names are written to files and terminals, so accepted names have no path parts and no control
characters. Lists and maps that many objects share, such as containers, are checked once
(`cached_by_identity`). The field of a problem is relative to the checked value, "" for the value
itself; the caller puts the path before it (`FieldProblem.below`).

Upstream: apimachinery/pkg/api/validation/objectmeta.go (ValidateObjectMeta) and
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from roadstead.facts.compile import name_in_errors
from roadstead.facts.identity_cache import cached_by_identity
from roadstead.facts.parse_selectors import SelectorError, parse_label_selector
from roadstead.facts.resources import HUGE_PAGES_PREFIX, NATIVE_DOMAIN, STANDARD_RESOURCES
from roadstead.manifests.field_problem import FieldProblem, RuleTexts
from roadstead.manifests.pod_claim_checks import pod_claim_problems, used_claims_problem
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.names import (
    dns_1035_label_errors,
    dns_label_errors,
    is_extended_resource,
    is_label_value,
    is_subdomain,
    label_value_errors,
    qualified_name_errors,
    subdomain_errors,
)
from roadstead.protocol.objects import (
    Affinity,
    ApiObject,
    Container,
    CronJob,
    DaemonSet,
    Deployment,
    Node,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodTemplate,
    ReplicaSet,
    ResourceRequirements,
    StatefulSet,
    Taint,
    Toleration,
    field_path,
)
from roadstead.protocol.quantity import Quantity

_NAME_RULES: Mapping[str, Callable[[str], RuleTexts]] = {
    "Namespace": dns_label_errors,
    "Service": dns_1035_label_errors,
}
"""Rules of the kinds whose names are not subdomains."""

_NAME_MAX_CHARS = {"CronJob": 52, "Job": 63, "StatefulSet": 52}
"""Maximum length of the names of kinds whose pods get a label made of this name and a suffix."""

_INTEGER_RESOURCES = frozenset({"pods"})
"""Resources that are counted in whole units, as extended ones are."""

_LARGEST = Quantity(2**63 - 1)
_LARGEST_CPU = Quantity(2**63 - 1, -3)
"""The largest amounts that an int64 holds, in whole units or, for cpu, in thousandths."""
_ALWAYS_VALID_BELOW = 2**53
"""Integers below this, as most amounts are, are valid for any resource: no more checks."""


DEVICE_KINDS = frozenset(
    ("ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule")
)

_RARE_FIELDS = frozenset(
    (
        *("affinity", "node_name", "overhead", "priority_class_name", "resource_claims"),
        *("resources", "scheduling_gates", "topology_spread_constraints", "volumes"),
    )
)
"""Fields that few pods have; reading each of them takes longer than all other checks."""


def check_object(kind: str, obj: ApiObject, *, source: str) -> None:
    """Check the metadata of an object, and its pod template or its devices.

    Raises:
        InputError: the first field that the API server would refuse.
    """
    problem = _metadata_problem(kind, obj.metadata) or _template_problem(obj)
    if problem is None and kind in DEVICE_KINDS:
        # Loaded only here: few manifests have devices, and their expressions need a compiler.
        from roadstead.manifests.device_checks import device_problem

        problem = device_problem(obj)
    if problem is not None:
        raise _refusal(obj, problem, source)


def check_pod(pod: Pod, *, source: str) -> None:
    """Check a pod, its metadata included. Raises as `check_object`."""
    problem = _metadata_problem("Pod", pod.metadata) or _spec_problem(pod.spec)
    if problem is None and not _is_node_name(pod.status.nominated_node_name):
        nominated = pod.status.nominated_node_name
        problem = FieldProblem("status.nominatedNodeName", nominated, subdomain_errors(nominated))
    if problem is not None:
        raise _refusal(pod, problem, source)


def check_node(node: Node, *, source: str) -> None:
    """Check a node, its metadata included. Raises as `check_object`."""
    problem = _metadata_problem("Node", node.metadata) or _taints_problem(node.spec.taints)
    for field in ("allocatable", "capacity"):
        if problem is None and (wrong := _first(_amount_problems(getattr(node.status, field)))):
            problem = wrong.below("status", field)
    if problem is not None:
        raise _refusal(node, problem, source)


def _refusal(obj: ApiObject, problem: FieldProblem, source: str) -> InputError:
    return InputError(
        f"is not allowed: {'; '.join(problem.rules)}",
        source=source,
        obj=name_in_errors(obj),
        field=problem.field,
        value=cut_short(problem.value),
    )


def _metadata_problem(kind: str, meta: ObjectMeta) -> FieldProblem | None:
    name_rules = _NAME_RULES.get(kind)
    if name_rules is not None or not is_subdomain(meta.name):
        broken = (name_rules or subdomain_errors)(meta.name)
        if broken:
            return FieldProblem("metadata.name", meta.name, broken)
    if len(meta.name) > _NAME_MAX_CHARS.get(kind, len(meta.name)):
        rule = f"must be no more than {_NAME_MAX_CHARS[kind]} characters, to fit its pods' labels"
        return FieldProblem("metadata.name", meta.name, (rule,))
    if meta.namespace and (rules := dns_label_errors(meta.namespace)):
        return FieldProblem("metadata.namespace", meta.namespace, rules)
    if not meta.uid.isprintable():
        return FieldProblem("metadata.uid", meta.uid, ("must not contain control characters",))
    for key in meta.annotations:
        if rules := qualified_name_errors(key.lower()):
            return FieldProblem("metadata.annotations", key, rules)
    problem = _labels_problem(meta.labels)
    return None if problem is None else problem.below("metadata", "labels")


def _template_problem(obj: ApiObject) -> FieldProblem | None:
    spec, path = getattr(obj, "spec", None), ["spec"]
    if isinstance(obj, CronJob):
        spec, path = obj.spec.job_template.spec, ["spec", "jobTemplate", "spec"]
    template = getattr(spec, "template", None)
    if not isinstance(template, PodTemplate):
        return None
    labels = template.metadata.labels
    problem = _labels_problem(labels) or _selector_problem(obj, labels)
    problem = (
        _spec_problem(template.spec) if problem is None else problem.below("metadata", "labels")
    )
    return None if problem is None else problem.below(*path, "template")


def _selector_problem(obj: ApiObject, labels: Mapping[str, str]) -> FieldProblem | None:
    """Return a problem if a workload's selector does not match the labels of its own pods."""
    if not isinstance(obj, (DaemonSet, Deployment, ReplicaSet, StatefulSet)):
        return None
    try:
        selector = parse_label_selector(obj.spec.selector)
    except SelectorError:
        # The compilation of the selector refuses it later, with upstream's text.
        return None
    if selector is None or selector.matches(labels):
        return None
    return FieldProblem("", str(dict(labels)), ("`selector` does not match template `labels`",))


def _labels_problem(labels: Mapping[str, str]) -> FieldProblem | None:
    for key, value in labels.items():
        if qualified_name_errors(key):
            return FieldProblem("", key, qualified_name_errors(key))
        if not is_label_value(value):
            return FieldProblem(field_path((key,)), value, label_value_errors(value))
    return None


def _is_node_name(name: str) -> bool:
    return not name or is_subdomain(name)


def _spec_problem(spec: PodSpec) -> FieldProblem | None:
    if (problem := _containers_problem(spec.containers)) is not None:
        return problem.below("spec", "containers")
    if (problem := used_claims_problem(spec.containers, spec.resource_claims)) is not None:
        return problem.below("spec", "containers")
    if spec.init_containers:
        problem = _containers_problem(spec.init_containers)
        problem = problem or used_claims_problem(spec.init_containers, spec.resource_claims)
        if problem is not None:
            return problem.below("spec", "initContainers")
    if spec.tolerations and (problem := _tolerations_problem(spec.tolerations)) is not None:
        return problem.below("spec", "tolerations")
    if spec.node_selector and (problem := _labels_problem(spec.node_selector)) is not None:
        return problem.below("spec", "nodeSelector")
    return None if _RARE_FIELDS.isdisjoint(spec.model_fields_set) else _first(_rare_problems(spec))


def _rare_problems(spec: PodSpec) -> Iterator[FieldProblem]:
    """Yield the problems of the fields in `_RARE_FIELDS`."""
    named = {"nodeName": spec.node_name, "priorityClassName": spec.priority_class_name}
    for field, name in named.items():
        if not _is_node_name(name):
            yield FieldProblem(f"spec.{field}", name, subdomain_errors(name))
    for index, gate in enumerate(spec.scheduling_gates):
        if rules := qualified_name_errors(gate.name):
            yield FieldProblem(f"spec.schedulingGates[{index}].name", gate.name, rules)
    for index, constraint in enumerate(spec.topology_spread_constraints):
        if rules := qualified_name_errors(constraint.topology_key):
            path = f"spec.topologySpreadConstraints[{index}].topologyKey"
            yield FieldProblem(path, constraint.topology_key, rules)
    if spec.affinity is not None and (problem := _affinity_problem(spec.affinity)) is not None:
        yield problem.below("spec", "affinity")
    for index, volume in enumerate(spec.volumes):
        if volume.name and (rules := dns_label_errors(volume.name)):
            yield FieldProblem(f"spec.volumes[{index}].name", volume.name, rules)
    for problem in pod_claim_problems(spec.resource_claims):
        yield problem.below("spec", "resourceClaims")
    if spec.resources is not None:
        for problem in _resource_problems(spec.resources):
            yield problem.below("spec", "resources")
    for problem in _amount_problems(spec.overhead, _container_resource):
        yield problem.below("spec", "overhead")


@cached_by_identity
def _containers_problem(containers: tuple[Container, ...]) -> FieldProblem | None:
    return _first(
        problem.below(index)
        for index, container in enumerate(containers)
        for problem in _container_problems(container)
    )


def _container_problems(container: Container) -> Iterator[FieldProblem]:
    if container.name and (rules := dns_label_errors(container.name)):
        yield FieldProblem("name", container.name, rules)
    if container.resources is not None:
        for problem in _resource_problems(container.resources):
            yield problem.below("resources")


def _resource_problems(resources: ResourceRequirements) -> Iterator[FieldProblem]:
    """Yield problems of requests, limits, and both together (validateResourceRequirements).

    A missing limit is accepted, also for extended resources: it changes no decision.
    """
    for field in ("requests", "limits"):
        for problem in _amount_problems(getattr(resources, field), _container_resource):
            yield problem.below(field)
    for name, limit in resources.limits.items():
        request = resources.requests.get(name, limit)
        comparison, is_huge = request.cmp(limit), name.startswith(HUGE_PAGES_PREFIX)
        if comparison and (is_huge or is_extended_resource(name)):
            rule = f"must be equal to {name} limit of {limit}"
        elif comparison > 0:
            rule = f"must be less than or equal to {name} limit of {limit}"
        else:
            continue
        yield FieldProblem(field_path(("requests", name)), str(request), (rule,))


@cached_by_identity
def _tolerations_problem(tolerations: tuple[Toleration, ...]) -> FieldProblem | None:
    for index, each in enumerate(tolerations):
        if each.key and (rules := qualified_name_errors(each.key)):
            return FieldProblem(f"[{index}].key", each.key, rules)
        if not each.key and each.operator != "Exists":
            rule = 'must be Exists when `key` is empty, which means "match all values and all keys"'
            return FieldProblem(f"[{index}].operator", each.operator, (rule,))
        if each.operator == "Exists" and each.value:
            rule = "value must be empty when `operator` is 'Exists'"
            return FieldProblem(f"[{index}].value", each.value, (rule,))
        if not is_label_value(each.value):
            return FieldProblem(f"[{index}].value", each.value, label_value_errors(each.value))
    return None


def _taints_problem(taints: Iterable[Taint]) -> FieldProblem | None:
    for index, each in enumerate(taints):
        path = f"spec.taints[{index}]"
        if rules := qualified_name_errors(each.key):
            return FieldProblem(f"{path}.key", each.key, rules)
        if not is_label_value(each.value):
            return FieldProblem(f"{path}.value", each.value, label_value_errors(each.value))
    return None


@cached_by_identity
def _affinity_problem(affinity: Affinity) -> FieldProblem | None:
    both = {"podAffinity": affinity.pod_affinity, "podAntiAffinity": affinity.pod_anti_affinity}
    for name, pod_affinity in both.items():
        for path, term in _terms(pod_affinity) if pod_affinity is not None else ():
            if rules := qualified_name_errors(term.topology_key):
                return FieldProblem(f"{name}.{path}.topologyKey", term.topology_key, rules)
            for index, namespace in enumerate(term.namespaces):
                if rules := dns_label_errors(namespace):
                    return FieldProblem(f"{name}.{path}.namespaces[{index}]", namespace, rules)
    return None


def _terms(affinity: PodAffinity) -> Iterator[tuple[str, PodAffinityTerm]]:
    """Yield (path, term) of the terms of pod affinity or of pod anti-affinity."""
    required = affinity.required_during_scheduling_ignored_during_execution
    for index, term in enumerate(required):
        yield f"requiredDuringSchedulingIgnoredDuringExecution[{index}]", term
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    for index, each in enumerate(preferred):
        path = f"preferredDuringSchedulingIgnoredDuringExecution[{index}].podAffinityTerm"
        yield path, each.pod_affinity_term


def _amount_problems(
    amounts: Mapping[str, Quantity], name_rules: Callable[[str], RuleTexts] = qualified_name_errors
) -> Iterator[FieldProblem]:
    for name, amount in amounts.items():
        if rules := name_rules(name):
            yield FieldProblem("", name, rules)
        if amount.exponent == 0 and amount.unscaled < _ALWAYS_VALID_BELOW:
            continue
        largest = _LARGEST_CPU if name == "cpu" else _LARGEST
        if amount.cmp(largest) > 0:
            yield FieldProblem(
                field_path((name,)), str(amount), (f"must be no more than {largest}",)
            )
        elif (
            name in _INTEGER_RESOURCES or is_extended_resource(name)
        ) and amount.milli_value() % 1000:
            yield FieldProblem(field_path((name,)), str(amount), ("must be an integer",))


def _container_resource(name: str) -> RuleTexts:
    """Return why a container cannot request a resource (validateContainerResourceName)."""
    rules = qualified_name_errors(name)
    if rules:
        return rules
    if "/" not in name:
        is_standard = name in STANDARD_RESOURCES or name.startswith(HUGE_PAGES_PREFIX)
        return () if is_standard else ("must be a standard resource for containers",)
    if NATIVE_DOMAIN in name or is_extended_resource(name):
        return ()
    return ("doesn't follow extended resource name standard",)


def _first(problems: Iterable[FieldProblem]) -> FieldProblem | None:
    return next(iter(problems), None)
