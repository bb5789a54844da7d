"""The binder's answers to schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roadstead.binder.pods import Bound, CommitResult, Rejected


@dataclass(frozen=True, slots=True)
class BindAnswer:
    """The outcome of one token.

    lsn: number of the journal's record of the bind; 0 without one. version: of the binder's state,
    which only grows. cause, reasons: of a refusal; empty if the pod is bound. row_version: number
    of the record that changed the node last (`roadstead.binder.rows`).
    """

    token: str
    uid: str
    node_name: str
    lsn: int
    version: int
    cause: str
    reasons: tuple[str, ...]
    row_version: int = 0


@dataclass(frozen=True, slots=True)
class BindAnswers:
    """The outcomes of tokens, as columns.

    refused: (index, cause, reasons, version of the node's row) of the requests that are not bound;
    the row of a bind has the number of its record as version.
    """

    tokens: tuple[str, ...]
    uids: tuple[str, ...]
    nodes: tuple[str, ...]
    lsns: tuple[int, ...]
    versions: tuple[int, ...]
    refused: tuple[tuple[int, str, tuple[str, ...], int], ...] = ()

    @property
    def answers(self) -> tuple[BindAnswer, ...]:
        """The outcomes as rows."""
        refusals = {index: refusal for index, *refusal in self.refused}
        columns = zip(self.tokens, self.uids, self.nodes, self.lsns, self.versions, strict=True)
        return tuple(
            BindAnswer(token, uid, node, lsn, version, *refusals.get(index, ("", (), lsn)))
            for index, (token, uid, node, lsn, version) in enumerate(columns)
        )


def bind_answers(results: Mapping[str, CommitResult]) -> BindAnswers:
    """Return results by token as columns."""
    outcomes = results.values()
    return BindAnswers(
        tuple(results),
        tuple(each.uid for each in outcomes),
        tuple(each.node_name if isinstance(each, Bound) else "" for each in outcomes),
        tuple(each.lsn if isinstance(each, Bound) else 0 for each in outcomes),
        tuple(each.version for each in outcomes),
        tuple(
            (index, str(each.cause), each.status.reasons, each.row_version)
            for index, each in enumerate(outcomes)
            if isinstance(each, Rejected)
        ),
    )
