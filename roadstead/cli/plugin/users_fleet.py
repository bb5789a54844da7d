"""The sample fleet from the manifests or the trace that flags name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from roadstead.cli.plugin.play import play_each
from roadstead.cli.plugin.plugin_under_test import default_profiles
from roadstead.cli.plugin.samples import SampleFleet
from roadstead.config.model import DEFAULT_SCHEDULER_NAME
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Pod
from roadstead.inputs.loaded import Loaded
from roadstead.local.decision_paths import PlainPath
from roadstead.protocol.errors import InputError

PODS_MAX = 300
"""Maximum number of pods, so that the checks take seconds; one pod of each class comes first."""


@dataclass(frozen=True, slots=True)
class UsersFleet:
    """A fleet from the user's files. notes: on how it was made."""

    fleet: SampleFleet
    notes: tuple[str, ...]


def users_fleet(loaded: Loaded, cluster: ClusterFacts) -> UsersFleet:
    """Make a fleet of the given nodes and pods, pods of higher priority first as in the queue.

    Its table contains the running pods, and those that the default plugins place.

    Raises:
        InputError: there is no node, or no pending pod.
    """
    inputs = loaded.inputs
    if not inputs.nodes:
        raise InputError("has no nodes", source=loaded.source)
    if not inputs.pending:
        raise InputError(
            "has no pending pods: add pods to schedule with --pods", source=loaded.source
        )
    chosen = _of_every_class(inputs.pending)
    pods = tuple(
        (identity, replace(facts, scheduler_name=DEFAULT_SCHEDULER_NAME))
        for identity, facts in chosen
    )
    fleet = SampleFleet("", 0, tuple(inputs.nodes), pods, inputs.running)
    path = PlainPath(lambda classes: default_profiles(classes, cluster))
    played = zip(play_each(path, fleet), pods, strict=True)
    placed = [(facts, name) for _, facts, name in inputs.running]
    placed += [(facts, each.node_name) for each, (_, facts) in played if each.node_name is not None]
    fleet = replace(fleet, placed=tuple((name, facts) for facts, name in placed))
    return UsersFleet(fleet, tuple(_notes(inputs.pending, chosen)))


def _of_every_class(pods: tuple[Pod, ...]) -> list[Pod]:
    """Choose up to PODS_MAX pods, at first one of each class; sort them by priority."""
    if len(pods) > PODS_MAX:
        first_of_class = {facts: identity.uid for identity, facts in reversed(pods)}
        first_uids = set(first_of_class.values())
        pods = tuple(sorted(pods, key=lambda pod: pod[0].uid not in first_uids))[:PODS_MAX]
    return sorted(pods, key=lambda pod: -pod[1].priority)


def _notes(pending: tuple[Pod, ...], chosen: list[Pod]) -> Iterator[str]:
    if len(chosen) < len(pending):
        yield f"Used: {len(chosen):,} of {len(pending):,} pending pods, first one of each shape."
    others = {facts.scheduler_name for _, facts in chosen} - {DEFAULT_SCHEDULER_NAME}
    if others:
        names = ", ".join(sorted(others))
        yield f"Pods of other schedulers ({names}) are used as pods of {DEFAULT_SCHEDULER_NAME}."
