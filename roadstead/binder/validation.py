"""The invariants of the binder's state: records, placements and tokens must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.binder.pods import COUNTED, BinderState

if TYPE_CHECKING:
    from roadstead.binder.commits import Commits


def check_invariants(core: Commits) -> None:
    """Raise AssertionError if the binder's records, placements and tokens do not agree."""
    core.placements.validate()
    core.pods.validate()
    _check_records(core)
    numbers = [lsn for lsn, _, _ in core._unflushed]
    assert numbers == sorted(set(numbers)), "records wait out of order"
    assert not numbers or core.flushed_lsn < numbers[0], "a flushed record waits"
    assert not numbers or numbers[-1] <= core.last_lsn, "a record waits that was not appended"
    waiting = {token for _, _, token in core._unflushed if isinstance(token, str)}
    assert waiting == set(core._tokens.unanswered()), (
        "tokens and records disagree about waiting requests"
    )


def _check_records(core: Commits) -> None:
    waiting = {lsn for lsn, _, _ in core._unflushed}
    present = core.pods.present
    for uid, record in present.items():
        if record.state in COUNTED:
            assert core.placements.node_of(uid) == record.node_name, f"{uid} is elsewhere"
            assert core.placements.facts_of(uid) == record.facts, f"{uid} has other facts"
        tentative = record.state is BinderState.TENTATIVE
        assert not tentative or record.lsn in waiting, f"{uid} waits for nothing"
    counted = sum(record.state in COUNTED for record in present.values())
    assert len(core.placements) == counted, "a pod is counted and not bound"
