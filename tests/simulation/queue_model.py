"""The queue's rules, written a second time and plainly: a list of pods, sorted and searched again
for every query.

There are no heaps, no classes of pods and no cached answers: each pod is checked against each event
by itself, and the log of events is never pruned. The rules are those in the docstring of
`roadstead.queue`, and in scheduling_queue.go, active_queue.go, backoff_queue.go and nominator.go of
pkg/scheduler/backend/queue (1.34). Methods are those of `QueueCore` and return the same, except for
statuses, of which only success is compared.

The order is that of the core, where the core promises one. It promises none among pods that one
call to `move` brings back: there the model gets the core's order.
"""

from collections import Counter

from roadstead.queue import QUEUED, QueueState
from tests.simulation.queue_moves import AFTER_BACKOFF, FINISHED, REPORTED, Lease, Moves, Pod

_S = QueueState


class QueueModel(Moves):
    """The public calls. within: the calls that the last tick made, and their answers."""

    within = ()

    # Queries.

    def state_of(self, uid):
        known = self.pods.get(uid) or self.done_pods.get(uid)
        return known.state if known else _S.NEW

    def facts_of(self, uid):
        return self.pods[uid].facts if uid in self.pods else None

    def known_uids(self, uids):
        return {uid for uid in uids if uid in self.pods}

    def rejected_by(self, uid):
        is_parked = self.state_of(uid) is _S.UNSCHEDULABLE
        return self.pods[uid].rejected_by if is_parked else ()

    def nominations(self):
        named = filter(self.is_nominated, self.pods.values())
        return tuple(each.view() for each in sorted(named, key=lambda each: each.seq))

    def nominated(self, node_name):
        named = ((who, facts) for who, facts, *_ in self.nominations())
        return tuple(who.uid for who, facts in named if facts.nominated_node_name == node_name)

    def leased_to(self, owner, epoch):
        return tuple(uid for lease in self.leases_before(owner, epoch) for uid in lease.open)

    def in_line(self, state):
        """The pods in a state, in the order in which they leave it."""
        if state is _S.DONE:
            return tuple(pod.view() for pod in self.done_pods.values())
        return tuple(pod.view() for pod in sorted(self.of(state), key=self.rank))

    def counts(self):
        at = Counter(pod.state for pod in self.pods.values())
        totals = (self.totals[each] for each in ("accepted", "done", "deleted"))
        return *(at[each] for each in QUEUED), len(self.leases), *totals

    def next_wakeup_s(self):
        wait_s = self.settings.unschedulable_max_s
        times = [lease.deadline_s for lease in self.leases.values()]
        times += [pod.backoff_until_s for pod in self.of(_S.BACKOFF)]
        times += [pod.timestamp_s + wait_s for pod in self.of(_S.UNSCHEDULABLE)]
        return min(times, default=None)

    def pop_cleared(self):
        cleared, self.cleared = self.cleared, {}
        return cleared

    def pop_released(self):
        released, self.released = self.released, {}
        return released

    def gate(self, facts):
        return self.asked(facts)[0]

    # Pods are added, changed and removed.

    def add(self, pods, now_s):
        new, again, done, refused = {}, [], [], []
        room = self.settings.max_pods - len(self.pods)
        for identity, facts in pods:
            uid = identity.uid
            if uid in self.pods or uid in new:
                again.append((uid, facts))
            elif uid in self.done_pods:
                done.append(uid)
            elif len(new) >= room:
                refused.append(uid)
            else:
                new[uid] = Pod(uid, identity, facts, self.totals["accepted"], now_s)
                self.totals["accepted"] += 1
        for uid, pod in new.items():
            self.pods[uid] = pod
            self.enter(pod, _S.ACTIVE, now_s)
        for uid, facts in again:
            self.change(self.pods[uid], facts, now_s, None)
        names = tuple(new), tuple(uid for uid, _ in again), tuple(done), tuple(refused)
        return *names, not refused

    def update(self, identity, facts, now_s, events=None):
        if identity.uid not in self.pods:
            return self.add([(identity, facts)], now_s)[-1]
        self.change(self.pods[identity.uid], facts, now_s, events)
        return True

    def delete(self, uids):
        gone = []
        for uid in uids:
            if uid in self.pods:
                gone.append(uid)
                self.leave(self.pods[uid], _S.DELETED)
                self.totals["deleted"] += 1
            elif self.done_pods.pop(uid, None):
                self.totals["deleted"] += 1
        return tuple(gone)

    def assigned(self, uids):
        gone = []
        for uid in uids:
            if uid in self.pods:
                gone.append(uid)
                self.leave(self.pods[uid], _S.DONE)
        return tuple(gone)

    # Leases.

    def lease(self, owner, epoch, max_pods, now_s, profile=""):
        deadline_s = now_s + self.settings.lease_s
        if epoch < self.epochs.get(owner, epoch):
            return 0, owner, epoch, deadline_s, (), False
        self.revoke(owner, epoch, now_s)
        chosen = self.chosen(owner, max_pods, profile)
        if chosen:
            self.totals["leases"] += 1
            number = self.totals["leases"]
            lease = Lease(number, owner, epoch, deadline_s, len(self.events))
            self.leases[number] = lease
        for pod in chosen:
            self.go(pod, _S.IN_FLIGHT)
            pod.lease_id = lease.lease_id
            pod.attempts += 1
            pod.rejected_by, pod.pending, pod.own_events = (), (), []
            lease.open.append(pod.uid)
        leased = [pod for pod in chosen if not pod.facts.is_terminating]
        views = tuple(pod.view() for pod in leased)
        for pod in chosen:
            if pod.facts.is_terminating:
                self.enter(pod, _S.ACTIVE, now_s)
        return (lease.lease_id if leased else 0), owner, epoch, deadline_s, views, True

    def renew(self, lease_id, now_s):
        lease = self.leases.get(lease_id)
        if lease is not None:
            lease.deadline_s = max(lease.deadline_s, now_s + self.settings.lease_s)
        return lease is not None

    def done(self, lease_id, uids):
        lease = self.leases.get(lease_id)
        if lease is None:
            return (), (), tuple(uids)
        new, before, stale = self.sorted_out(lease, [(uid, FINISHED) for uid in uids])
        for uid in new:
            self.leave(self.pods[uid], _S.DONE)
            lease.closed[uid] = FINISHED
        return tuple(new), before, stale

    def requeue(self, lease_id, pods, now_s):
        lease = self.leases.get(lease_id)
        if lease is None:
            return (), (), tuple(each.uid for each in pods)
        reports = [(each.uid, REPORTED[each.reason]) for each in pods]
        new, before, stale = self.sorted_out(lease, reports)
        seen = self.events[max(lease.first, self.forgotten) :]
        by_uid = {each.uid: each for each in pods}
        for uid, what in new.items():
            pod, report = self.pods[uid], by_uid[uid]
            if report.nominated_node is not None:
                self.nominate(pod, report.nominated_node, report.preempts, now_s)
            self.return_leased(pod, report, seen, now_s)
            lease.closed[uid] = what
        return tuple(new), before, stale

    def expire(self, now_s):
        late = [each for each in self.leases.values() if each.deadline_s <= now_s]
        return tuple(self._end(lease, now_s) for lease in late)

    def revoke(self, owner, epoch, now_s):
        self.epochs[owner] = max(epoch, self.epochs.get(owner, epoch))
        old = self.leases_before(owner, epoch)
        return tuple(self._end(lease, now_s) for lease in old)

    def _end(self, lease, now_s):
        uids = tuple(lease.open)
        for uid in uids:
            self.enter(self.pods[uid], _S.ACTIVE, now_s)
        return lease.lease_id, lease.owner, lease.epoch, uids

    # Events.

    def move(self, events, now_s, predicate=None, *, order):
        """order: the order in which the core brought pods back."""
        helped = {}
        for pod in self.of(_S.UNSCHEDULABLE, _S.GATED):
            heard = [
                event
                for event in events
                if self.rules.concerns(event, pod.facts, pod.rejected_by)
                and (not pod.gating_plugin or self.rules.registered(pod.gating_plugin, event))
            ]
            if heard and (predicate is None or predicate(pod.identity, pod.facts)):
                helped[pod.uid] = self.worth(pod, heard)
        helped = {uid: helped[uid] for uid in order if uid in helped} | helped
        moved = [uid for uid in helped if self.come_back(self.pods[uid], helped[uid], now_s)]
        for event in events if self.leases else ():
            self.record(event)
        return tuple(moved)

    def activate(self, uids, now_s):
        moved = []
        for uid in uids:
            state = self.state_of(uid)
            if state is _S.IN_FLIGHT:
                self.remember(self.pods[uid], [None])
            elif state in (_S.BACKOFF, _S.UNSCHEDULABLE, _S.GATED):
                moved += [uid] if self.enter(self.pods[uid], _S.ACTIVE, now_s) else []
        return tuple(moved)

    def flush_backoff(self, now_s):
        over = [pod for pod in self.of(_S.BACKOFF) if pod.backoff_until_s <= now_s]
        # Among backoffs that end at the same time, pods that plugins rejected leave first.
        over.sort(key=lambda pod: (pod.backoff_until_s, *self.rank(pod)))
        for pod in over:
            self.enter(pod, _S.ACTIVE, now_s)
        return len(over)

    def flush_unschedulable(self, now_s):
        wait_s = self.settings.unschedulable_max_s
        long = [p for p in self.of(_S.UNSCHEDULABLE) if p.timestamp_s + wait_s <= now_s]
        for pod in sorted(long, key=self.rank):
            self.come_back(pod, AFTER_BACKOFF, now_s)
        return len(long)

    def tick(self, now_s):
        parts = ("expire", "flush_unschedulable", "flush_backoff")
        self.within = [(name, getattr(self, name)(now_s)) for name in parts]
        return self.within[0][1]
