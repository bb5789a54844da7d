"""The binder's answers to schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roadstead.binder.pods import Bound, CommitResult, Rejected


@dataclass(frozen=True, slots=True)
class BindAnswer:
    """The outcome of one token. cause: "" if the pod is bound.

    version: of the binder's state. row_version: of the node's row.
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

    refused: (index, cause, reasons, version of the node's row) of the requests that are not bound.
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
        refused = {index: rest for index, *rest in self.refused}
        columns = zip(self.tokens, self.uids, self.nodes, self.lsns, self.versions, strict=True)
        return tuple(
            BindAnswer(*row, *refused.get(index, ("", (), row[3])))
            for index, row in enumerate(columns)
        )


def bind_answers(results: Mapping[str, CommitResult]) -> BindAnswers:
    """Return results by token as columns."""
    found = results.values()
    return BindAnswers(
        tuple(results),
        tuple(each.uid for each in found),
        tuple(each.node_name if isinstance(each, Bound) else "" for each in found),
        tuple(each.lsn if isinstance(each, Bound) else 0 for each in found),
        tuple(each.version for each in found),
        tuple(
            (index, str(each.cause), each.status.reasons, each.row_version)
            for index, each in enumerate(found)
            if isinstance(each, Rejected)
        ),
    )
