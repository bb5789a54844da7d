"""Options that several commands share, each group collected in one object."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import click

from roadstead.api.config_source import STDIN
from roadstead.cli.concurrency_options import SchedulersType

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Callback = Callable[..., None]
"""The function of a command."""

OutputFormat = Literal["table", "json"]
RunFormat = Literal["table", "wide", "json", "yaml", "csv", "name", "bindings"]
QueryFormat = Literal["table", "csv", "json"]
"""Values of --format: of most commands, of those that schedule, and of `roadstead query`."""

NO_JOURNAL: Final = "none"
"""Value of --journal for a run without journal."""
PRESETS: Final = "binpack, default, gpu-binpack, spread"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The source of nodes and pods: manifests, a trace, or a moment of a simulated run.

    cluster, pods: names of files and folders, globs, or "-". run: folder of a simulated run. at:
    the moment as a text, None for the start of that run.
    """

    cluster: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    trace: Path | None = None
    trace_gpus: str = "amount"
    strict: bool = False
    lost_nodes: str = "leave-out"
    run: Path | None = None
    at: str | None = None

    def check(self, *other_inputs: str | None) -> None:
        """Raise UsageError unless there is exactly one source.

        other_inputs: input files of other options. Only one file may be standard input ("-").
        """
        if self.run is not None and (self.trace is not None or self.cluster or self.pods):
            raise click.UsageError("--run excludes --cluster, --pods and --trace")
        if self.at is not None and self.run is None:
            raise click.UsageError("--at needs --run")
        if self.trace_gpus != "amount" and self.trace is None:
            raise click.UsageError("--trace-gpus needs --trace")
        if self.run is not None:
            return
        if self.trace is not None and (self.cluster or self.pods):
            raise click.UsageError("--trace excludes --cluster and --pods")
        if self.trace is None and not self.cluster and not self.pods:
            raise click.UsageError("no input given: use --cluster and --pods, or --trace")
        if self.trace is None and not self.cluster:
            raise click.UsageError("--pods needs --cluster, which has the nodes")
        if (*self.cluster, *self.pods, *other_inputs).count(STDIN) > 1:
            raise click.UsageError("only one option can read standard input (-)")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run; None means the value of the settings file, or the default."""

    runtime: str | None = None
    ray_address: str | None = None
    shards: int | None = None
    seed: int | None = None
    schedulers: int | dict[str, int] | None = None
    batch: int | None = None
    tie_break: str | None = None
    score_nodes: str | None = None
    journal: str | None = None
    journal_copy: str | None = None
    resume: bool = False
    settings: Path | None = None
    log: Path | None = None
    config: str | None = None
    preset: str | None = None
    plugin: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise UsageError for options that exclude each other."""
        if self.config is not None and self.preset is not None:
            raise click.UsageError("--config and --preset exclude each other")

    def with_inline_default(self) -> RunOptions:
        """Use the inline runtime unless another one was requested."""
        if self.runtime or self.ray_address or self.settings is not None:
            return self
        return replace(self, runtime="inline")

    def overrides(self) -> dict[str, object]:
        """Return the settings that flags override, by dotted name; None for a missing flag."""
        names = (
            *("runtime", "shards", "seed", "schedulers", "batch", "tie_break"),
            *("score_nodes", "journal", "journal_copy"),
        )
        overrides = {name: getattr(self, name) for name in names}
        overrides["ray.address"] = self.ray_address
        if self.journal == NO_JOURNAL:
            # Not a folder of this name; `plan.read_settings` removes the journal.
            overrides["journal"] = None
        return overrides


_RUNTIME = click.option(
    "--runtime",
    type=click.Choice(["ray", "inline"]),
    help="ray: actors in processes of Ray (the default). inline: all in this process.",
)
ray_address_option = click.option(
    "--ray-address",
    metavar="ADDRESS",
    help="Ray to run on: HOST:PORT is the head of a Ray cluster, auto the Ray of this machine, "
    "local one that is started for the run [default: $RAY_ADDRESS, else local].",
)
_SHARDS = click.option(
    "--shards",
    type=int,
    metavar="N",
    hidden=True,
    help="Former name of --workers; with --mode partitioned, of --partitions.",
)
seed_option = click.option(
    "--seed",
    type=int,
    metavar="N",
    help="Seed of all random choices [default: 0]. With one scheduler, the same seed gives the "
    "same placements.",
)
_LOG = click.option(
    "--log",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the logs of the actors (JSON lines), and for their last messages before an "
    "error.",
)

fleet_parameters = (
    click.option(
        "--cluster",
        multiple=True,
        metavar="FILES",
        help="Manifests of the cluster: nodes, pods, namespaces, services and others. A file, a "
        "folder, a glob, or - for standard input; may be given more than once.",
    ),
    click.option(
        "--pods",
        multiple=True,
        metavar="FILES",
        help="Manifests to schedule: pods, and workloads whose pods are created. Given as for "
        "--cluster.",
    ),
    click.option(
        "--trace",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Trace to schedule in place of manifests; see roadstead trace --help.",
    ),
    click.option(
        "--trace-gpus",
        type=click.Choice(["amount", "devices"]),
        default="amount",
        show_default=True,
        help="Form of the GPUs of --trace: one amount for each node, or devices that pods claim, "
        "which needs the feature gate DRAConsumableCapacity.",
    ),
)
source_parameters = (
    *fleet_parameters,
    click.option(
        "--lost-nodes",
        type=click.Choice(["leave-out", "reschedule"]),
        default="leave-out",
        show_default=True,
        help="Running pods on nodes that are not in --cluster: leave-out ignores them, reschedule "
        "makes them pending again.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Report a field of a pod that Kubernetes does not have as an error. By default, the "
        "field is left out, with a note.",
    ),
)
plugin_option = click.option(
    "--plugin",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Your plugin, from an installed package or the working directory; FILE.py stands for all "
    "plugins that a file of the working directory defines. Without a configuration, it is added to "
    "the default plugins. May be given more than once.",
)
config_parameters = (
    click.option(
        "--config",
        metavar="FILE",
        help="KubeSchedulerConfiguration, YAML or JSON, or an older Policy; - reads standard "
        "input.",
    ),
    click.option("--preset", metavar="NAME", help=f"Included configuration: {PRESETS}."),
    plugin_option,
)
settings_option = click.option(
    "--settings",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="roadstead.yaml file with these and further settings; options override it.",
)
_SETTINGS_OPTIONS = (
    click.option(
        "--schedulers",
        type=SchedulersType(),
        metavar="N",
        help="Number of schedulers [default: 1]. With one, decisions are kube-scheduler's. "
        "PROFILE=N,PROFILE=N: the number for each profile.",
    ),
    click.option(
        "--batch",
        type=int,
        metavar="N",
        help="Maximum number of pods that a scheduler leases as one batch [default: 2048].",
    ),
    click.option(
        "--tie-break",
        type=click.Choice(["random", "first"]),
        help="Choice among nodes of equal score. random: one at random (the default). first: the "
        "first by name.",
    ),
    click.option(
        "--score-nodes",
        type=click.Choice(["all", "config"]),
        help="Number of feasible nodes that are scored. config: percentageOfNodesToScore of the "
        "configuration, all where it is not set (the default). all: all feasible nodes.",
    ),
    click.option(
        "--journal",
        metavar="DIR",
        help="Folder of the binder's journal [default: none; with --output DIR: DIR/journal]. "
        "none: no journal; a run whose binder is lost then ends.",
    ),
    click.option(
        "--journal-copy",
        metavar="DIR",
        help="Folder of a second copy of the journal, on the disk of another Ray node than the "
        "binder's. A bind is acknowledged when both disks have it, so the loss of either node "
        "loses none.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Continue the run in the journal: bound pods stay bound. For a run that ended, only "
        "its output is written.",
    ),
    settings_option,
)

demo_run_parameters = (_RUNTIME, ray_address_option, seed_option, settings_option, _LOG)
run_parameters = (
    *config_parameters,
    *(_RUNTIME, ray_address_option, _SHARDS, seed_option),
    *_SETTINGS_OPTIONS,
    _LOG,
)

output_option = click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the results: placements, pending pods and nodes (Parquet, JSON), summary.json "
    "and run.json.",
)
force_option = click.option(
    "--force", is_flag=True, help="Replace the results of another run in the --output folder."
)
format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Output format.",
)
run_format_option = click.option(
    "--format",
    "-o",
    "output_format",
    type=click.Choice(get_args(RunFormat)),
    default="table",
    show_default=True,
    help="Output format, -o as for kubectl. wide: the table and a row for every pod. csv, name: "
    "only the pods, with the node of each. json, yaml: the whole result. bindings: the placements "
    "as manifests for kubectl create -f.",
)


def options_as(
    name: str,
    options_class: type[DataclassInstance],
    parameters: tuple[Callable[[Callback], Callback], ...],
) -> Callable[[Callback], Callback]:
    """Return a decorator that adds parameters to a command.

    The command receives them as one object of `options_class`, in the argument `name`.
    """
    field_names = {field.name for field in fields(options_class)}

    def decorate(command: Callback) -> Callback:
        @functools.wraps(command)
        def call(**values: object) -> None:
            own_values: dict[str, Any] = {
                field: values.pop(field) for field in field_names & values.keys()
            }
            command(**{name: options_class(**own_values)}, **values)

        decorated: Callback = call
        for parameter in reversed(parameters):
            decorated = parameter(decorated)
        return decorated

    return decorate


def check_run_is_first(run: Path, other: str, name: str) -> None:
    """Raise UsageError if a folder was given as the second argument, and nothing as the first."""
    # `other` may be a statement of SQL, longer than a file's name may be: Path.is_dir would raise.
    if not run.exists() and os.path.isdir(other):
        raise click.UsageError(f"RUN comes before {name}")
