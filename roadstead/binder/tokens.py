"""The memory of tokens: same token, same answer, one effect (I8)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from roadstead.binder.pods import BindConflictError, BindRequest, Decision


@dataclass(slots=True)
class Remembered:
    """A request and its answer; None while its record waits for the flush."""

    request: BindRequest
    decision: Decision | None


class TokenMemory:
    """The last `max_tokens` requests; those that wait for their flush are never forgotten.

    Forgetting is safe: a bound pod knows its token, and whoever is fenced meanwhile is refused by
    its epoch. Only a refusal may turn out otherwise when its token comes after that many others.
    """

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._by_token: OrderedDict[str, Remembered] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_token)

    def __contains__(self, token: str) -> bool:
        return token in self._by_token

    def get(self, request: BindRequest) -> Remembered | None:
        """What is remembered of this request; BindConflictError if its token names another."""
        known = self._by_token.get(request.token)
        if known is not None and not known.request.is_same(request):
            raise conflict(request, f"{known.request.key} on {known.request.node_name}")
        return known

    def put(self, request: BindRequest, decision: Decision | None) -> None:
        self._by_token[request.token] = Remembered(request, decision)
        while len(self._by_token) > self._max_tokens:
            oldest = next(iter(self._by_token))
            if self._by_token[oldest].decision is None:
                break
            del self._by_token[oldest]

    def answer(self, token: str, decision: Decision) -> None:
        """The flush came: what waited is answered."""
        self._by_token[token].decision = decision

    def unanswered(self) -> tuple[str, ...]:
        return tuple(t for t, known in self._by_token.items() if known.decision is None)


def conflict(request: BindRequest, earlier: str) -> BindConflictError:
    """The error for a token that comes again with another request."""
    return BindConflictError(
        f"binder: token {request.token} of {request.owner}: asks for {request.key} on "
        f"{request.node_name}, asked before for {earlier}"
    )
