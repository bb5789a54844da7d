"""Total requests and limits of a pod's containers.

Sums of the specs are for limit ranges; for quotas, the amounts in the containers' statuses count
too, since a running container may be resized.

Upstream: component-helpers/resource/helpers.go (AggregateContainerLimits, PodLimits) and
podRequests and podLimits of plugin/pkg/admission/limitranger (1.34).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roadstead.facts.requests import (
    is_pod_level,
    is_resize_infeasible,
    is_sidecar,
    statuses_with_resources,
)
from roadstead.protocol.objects import Container, Pod, PodSpec
from roadstead.protocol.quantity import Quantity

Amounts = Mapping[str, Quantity]
_NONE: Amounts = {}


def requests_of(container: Container) -> Amounts:
    """Return the requests of a container's spec."""
    return container.resources.requests if container.resources else _NONE


def limits_of(container: Container) -> Amounts:
    """Return the limits of a container's spec."""
    return container.resources.limits if container.resources else _NONE


def total(spec: PodSpec, amounts_of: Callable[[Container], Amounts]) -> dict[str, Quantity]:
    """Sum containers and sidecars, or an init container and earlier sidecars if that is more."""
    running: dict[str, Quantity] = {}
    for container in spec.containers:
        _add(running, amounts_of(container))
    sidecars: dict[str, Quantity] = {}
    # The most that init containers use while they start, one after another.
    peak: dict[str, Quantity] = {}
    for container in spec.init_containers:
        if is_sidecar(container):
            _add(running, amounts_of(container))
            _add(sidecars, amounts_of(container))
            _raise_to(peak, sidecars)
        else:
            with_sidecars = dict(amounts_of(container))
            _add(with_sidecars, sidecars)
            _raise_to(peak, with_sidecars)
    _raise_to(running, peak)
    return running


def pod_limits(pod: Pod) -> dict[str, Quantity]:
    """Return the limits of a pod: pod-level limits replace those of containers; plus overhead.

    Overhead is added only to existing limits. A resized container counts with the maximum of spec
    and status, or with its status if the node cannot resize it.
    """
    # Init containers that terminate are not resized.
    terminating = {each.name for each in pod.spec.init_containers if not is_sidecar(each)}
    reported = statuses_with_resources(pod)
    statuses = {name: each for name, each in reported.items() if name not in terminating}

    def counted_limits(container: Container) -> Amounts:
        in_spec = limits_of(container)
        status = statuses.get(container.name)
        if status is None or status.resources is None:
            return in_spec
        if is_resize_infeasible(pod):
            return status.resources.limits
        larger = dict(in_spec)
        _raise_to(larger, status.resources.limits)
        return larger

    limits = total(pod.spec, counted_limits if statuses else limits_of)
    if pod.spec.resources is not None:
        pod_level = pod.spec.resources.limits
        limits |= {name: pod_level[name] for name in pod_level if is_pod_level(name)}
    for name, overhead in pod.spec.overhead.items():
        if name in limits and limits[name].unscaled:
            limits[name] = limits[name].add(overhead)
    return limits


def _add(amounts: dict[str, Quantity], more: Amounts) -> None:
    for name, value in more.items():
        amounts[name] = amounts[name].add(value) if name in amounts else value


def _raise_to(amounts: dict[str, Quantity], other: Amounts) -> None:
    """Raise each amount to that of `other` if this is larger."""
    for name, value in other.items():
        if name not in amounts or value.cmp(amounts[name]) > 0:
            amounts[name] = value
