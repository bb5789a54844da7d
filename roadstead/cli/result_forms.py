"""A run's result on standard output, in the requested form."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

import click

from roadstead.cli.options import RunFormat
from roadstead.facts.pod import Pod
from roadstead.report.pod_forms import write_csv, write_names
from roadstead.report.pods import all_lines, bindings, pod_lines, result_document, workloads
from roadstead.report.result import RunResult
from roadstead.report.summary import summarize


def print_in_form(output_format: RunFormat, result: RunResult, pods: Sequence[Pod]) -> None:
    """Print the result. pods: those to list, in order."""
    match output_format:
        case "csv":
            write_csv(all_lines(pods, result), sys.stdout)
        case "name":
            write_names(pod_lines(pods, result), sys.stdout)
        case "bindings":
            _print_bindings(result, pods)
        case "json":
            print_json(result_document(result, pods))
        case "yaml":
            _print_yaml(result_document(result, pods))
        case "table" | "wide":
            _print_tables(result, pods, has_pods=output_format == "wide")


def print_json(document: Mapping[str, object]) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _print_yaml(document: Mapping[str, object]) -> None:
    from roadstead.config.yaml_text import yaml_text

    click.echo(yaml_text(document, sort_keys=False), nl=False)


def _print_bindings(result: RunResult, pods: Sequence[Pod]) -> None:
    document, left_out = bindings(pods, result)
    _print_yaml(document)
    if left_out:
        text = (
            f"Left out: {left_out:,} placed pods that do not exist until a controller creates them."
        )
        click.echo(text, err=True)


def _print_tables(result: RunResult, pods: Sequence[Pod], *, has_pods: bool) -> None:
    from rich.console import Console

    from roadstead.report.terminal import print_devices, print_pods, print_summary

    console = Console()
    print_summary(console, summarize(result), workloads(pods, result))
    if has_pods:
        print_pods(console, all_lines(pods, result))
        if result.devices:
            print_devices(console, result.devices)
