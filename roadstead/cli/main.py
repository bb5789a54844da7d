"""The command line: a group whose commands are loaded when they are called.

`roadstead --help` loads only click. The module of a command imports what its options need; the
command imports the rest when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from roadstead import __version__
from roadstead.cli.session import Session
from roadstead.interruption import Interrupted, interruptible

if TYPE_CHECKING:
    from roadstead.cli.session import OpenLauncher

_PACKAGE: Final = "roadstead.cli"

# Name: (module, attribute, one line of help).
_COMMANDS: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        "demo": ("demo_command", "demo_command", "Schedule a generated fleet."),
        "schedule": ("schedule_command", "schedule_command", "Schedule manifests or a trace."),
        "explain": (
            "explain_command",
            "explain_command",
            "Explain which nodes a pod can run on.",
        ),
        "fit": ("fit_command", "fit_command", "Count how many more replicas fit."),
        "grow": ("grow_command", "grow_command", "Search the nodes to add, or those that can go."),
        "drain": ("drain_command", "drain_command", "Show where the pods of nodes would go."),
        "trace": ("trace_command", "trace_group", "Import and show traces."),
        "scenario": ("scenario_command", "scenario_group", "Write and check scenarios."),
        "simulate": ("simulate_command", "simulate_command", "Play a scenario in virtual time."),
        "why": ("why_command", "why_command", "Explain the life of a simulated pod."),
        "query": ("query_command", "query_command", "Query the tables of simulated runs."),
        "sweep": ("sweep_command", "sweep_command", "Play variants of a scenario."),
        "compare": ("compare_command", "compare_command", "Compare two configurations or runs."),
        "bench": ("bench_command", "bench_command", "Measure how fast pods are scheduled."),
        "check": ("check_command", "check_command", "Check what a run committed."),
        "stress": ("stress_command", "stress_command", "Measure the cost of conflicts."),
        "config": ("config_command", "config_command", "Print the configuration in effect."),
        "plugin": ("plugin.command", "plugin_group", "Write, test and list plugins."),
        "cluster": ("cluster_command", "cluster_group", "Prepare and check a Ray cluster."),
    }
)

_HELP: Final = """Roadstead, a Kubernetes-compatible scheduler that runs as actors on Ray.

\b
Examples:
  roadstead demo                          # needs no input
  roadstead schedule --cluster nodes.yaml --pods app/
                                          # nodes for these pods
  kubectl get nodes,pods,pvc,pv,sc,pdb -A -o yaml > cluster.yaml
  roadstead schedule --cluster cluster.yaml
                                          # the pending pods of a cluster
  roadstead explain web-0 --cluster nodes.yaml --pods app/
                                          # each node: why, or why not
  roadstead fit web --cluster nodes.yaml --pods app/
                                          # how many more replicas fit
  roadstead drain n-17 --cluster cluster.yaml
                                          # where its pods would go
  roadstead scenario init -o small.yaml   # a fleet over time, to start from
  roadstead simulate small.yaml           # played in virtual time
  roadstead trace import openb data/openb -o openb.trace
  roadstead schedule --trace openb.trace  # 8,152 pods on 1,523 nodes
  roadstead config --preset binpack       # a configuration to start from
  roadstead plugin new FewPods            # a plugin of your own to start from
  roadstead bench SchedulingBasic         # --list: all workloads

\b
Exit status: 0 success, 1 a run failed (fit, grow, drain: or something does
not fit), 2 invalid input, 3 a plugin does not support a field of a pod,
130 or 143 interrupted (SIGINT, SIGTERM).
"""


class LazyGroup(click.Group):
    """A group that imports the module of a command only when the command is called."""

    def __init__(self, open_launcher: OpenLauncher) -> None:
        super().__init__(
            "roadstead", help=_HELP, context_settings={"help_option_names": ["-h", "--help"]}
        )
        self._open_launcher = open_launcher

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # What commands read of this call; reports show its arguments as they were written.
        ctx.obj = Session(self._open_launcher, tuple(args))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        # SIGINT and SIGTERM are raised as Interrupted.
        with interruptible():
            try:
                return super().invoke(ctx)
            except Interrupted as interrupted:
                click.echo(str(interrupted), err=True)
                raise click.exceptions.Exit(interrupted.status) from interrupted

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = get_close_matches(args[0], _COMMANDS, n=1)
        # A shell that completes a command line gets no errors.
        if args[0] not in _COMMANDS and close and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command = getattr(import_module(f"{_PACKAGE}.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in _COMMANDS.items()])


def build_cli(open_launcher: OpenLauncher) -> click.Group:
    """Build the command line.

    open_launcher: returns the object that executes runs on actors; a command that has runs calls it
    once.
    """
    group = LazyGroup(open_launcher)
    click.version_option(__version__, prog_name="roadstead", message="%(prog)s %(version)s")(group)
    return group
