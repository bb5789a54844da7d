"""Messages about claims and volumes between schedulers, cache and binder."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.devices import DeviceClaimFacts
from roadstead.protocol.fast_init import fast_init
from roadstead.storage.binding import Binding
from roadstead.storage.state import StorageChange


@dataclass(frozen=True, slots=True)
class NumberedStorageChanges:
    """Changes of claims and volumes, numbered from `start`."""

    start: int = 0
    changes: tuple[StorageChange, ...] = ()


NO_STORAGE_CHANGES = NumberedStorageChanges()


@fast_init
@dataclass(frozen=True, slots=True)
class AttemptBindings:
    """The bindings of an attempt's claims that are not committed yet.

    device_claims: claims of devices that are in flight for the attempt: allocated, while its pod
        is assumed and not bound.
    """

    token: str
    bindings: tuple[Binding, ...]
    device_claims: tuple[DeviceClaimFacts, ...] = ()
