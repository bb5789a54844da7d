"""What schedulers, cache and binder say to each other of claims and volumes."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.storage.binding import Binding
from roadstead.storage.state import StorageChange


@dataclass(frozen=True, slots=True)
class StorageNews:
    """What changed of claims and volumes; the first of the changes is number `start`."""

    start: int = 0
    changes: tuple[StorageChange, ...] = ()


NO_NEWS = StorageNews()


@dataclass(frozen=True, slots=True)
class BoundVolumes:
    """What an attempt's claims are bound to, as long as nobody committed it."""

    token: str
    bindings: tuple[Binding, ...]
