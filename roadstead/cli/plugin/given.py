"""The fleet of a plugin's author as a sample fleet: the manifests or the trace that flags name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from roadstead.cli.plugin.play import play_each
from roadstead.cli.plugin.samples import SampleFleet
from roadstead.cli.plugin.subject import default_profiles
from roadstead.config.model import DEFAULT_SCHEDULER_NAME
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Pod
from roadstead.inputs.loaded import Loaded
from roadstead.local.paths import PlainPath
from roadstead.protocol.errors import InputError

PODS_MAX = 300
"""So many pods are tried, so that the checks take seconds; pods of every shape come first."""


@dataclass(frozen=True, slots=True)
class GivenFleet:
    """notes: what a person should know of how the fleet was made."""

    fleet: SampleFleet
    notes: tuple[str, ...]


def given_fleet(loaded: Loaded, cluster: ClusterFacts) -> GivenFleet:
    """The nodes and pods that were given, pods of higher priority first as in the queue.

    The pods of its table are those that run, and those that the default plugins place.

    Raises:
        InputError: there is no node, or no pod that is pending.
    """
    inputs = loaded.inputs
    if not inputs.nodes:
        raise InputError("has no nodes", source=loaded.source)
    if not inputs.pending:
        raise InputError(
            "has no pending pods: add pods to schedule with --pods", source=loaded.source
        )
    chosen = _of_every_shape(inputs.pending)
    pods = tuple(
        (who, replace(facts, scheduler_name=DEFAULT_SCHEDULER_NAME)) for who, facts in chosen
    )
    fleet = SampleFleet("", 0, tuple(inputs.nodes), pods, inputs.running)
    path = PlainPath(lambda classes: default_profiles(classes, cluster))
    played = zip(play_each(path, fleet), pods, strict=True)
    placed = [(facts, name) for _, facts, name in inputs.running]
    placed += [(facts, each.node_name) for each, (_, facts) in played if each.node_name is not None]
    fleet = replace(fleet, placed=tuple((name, facts) for facts, name in placed))
    return GivenFleet(fleet, tuple(_notes(inputs.pending, chosen)))


def _of_every_shape(pods: tuple[Pod, ...]) -> list[Pod]:
    """At most PODS_MAX pods by priority; one of each class before a second one of any."""
    if len(pods) > PODS_MAX:
        first = {facts: who.uid for who, facts in reversed(pods)}
        uids = set(first.values())
        pods = tuple(sorted(pods, key=lambda pod: pod[0].uid not in uids))[:PODS_MAX]
    return sorted(pods, key=lambda pod: -pod[1].priority)


def _notes(given: tuple[Pod, ...], chosen: list[Pod]) -> Iterator[str]:
    if len(chosen) < len(given):
        yield f"Used: {len(chosen):,} of {len(given):,} pending pods, first one of each shape."
    others = {facts.scheduler_name for _, facts in chosen} - {DEFAULT_SCHEDULER_NAME}
    if others:
        names = ", ".join(sorted(others))
        yield f"Pods of other schedulers ({names}) are used as pods of {DEFAULT_SCHEDULER_NAME}."
