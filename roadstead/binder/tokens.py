"""The memory of tokens: same token, same answer, one effect (I8 in docs/invariants.md)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from roadstead.binder.pods import BindConflictError, BindRequest, CommitResult
from roadstead.facts.pod import PodFacts


class Remembered(NamedTuple):
    """A request and its answer; None while its record waits for the flush."""

    request: BindRequest
    result: CommitResult | None


class TokenMemory:
    """The last `max_tokens` requests; those that wait for their flush are never forgotten.

    `forget_oldest` enforces that number after each call of `Commits.bind`.

    Forgetting is safe: the record of a bound pod has the token of its bind, and the requests of a
    fenced scheduler are refused by their epoch. Only a refusal may change when its token is
    repeated after `max_tokens` other requests.
    """

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._requests: OrderedDict[str, BindRequest] = OrderedDict()
        self._results: dict[str, CommitResult] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def knows_any(self, tokens: Iterable[str]) -> bool:
        """Whether any of these tokens is remembered."""
        return not self._requests.keys().isdisjoint(tokens)

    def get(self, request: BindRequest) -> Remembered | None:
        """Return this request as remembered; BindConflictError if the token is another's."""
        known = self._requests.get(request.token)
        if known is None:
            return None
        if not known.is_same(request):
            raise conflict(request, f"{known.key} on {known.node_name}")
        return Remembered(known, self._results.get(request.token))

    def facts_of(self, token: str) -> PodFacts | None:
        """Return the pod's facts in the request of a token; None for a forgotten token."""
        known = self._requests.get(token)
        return None if known is None else known.facts

    def put(self, request: BindRequest, result: CommitResult) -> None:
        """Add an answered request; it is forgotten last."""
        self._requests[request.token] = request
        # A journal may have a token twice: after it was dropped here, its pod was deleted and added
        # again, and a late copy of the request was accepted.
        self._requests.move_to_end(request.token)
        self._results[request.token] = result

    def add_unanswered(self, requests: Iterable[BindRequest]) -> None:
        """Add requests that will be answered after a flush."""
        self._requests.update((each.token, each) for each in requests)

    def answer(self, token: str, result: CommitResult) -> None:
        """Record the answer to a request that waited for its flush."""
        self._results[token] = result

    def unanswered(self) -> tuple[str, ...]:
        """Return the tokens of requests that wait for their flush, oldest first."""
        return tuple(token for token in self._requests if token not in self._results)

    def undo_to(self, count: int) -> None:
        """Drop all but the first `count` requests: undo a failed batch."""
        while len(self._requests) > count:
            token, _ = self._requests.popitem()
            self._results.pop(token, None)

    def forget_oldest(self) -> None:
        """Drop answered requests beyond `max_tokens`, the oldest first."""
        for _ in range(len(self._requests) - self._max_tokens):
            oldest = next(iter(self._requests))
            # It waits for its flush; those after it are younger, so they stay, too.
            if oldest not in self._results:
                break
            del self._requests[oldest], self._results[oldest]


def conflict(request: BindRequest, earlier: str) -> BindConflictError:
    """Return the error for a token that was used again for another request."""
    return BindConflictError(
        f"binder: token {request.token} of {request.owner}: asks for {request.key} on "
        f"{request.node_name}, asked before for {earlier}"
    )
