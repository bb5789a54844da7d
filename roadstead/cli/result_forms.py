"""A run's result on standard output, in the form that was asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

import click

from roadstead.cli.options import RunForm
from roadstead.facts.pod import Pod
from roadstead.report.pod_forms import write_csv, write_names, write_yaml
from roadstead.report.pods import bindings, pod_lines, pods_document, workloads
from roadstead.report.result import Json, RunResult
from roadstead.report.summary import summarize, summary_document


def print_in_form(form: RunForm, result: RunResult, pods: Sequence[Pod]) -> None:
    """pods: those to be told of, in order."""
    match form:
        case "csv":
            write_csv(pod_lines(pods, result), sys.stdout)
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
    of_pods = pods_document(pod_lines(pods, result), workloads(pods, result))
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
        print_pods(console, pod_lines(pods, result))
