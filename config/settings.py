"""Roadstead's own settings, apart from KubeSchedulerConfiguration: how a run is executed.

No setting makes a decision incorrect; `tie_break`, `seed`, `schedulers` and the settings of
several schedulers choose among correct decisions. Flags override the values of `roadstead.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from roadstead.config.concurrency import (
    Contradiction,
    DecisionTime,
    Mode,
    NonNegativeSeconds,
    Schedulers,
    current_name_of_shards,
    exact_error,
    max_per_profile,
    raise_contradictions,
    refuse_old_name_of_gates,
    scheduler_profiles,
    with_current_names,
    with_partitions,
)
from roadstead.config.errors import ConfigError
from roadstead.config.files import MAX_TEXT_BYTES, read_bytes
from roadstead.config.ray import RayOptions
from roadstead.config.settings_model import SettingsModel, read_path

SETTINGS_FILE: Final = "roadstead.yaml"


Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
"""A timeout, at most a day."""


class ActorDeadlines(SettingsModel):
    """Timeouts, in seconds (above 0, at most a day)."""

    start_s: Seconds = 120.0
    """Maximum time until every actor has answered once. A slower start ends with an error. Ray
    itself restarts a process that has not registered within 30 s."""

    call_s: Seconds = 30.0
    """Maximum time until an actor answers a call. An actor that does not answer is reported as
    lost."""

    evaluate_s: Seconds = 15.0
    """Maximum time until a worker answers for a batch. After that the scheduler runs the plugins
    itself on the nodes of that worker."""

    plugin_s: Seconds = 10.0
    """Maximum time until one call of a user's plugin returns. A longer call fails the attempts of
    its pods."""

    lease_s: Seconds = 30.0
    """Maximum time that a scheduler leases pods. After that the queue ends the lease and queues the
    pods again."""

    assume_s: Seconds = 60.0
    """Maximum time that an assumed pod waits for its confirmation. After that the cache asks the
    binder."""

    stop_s: Seconds = 10.0
    """Maximum time until actors stop after a request. After that they are stopped by force."""


class Bounds(SettingsModel):
    """Maximum numbers and sizes of waiting items. A full queue or mailbox refuses more items."""

    queue_max_pods: int = Field(default=10_000_000, ge=1, le=100_000_000)
    """Maximum number of pods in the scheduling queue, over all its parts."""

    inflight_max_batches: int = Field(default=4, ge=1, le=1024)
    """Maximum number of batches that one scheduler has sent to the binder and that are not answered
    yet."""

    mailbox_max_messages: int = Field(default=1024, ge=1, le=1_000_000)
    """Maximum number of messages that wait for one actor."""

    message_max_bytes: int = Field(default=64 << 20, ge=1 << 10, le=1 << 30)
    """Maximum size of one encoded message, in bytes."""


FeatureGate = Literal[
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
    "DRASchedulerFilterTimeout",
    "DynamicResourceAllocation",
]

ALWAYS_ON: Final[Mapping[str, str]] = {
    "DRAResourceClaimDeviceStatus": (
        "must be true: without it kube-scheduler uses another allocator, which Roadstead does not "
        "have"
    ),
    "DynamicResourceAllocation": (
        "must be true: to ignore claims of devices, disable the plugin DynamicResources in the "
        "configuration"
    ),
}
"""Feature gates that may be named, and why they cannot be off."""


class Settings(SettingsModel):
    """All settings of `roadstead.yaml`."""

    runtime: Literal["ray", "inline"] = "ray"
    """`ray`: actors in processes of a Ray cluster. `inline`: the same actors in this process."""

    ray: RayOptions = RayOptions()
    """The Ray that a run uses, and the nodes of it on which the processes run."""

    workers: int = Field(default=0, ge=0, le=1024)
    """Number of worker processes. Each runs users' plugins for new classes of pods on its part of
    the nodes, where this takes long. Any number of workers gives the same decisions."""

    partitions: int = Field(default=2, ge=1, le=1024)
    """Number of partitions of the nodes, by zone, that schedulers own in mode `partitioned`."""

    schedulers: Schedulers = 1
    """Number of concurrent schedulers, in total or for each profile. One scheduler decides as
    kube-scheduler does; several decide optimistically, and the binder resolves conflicts."""

    mode: Mode | None = None
    """`exact`: one logical scheduler. `shared`: several schedulers on all nodes. `partitioned`:
    several schedulers, each first on partitions of its own. By default `exact` with one scheduler,
    `shared` with several."""

    conflicts: Literal["fit", "version"] = "fit"
    """Pods that the binder refuses. `fit`: pods that no longer fit their node. `version`: also pods
    whose node changed after the scheduler read it, unless the same scheduler changed it."""

    transaction: Literal["incremental", "all-or-nothing"] = "incremental"
    """How the pods of a job that are decided in one batch are bound. `incremental`: each pod by
    itself. `all-or-nothing`: all of them or none."""

    staleness_s: NonNegativeSeconds | None = None
    """Maximum age of the cluster state used for a decision. A scheduler uses the state for several
    batches until it reaches this age, and then reads it again. None: read for each batch."""

    decision_time: DecisionTime = DecisionTime()
    """Simulated latency between reading the state and deciding, for each job."""

    partition_policy: Literal["latency-first", "quality-first", "adaptive"] = "latency-first"
    """`latency-first`: a scheduler's own nodes, and other nodes if none of its own is feasible.
    `quality-first`: the best of all nodes. `adaptive`: latency-first while the queue is long, else
    quality-first."""

    partition_refresh_s: NonNegativeSeconds = 0.0
    """Interval after which each partition passes to the next scheduler; 0: never."""

    partition_long_queue_pods: int = Field(default=4096, ge=1, le=100_000_000)
    """Number of pods above which `adaptive` treats the queue as long."""

    control: Literal["together", "apart"] = "together"
    """Processes of queue, cache and binder on Ray. `together`: one process, which starts sooner.
    `apart`: one process each."""

    batch: int = Field(default=2048, ge=1, le=65_536)
    """Maximum number of pods that a scheduler leases at a time."""

    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Seed of every random choice. With one scheduler, the same inputs, settings and seed give the
    same placement, with limits once an actor was lost (docs/ARCHITECTURE.md, Determinism)."""

    tie_break: Literal["random", "first"] = "random"
    """The choice among nodes with equal scores. `random`: a random one, as kube-scheduler does.
    `first`: the first by name."""

    score_nodes: Literal["all", "config"] = "config"
    """Number of feasible nodes to score. `all`: all of them. `config`: the share that
    percentageOfNodesToScore sets in the configuration, or all if it is not set."""

    kernel: bool = True
    """Decide large batches in compiled code, where it supports their pods. The decisions are the
    same."""

    feature_gates: dict[FeatureGate, bool] = Field(default_factory=dict, alias="featureGates")
    """Feature gates of kube-scheduler by name, as in its `--feature-gates`. Gates that are not
    named have the defaults of 1.34."""

    journal: Annotated[Path | None, BeforeValidator(read_path)] = None
    """Folder of the binder's journal. Without a journal, binds are lost when the run ends."""

    journal_copy: Annotated[Path | None, BeforeValidator(read_path)] = None
    """Folder of a second copy of the journal, on the disk of another Ray node. A bind is
    acknowledged when both disks have it."""

    deadlines: ActorDeadlines = ActorDeadlines()
    """Timeouts."""

    bounds: Bounds = Bounds()
    """Maximum numbers and sizes of waiting items."""

    @property
    def scheduler_profiles(self) -> tuple[str, ...]:
        """The profile that each scheduler serves, in order; "" for all profiles."""
        return scheduler_profiles(self.schedulers)

    @property
    def scheduler_count(self) -> int:
        return len(self.scheduler_profiles)

    @property
    def partition_count(self) -> int:
        """The number of partitions of the nodes, by zone."""
        return self.partitions if self.concurrency == "partitioned" else 1

    @property
    def concurrency(self) -> Mode:
        """The mode, with its default: `exact` with one scheduler, `shared` with several."""
        return self.mode or ("exact" if self.scheduler_count == 1 else "shared")

    # The last one runs first (pydantic): `with_partitions` needs the current names.
    _current_name_of_gates = model_validator(mode="before")(refuse_old_name_of_gates)
    _with_partitions = model_validator(mode="before")(with_partitions)
    _with_current_names = model_validator(mode="before")(with_current_names)

    @model_validator(mode="after")
    def _check_contradictions(self) -> Self:
        raise_contradictions([*_contradictions(self)])
        return self


def _contradictions(settings: Settings) -> Iterator[Contradiction]:
    """Yield the settings that are valid by themselves but contradict others."""
    if settings.journal_copy is not None and settings.journal_copy == settings.journal:
        rule = "must be another folder than journal: one disk may hold both"
        yield "journal_copy", str(settings.journal_copy), rule
    for gate, rule in ALWAYS_ON.items():
        if not settings.feature_gates.get(gate, True):  # type: ignore[call-overload]
            yield f"featureGates.{gate}", False, rule
    mode = settings.concurrency
    if mode == "exact" and settings.scheduler_count > 1:
        yield "mode", mode, exact_error(settings.schedulers)
    if mode == "exact" and settings.staleness_s is not None:
        rule = 'needs mode "shared" or "partitioned": an exact scheduler reads for each batch'
        yield "staleness_s", settings.staleness_s, rule
    if mode == "partitioned":
        owners = max_per_profile(settings.schedulers)
        if settings.partitions < owners:
            rule = f"must be at least {owners}: {owners} schedulers each own partitions"
            yield "partitions", settings.partitions, rule
        return
    for field in ("partition_policy", "partition_refresh_s", "partition_long_queue_pods"):
        value = getattr(settings, field)
        if value != Settings.model_fields[field].default:
            yield field, value, 'needs mode "partitioned"'


def load_settings(
    text: str | bytes = "",
    *,
    source: str = SETTINGS_FILE,
    overrides: Mapping[str, object] | None = None,
    overrides_source: str = "flags",
) -> Settings:
    """Load the settings of a `roadstead.yaml` text, overridden by flags.

    `overrides`: field → value, a nested field as `deadlines.call_s`; None overrides nothing.
    `overrides_source`: name of the overrides in errors. Raises ConfigError (an InputError) with the
    path of every field that is unknown or out of range.
    """
    document = _read(text, source) if text else {}
    flags = {name: value for name, value in (overrides or {}).items() if value is not None}
    try:
        # The file first, without the flags, so that an error names the source of the wrong value.
        from_file = Settings.model_validate(document)
        if not flags:
            return from_file
        source = overrides_source
        assert isinstance(document, dict)
        return Settings.model_validate(_with_overrides(deepcopy(document), flags))
    except ValidationError as error:
        from roadstead.config.decode import validation_problems

        problems = validation_problems(error, "")
        raise ConfigError("decode", problems, source=source) from None


def load_settings_file(
    path: str | Path,
    *,
    overrides: Mapping[str, object] | None = None,
    overrides_source: str = "flags",
) -> Settings:
    """Load the settings of a file as `load_settings`; InputError if it cannot be read."""
    return load_settings(
        read_bytes(path, MAX_TEXT_BYTES),
        source=str(path),
        overrides=overrides,
        overrides_source=overrides_source,
    )


def _read(text: str | bytes, source: str) -> object:
    # Imported here: every command loads settings, and few have a file, so most need no YAML.
    from roadstead.config.reader import read_document

    document = read_document(text, source=source)
    return {} if document is None else document


def _with_overrides(document: dict[str, Any], flags: Mapping[str, object]) -> dict[str, Any]:
    if "shards" in flags:
        # A former name, of `partitions` in mode partitioned, else of `workers`. The flag must
        # override the current name in the file.
        name = current_name_of_shards(flags.get("mode", document.get("mode")))
        flags = {name: flags["shards"], **flags}
    for name, value in flags.items():
        if name == "shards":
            continue
        group, dot, field = name.rpartition(".")
        target = document.setdefault(group, {}) if dot else document
        target[field] = value
    return document
