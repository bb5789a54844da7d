"""BindingProfiles: which claims are bound when pods of a profile are placed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from roadstead.facts.pod import PodFacts


@dataclass(frozen=True, slots=True)
class BindingProfiles:
    """Scheduler names of the profiles that bind claims of volumes, and of devices."""

    volumes: frozenset[str] = frozenset()
    devices: frozenset[str] = frozenset()

    @staticmethod
    def of(profiles: Iterable[tuple[str, bool, bool]]) -> BindingProfiles:
        """Return the profiles of (name, binds volumes, binds devices)."""
        listed = tuple(profiles)
        return BindingProfiles(
            frozenset(name for name, volumes, _ in listed if volumes),
            frozenset(name for name, _, devices in listed if devices),
        )

    def without_ignored_claims(self, pod: PodFacts) -> PodFacts:
        """Return the pod without the claims that its profile does not bind and so ignores."""
        if pod.volumes and pod.scheduler_name not in self.volumes:
            pod = replace(pod, volumes=())
        if pod.device_claims and pod.scheduler_name not in self.devices:
            pod = replace(pod, device_claims=())
        return pod
