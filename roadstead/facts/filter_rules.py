"""The filters that are checked again when a pod is bound, by the profile that placed it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """Filters of the profiles. filters: (scheduler name, names of its filter plugins).

    extended_resource: the gate DRAExtendedResource is on, so resources that a node does not offer
    are not counted there.
    device_gates: names of the other gates of devices that are on; None: they are not recorded.
    """

    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    extended_resource: bool = False
    device_gates: tuple[str, ...] | None = None
