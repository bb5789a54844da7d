"""All-or-nothing parts of a batch of binds: gangs and transactions, counted plainly."""

from collections import Counter

from roadstead.binder.pods import RejectCause

BROKEN = "too few pods of its group can be bound with it"


class Gangs:
    """Needs of gangs, from the groups of a plan. heeding: profiles that have Coscheduling."""

    def __init__(self, plan):
        self._groups = {(each.namespace, each.name): each for each in plan.cluster.pod_groups}
        self._heeding = {
            each.scheduler_name
            for each in plan.config().profiles
            if any(ref.name == "Coscheduling" for ref in each.at("permit"))
        }

    def missing(self, binder, requests):
        """Number of pods that each gang of a batch still needs."""
        found = {}
        for facts in (each.facts for each in requests if each.facts.pod_group is not None):
            if facts.scheduler_name in self._heeding:
                key = gang_of(facts)
                group = self._groups.get(key)
                least = None if group is None else group.min_member
                least = (facts.pod_group.min_member or 0) if least is None else least
                bound = binder.counted_on(lambda other, key=key: gang_of(other) == key)
                found[key] = least - max(bound, group.running if group else 0)
        return {key: count for key, count in found.items() if count > 0}


def gang_of(facts):
    return None if facts.pod_group is None else (facts.namespace, facts.pod_group.name)


class Batch:
    """All-or-nothing parts of a batch. needs: by gang, from `Gangs.missing`."""

    def __init__(self, binder, requests, taken, needs):
        self.accepted = []
        self._binder, self._needs = binder, needs
        self._undecided = [
            each
            for each in requests
            if each.token not in binder.tokens
            and getattr(binder.pods.get(each.uid), "token", None) != each.token
        ]
        self._taken, self._uids = taken, Counter(each.uid for each in requests)
        room = binder.settings.max_unflushed - len(binder.unflushed)
        self._may_be_busy = len(requests) >= room
        self._epochs = dict(binder.epochs)

    def reaches_epoch(self, request):
        """An epoch is recorded once a request of it reaches this check."""
        binder, owner = self._binder, request.owner
        is_single = not request.transaction and request.facts.pod_group is None
        seen = max(request.epoch, binder.epochs.get(owner, request.epoch))
        if is_single or binder._core.current_epoch(owner) == seen:
            binder.epochs[owner] = seen

    def others(self, request):
        """Further causes that a request of a group may get from the attempt before the batch."""
        if not request.transaction and request.facts.pod_group is None:
            return set()
        causes = {RejectCause.CONSTRAINT, RejectCause.FAILED}
        if request.transaction:
            causes |= {RejectCause.TRANSACTION, RejectCause.VERSION}
        causes |= {RejectCause.BUSY} if self._may_be_busy else set()
        return causes | ({RejectCause.ALREADY_BOUND} if self._uids[request.uid] > 1 else set())

    def check(self, decisions):
        """Transactions and gangs are bound as a whole or not at all, and refused with a reason."""
        wrong = self._binder._wrong
        jobs = Counter(each.transaction for each in self._undecided if each.transaction)
        bound = Counter(each.transaction for each in self.accepted if each.transaction)
        for name, count in jobs.items():
            if bound[name] not in (0, count):
                wrong(f"{bound[name]} of {count} of transaction {name} are accepted")
        # A refused gang also refuses its transactions, which then name no pod.
        of_gangs = {each.transaction for each in self._undecided if each.facts.pod_group}
        for each in self._undecided:
            refusal = getattr(decisions.get(each.token), "status", None)
            is_lone = each.transaction and each.transaction not in of_gangs
            if is_lone and BROKEN in getattr(refusal, "reasons", ()):
                wrong(f"transaction {each.transaction} is refused, and none of it is")
        if jobs:
            return
        gangs = Counter(gang_of(each.facts) for each in self.accepted)
        broken = Counter(
            gang_of(each.facts)
            for each in self._undecided
            if BROKEN in getattr(getattr(decisions.get(each.token), "status", None), "reasons", ())
        )
        for key, needed in self._needs.items():
            if 0 < gangs[key] < needed:
                wrong(f"{gangs[key]} of gang {key} are accepted, which lacks {needed}")
            if broken[key] >= needed:
                wrong(f"{broken[key]} of gang {key} are refused for the others; {needed} would do")
        if lone := broken.keys() - self._needs.keys():
            wrong(f"gangs that lack nobody are refused for the others: {sorted(lone)}")
