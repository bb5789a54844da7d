"""Pod groups: the gang that a pod is a member of, and the number of pods that a gang needs.

Upstream: kubernetes-sigs/scheduler-plugins, apis/scheduling/v1alpha1 (labels and PodGroup), and the
labels of its earlier releases. `timeout-seconds` is Roadstead's, for a gang without a PodGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from roadstead.facts.pod import GroupMembership, PodFacts

if TYPE_CHECKING:
    from roadstead.protocol import objects

# The first of these labels that a pod has names its group.
GROUP_LABELS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
)
_PREFIXES = ("scheduling.x-k8s.io", "pod-group.scheduling.sigs.k8s.io")
MIN_KEYS = tuple(f"{prefix}/min-available" for prefix in _PREFIXES)
TIMEOUT_KEYS = tuple(f"{prefix}/timeout-seconds" for prefix in _PREFIXES)
COUNT_MAX = 2**31 - 1
"""Highest value of both: they are int32 in a PodGroup."""

GroupKey = tuple[str, str]
"""Namespace and name of a group."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A gang. min_member: None if no PodGroup sets it. running: members that ran at its start."""

    namespace: str
    name: str
    min_member: int | None = None
    timeout_s: int | None = None
    running: int = 0

    @property
    def key(self) -> GroupKey:
        return self.namespace, self.name


def group_key(facts: PodFacts) -> GroupKey | None:
    """Return the group of a pod; None if it has none."""
    return None if facts.pod_group is None else (facts.namespace, facts.pod_group.name)


def min_member(facts: PodFacts, group: PodGroup | None) -> int | None:
    """Return the minimum size of a gang, from its PodGroup or else from the pod; None if unset."""
    if group is not None and group.min_member is not None:
        return group.min_member
    return None if facts.pod_group is None else facts.pod_group.min_member


def membership(labels: Mapping[str, str], annotations: Mapping[str, str]) -> GroupMembership | None:
    """Read the pod group from a pod's metadata; labels take precedence over annotations."""
    metadata = {**annotations, **labels}
    name = next((metadata[key] for key in GROUP_LABELS if metadata.get(key)), "")
    if not name:
        return None
    errors: list[str] = []
    pod_minimum, timeout_s = (
        _whole_number(metadata, keys, errors) for keys in (MIN_KEYS, TIMEOUT_KEYS)
    )
    return GroupMembership(name, pod_minimum, timeout_s, errors[0] if errors else "")


def _whole_number(
    metadata: Mapping[str, str], keys: Iterable[str], errors: list[str]
) -> int | None:
    """Return the first valid value of some keys; add an error for each invalid value before it."""
    for key in keys:
        text = metadata.get(key)
        if text is not None:
            if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= COUNT_MAX:
                return int(text)
            errors.append(f'{key}: "{text[:20]}" is not a whole number')
    return None


def pod_groups(
    manifests: Iterable[objects.PodGroup], running: Iterable[PodFacts]
) -> tuple[PodGroup, ...]:
    """Return the groups of manifests and running pods, with the number of running members."""
    groups = {}
    for each in manifests:
        group = PodGroup(
            each.metadata.namespace or "default",
            each.metadata.name,
            each.spec.min_member,
            each.spec.schedule_timeout_seconds,
        )
        groups[group.key] = group
    for facts in running:
        key = group_key(facts)
        if key is not None:
            group = groups.get(key, PodGroup(*key))
            groups[key] = replace(group, running=group.running + 1)
    return tuple(groups.values())
