"""Binds that stand or fall together: gangs (I10), and transactions that are all or nothing.

A scheduler sends them whole; what it read may be old, so that some no longer fit. Before anything
is committed, the batch is tried out: each request on top of those before it. A group of which too
few can be committed is taken out and the rest is tried again, since they may fit now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from roadstead.binder.pods import BindRequest, RejectCause
from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.placements import Placements
from roadstead.protocol.status import SUCCESS, Status, unschedulable

Missing = Callable[[PodFacts], int]
"""How many pods of a pod's gang must still be bound for it to be whole; 0 for a pod without one."""

Refusal = tuple[RejectCause, Status]

Forbids = Callable[[BindRequest, int], Refusal | None]
"""Why a request cannot be committed on the placements as they are, with so many before it."""

_Group = GroupKey | str
"""A gang's key, or a transaction's name."""

BROKEN = "too few pods of its group can be bound with it"


def refused_groups(
    requests: Sequence[BindRequest],
    placements: Placements,
    forbids: Forbids,
    missing: Missing,
) -> dict[str, Refusal]:
    """Why requests of groups that would stay broken are refused, by token.

    `placements` are as before afterwards.
    """
    needs = _needs(requests, missing)
    refused: dict[str, Refusal] = {}
    broken: set[_Group] = set()
    while len(broken) < len(needs):
        tried = [each for each in requests if not broken.intersection(_groups(each))]
        placed, forbidden = _tried(tried, placements, forbids)
        short = {group for group, needed in needs.items() if placed[group] < needed} - broken
        if not short:
            break
        broken |= short
        refused |= _reasons(tried, short, forbidden)
    return refused


def _needs(requests: Sequence[BindRequest], missing: Missing) -> dict[_Group, int]:
    """How many of each group must be committed; groups that need none are left out."""
    gangs = {key: missing(r.facts) for r in requests if (key := group_key(r.facts)) is not None}
    needs: dict[_Group, int] = {key: needed for key, needed in gangs.items() if needed}
    needs |= Counter(each.transaction for each in requests if each.transaction)
    return needs


def _groups(request: BindRequest) -> tuple[_Group, ...]:
    gang = group_key(request.facts)
    transaction = (request.transaction,) if request.transaction else ()
    return transaction if gang is None else (gang, *transaction)


def _tried(
    requests: Sequence[BindRequest], placements: Placements, forbids: Forbids
) -> tuple[Counter[_Group], dict[str, Refusal]]:
    """How many pods of each group can be committed in this order, and why others cannot."""
    placed: dict[str, BindRequest] = {}
    forbidden: dict[str, Refusal] = {}
    over: set[str] = set()
    for request in requests:
        if request.transaction in over:
            continue
        if request.uid in placed:
            # The same pod under another token: whichever comes first may have it.
            refusal: Refusal | None = (RejectCause.ALREADY_BOUND, SUCCESS)
        else:
            refusal = forbids(request, len(placed))
        if refusal is None:
            placements.place(request.uid, request.node_name, request.facts)
            placed[request.uid] = request
            continue
        forbidden[request.token] = refusal
        if request.transaction:
            # What its others would have taken is there for the next at once.
            over.add(request.transaction)
            _lift(placed, placements, over)
    counts = Counter(group for request in placed.values() for group in _groups(request))
    _lift(placed, placements, {each.transaction for each in placed.values()})
    return counts, forbidden


def _lift(placed: dict[str, BindRequest], placements: Placements, transactions: set[str]) -> None:
    """Takes back what was placed of these transactions, the last first."""
    for uid in [uid for uid, each in reversed(placed.items()) if each.transaction in transactions]:
        placements.lift(uid)
        del placed[uid]


def _reasons(
    requests: Sequence[BindRequest], short: set[_Group], forbidden: dict[str, Refusal]
) -> dict[str, Refusal]:
    """What each request of a broken group is told: its own refusal, or whose it shares."""
    culprit = {
        each.transaction: f"{each.key} of the same job was refused: {forbidden[each.token][0]}"
        for each in reversed(requests)
        if each.token in forbidden and each.transaction in short
    }
    reasons: dict[str, Refusal] = {}
    for each in requests:
        if each.token in forbidden and short.intersection(_groups(each)):
            reasons[each.token] = forbidden[each.token]
        elif each.transaction in culprit:
            text = culprit[each.transaction]
            reasons[each.token] = RejectCause.TRANSACTION, unschedulable(text)
        elif short.intersection(_groups(each)):
            reasons[each.token] = RejectCause.CONSTRAINT, unschedulable(BROKEN)
    return reasons
