"""One decision against its recording: which fields differ."""

from __future__ import annotations

from scripts.recordings.cases import mapping
from scripts.recordings.result import Json, differing, differs

_COMPARED_SEPARATELY = frozenset({"filter", "filterStatuses", "message", "postFilter"})
"""Fields of an entry that cannot be compared as they are."""

_ONLY_WHERE_RECORDED = ("scores", "candidates")
"""The preemption suite does not record scores, the others no candidates of preemption."""


def differences(ours: Json, expected: Json) -> list[str]:
    """Return `field: ours is not theirs` for each field that differs.

    If our answer reports that PostFilter is not supported yet, PostFilter's result is not compared:
    its own field, and the end of the message.
    """
    found = differing(_plain(ours, expected), _plain(expected, expected))
    if _resolved(ours) != _resolved(expected):
        found.append(differs("filter", _resolved(ours), _resolved(expected)))
    return found + refusal_differences(ours, expected)


def waits_for_post_filter(ours: Json) -> str:
    """Return what PostFilter needs that is not implemented yet, or ""."""
    return str(mapping(ours.get("postFilter")).get("unsupported", ""))


def _plain(entry: Json, expected: Json) -> Json:
    return _where_recorded(
        {k: v for k, v in entry.items() if k not in _COMPARED_SEPARATELY}, expected
    )


def _where_recorded(entry: Json, recorded: Json) -> Json:
    left_out = {key for key in _ONLY_WHERE_RECORDED if key not in recorded}
    return {key: value for key, value in entry.items() if key not in left_out}


def refusal_differences(ours: Json, expected: Json) -> list[str]:
    """Return how the message and PostFilter's answer differ."""
    our_message, message = str(ours.get("message", "")), str(expected.get("message", ""))
    if waits_for_post_filter(ours):
        if bool(our_message) == bool(message) and message.startswith(our_message):
            return []
        return [differs("message", our_message, message)]
    found = [] if our_message == message else [differs("message", our_message, message)]
    answer = dict(mapping(expected.get("postFilter")))
    our_answer = _where_recorded(dict(mapping(ours.get("postFilter"))), answer)
    if answer.get("exhaustive") is False:
        # The recorded choice was random: only its status can be compared.
        answer, our_answer = ({"status": each.get("status")} for each in (answer, our_answer))
    return found + [f"postFilter.{each}" for each in differing(our_answer, answer)]


def _resolved(entry: Json) -> list[object] | None:
    """Return for each node 0 if it passes, -1 if PreFilter excludes it, or else its status.

    Numbers of statuses are arbitrary, so they cannot be compared.
    """
    codes = entry.get("filter")
    if not isinstance(codes, list):
        return None
    statuses = entry.get("filterStatuses") or []
    assert isinstance(statuses, list)
    return [statuses[code - 1] if code > 0 else code for code in codes]
