"""Roadstead's own settings, apart from KubeSchedulerConfiguration: how a run is carried out.

None of them changes what a correct decision is; `tie_break`, `seed` and `schedulers` choose among
correct ones. They come from `roadstead.yaml` and, over it, from flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from roadstead.config.errors import ConfigError
from roadstead.protocol.errors import InputError

SETTINGS_FILE: Final = "roadstead.yaml"


def _path(value: object) -> object:
    if value is None or isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("must be a path")
    return Path(value)


Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


class Deadlines(_Part):
    """How long things may take, in seconds (above 0, at most a day)."""

    start_s: Seconds = 60.0
    """Until every actor has answered once. A start that takes longer ends with an error."""

    call_s: Seconds = 30.0
    """Until an actor answers a call. What does not answer is reported as lost."""

    lease_s: Seconds = 30.0
    """How long a scheduler may hold the pods it took; after that the queue takes them back."""

    assume_s: Seconds = 60.0
    """How long an assumed pod may wait for its confirmation before the binder is asked."""

    stop_s: Seconds = 10.0
    """Until actors that were told to stop are stopped by force."""


class Bounds(_Part):
    """How much may wait at one place. A full place refuses; it never grows without limit."""

    queue_max_pods: int = Field(default=10_000_000, ge=1, le=100_000_000)
    """Pods in the scheduling queue, all its parts together."""

    inflight_max_batches: int = Field(default=4, ge=1, le=1024)
    """Batches that one scheduler has under way with its workers."""

    mailbox_max_messages: int = Field(default=1024, ge=1, le=1_000_000)
    """Messages waiting for one actor."""

    message_max_bytes: int = Field(default=64 << 20, ge=1 << 10, le=1 << 30)
    """Size of one message on the wire, in bytes."""


class Settings(_Part):
    """Everything that may stand in `roadstead.yaml`."""

    runtime: Literal["ray", "inline"] = "ray"
    """`ray`: actors in processes of a Ray cluster. `inline`: the same actors in this process."""

    shards: int = Field(default=2, ge=1, le=1024)
    """Workers that share the nodes, by zone. Any number gives the same decisions."""

    schedulers: int = Field(default=1, ge=1, le=256)
    """Schedulers at work at once. With one, decisions are those of kube-scheduler; with several,
    each is optimistic and the binder settles conflicts."""

    control: Literal["together", "apart"] = "together"
    """On Ray: queue, cache and binder share one process, which starts sooner, or have one each."""

    batch: int = Field(default=2048, ge=1, le=65_536)
    """Pods that a scheduler takes at a time. One round trip to the workers per batch."""

    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Start of every random choice. Same inputs, settings and seed: same placement."""

    tie_break: Literal["random", "first"] = "random"
    """Among equally good nodes: one at random, as kube-scheduler does, or the first by name."""

    score_nodes: Literal["all", "config"] = "config"
    """Score all feasible nodes, or as many as the configuration's percentageOfNodesToScore says,
    where it says one."""

    kernel: bool = False
    """Large batches are decided by compiled code, where it covers their pods; same result."""

    journal: Annotated[Path | None, BeforeValidator(_path)] = None
    """Folder of the binder's journal. Without one, binds live as long as the run."""

    deadlines: Deadlines = Deadlines()
    """How long things may take."""

    bounds: Bounds = Bounds()
    """How much may wait."""


def load_settings(
    text: str | bytes = "",
    *,
    source: str = SETTINGS_FILE,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Settings of a `roadstead.yaml` text with flags over them.

    `overrides`: field → value, a nested field as `deadlines.call_s`; None means not given. Raises
    ConfigError (an InputError) with the path of every field that is unknown or out of range.
    """
    document = _read(text, source) if text else {}
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    try:
        from_file = Settings.model_validate(document)
        if not given:
            return from_file
        source = "flags"
        return Settings.model_validate(_with_overrides(from_file.model_dump(), given))
    except ValidationError as error:
        from roadstead.config.decode import validation_problems

        problems = validation_problems(error, "")
        raise ConfigError("decode", problems, source=source) from None


def load_settings_file(
    path: str | Path, *, overrides: Mapping[str, object] | None = None
) -> Settings:
    """`load_settings` of a file; raises InputError if it cannot be read."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"cannot be read: {reason}", source=str(path)) from None
    return load_settings(content, source=str(path), overrides=overrides)


def _read(text: str | bytes, source: str) -> object:
    # Flags alone need no YAML: every command starts here, and few have a file.
    from roadstead.config.reader import read_document

    document = read_document(text, source=source)
    return {} if document is None else document


def _with_overrides(document: dict[str, Any], given: Mapping[str, object]) -> dict[str, Any]:
    for name, value in given.items():
        group, dot, field = name.rpartition(".")
        target = document.setdefault(group, {}) if dot else document
        target[field] = value
    return document
