"""Requests of a pod.

requests = max(containers + sidecars, each init container with the sidecars started before it),
replaced by pod-level requests for cpu, memory and hugepages, plus overhead. A container that was
resized in place counts with the maximum of spec and status, or with its status if the node cannot
resize it. Upstream: component-helpers/resource/helpers.go and the scheduler's types.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from roadstead.facts.identity_cache import cached_by_identity
from roadstead.facts.pod import ExtendedRequest
from roadstead.facts.resources import HUGE_PAGES_PREFIX, is_counted_resource
from roadstead.protocol.names import is_extended_resource
from roadstead.protocol.objects import Container, ContainerStatus, ObjectMeta, Pod, PodSpec
from roadstead.protocol.quantity import Quantity

Amounts = tuple[tuple[str, int], ...]
"""Sorted (resource, amount): cpu in milli-CPU, others in whole units."""

Requests = Mapping[str, Quantity]
"""Requested amount by resource."""

DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
"""What a container without such a request counts in scores (upstream's non-zero requests)."""
_DEFAULTS: Requests = {
    "cpu": Quantity(DEFAULT_CPU_MILLI, -3),
    "memory": Quantity(DEFAULT_MEMORY_BYTES),
}
_NONE: Requests = {}
_ANY_META = ObjectMeta(name="any")
_ZERO = Quantity(0)


@dataclass(frozen=True, slots=True)
class Requested:
    """Requests of a pod: `requests`, `nonzero_…` and `container_requests` of `PodFacts`.

    nonzero: (milli-CPU, bytes of memory).
    """

    requests: Amounts
    nonzero: tuple[int, int]
    container_requests: Amounts | None = None


def requested(pod: Pod) -> Requested:
    """Compute the requests of a pod; pods that share their containers share the result."""
    spec = pod.spec
    if not (
        spec.init_containers or spec.resources or spec.overhead or statuses_with_resources(pod)
    ):
        return _requested_by(spec.containers)
    requests = pod_requests(pod)
    without_pod_level = container_requests(pod) if has_pod_level_requests(pod) else None
    return Requested(amounts(requests), nonzero_requests(pod, requests), without_pod_level)


@cached_by_identity
def _requested_by(containers: tuple[Container, ...]) -> Requested:
    pod = Pod(metadata=_ANY_META, spec=PodSpec(containers=containers))
    requests = pod_requests(pod)
    return Requested(amounts(requests), nonzero_requests(pod, requests))


def pod_requests(pod: Pod, missing: Requests = _NONE) -> Requests:
    """Return the requests of a pod.

    missing: amounts of resources that count for each container that does not request them.
    """
    total = _requests_of_containers(pod, missing)
    if pod.spec.resources is not None:
        requests = pod.spec.resources.requests
        pod_level = {name: amount for name, amount in requests.items() if is_pod_level(name)}
        total = {**total, **pod_level}
    return _with_overhead(pod, total)


def _requests_of_containers(pod: Pod, missing: Requests) -> Requests:
    spec = pod.spec
    statuses = statuses_with_resources(pod)
    if len(spec.containers) == 1 and not spec.init_containers:
        return _container_requests(spec.containers[0], statuses, pod, missing)
    return _aggregate(pod, statuses, missing)


def _with_overhead(pod: Pod, total: Requests) -> Requests:
    return _sum(total, pod.spec.overhead) if pod.spec.overhead else total


def nonzero_requests(pod: Pod, requests: Requests) -> tuple[int, int]:
    """Return (milli-CPU, bytes) of a pod on a node for scoring, with defaults of cpu and memory.

    With pod-level requests, a default is used only if neither pod nor container names the resource.
    """
    missing = _DEFAULTS
    if has_pod_level_requests(pod):
        missing = {name: value for name, value in _DEFAULTS.items() if name not in requests}
    return _cpu_and_memory(pod_requests(pod, missing) if missing else requests)


def container_requests(pod: Pod) -> Amounts:
    """Return the requests without pod-level ones, with a default of cpu and memory per container.

    NodeResourcesFit scores the pod by these: upstream's scorer does not enable pod-level requests.
    """
    return amounts(_with_overhead(pod, _requests_of_containers(pod, _DEFAULTS)))


def extended_requests(pod: Pod) -> tuple[ExtendedRequest, ...]:
    """Return the extended resources of each container in whole units, by resource and container.

    Amounts of zero, and amounts that are no whole units, are left out. Upstream:
    createDeviceRequests in dynamicresources.go.
    """
    found = []
    for index, container in enumerate((*pod.spec.init_containers, *pod.spec.containers)):
        requests = container.resources.requests if container.resources else _NONE
        for position, (name, amount) in enumerate(sorted(requests.items())):
            count = amount.value()
            if is_extended_resource(name) and count and amount.cmp(Quantity(count)) == 0:
                found.append(ExtendedRequest(f"container-{index}-request-{position}", name, count))
    return tuple(sorted(found, key=attrgetter("resource")))


def amounts(requests: Requests) -> Amounts:
    """Return sorted (counted resource, amount): cpu in milli-CPU, others in whole units."""
    return tuple(
        sorted(
            (name, value.milli_value() if name == "cpu" else value.value())
            for name, value in requests.items()
            if is_counted_resource(name)
        )
    )


def is_pod_level(name: str) -> bool:
    """Whether a resource may be requested at pod level."""
    return name in ("cpu", "memory") or name.startswith(HUGE_PAGES_PREFIX)


def has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(is_pod_level(name) for name in resources.requests)


def is_sidecar(container: Container) -> bool:
    """Whether an init container runs alongside the containers."""
    return container.restart_policy == "Always"


def _aggregate(pod: Pod, statuses: Mapping[str, ContainerStatus], missing: Requests) -> Requests:
    """Return the maximum in the formula of the module."""
    total: Requests = {}
    for container in pod.spec.containers:
        total = _sum(total, _container_requests(container, statuses, pod, missing))
    sidecars: Requests = {}
    # The highest requests while init containers start, one after another.
    peak: Requests = {}
    for container in pod.spec.init_containers:
        if is_sidecar(container):
            requests = _container_requests(container, statuses, pod, missing)
            total, sidecars = _sum(total, requests), _sum(sidecars, requests)
            peak = _max([peak, sidecars])
        else:
            # As upstream: only containers that keep running can be resized in place.
            requests = _container_requests(container, _NO_STATUSES, pod, missing)
            peak = _max([peak, _sum(requests, sidecars)])
    return _max([total, peak]) if peak else total


_NO_STATUSES: Mapping[str, ContainerStatus] = {}


def statuses_with_resources(pod: Pod) -> Mapping[str, ContainerStatus]:
    """Return the container statuses that report resources, by container name."""
    status = pod.status
    if not (status.container_statuses or status.init_container_statuses):
        return _NO_STATUSES
    named = {each.name: each for each in status.container_statuses}
    named |= {each.name: each for each in status.init_container_statuses}
    return {name: each for name, each in named.items() if each.resources is not None}


def _container_requests(
    container: Container, statuses: Mapping[str, ContainerStatus], pod: Pod, missing: Requests
) -> Requests:
    requests: Requests = container.resources.requests if container.resources else _NONE
    status = statuses.get(container.name)
    if status is not None and status.resources is not None:
        reported = [status.resources.requests, status.allocated_resources]
        requests = _max(reported if is_resize_infeasible(pod) else [requests, *reported])
    return {**missing, **requests} if missing else requests


def is_resize_infeasible(pod: Pod) -> bool:
    """Whether the node reported that it cannot resize the pod."""
    pending = (each for each in pod.status.conditions if each.type == "PodResizePending")
    return next((each.reason == "Infeasible" for each in pending), False)


def _sum(left: Requests, right: Requests) -> Requests:
    total = dict(left)
    for name, value in right.items():
        total[name] = total[name].add(value) if name in total else value
    return total


def _max(requests: Sequence[Requests]) -> Requests:
    largest: dict[str, Quantity] = {}
    for each in requests:
        for name, value in each.items():
            if name not in largest or value.cmp(largest[name]) > 0:
                largest[name] = value
    return largest


def _cpu_and_memory(requests: Requests) -> tuple[int, int]:
    cpu, memory = requests.get("cpu", _ZERO), requests.get("memory", _ZERO)
    return cpu.milli_value(), memory.value()
