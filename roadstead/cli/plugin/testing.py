"""A trial of a plugin: the checks on sample fleets, or on a given fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from roadstead.api.plugin_choice import choose_plugins
from roadstead.cli.options import SourceOptions
from roadstead.cli.plugin.advice import missing_hooks_check
from roadstead.cli.plugin.checks import run_checks
from roadstead.cli.plugin.outcome import Check, CheckOutcome
from roadstead.cli.plugin.plugin_under_test import PluginUnderTest, plugin_under_test
from roadstead.cli.plugin.samples import SampleFleet, sample_fleet
from roadstead.cli.plugin.users_fleet import users_fleet
from roadstead.cli.sources import load
from roadstead.config.settings import ActorDeadlines
from roadstead.plugin_watch import watched
from roadstead.protocol.errors import printable


@dataclass(frozen=True, slots=True)
class PluginTest:
    """A subject and its checks. fleet: description of the fleet."""

    subject: PluginUnderTest
    fleet: str
    checks: tuple[Check, ...]


def on_sample_fleets(path: str, args: object, seeds: int, nodes: int) -> PluginTest:
    """Test a plugin on generated fleets. Raises InputError if it cannot be loaded or built."""
    subject = plugin_under_test(choose_plugins([path]), args)
    fleets = [sample_fleet(seed, nodes, 3 * nodes) for seed in range(seeds)]
    text = f"{seeds} generated fleets of {nodes:,} nodes and {3 * nodes:,} pods"
    return PluginTest(subject, text, _checks(subject, fleets))


def on_users_fleet(path: str, args: object, source: SourceOptions) -> PluginTest:
    """Test a plugin on manifests or a trace; prints notes on them on standard error.

    Raises InputError if the plugin or the fleet cannot be read.
    """
    chosen = choose_plugins([path])
    loaded = load(source, with_digests=False)
    subject = plugin_under_test(chosen, args, loaded.cluster)
    users = users_fleet(loaded, subject.plan.cluster)
    for note in (*loaded.notes, *users.notes):
        click.echo(printable(note), err=True)
    counts = f"{len(users.fleet.nodes):,} nodes, {len(users.fleet.running):,} running pods"
    text = f"{loaded.source}: {counts}, {len(users.fleet.pods):,} pending"
    return PluginTest(subject, text, _checks(subject, [users.fleet]))


def _checks(subject: PluginUnderTest, fleets: Sequence[SampleFleet]) -> tuple[Check, ...]:
    with watched(ActorDeadlines().plugin_s):
        checks = run_checks(subject, fleets)
        failed = any(check.outcome is CheckOutcome.FAILED for check in checks)
        if (
            subject.filters_or_scores
            and not failed
            and (advice := missing_hooks_check(subject, fleets)) is not None
        ):
            checks.append(advice)
    return tuple(checks)
