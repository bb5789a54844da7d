"""The statuses of an extension point that fails or leaves no nodes, with upstream's messages.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins,
RunScorePlugins).
"""

from __future__ import annotations

from typing import Final

from roadstead.framework.plugin import MAX_NODE_SCORE
from roadstead.framework.plugin_source import LOCATION_OF_SCORES, with_location
from roadstead.nodes.columns import I64
from roadstead.protocol.status import Code, Status, error, unresolvable

_ERRORS: Final = ("running ", "applying ")
"""Beginnings of the messages of all Errors here; those of refusals begin otherwise."""


def is_plugin_error(message: str) -> bool:
    """Whether the message of an attempt is that of a plugin's failure, not of a refusal."""
    return message.startswith(_ERRORS)


def filter_status(plugin: str, status: Status) -> Status:
    """Return a Filter's status with the plugin's name; all but refusals become an Error."""
    if status.is_rejected:
        return Status(status.code, status.reasons, plugin)
    return Status(Code.ERROR, (f'running "{plugin}" filter plugin: {status.message}',), plugin)


def error_of_point(point: str, status: Status) -> Status:
    """Return the Error that ends the cycle after a plugin failed at an extension point."""
    text = f'running {point} plugin "{status.plugin}": {status.message}'
    return Status(Code.ERROR, (text,), status.plugin)


def score_failure(status: Status) -> Status:
    """Return the Error that ends the cycle after a plugin's Score failed."""
    text = f'running Score plugins: plugin "{status.plugin}" failed with: {status.message}'
    return Status(Code.ERROR, (text,), status.plugin)


def normalize_failure(status: Status) -> Status:
    """Return the Error that ends the cycle after a plugin's NormalizeScore failed."""
    text = f'plugin "{status.plugin}" failed with: {status.message}'
    return Status(Code.ERROR, (f"running Normalize on Score plugins: {text}",), status.plugin)


def out_of_range(plugin: str, scores: I64) -> Status | None:
    """Return the Error of scores outside 0..MAX_NODE_SCORE; None if there are none."""
    if not len(scores):
        return None
    low, high = int(scores.min()), int(scores.max())
    if low >= 0 and high <= MAX_NODE_SCORE:
        return None
    text = (
        f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid '
        f"score {low if low < 0 else high}, it should in the range of [0, {MAX_NODE_SCORE}] "
        "after normalizing"
    )
    return error(with_location(text, LOCATION_OF_SCORES.get(plugin, "")))


def nothing_left(plugins: list[str]) -> Status:
    """Return the status for PreFilter plugins whose node names have no node in common."""
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously")
