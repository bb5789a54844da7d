"""Commands of `roadstead trace import`: one for each published format, and one for any table.

A reader (`SwfReader` and others) reads files of one format into a `TraceSink`, which writes the
trace, and reports its progress to a `ProgressMeter`. openb, Alibaba's GPU trace of 2023, is in
`trace_command`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.trace_import_options import (
    PATH,
    CommonOptions,
    common_options,
    cpu_option,
    machine_spec,
    memory_option,
    nodes_option,
    run_import,
)

if TYPE_CHECKING:
    from roadstead.traces.files import ProgressMeter
    from roadstead.traces.sink import TraceSink

_UNUSED_CPU = 64
"""A value for readers that find the cores of a node in the trace, and so have no --node-cpu."""


@click.command("swf", cls=ReportingCommand, short_help="Make a trace from a log in SWF.")
@click.argument("log", metavar="FILE", type=PATH)
@nodes_option
@click.option(
    "--node-processors",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Processors of a node [default: MaxProcs / MaxNodes in the header of FILE, else 1].",
)
@memory_option
@common_options
def swf_command(
    log: Path,
    nodes: int | None,
    node_processors: int | None,
    node_memory: str,
    common: CommonOptions,
) -> None:
    """Make a trace from a log of the Parallel Workloads Archive.

    FILE is in the Standard Workload Format (*.swf, *.swf.gz); logs are at
    https://www.cs.huji.ac.il/labs/parallel/workload/. A job becomes one or
    more pods, each of at most the processors of one node; a processor is a request of one core.

    \b
    Examples:
      roadstead trace import swf CTC-SP2-1996-3.1-cln.swf.gz -o ctc.trace
      roadstead trace import swf log.swf --nodes 100 --node-processors 32 \\
        -o log.trace
    """
    from roadstead.traces.swf import SwfReader

    machines = machine_spec(_UNUSED_CPU, node_memory, nodes)
    run_import(
        f"SWF {log.name}",
        common,
        lambda sink, meter: SwfReader(sink, machines, node_processors).read(log, meter),
        namespace="swf",
    )


@click.command("azure-packing", cls=ReportingCommand)
@click.argument("database", metavar="FILE", type=PATH)
@click.option(
    "--machine",
    type=int,
    metavar="ID",
    help="Machine type (machineId) to which the shares of VM types refer [default: the one on "
    "which most VM types run].",
)
@nodes_option
@cpu_option
@memory_option
@common_options
def azure_command(
    database: Path,
    machine: int | None,
    nodes: int | None,
    node_cpu: float,
    node_memory: str,
    common: CommonOptions,
) -> None:
    """Make a trace from the Azure Trace for Packing 2020.

    FILE is the SQLite database in AzurePackingTraceV1.zip; see
    https://github.com/Azure/AzurePublicDataset. The trace states requests as shares of a machine;
    a pod requests its share of --node-cpu and --node-memory. The trace does not state how many
    machines there are: give their number with --nodes.

    \b
    Examples:
      roadstead trace import azure-packing packing_trace_zone_a_v1.sqlite \\
        --nodes 2000 -o azure.trace
    """
    from roadstead.traces.azure_packing import AzureReader

    machines = machine_spec(node_cpu, node_memory, nodes)
    run_import(
        "Azure packing 2020",
        common,
        lambda sink, meter: AzureReader(sink, machines, machine).read(database, meter),
        namespace="azure",
    )


@click.command("google-2011", cls=ReportingCommand)
@click.argument("folder", metavar="DIR", type=PATH)
@cpu_option
@memory_option
@common_options
def google_2011_command(
    folder: Path, node_cpu: float, node_memory: str, common: CommonOptions
) -> None:
    """Make a trace from Google's clusterdata-2011-2.

    DIR has the folders machine_events and task_events with files part-*.csv or part-*.csv.gz; see
    https://github.com/google/cluster-data/blob/master/ClusterData2011_2.md.

    \b
    Examples:
      roadstead trace import google-2011 clusterdata-2011-2 -o google.trace
      roadstead trace import google-2011 clusterdata-2011-2 --sample 0.01 \\
        -o google-1.trace
    """
    from roadstead.traces.google_2011 import Google2011Reader

    machines = machine_spec(node_cpu, node_memory)
    run_import(
        "Google 2011",
        common,
        lambda sink, meter: Google2011Reader(sink, machines).read(folder, meter),
        namespace="google",
    )


@click.command("google-2019", cls=ReportingCommand)
@click.argument("folder", metavar="DIR", type=PATH)
@cpu_option
@memory_option
@common_options
def google_2019_command(
    folder: Path, node_cpu: float, node_memory: str, common: CommonOptions
) -> None:
    """Make a trace from one cell of Google's ClusterData2019.

    DIR has the files machine_events*.json and instance_events*.json (or .json.gz), as exported from
    BigQuery, one object a line; see
    https://github.com/google/cluster-data/blob/master/ClusterData2019.md.

    \b
    Examples:
      roadstead trace import google-2019 cell-a --sample 0.01 -o cell-a.trace
    """
    from roadstead.traces.google_2019 import Google2019Reader

    machines = machine_spec(node_cpu, node_memory)
    run_import(
        "Google 2019",
        common,
        lambda sink, meter: Google2019Reader(sink, machines).read(folder, meter),
        namespace="google",
    )


@click.command("alibaba-2018", cls=ReportingCommand)
@click.argument("folder", metavar="DIR", type=PATH)
@memory_option
@common_options
def alibaba_2018_command(folder: Path, node_memory: str, common: CommonOptions) -> None:
    """Make a trace from Alibaba's cluster-trace-v2018.

    DIR has machine_meta and batch_task, and container_meta to import services too, each as .csv,
    .csv.gz or .tar.gz; see
    https://github.com/alibaba/clusterdata/tree/master/cluster-trace-v2018. The whole trace has more
    than 10^9 pods: import a part of it with --sample.

    \b
    Examples:
      roadstead trace import alibaba-2018 data --sample 0.001 -o alibaba.trace
    """
    from roadstead.traces.alibaba_2018 import Alibaba2018Reader

    machines = machine_spec(_UNUSED_CPU, node_memory)
    run_import(
        "Alibaba 2018",
        common,
        lambda sink, meter: Alibaba2018Reader(sink, machines).read(folder, meter),
        namespace="alibaba",
    )


@click.command("alibaba-gpu-2020", cls=ReportingCommand)
@click.argument("folder", metavar="DIR", type=PATH)
@click.option(
    "--require-gpu-type",
    is_flag=True,
    help="Let a task run only on nodes with its type of GPU (gpu_type in pai_task_table).",
)
@common_options
def alibaba_gpu_2020_command(folder: Path, require_gpu_type: bool, common: CommonOptions) -> None:
    """Make a trace from Alibaba's cluster-trace-gpu-v2020.

    DIR has pai_machine_spec, pai_task_table and, for the times of submission, pai_job_table, each
    as .csv, .csv.gz or .tar.gz; see
    https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020.

    Alibaba's GPU trace of 2023 is named openb: see roadstead trace import openb --help.

    \b
    Examples:
      roadstead trace import alibaba-gpu-2020 data -o pai.trace
    """
    from roadstead.traces.alibaba_gpu_2020 import AlibabaGpu2020Reader

    def read(sink: TraceSink, meter: ProgressMeter) -> None:
        AlibabaGpu2020Reader(sink, requires_type=require_gpu_type).read(folder, meter)

    run_import("Alibaba GPU 2020", common, read, namespace="alibaba")


@click.command("philly", cls=ReportingCommand)
@click.argument("folder", metavar="DIR", type=PATH)
@cpu_option
@memory_option
@common_options
def philly_command(folder: Path, node_cpu: float, node_memory: str, common: CommonOptions) -> None:
    """Make a trace from Microsoft's Philly traces.

    DIR has cluster_job_log and cluster_machine_list, unpacked from trace-data.tar.gz; see
    https://github.com/msr-fiddle/philly-traces. Jobs request GPUs only;
    --node-cpu and --node-memory are the other resources of a node.

    \b
    Examples:
      roadstead trace import philly trace-data -o philly.trace
    """
    from roadstead.traces.philly import PhillyReader

    machines = machine_spec(node_cpu, node_memory)
    run_import(
        "Philly",
        common,
        lambda sink, meter: PhillyReader(sink, machines).read(folder, meter),
        namespace="philly",
    )


@click.command("simkube", cls=ReportingCommand, short_help="Make a trace from a SimKube trace.")
@click.argument("file", metavar="FILE", type=PATH)
@nodes_option
@cpu_option
@memory_option
@common_options
def simkube_command(
    file: Path, nodes: int | None, node_cpu: float, node_memory: str, common: CommonOptions
) -> None:
    """Make a trace from a SimKube trace of a Kubernetes cluster.

    FILE is what `skctl export` writes (msgpack, format version 2); see
    https://github.com/acrlabs/simkube. It has no nodes; --nodes N adds N nodes of
    --node-cpu and --node-memory.

    \b
    Examples:
      roadstead trace import simkube prod.sktrace --nodes 100 -o prod.trace
    """
    from roadstead.traces.machines import add_machines
    from roadstead.traces.simkube import SimKubeReader

    machines = machine_spec(node_cpu, node_memory, nodes)

    def read(sink: TraceSink, meter: ProgressMeter) -> None:
        SimKubeReader(sink).read(file, meter)
        size = {"cpu": machines.cpu_milli, "memory": machines.memory_bytes}
        add_machines(sink, "node", machines.count or 0, size)

    run_import(f"SimKube {file.name}", common, read, namespace="default")


@click.command("table", cls=ReportingCommand, short_help="Make a trace from any table.")
@click.argument("file", metavar="FILE", type=PATH)
@click.option(
    "--mapping",
    type=PATH,
    metavar="YAML",
    required=True,
    help="Mapping file: the column and unit of each value, as in the example. docs/traces.md lists "
    "all keys.",
)
@common_options
def table_command(file: Path, mapping: Path, common: CommonOptions) -> None:
    """Make a trace from any table: CSV (also .gz), or Parquet for *.parquet.

    \b
    Examples:
      roadstead trace import table jobs.csv --mapping jobs.yaml -o jobs.trace
    \b
    A mapping file:
      apiVersion: roadstead.dev/v1
      kind: TraceMapping
      pods:
        name: {column: id}
        arrival: {column: submitted, unit: s}
        duration: {column: hours, unit: h}
        cpu: {column: cpus, unit: cores}
        memory: {column: mem_mb, unit: MiB}
      nodes:
        count: {value: 100}
        cpu: {value: 64}
        memory: {value: 256Gi, unit: quantity}
    """
    from roadstead.traces.table import TableReader
    from roadstead.traces.table_mapping import read_mapping

    parsed_mapping = read_mapping(mapping)
    run_import(
        f"table {file.name}",
        common,
        lambda sink, meter: TableReader(sink, parsed_mapping, mapping).read(file, meter),
        namespace=parsed_mapping.pods.namespace,
    )


IMPORT_COMMANDS = (
    swf_command,
    azure_command,
    google_2011_command,
    google_2019_command,
    alibaba_2018_command,
    alibaba_gpu_2020_command,
    philly_command,
    simkube_command,
    table_command,
)
