"""Increases of timings and counts between two collections of statuses, which are by actor name."""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.actors.messages import ActorStatus


def seconds_between(
    before: Mapping[str, ActorStatus], after: Mapping[str, ActorStatus]
) -> dict[str, float]:
    """Return seconds per `actor: phase` between two statuses."""
    spent: dict[str, float] = {}
    for name, status in after.items():
        earlier = dict(before[name].timings_s) if name in before else {}
        for phase, total_s in status.timings_s:
            spent[f"{name}: {phase}"] = total_s - earlier.get(phase, 0.0)
    return spent


def counts_between(
    before: Mapping[str, ActorStatus], after: Mapping[str, ActorStatus]
) -> dict[str, int]:
    """Return the increase of each `actor: count` between two statuses."""
    increases: dict[str, int] = {}
    for name, status in after.items():
        earlier = dict(before[name].counts) if name in before else {}
        for what, total in status.counts:
            increases[f"{name}: {what}"] = total - earlier.get(what, 0)
    return increases
