"""The filters that are checked again when a pod is bound, by the profile that placed it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """Filters of the profiles. filters: (scheduler name, names of its filter plugins).

    extended_resource: the feature gate DRAExtendedResource is on. NodeResourcesFit then ignores
    extended resources that a node's allocatable does not list, because devices may serve them.
    device_gates: names of the other feature gates of devices that are on; None: not recorded.
    """

    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    extended_resource: bool = False
    device_gates: tuple[str, ...] | None = None
