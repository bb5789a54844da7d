"""Errors of an allocation; their texts are upstream's."""

from __future__ import annotations


class AllocationError(Exception):
    """A claim, class or slice that cannot be used: it ends the whole cycle of the pod."""


class AllocationAborted(AllocationError):
    """The time of the search is over; upstream then rejects the node, not the pod."""


class AllocatorPanic(AllocationError):
    """The place where the real scheduler would crash, with the text of Go's run-time error."""
