"""A run's result on standard output, in the form that was asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence

import click

from roadstead.cli.options import RunForm
from roadstead.facts.pod import Pod
from roadstead.report.pod_forms import write_csv, write_names, write_yaml
from roadstead.report.pods import (
    PodLine,
    bindings,
    lines_not_created,
    pod_lines,
    pods_document,
    workloads,
)
from roadstead.report.result import Json, RunResult
from roadstead.report.summary import summarize, summary_document


def print_in_form(form: RunForm, result: RunResult, pods: Sequence[Pod]) -> None:
    """pods: those to be told of, in order."""
    match form:
        case "csv":
            write_csv(_all_lines(result, pods), sys.stdout)
        case "name":
            write_names(pod_lines(pods, result), sys.stdout)
        case "bindings":
            _print_bindings(result, pods)
        case "json":
            print_json(_document(result, pods))
        case "yaml":
            write_yaml(_document(result, pods), sys.stdout)
        case "table" | "wide":
            _print_tables(result, pods, has_pods=form == "wide")


def print_json(document: Mapping[str, object]) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _document(result: RunResult, pods: Sequence[Pod]) -> dict[str, Json]:
    lines, of = pod_lines(pods, result), workloads(pods, result)
    of_pods = pods_document(lines, of, result.not_created)
    return {**summary_document(summarize(result)), **of_pods}


def _print_bindings(result: RunResult, pods: Sequence[Pod]) -> None:
    document, left_out = bindings(pods, result)
    write_yaml(document, sys.stdout)
    if left_out:
        text = f"Left out: {left_out:,} placed pods that their controllers have yet to make."
        click.echo(text, err=True)


def _print_tables(result: RunResult, pods: Sequence[Pod], *, has_pods: bool) -> None:
    from rich.console import Console

    from roadstead.report.terminal import print_pods, print_summary

    console = Console()
    print_summary(console, summarize(result), workloads(pods, result))
    if has_pods:
        print_pods(console, _all_lines(result, pods))


def _all_lines(result: RunResult, pods: Sequence[Pod]) -> Iterator[PodLine]:
    """Pods that were to be scheduled, and behind them those that are not created."""
    yield from pod_lines(pods, result)
    yield from lines_not_created(result)
