"""Printing the life of a pod of a simulated run, and why it was bound to its node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from roadstead.api.moment import time_of
from roadstead.api.pod_life import life_of
from roadstead.api.pod_story import Attempts, PodStory, choose_run
from roadstead.api.run_folder import run_folders
from roadstead.cli.notes import echo_note
from roadstead.cli.options import OutputFormat
from roadstead.config.scenario.values import time_text
from roadstead.protocol.errors import printable
from roadstead.report.units import exact_amount
from roadstead.simulator.replay import Moment

WIDTH = 14
"""Characters of the column of times."""

VICTIMS_SHOWN = 5
"""Maximum number of preempted pods that are named."""


@dataclass(frozen=True, slots=True)
class WhyQuestion:
    """The pod and the moment to explain.

    at: text of a time, None for that of the bind. seed, config: of the run; None for the first run.
    is_from_tables: only the tables are read; the run is not played again.
    """

    pod: str
    at: str | None
    seed: int | None
    config: str | None
    is_from_tables: bool
    plugins: tuple[str, ...]


def why(folder: Path, question: WhyQuestion, top: int | None, output_format: OutputFormat) -> None:
    """Print the answer. Raises InputError."""
    at_us = None if question.at is None else time_of(question.at)
    path, run = choose_run(run_folders(folder), question.seed, question.config)
    life = life_of(
        path,
        run.name,
        question.pod,
        at_us,
        question.plugins,
        is_from_tables=question.is_from_tables,
    )
    if life.unexplained:
        echo_note(f"Why it was bound to {life.pod.node} is not known: {life.unexplained}")
    if output_format == "json":
        click.echo(json.dumps(life.document(), indent=2))
        return
    for line in story_lines(life.story):
        click.echo(printable(line))
    if life.moment is not None:
        from rich.console import Console

        from roadstead.report.explain_table import ShownLimits, print_explanation

        click.echo(f"\n{_introduction(life.story, life.moment)}")
        print_explanation(Console(), life.moment.explanation, ShownLimits.of(top))


def story_lines(story: PodStory) -> Iterator[str]:
    """Yield the life of a pod, a line for each event."""
    pod = story.pod
    owner = f" by {pod.owner}" if pod.owner else ""
    requests = json.loads(story.requests)
    amounts = ((name, exact_amount(name, amount)) for name, amount in requests.items())
    needs = ", ".join(f"{name} {amount}" for name, amount in amounts) or "nothing"
    yield f"{pod.uid} in {story.run}: requests {needs}; priority {pod.priority}"
    yield f"{_at(pod.created_us)}created{owner}"
    for each in story.attempts:
        if each.outcome == "bound":
            yield from _changes(story)
            waited = each.last_us - pod.created_us
            after = f", {_time(waited)} after its creation" if waited else ", at once"
            yield f"{_at(each.last_us)}bound to {each.node}{after}"
        else:
            yield from _attempt_lines(each)
    if pod.started_us is not None:
        yield f"{_at(pod.started_us)}started"
    if pod.ended_us is not None:
        by = f" for {pod.preemptor}" if pod.preemptor else ""
        yield f"{_at(pod.ended_us)}ended: {pod.ending}{by}"
    elif pod.bound_us is not None:
        yield "at the end of the run it was on its node"
    else:
        yield "at the end of the run it was pending"


def _attempt_lines(each: Attempts) -> Iterator[str]:
    """Yield the lines of attempts in succession that were refused for the same reason."""
    by = f" by {each.plugins.replace(',', ', ')}" if each.plugins else ""
    times = f", {each.count:,} times until {_time(each.last_us)}" if each.count > 1 else ""
    yield f"{_at(each.first_us)}tried and refused{by}{times}"
    if each.message:
        yield f"{'':>{WIDTH}}{each.message}"
    if each.nominated:
        yield f"{'':>{WIDTH}}nominated to {each.nominated}{_preempted(each.victims)}"


def _preempted(victims: str) -> str:
    """Name the pods that were preempted on the nominated node."""
    if not victims:
        return ""
    uids = victims.split(",")
    more = f" and {len(uids) - VICTIMS_SHOWN:,} more" if len(uids) > VICTIMS_SHOWN else ""
    return f"; preempted for it: {', '.join(uids[:VICTIMS_SHOWN])}{more}"


def _changes(story: PodStory) -> Iterator[str]:
    """Yield what changed in the fleet between the last refusal and the bind."""
    if story.more_changes:
        yield f"{'':>{WIDTH}}{story.more_changes:,} earlier changes since the last attempt"
    for each in story.changes:
        yield f"{_at(each.time_us)}{each.text}"


def _introduction(story: PodStory, moment: Moment) -> str:
    """Return the line before an explanation: of which node and moment it is."""
    where = f"{moment.state} on {moment.node}" if moment.node else str(moment.state)
    if moment.time_us == story.pod.bound_us:
        best = moment.explanation.best
        equal = len(best) if story.pod.node in best else 0
        seed = f", by the seed among {equal:,} equally good nodes" if equal > 1 else ""
        return f"Why {story.pod.node}, at {_time(moment.time_us)}{seed}:"
    return f"At {_time(moment.time_us)}, when it was {where}, as if it were on no node:"


def _at(at_us: int) -> str:
    return f"{_time(at_us):<{WIDTH}}"


def _time(at_us: int) -> str:
    """Return a time in whole milliseconds."""
    return time_text(at_us // 1000 * 1000)
