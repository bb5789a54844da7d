"""A shadow of a scheduler around its core: counts of binds and decisions, renewed leases, and a new
read of the state after an attempt based on the present one was refused.

Answers of queue, binder and extenders are recorded on arrival; the core has a shadow of its own.
"""

from collections import Counter

from roadstead.actors.interface import clock_s
from roadstead.attempts.commands import Confirm, FinishBinding, Forget
from roadstead.cycle.needs import CatchUpTimeoutError
from roadstead.extenders.caller import ExtenderError
from roadstead.scheduler.needs import AssumePods, RenewLeases, RequestLease

BREAKS = 3
"""Number of the read that is aborted in a life, as if the cache's changes were late."""


class ShadowPerformer:
    """Follows one life of a scheduler's actor. problems: the first few differences.

    breaks_off: whether one of its reads is aborted. _is_refused: an attempt based on the present
    state has failed.
    """

    def __init__(self, actor, *, breaks_off):
        self._actor, self.problems = actor, []
        self._counts, self._refused = Counter(), Counter()
        self._is_refused, self._readings, self._breaks_off = False, 0, breaks_off
        self._rows, settings = {}, actor._plan.settings
        self._checks_versions = settings.conflicts == "version"
        self._is_whole = settings.transaction == "all-or-nothing"
        self._began_s = clock_s()
        self._takes_time, self._leases = settings.decision_time.is_positive, ()
        self._heard = {}
        self._not_bound, self._asked_outside, self._to_finish = set(), set(), set()
        self._finished = set()
        scheduler, nodes = actor._scheduler, actor._nodes
        core, cycle, performer = actor.core, scheduler.cycle, scheduler.performer
        self._bind, actor._peers.bind = actor._peers.bind, self._bound
        self._meet, actor._peers.handle = actor._peers.handle, self._met
        extenders = performer._extenders
        self._bind_outside, extenders.bind = extenders.bind, self._bound_outside
        self._decide, cycle.decide = cycle.decide, self._is_deciding
        self._drop, cycle.drop = cycle.drop, self._drops
        self._original_update, performer.update_attempts = (
            performer.update_attempts,
            self._update_attempts,
        )
        self._assumed, core.assumed = core.assumed, self._are_assumed
        self._decided, core.decided = core.decided, self._are_decided
        self._catch_up, nodes.catch_up = nodes.catch_up, self._reads
        self._perform, performer.perform = performer.perform, self._performs

    def _wrong(self, text):
        if len(self.problems) < 3:
            self.problems.append(f"shadow of {self._actor.core.owner}: {text}")

    def look(self):
        """Compare the counts that go into its status and the summary of a run."""
        metrics = self._actor.metrics
        actual = {name: getattr(metrics, name) for name in COUNTED}
        wanted = {name: self._counts[name] for name in COUNTED}
        if not 0 <= metrics.busy_s <= (lived_s := clock_s() - self._began_s):
            self._wrong(f"it decided for {metrics.busy_s} s, and lives for {lived_s} s")
        if (actual, metrics.refused) != (wanted, self._refused):
            actual, wanted = (actual, dict(metrics.refused)), (wanted, dict(self._refused))
            self._wrong(f"it counts {actual}, not {wanted}")

    # Effects of the core.

    def _performs(self, effects, *finished):
        """Record attempts that must finish at the cache; ended ones keep no volumes."""
        over = []
        for each in effects:
            if isinstance(each, FinishBinding):
                coming = {attempt.token for attempt in each.attempts}
                self._to_finish.update(coming - self._finished)
            elif isinstance(each, (Forget, Confirm)):
                over += [attempt.token for attempt in each.attempts]
        yield from self._perform(effects, *finished)
        if kept := self._actor._scheduler.performer._volumes.of(over):
            self._wrong(f"what {kept} take is kept, though they have ended")

    # Answers of the queue.

    async def _met(self, need):
        members = self._actor._scheduler.leasing._members
        known = {key: members.bound(key) for key in self._heard}
        if known != self._heard:
            self._wrong(f"of gangs {known} are known to be bound, not {self._heard}")
        self._heard = {}
        if isinstance(need, RenewLeases):
            wanted = tuple(sorted({*self._leases, *self._actor.core.waiting_leases()}))
            if need.lease_ids != wanted:
                self._wrong(f"leases {need.lease_ids} are renewed, not {wanted}")
        if isinstance(need, AssumePods) and need.bind_next:
            self._see_next(need.attempts)
        answer = await self._meet(need)
        if isinstance(need, RenewLeases):
            self._leases = tuple(each for each in self._leases if each in answer)
        elif isinstance(need, RequestLease) and answer is not None and answer.lease_id:
            self._heard = {(each[0], each[1]): each[2] for each in answer.gangs}
            self._counts["retries"] += sum(count > 1 for count in answer.lease_counts)
            if self._takes_time:
                self._leases = (*self._leases, answer.lease_id)
        return answer

    def _see_next(self, attempts):
        """The assumption reports to the cache that these pods are about to be bound."""
        binds = self._actor._scheduler.performer._extenders.has_binder_for
        profiles = self._actor.core._profiles
        for each in attempts:
            profile = profiles[each.facts.scheduler_name]
            if binds(each.facts) or not profile.binds_without_plugins:
                self._wrong(f"{each.token} is marked as bound next, though a plugin may refuse it")
        self._finished.update(each.token for each in attempts)

    # Answers of extenders and binder.

    def _bound_outside(self, pod, *target):
        self._not_bound.discard(pod.uid)
        self._asked_outside.add(pod.uid)
        try:
            return self._bind_outside(pod, *target)
        except ExtenderError:
            self._not_bound.add(pod.uid)
            raise

    async def _bound(self, need, number):
        self.look()
        self._check_jobs(need)
        if early := sorted(self._to_finish.intersection(each.token for each in need.attempts)):
            self._wrong(f"{early} are to be bound, and the cache did not hear that they are")
        binds = self._actor._scheduler.performer._extenders.has_binder_for
        outside = {each.uid for each in need.attempts if binds(each.facts)}
        if unasked := sorted(outside - self._asked_outside):
            self._wrong(f"{unasked} are to be bound, and their extender was not asked")
        if failed := sorted(self._not_bound.intersection(each.uid for each in need.attempts)):
            self._wrong(f"{failed} are to be bound, which their extender did not bind")
        answer = await self._bind(need, number)
        if answer is not None:
            self._count(need.attempts, answer)
            self._see_rows(need.attempts, answer)
        return answer

    def _check_jobs(self, need):
        """Check that each attempt names its job where jobs are bound as a whole."""
        jobs = [_job(each) for each in need.attempts] if self._is_whole else []
        actual = zip(need.transactions, (each.uid for each in need.attempts), strict=False)
        pairs = {*zip((name or uid for name, uid in actual), jobs, strict=False)}
        sizes = {len(pairs), len({name for name, _ in pairs}), len({*jobs})}
        if len(need.transactions) != len(jobs) or len(sizes) > 1:
            self._wrong(f"{need.transactions} are to be bound whole, of {jobs}")

    def _see_rows(self, attempts, answer):
        """The versions of nodes' rows, which must be sent to the cache: each is a record's
        number.
        """
        of = dict(zip(answer.tokens, answer.lsns, strict=True))
        of |= {answer.tokens[place]: version for place, _, _, version in answer.refused}
        for each in attempts if self._checks_versions else ():
            if each.token in of:
                known = self._rows.get(each.node_name, 0)
                self._rows[each.node_name] = max(known, of[each.token])

    def _count(self, attempts, answer):
        jobs = {each.token: _job(each) for each in attempts}
        refused = {answer.tokens[place]: cause for place, cause, _, _ in answer.refused}
        self._is_refused |= bool(refused)
        self._refused.update(refused.values())
        self._counts += Counter(
            asked=len(answer.tokens),
            bound=len(answer.tokens) - len(refused),
            transactions=len({jobs[token] for token in answer.tokens}),
            conflicted=len({jobs[token] for token in refused}),
        )

    # Refusals since the state was read.

    def _update_attempts(self, *, forget=(), sent_to_binder=(), **how):
        self._is_refused |= bool(forget)
        self._to_finish.difference_update(token for _, token in sent_to_binder)
        if (actual := self._actor._scheduler.performer._new_versions) != self._rows:
            self._wrong(f"the cache receives rows {actual}, not {self._rows}")
        self._rows = {}
        return self._original_update(forget=forget, sent_to_binder=sent_to_binder, **how)

    def _are_assumed(self, accepted, refused, now_s):
        self._is_refused |= bool(refused)
        return self._assumed(accepted, refused, now_s)

    def _drops(self):
        if not self._is_refused:
            self._wrong("the state is read anew, and nothing was refused")
        self._is_refused = False
        self._drop()

    def _is_deciding(self, scope, pods, now_s, *behind):
        if self._is_refused:
            self._wrong("decides on a state of which something was refused since")
        return self._decide(scope, pods, now_s, *behind)

    def _are_decided(self, decisions, *more):
        self._counts["decided"] += len(decisions)
        return self._decided(decisions, *more)

    async def _reads(self, seq):
        self._readings += 1
        if self._breaks_off and self._readings == BREAKS:
            raise CatchUpTimeoutError("broken off at random")
        await self._catch_up(seq)


COUNTED = ("asked", "bound", "transactions", "conflicted", "decided", "retries")


def _job(attempt):
    """The pods that are decided together: a gang, or the pods of one owner; else the pod."""
    facts = attempt.facts
    if facts.pod_group is not None:
        return facts.namespace, "gang", facts.pod_group.name
    owner = facts.owner
    return attempt.uid if owner is None else (facts.namespace, owner.kind, owner.uid or owner.name)
