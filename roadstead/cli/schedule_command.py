"""`roadstead schedule`: the user's manifests, or a trace, scheduled."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.concurrency_options import ConcurrencyOptions, concurrency_parameters
from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import (
    RunFormat,
    RunOptions,
    SourceOptions,
    force_option,
    options_as,
    output_option,
    run_format_option,
    run_parameters,
    source_parameters,
)
from roadstead.cli.session import Session


@click.command("schedule", cls=ReportingCommand)
@options_as("source", SourceOptions, source_parameters)
@options_as("options", RunOptions, run_parameters)
@options_as("concurrency", ConcurrencyOptions, concurrency_parameters)
@output_option
@force_option
@run_format_option
@click.pass_obj
def schedule_command(
    session: Session,
    *,
    source: SourceOptions,
    options: RunOptions,
    concurrency: ConcurrencyOptions,
    output: Path | None,
    force: bool,
    output_format: RunFormat,
) -> None:
    """Schedule manifests or a trace.

    Reads nodes and other objects of the cluster from --cluster, and pods and workloads from --pods.
    Decides every pending pod as kube-scheduler would. Sends nothing to a cluster: the result is
    printed and, with --output, written.

    Manifests are YAML or JSON, including lists as kubectl prints them. Pods with a nodeName are
    running; the others are pending, those of --cluster before those of --pods. For Deployments,
    ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs of --pods, the missing pods are
    created. Limit ranges, quotas and classes apply to pods and claims that the cluster does not
    store yet; an object that they refuse is not created, and is reported with the reason.

    \b
    Examples:
      roadstead schedule --cluster nodes.yaml --pods app/
      roadstead schedule --cluster 'dump/*.json' --pods web.yaml --pods jobs.yaml
      kubectl get nodes,pods,pvc,pv,sc,pdb,svc,rs,sts,ns,limits,quota,pc \\
        -A -o yaml > cluster.yaml
      roadstead schedule --cluster cluster.yaml --pods new.yaml --output out
                                           # the effect of a change on a cluster
      kustomize build app | roadstead schedule --cluster cluster.yaml --pods -
      roadstead schedule --cluster cluster.yaml --pods app/ --preset binpack
      roadstead schedule --cluster cluster.yaml --pods app/ -o wide
                                           # the node of every pod
      roadstead schedule --trace openb.trace --seed 1 --output out
      roadstead schedule --trace openb.trace --schedulers 4 --mode partitioned

    Exit status: 0 done, also if pods stay pending, 1 the run failed, 2 invalid input, 3 a plugin
    does not support a field of a pod, 130 or 143 interrupted (SIGINT, SIGTERM).
    """
    source.check(options.config)
    options.check()
    with session.watch.phase("read inputs"):
        from roadstead.cli import plan as plans
        from roadstead.cli import schedule_run
        from roadstead.cli.sources import load

        target = schedule_run.ResultTarget(output_format, output)
        target.check(may_replace=force or options.resume)
        settings = plans.read_settings(options, output, concurrency.overrides())
        config = plans.read_config(options)
        # Ray starts in the background while the inputs are read.
        session.launcher().prepare(
            plans.with_maximum_workers(settings, concurrency), plans.log_dir(options)
        )
        loaded = load(source, with_digests=output is not None)
        digests = plans.plan_digests(options, config) if output is not None else ()
    run_plan = plans.make_plan(options, settings, config, loaded.cluster)
    launcher = session.launcher()
    run_plan = plans.with_workers(run_plan, concurrency, loaded.inputs, launcher.room_for_workers)
    schedule_run.schedule(session, loaded, run_plan, target, digests)
