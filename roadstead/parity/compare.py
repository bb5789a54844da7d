"""One decision against its recording: which fields differ."""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.parity.cases import mapping

Entry = Mapping[str, object]

_PLAIN_FIELDS = (
    "pod", "preEnqueue", "preFilter", "feasible", "preScoreSkipped", "scores", "total", "best",
    "bestTotal", "nominatedFits", "cycleError",
)  # fmt: skip
_OF_POST_FILTER = ("status", "nominatedNode")


def differences(ours: Entry, expected: Entry) -> list[str]:
    """`field: ours is not theirs` for each field that differs.

    Where our answer says that PostFilter is not supported yet, what PostFilter would have said is
    left out: its own field, and the end of the message. `scores` are compared where recorded.
    """
    found = []
    for field in _PLAIN_FIELDS:
        if field == "scores" and "scores" not in expected:
            continue
        if ours.get(field) != expected.get(field):
            found.append(_differs(field, ours.get(field), expected.get(field)))
    if _resolved(ours) != _resolved(expected):
        found.append(_differs("filter", _resolved(ours), _resolved(expected)))
    return found + _post_filter(ours, expected)


def waits_for_post_filter(ours: Entry) -> str:
    """What PostFilter would have needed, or ""."""
    return str(mapping(ours.get("postFilter")).get("unsupported", ""))


def _post_filter(ours: Entry, expected: Entry) -> list[str]:
    our_message, message = str(ours.get("message", "")), str(expected.get("message", ""))
    if waits_for_post_filter(ours):
        if bool(our_message) == bool(message) and message.startswith(our_message):
            return []
        return [_differs("message", our_message, message)]
    found = [] if our_message == message else [_differs("message", our_message, message)]
    our_answer, answer = mapping(ours.get("postFilter")), mapping(expected.get("postFilter"))
    for field in _OF_POST_FILTER:
        if our_answer.get(field) != answer.get(field):
            name = f"postFilter.{field}"
            found.append(_differs(name, our_answer.get(field), answer.get(field)))
    return found


def _resolved(entry: Entry) -> list[object] | None:
    """Per node 0, -1, or the status itself: the numbering of statuses is free."""
    codes = entry.get("filter")
    if not isinstance(codes, list):
        return None
    statuses = entry.get("filterStatuses") or []
    assert isinstance(statuses, list)
    return [statuses[code - 1] if code > 0 else code for code in codes]


def _differs(field: str, ours: object, theirs: object) -> str:
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
            if mine != yours:
                return f"{field}[{index}]: {mine!r} is not {yours!r}"
    return f"{field}: {ours!r} is not {theirs!r}"
