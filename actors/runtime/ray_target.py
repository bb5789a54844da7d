"""The Ray of a run: its own, one that this process has initialized, or one that it joins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass

from roadstead.config.ray import ADDRESS_VARIABLE, AUTO, LOCAL, RayOptions, check_address
from roadstead.protocol.errors import InputError

JOB_VARIABLES = (
    ADDRESS_VARIABLE,
    "RAY_JOB_CONFIG_JSON_ENV_VAR",
    "RAY_OVERRIDE_JOB_RUNTIME_ENV",
    "RAY_RUNTIME_ENV_HOOK",
    "RAY_NAMESPACE",
)
"""Variables that a Ray job inherits. A Ray that is started with them waits for the job's runtime
environment, which its agents do not have."""

TOKEN_VARIABLES = ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH")
"""Variables that `ray.init` sets or reads for a local Ray; a cluster has other tokens, or none."""


@dataclass(frozen=True, slots=True)
class RayTarget:
    """The Ray of a run. address: "" for one that this process has initialized already.

    why: where the address is from, for messages.
    """

    address: str
    why: str

    @property
    def is_local(self) -> bool:
        """Whether the run starts and ends this Ray itself."""
        return self.address == LOCAL


def target_of(
    options: RayOptions, *, initialized: str | None, environ: Mapping[str, str]
) -> RayTarget:
    """Return the Ray that a run uses. InputError if it cannot be joined.

    initialized: address of the head of the Ray that this process has initialized; None without one.
    """
    if initialized is not None and options.address in (None, AUTO, initialized):
        return RayTarget("", "initialized by this process")
    if initialized is not None:
        problem = (
            f"this process has initialized the Ray at {initialized}: call ray.shutdown() first"
        )
        raise InputError(problem, source="ray.address", value=str(options.address))
    if options.address is not None:
        return RayTarget(options.address, "ray.address")
    address = environ.get(ADDRESS_VARIABLE, "")
    if not address:
        return RayTarget(LOCAL, "by default")
    try:
        return RayTarget(check_address(address), ADDRESS_VARIABLE)
    except ValueError as failure:
        raise InputError(str(failure), source=ADDRESS_VARIABLE, value=address) from failure


@contextmanager
def own_environment(
    environ: MutableMapping[str, str] | None = None,
) -> Iterator[None]:
    """Remove the variables of a Ray job, and restore these and Ray's tokens after the block."""
    environ = os.environ if environ is None else environ
    before = {name: environ.get(name) for name in (*JOB_VARIABLES, *TOKEN_VARIABLES)}
    for name in JOB_VARIABLES:
        environ.pop(name, None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                environ.pop(name, None)
            else:
                environ[name] = value
