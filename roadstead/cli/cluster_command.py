"""`roadstead cluster`: prepare and check the nodes of a Ray cluster."""

from __future__ import annotations

import json
from pathlib import Path

import click

from roadstead.cli.errors import FAILED, ReportingCommand
from roadstead.cli.options import OutputFormat, RunOptions, format_option, ray_address_option
from roadstead.cli.session import Session


@click.group("cluster")
def cluster_group() -> None:
    """Prepare and check the nodes of a Ray cluster.

    Every command that runs actors joins a Ray cluster with --ray-address; each node needs the same
    version of Roadstead, either installed or from a packed runtime environment.

    \b
    Examples:
      roadstead cluster check --ray-address 10.0.0.1:6379
      roadstead cluster pack -o env.yaml
      roadstead schedule --trace openb.trace --ray-address auto
      ray job submit --runtime-env env.yaml -- \\
        python -m roadstead demo
    """


@cluster_group.command(
    "check", cls=ReportingCommand, short_help="Check the nodes of a Ray cluster."
)
@ray_address_option
@click.option(
    "--journal",
    metavar="DIR",
    help="Folder of a journal, to see which nodes have it: the binder runs only on these.",
)
@click.option(
    "--settings",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="roadstead.yaml file, for ray.runtime_env and deadlines.",
)
@format_option
@click.pass_obj
def check_command(
    session: Session,
    *,
    ray_address: str | None,
    journal: str | None,
    settings: Path | None,
    output_format: OutputFormat,
) -> None:
    """Check each node of a Ray cluster. A run uses only nodes that pass.

    On each node a process imports Roadstead and reports its version, its code, Python, whether the
    kernel is compiled, the clock, and whether the node has the folder of the journal.

    \b
    Examples:
      roadstead cluster check --ray-address auto
      roadstead cluster check --ray-address auto --journal /shared/journal
      roadstead cluster check --format json | jq '.nodes[].problem'

    Exit status: 0 every node can run Roadstead; 1 a node cannot, or the cluster cannot be joined.
    """
    from roadstead.cli.plan import read_settings
    from roadstead.report.ray_nodes import as_json
    from roadstead.report.ray_nodes_table import print_nodes
    from roadstead.report.text_table import wide_console

    options = RunOptions("ray", ray_address=ray_address, journal=journal, settings=settings)
    address, nodes = session.launcher().check_cluster(read_settings(options))
    if output_format == "json":
        click.echo(json.dumps({"address": address, "nodes": as_json(nodes)}, indent=2))
    else:
        print_nodes(wide_console(), nodes, address)
    if any(node.problem for node in nodes):
        raise click.exceptions.Exit(FAILED)


@cluster_group.command("pack", cls=ReportingCommand, short_help="Write a runtime environment.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("env.yaml"),
    show_default=True,
    metavar="FILE",
    help="File of the runtime environment; the wheel is written next to it.",
)
@click.option(
    "--plugin-file",
    "plugin_files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.py",
    help="Module of your plugins, packed as a top-level module. May be given more than once.",
)
@click.option(
    "--without-packages",
    is_flag=True,
    help="Pack Roadstead alone, for nodes that have the packages that it needs.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
def pack_command(
    *, output: Path, plugin_files: tuple[Path, ...], without_packages: bool, force: bool
) -> None:
    """Write a runtime environment with which Ray installs Roadstead on its nodes.

    The file names a wheel of the Roadstead that runs this command, and the packages that it needs
    in the versions that are installed here. Ray itself must be on the nodes already, in the same
    version, with the same minor version of Python.

    \b
    Examples:
      roadstead cluster pack -o env.yaml
      ray job submit --runtime-env env.yaml -- \\
        python -m roadstead schedule --trace openb.trace
      roadstead cluster pack --without-packages --plugin-file few_pods.py
    """
    from roadstead.api.cluster_pack import pack

    packed = pack(
        output, plugin_files=plugin_files, with_packages=not without_packages, may_replace=force
    )
    click.echo(f"{packed.environment}: the runtime environment")
    click.echo(f"{packed.wheel}: {packed.modules} modules, {packed.size_bytes / 1e6:.1f} MB")
    if packed.packages:
        click.echo(f"Packages: {', '.join(packed.packages)}")
