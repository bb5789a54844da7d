"""Settings of Ray: which Ray cluster a run uses, and on which of its nodes the processes run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from roadstead.config.settings_model import SettingsModel, read_path

Role = Literal["control", "copy", "scheduler", "worker"]
"""Of a process. control: queue, cache and binder. copy: the second copy of the journal."""

LOCAL: Final = "local"
AUTO: Final = "auto"

ADDRESS_VARIABLE: Final = "RAY_ADDRESS"
"""Environment variable with the address of the Ray cluster to join; Ray sets it for a job."""

MAX_PORT: Final = 65_535

_CLIENT, _DASHBOARD = "ray://", ("http://", "https://")


def check_address(address: str) -> str:
    """Return the address of a Ray cluster. ValueError, with a remedy, if a run cannot join it."""
    if address.startswith(_CLIENT):
        raise ValueError(
            "is an address of Ray Client, which a run cannot use: run the command on a node of "
            "the cluster with HOST:PORT or auto, or submit it with `ray job submit`"
        )
    if address.startswith(_DASHBOARD):
        raise ValueError(
            "is an address of Ray's dashboard, which takes jobs (`ray job submit`): a run needs "
            "the HOST:PORT of the head, auto, or local"
        )
    host, colon, port = address.rpartition(":")
    is_address = address in (LOCAL, AUTO) or (
        host and colon and port.isascii() and port.isdecimal()
    )
    if not is_address or "\0" in address or any(each.isspace() for each in address):
        raise ValueError("must be local, auto, or the HOST:PORT of the head of a Ray cluster")
    if address not in (LOCAL, AUTO) and not 1 <= int(port[:6]) <= MAX_PORT:
        raise ValueError(f"must have a port from 1 to {MAX_PORT}")
    return address


class RayOptions(SettingsModel):
    """The Ray cluster of a run. All fields but `address` apply only to one that the run joins."""

    address: Annotated[str, AfterValidator(check_address)] | None = None
    """`local`: a Ray of the run's own, on this machine. `auto`: the Ray that runs on this machine.
    HOST:PORT: the head of a Ray cluster. By default the Ray that this process has initialized, else
    the one that RAY_ADDRESS names, else `local`."""

    cpus_per_process: float = Field(default=1.0, ge=0, le=1024, allow_inf_nan=False)
    """CPUs of the Ray cluster that each process of the run reserves."""

    labels: dict[Role, dict[str, str]] = Field(default={})
    """Labels that a Ray node must have to run the processes of a role (control, copy, scheduler,
    worker)."""

    metrics_interval_s: float = Field(default=5.0, ge=0, le=3_600, allow_inf_nan=False)
    """Interval at which each process publishes its figures as metrics of the Ray cluster; 0: it
    publishes none."""

    namespace: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    """Ray namespace of the run's actors: 1 to 63 letters, digits, `.`, `_` and `-`. By default the
    name of the run, which is part of the actors' names in any case."""

    runtime_env: Annotated[Path | None, BeforeValidator(read_path)] = None
    """File with Ray's runtime environment for the processes of the run, as written by `roadstead
    cluster pack`."""
