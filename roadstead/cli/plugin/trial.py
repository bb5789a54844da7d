"""A trial of a plugin: the checks on sample fleets, or on a given fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from roadstead.api.plugin_choice import choose_plugins
from roadstead.cli.options import SourceOptions
from roadstead.cli.plugin.advice import left_out
from roadstead.cli.plugin.checks import run_checks
from roadstead.cli.plugin.given import given_fleet
from roadstead.cli.plugin.outcome import Check, Outcome
from roadstead.cli.plugin.samples import SampleFleet, sample_fleet
from roadstead.cli.plugin.subject import Subject, subject_of
from roadstead.cli.sources import load
from roadstead.config.settings import ActorDeadlines
from roadstead.inputs.unsupported import supported
from roadstead.plugin_watch import watched
from roadstead.protocol.errors import printable


@dataclass(frozen=True, slots=True)
class Trial:
    """A subject and its checks. fleet: description of the fleet."""

    subject: Subject
    fleet: str
    checks: tuple[Check, ...]


def on_sample_fleets(path: str, args: object, seeds: int, nodes: int) -> Trial:
    """Test a plugin on generated fleets. Raises InputError if it cannot be loaded or built."""
    subject = subject_of(choose_plugins([path]), args)
    fleets = [sample_fleet(seed, nodes, 3 * nodes) for seed in range(seeds)]
    text = f"{seeds} generated fleets of {nodes:,} nodes and {3 * nodes:,} pods"
    return Trial(subject, text, _checks(subject, fleets))


def on_given_fleet(path: str, args: object, source: SourceOptions) -> Trial:
    """Test a plugin on manifests or a trace; prints notes on them on standard error.

    Raises InputError if the plugin or the fleet cannot be read.
    """
    chosen = choose_plugins([path])
    loaded = load(source, with_digests=False)
    subject = subject_of(chosen, args, loaded.cluster)
    loaded = supported(loaded, subject.plan, skips=True)
    given = given_fleet(loaded, subject.plan.cluster)
    for note in (*loaded.notes, *given.notes):
        click.echo(printable(note), err=True)
    counts = f"{len(given.fleet.nodes):,} nodes, {len(given.fleet.running):,} running pods"
    text = f"{loaded.source}: {counts}, {len(given.fleet.pods):,} pending"
    return Trial(subject, text, _checks(subject, [given.fleet]))


def _checks(subject: Subject, fleets: Sequence[SampleFleet]) -> tuple[Check, ...]:
    with watched(ActorDeadlines().plugin_s):
        checks = run_checks(subject, fleets)
        failed = any(check.outcome is Outcome.FAILED for check in checks)
        if subject.is_asked and not failed and (advice := left_out(subject, fleets)) is not None:
            checks.append(advice)
    return tuple(checks)
