"""The Ray runtime: every actor is one Ray actor, in a process of its own.

A local Ray is started, if none is given, without dashboard and log shipping, on loopback, and
stopped again. Everything that Ray could wait for without end has a deadline here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from dataclasses import dataclass

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayActorError, RayError

from roadstead.actors.seam import (
    A,
    ActorLostError,
    Directory,
    Dispatcher,
    Factory,
    Method,
    Q,
    Ref,
    late,
    open_reply,
)
from roadstead.protocol.codec import Envelope, Limits, to_wire

OBJECT_STORE_BYTES = 128 * 1024 * 1024
_MAX_PENDING_CALLS = 10_000


class RayHost:
    """What Ray runs: one actor behind a Dispatcher."""

    def __init__(self, name: str, build: Factory, directory: Directory, limits: Limits) -> None:
        self._dispatcher = Dispatcher(name, build(directory), limits)

    async def receive(self, data: bytes) -> bytes:
        """One envelope in, one envelope out."""
        return await self._dispatcher.receive(data)

    async def ready(self) -> int:
        """The process id: the actor is built and answers."""
        return os.getpid()


@dataclass(frozen=True, slots=True)
class RayRef:
    """A Ref to a Ray actor."""

    actor_name: str
    handle: ActorHandle
    limits: Limits

    @property
    def name(self) -> str:
        return self.actor_name

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        data = Envelope(method.name, 0, 0, "", to_wire(message)).encode()
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self.handle.receive.remote(data)
        except TimeoutError:
            raise late(self.actor_name, method.name, timeout_s) from None
        except RayActorError as lost:
            raise ActorLostError(f"{self.actor_name} is gone: {_first_line(lost)}") from None
        except RayError as failure:
            raise ActorLostError(
                f"{self.actor_name} cannot be reached: {_first_line(failure)}"
            ) from None
        return open_reply(self.actor_name, method, reply, self.limits)


@dataclass(frozen=True, slots=True)
class RayDirectory:
    """Finds the actors of one run by name; travels to every actor of it."""

    namespace: str
    limits: Limits

    def find(self, name: str) -> Ref:
        """A way to a running actor. ActorLostError if there is none of this name."""
        try:
            handle = ray.get_actor(name, namespace=self.namespace)
        except ValueError:
            raise ActorLostError(f"there is no actor {name}") from None
        return RayRef(name, handle, self.limits)


class RayRuntime:
    """Starts, finds and ends actors on a local or a given Ray."""

    def __init__(self, *, actors: int, limits: Limits, address: str | None = None) -> None:
        """actors: how many will be started, so that their processes start side by side."""
        self._limits = limits
        self._own = address is None
        self._directory = RayDirectory(f"roadstead-{secrets.token_hex(6)}", limits)
        self._handles: dict[str, ActorHandle] = {}
        self.pids: dict[str, int] = {}
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        local = {
            "num_cpus": max(1, actors),
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
        }
        ray.init(
            address=address,
            namespace=self._directory.namespace,
            logging_level=logging.ERROR,
            log_to_driver=False,
            configure_logging=False,
            **(local if self._own else {}),
        )

    async def start(self, name: str, build: Factory, *, timeout_s: float) -> Ref:
        """A new actor, once it answers. DeadlineError if it is late, ActorLostError if it fails."""
        options = {
            "name": name,
            "num_cpus": 0,
            "max_restarts": 0,
            "max_task_retries": 0,
            "max_pending_calls": _MAX_PENDING_CALLS,
        }
        remote = ray.remote(RayHost).options(**options)
        handle = remote.remote(name, build, self._directory, self._limits)
        self._handles[name] = handle
        try:
            async with asyncio.timeout(timeout_s):
                self.pids[name] = await handle.ready.remote()
        except TimeoutError:
            raise late(name, "its start", timeout_s) from None
        except RayError as failure:
            raise ActorLostError(f"{name} did not start: {_first_line(failure)}") from None
        return RayRef(name, handle, self._limits)

    def find(self, name: str) -> Ref:
        """A way to a running actor."""
        return self._directory.find(name)

    async def kill(self, name: str) -> None:
        """Ends an actor's process at once."""
        ray.kill(self._handles[name], no_restart=True)

    async def stop(self) -> None:
        """Ends all actors of the run, and Ray itself if it was started here."""
        for handle in self._handles.values():
            with contextlib.suppress(RayError):
                ray.kill(handle, no_restart=True)
        self._handles.clear()
        ray.shutdown()


def _first_line(failure: BaseException) -> str:
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__
