"""Groups of binds that are all-or-nothing: gangs (I10) and transactions.

A scheduler sends a group in one batch, but it may have read an old state, so that some pods no
longer fit. Before anything is committed, the batch is tried out, each request on top of those
before it. A group of which too few can be committed is removed, and the rest is tried again, since
more of it may fit now.
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
"""How many pods of a pod's gang must still be bound; 0 for a pod without a gang."""

BindRefusal = tuple[RejectCause, Status]

Forbids = Callable[[BindRequest, int], BindRefusal | None]
"""Why a request cannot be committed after so many others of its batch; None if it can."""

_Group = GroupKey | str
"""A gang's key, or a transaction's name."""

BROKEN = "too few pods of its group can be bound with it"


def refused_groups(
    requests: Sequence[BindRequest],
    placements: Placements,
    forbids: Forbids,
    missing: Missing,
) -> dict[str, BindRefusal]:
    """Return, by token, refusals for the requests of groups that cannot be committed.

    `placements` are restored afterwards.
    """
    needs = _needs(requests, missing)
    refused: dict[str, BindRefusal] = {}
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
    """Return how many pods of each group must be committed; omit groups that need none."""
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
) -> tuple[Counter[_Group], dict[str, BindRefusal]]:
    """Return how many pods of each group can be committed in this order, and all refusals."""
    placed: dict[str, BindRequest] = {}
    forbidden: dict[str, BindRefusal] = {}
    over: set[str] = set()
    for request in requests:
        if request.transaction in over:
            continue
        if request.uid in placed:
            # The same pod under another token: the first request wins.
            refusal: BindRefusal | None = (RejectCause.ALREADY_BOUND, SUCCESS)
        else:
            refusal = forbids(request, len(placed))
        if refusal is None:
            placements.place(request.uid, request.node_name, request.facts)
            placed[request.uid] = request
            continue
        forbidden[request.token] = refusal
        if request.transaction:
            # Free the resources of its other pods for the requests that follow.
            over.add(request.transaction)
            _remove_placed(placed, placements, over)
    counts = Counter(group for request in placed.values() for group in _groups(request))
    _remove_placed(placed, placements, {each.transaction for each in placed.values()})
    return counts, forbidden


def _remove_placed(
    placed: dict[str, BindRequest], placements: Placements, transactions: set[str]
) -> None:
    """Remove the placed pods of these transactions, the last one first."""
    for uid in [uid for uid, each in reversed(placed.items()) if each.transaction in transactions]:
        placements.remove_pod(uid)
        del placed[uid]


def _reasons(
    requests: Sequence[BindRequest], short: set[_Group], forbidden: dict[str, BindRefusal]
) -> dict[str, BindRefusal]:
    """Return a refusal for each request of a broken group: its own, or one that names another's."""
    culprit = {
        each.transaction: f"{each.key} of the same job was refused: {forbidden[each.token][0]}"
        for each in reversed(requests)
        if each.token in forbidden and each.transaction in short
    }
    reasons: dict[str, BindRefusal] = {}
    for each in requests:
        if each.token in forbidden and short.intersection(_groups(each)):
            reasons[each.token] = forbidden[each.token]
        elif each.transaction in culprit:
            text = culprit[each.transaction]
            reasons[each.token] = RejectCause.TRANSACTION, unschedulable(text)
        elif short.intersection(_groups(each)):
            reasons[each.token] = RejectCause.CONSTRAINT, unschedulable(BROKEN)
    return reasons
