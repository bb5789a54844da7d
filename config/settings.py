"""Roadstead's own settings, apart from KubeSchedulerConfiguration: how a run is carried out.

None of them makes a decision incorrect; `tie_break`, `seed`, `schedulers` and the settings of
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
    scheduler_profiles,
    with_current_names,
    with_partitions,
)
from roadstead.config.errors import ConfigError
from roadstead.config.files import read_bytes
from roadstead.config.part import Part, path_of
from roadstead.config.ray import RayOptions

SETTINGS_FILE: Final = "roadstead.yaml"


Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class ActorDeadlines(Part):
    """Timeouts, in seconds (above 0, at most a day)."""

    start_s: Seconds = 120.0
    """Until every actor has answered once. A start that takes longer ends with an error. Ray itself
    starts a process again that has not registered within 30 s."""

    call_s: Seconds = 30.0
    """Until an actor answers a call. What does not answer is reported as lost."""

    evaluate_s: Seconds = 15.0
    """Until a worker answers about a batch. A scheduler asks the plugins itself about the nodes of
    a late one."""

    plugin_s: Seconds = 10.0
    """Until one call of a user's plugin returns. A longer one fails the attempts of its pods."""

    lease_s: Seconds = 30.0
    """How long a scheduler may hold the pods it took; after that the queue takes them back."""

    assume_s: Seconds = 60.0
    """How long an assumed pod may wait for its confirmation before the binder is asked."""

    stop_s: Seconds = 10.0
    """Until actors that were told to stop are stopped by force."""


class Bounds(Part):
    """Maximum numbers of waiting items. A full place refuses more; it never grows without limit."""

    queue_max_pods: int = Field(default=10_000_000, ge=1, le=100_000_000)
    """Pods in the scheduling queue, all its parts together."""

    inflight_max_batches: int = Field(default=4, ge=1, le=1024)
    """Batches that one scheduler has under way at the binder."""

    mailbox_max_messages: int = Field(default=1024, ge=1, le=1_000_000)
    """Messages waiting for one actor."""

    message_max_bytes: int = Field(default=64 << 20, ge=1 << 10, le=1 << 30)
    """Size of one message on the wire, in bytes."""


class Settings(Part):
    """All settings of `roadstead.yaml`."""

    runtime: Literal["ray", "inline"] = "ray"
    """`ray`: actors in processes of a Ray cluster. `inline`: the same actors in this process."""

    ray: RayOptions = RayOptions()
    """Which Ray is used, and where on it the processes run."""

    workers: int = Field(default=0, ge=0, le=1024)
    """Processes that score for the schedulers: each asks users' plugins about new kinds of pods on
    its part of the nodes, where that takes long. Any number of them gives the same decisions."""

    partitions: int = Field(default=2, ge=1, le=1024)
    """In mode partitioned: parts of the nodes, by zone, that schedulers own."""

    schedulers: Schedulers = 1
    """Schedulers at work at once, or how many for each profile. With one, decisions are those of
    kube-scheduler; with several, each is optimistic and the binder settles conflicts."""

    mode: Mode | None = None
    """`exact`: one logical scheduler. `shared`: several on all nodes. `partitioned`: several, each
    on partitions of its own first. By default exact with one scheduler, shared with several."""

    conflicts: Literal["fit", "version"] = "fit"
    """What the binder refuses: `fit`: a pod that does not fit its node any more. `version`: also
    one whose node changed at all since it was read, unless by the same scheduler."""

    transaction: Literal["incremental", "all-or-nothing"] = "incremental"
    """Of a job's pods that are decided together, each is bound by itself, or all or none are."""

    staleness_s: NonNegativeSeconds | None = None
    """How old the state may be on which is decided. What was read is used so long, for later
    batches, too, and then read anew. None: read for each batch."""

    decision_time: DecisionTime = DecisionTime()
    """Simulated thinking between reading and deciding, for each job."""

    partition_policy: Literal["latency-first", "quality-first", "adaptive"] = "latency-first"
    """`latency-first`: a scheduler's own nodes, others where none of these is feasible.
    `quality-first`: the best of all nodes. `adaptive`: latency-first while the queue is long."""

    partition_refresh_s: NonNegativeSeconds = 0.0
    """How often partitions change hands, each to the next scheduler; 0: never."""

    partition_long_queue_pods: int = Field(default=4096, ge=1, le=100_000_000)
    """Pods in the queue that `adaptive` calls long."""

    control: Literal["together", "apart"] = "together"
    """On Ray: queue, cache and binder share one process, which starts sooner, or have one each."""

    batch: int = Field(default=2048, ge=1, le=65_536)
    """Pods that a scheduler leases at a time."""

    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Start of every random choice. Same inputs, settings and seed: same placement, with one
    scheduler; limits after deaths: docs/ARCHITECTURE.md, Determinism."""

    tie_break: Literal["random", "first"] = "random"
    """Among equally good nodes: one at random, as kube-scheduler does, or the first by name."""

    score_nodes: Literal["all", "config"] = "config"
    """Score all feasible nodes, or as many as the configuration's percentageOfNodesToScore says,
    where it says one."""

    kernel: bool = True
    """Large batches are decided by compiled code, where it covers their pods; same result."""

    journal: Annotated[Path | None, BeforeValidator(path_of)] = None
    """Folder of the binder's journal. Without one, binds live as long as the run."""

    deadlines: ActorDeadlines = ActorDeadlines()
    """How long things may take."""

    bounds: Bounds = Bounds()
    """How much may wait."""

    @property
    def scheduler_profiles(self) -> tuple[str, ...]:
        """The profile that each scheduler serves, in order; "" for all profiles."""
        return scheduler_profiles(self.schedulers)

    @property
    def scheduler_count(self) -> int:
        return len(self.scheduler_profiles)

    @property
    def part_count(self) -> int:
        """The number of partitions of the nodes, by zone."""
        return self.partitions if self.concurrency == "partitioned" else 1

    @property
    def concurrency(self) -> Mode:
        """The mode in force."""
        return self.mode or ("exact" if self.scheduler_count == 1 else "shared")

    _with_partitions = model_validator(mode="before")(with_partitions)
    _with_current_names = model_validator(mode="before")(with_current_names)

    @model_validator(mode="after")
    def _check_contradictions(self) -> Self:
        raise_contradictions([*_contradictions(self)])
        return self


def _contradictions(settings: Settings) -> Iterator[Contradiction]:
    """Yield the settings that are valid alone and wrong together."""
    mode = settings.concurrency
    if mode == "exact" and settings.scheduler_count > 1:
        yield "mode", mode, exact_error(settings.schedulers)
    if mode == "exact" and settings.staleness_s is not None:
        rule = 'needs mode "shared" or "partitioned": an exact scheduler reads for each batch'
        yield "staleness_s", settings.staleness_s, rule
    if mode == "partitioned":
        most = max_per_profile(settings.schedulers)
        if settings.partitions < most:
            rule = f"must be at least {most}: {most} schedulers each own partitions"
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

    `overrides`: field → value, a nested field as `deadlines.call_s`; None means not given.
    `overrides_source`: their name in errors. Raises ConfigError (an InputError) with the path of
    every field that is unknown or out of range.
    """
    document = _read(text, source) if text else {}
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    try:
        from_file = Settings.model_validate(document)
        if not given:
            return from_file
        source = overrides_source
        assert isinstance(document, dict)
        return Settings.model_validate(_with_overrides(deepcopy(document), given))
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
        read_bytes(path),
        source=str(path),
        overrides=overrides,
        overrides_source=overrides_source,
    )


def _read(text: str | bytes, source: str) -> object:
    # Imported here: every command loads settings, and few have a file, so most need no YAML.
    from roadstead.config.reader import read_document

    document = read_document(text, source=source)
    return {} if document is None else document


def _with_overrides(document: dict[str, Any], given: Mapping[str, object]) -> dict[str, Any]:
    if "shards" in given:
        # Under its current name, so that the flag overrides that name in the file.
        name = current_name_of_shards(given.get("mode", document.get("mode")))
        given = {name: given["shards"], **given}
    for name, value in given.items():
        if name == "shards":
            continue
        group, dot, field = name.rpartition(".")
        target = document.setdefault(group, {}) if dot else document
        target[field] = value
    return document
