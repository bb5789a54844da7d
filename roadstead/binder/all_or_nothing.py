"""Groups of binds that are all-or-nothing: gangs (I10 in docs/invariants.md) and transactions.

A gang needs minMember of its pods; a transaction (the pods of one job in a batch, with the setting
`transaction`) needs all. A scheduler sends a group in one batch, but it may have read an old state,
so that some pods no longer fit. Before anything is committed, the batch is tried out, each request
on top of those before it. A group of which too few pods can be committed is left out, and the other
requests are tried again, since more of them may fit now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from roadstead.binder.pods import BindRequest, RejectCause
from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.placements import Placements
from roadstead.protocol.status import SUCCESS, Status, unschedulable

MissingMembers = Callable[[PodFacts], int]
"""How many pods of a pod's gang must still be bound; 0 for a pod without a gang."""

BindRefusal = tuple[RejectCause, Status]
"""The cause, and the status of the filters; SUCCESS if the cause is none of them."""

RequestCheck = Callable[[BindRequest, int], BindRefusal | None]
"""(request, number of others placed before it) -> why it cannot be committed; None if it can."""

_Group = GroupKey | str
"""A gang's key, or a transaction's name."""

TOO_FEW = "too few pods of its group can be bound with it"


def refused_groups(
    requests: Sequence[BindRequest],
    placements: Placements,
    refusal_of: RequestCheck,
    missing_members: MissingMembers,
) -> dict[str, BindRefusal]:
    """Return, by token, refusals for the requests of groups that cannot be committed.

    `placements` are restored afterwards.
    """
    required = _required_counts(requests, missing_members)
    refused: dict[str, BindRefusal] = {}
    left_out: set[_Group] = set()
    while len(left_out) < len(required):
        tried = [each for each in requests if not left_out.intersection(_groups(each))]
        placed, refusals = _try_out(tried, placements, refusal_of)
        too_few = {group for group, needed in required.items() if placed[group] < needed} - left_out
        if not too_few:
            break
        left_out |= too_few
        refused |= _group_refusals(tried, too_few, refusals)
    return refused


def _required_counts(
    requests: Sequence[BindRequest], missing_members: MissingMembers
) -> dict[_Group, int]:
    """Return how many pods of each group must be committed; omit groups that need none."""
    # Once for each gang, because `missing_members` looks at all pods.
    gangs = {key: r.facts for r in requests if (key := group_key(r.facts)) is not None}
    counts = {key: missing_members(facts) for key, facts in gangs.items()}
    required: dict[_Group, int] = {key: needed for key, needed in counts.items() if needed}
    required |= Counter(each.transaction for each in requests if each.transaction)
    return required


def _groups(request: BindRequest) -> tuple[_Group, ...]:
    gang = group_key(request.facts)
    transaction = (request.transaction,) if request.transaction else ()
    return transaction if gang is None else (gang, *transaction)


def _try_out(
    requests: Sequence[BindRequest], placements: Placements, refusal_of: RequestCheck
) -> tuple[Counter[_Group], dict[str, BindRefusal]]:
    """Return how many pods of each group can be committed in this order, and all refusals."""
    placed: dict[str, BindRequest] = {}
    refusals: dict[str, BindRefusal] = {}
    refused_transactions: set[str] = set()
    for request in requests:
        if request.transaction in refused_transactions:
            continue
        if request.uid in placed:
            # The same pod under another token: the first request wins.
            refusal: BindRefusal | None = (RejectCause.ALREADY_BOUND, SUCCESS)
        else:
            refusal = refusal_of(request, len(placed))
        if refusal is None:
            placements.place(request.uid, request.node_name, request.facts)
            placed[request.uid] = request
            continue
        refusals[request.token] = refusal
        if request.transaction:
            # It is refused as a whole, so its other pods' resources are free for the requests that
            # follow. A gang may still reach its minimum without this pod.
            refused_transactions.add(request.transaction)
            _remove_placed(placed, placements, refused_transactions)
    counts = Counter(group for request in placed.values() for group in _groups(request))
    # All pods, also those without a transaction (""): the placements are restored.
    _remove_placed(placed, placements, {each.transaction for each in placed.values()})
    return counts, refusals


def _remove_placed(
    placed: dict[str, BindRequest], placements: Placements, transactions: set[str]
) -> None:
    """Remove the placed pods of these transactions, the last one first."""
    for uid in [uid for uid, each in reversed(placed.items()) if each.transaction in transactions]:
        placements.remove_pod(uid)
        del placed[uid]


def _group_refusals(
    requests: Sequence[BindRequest], too_few: set[_Group], refusals: dict[str, BindRefusal]
) -> dict[str, BindRefusal]:
    """Return, by token, a refusal for each request of the groups of which too few pods fit.

    It is the request's own refusal, or one that names the refused pod or the group.
    """
    # By transaction. Reversed, so that the first refused pod is stored last and stays.
    first_refusal = {
        each.transaction: f"{each.key} of the same job was refused: {refusals[each.token][0]}"
        for each in reversed(requests)
        if each.token in refusals and each.transaction in too_few
    }
    refused_in_groups: dict[str, BindRefusal] = {}
    for each in requests:
        if each.token in refusals and too_few.intersection(_groups(each)):
            refused_in_groups[each.token] = refusals[each.token]
        elif each.transaction in first_refusal:
            text = first_refusal[each.transaction]
            refused_in_groups[each.token] = RejectCause.TRANSACTION, unschedulable(text)
        elif too_few.intersection(_groups(each)):
            refused_in_groups[each.token] = RejectCause.CONSTRAINT, unschedulable(TOO_FEW)
    return refused_in_groups
