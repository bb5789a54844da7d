"""Random calls around the queue's core, for situations that runs seldom reach: a new
`SchedulingQueue` with a run's plan and pods is called at random, and followed by its shadows.

Reports that arrive late or twice, attempts that fail again and again, gangs that wake each other,
schedulers that end, pods that are deleted and added again.
"""

import random
from dataclasses import replace
from types import SimpleNamespace

from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.queue import QueueState, RequeueReason
from roadstead.queue.reports import NodeChange, PendingReason, PodChange, ReturnedPod
from roadstead.run_parts import build_queue
from tests.simulation.shadow_queue import shadow_of
from tests.simulation.shadow_reports import ShadowReports

CALLS = 120
PODS, GANGS, OF_GANG = 6, 3, 3
OWNERS = ("s", "t")
PLUGINS = ("NodeResourcesFit", "InterPodAffinity", "Coscheduling", "NodePorts")
TIMES = 16
"""Maximum number of rounds in which every pod fails."""


def problems_of(plan, scenario, drawn):
    """Return the first few differences between a queue that is called at random and its shadows."""
    draw = random.Random(f"ramble reports {drawn}")
    limits = scenario.limits.queue | {"max_in_flight_events": draw.choice((1, 2, 4, 1000))}
    with replace(scenario.limits, queue=limits).applied():
        ramble = _Ramble(plan, scenario, limits, draw)
    for number in range(CALLS):
        ramble.step()
        if problems := ramble.problems():
            return [f"call {number} at random: {each}" for each in problems]
    ramble.queue.core.validate()
    return []


class _Ramble:
    """One queue. leases: (owner, id, uids). sent: earlier reports."""

    def __init__(self, plan, scenario, limits, draw):
        self._draw, self.queue = draw, build_queue(plan)
        like_an_actor = SimpleNamespace(_plan=plan, core=self.queue.core, queue=self.queue)
        self._shadows = shadow_of(like_an_actor, limits), ShadowReports(self.queue)
        self._now_s, self._revision = 0.0, 1
        self._epochs, self._leases, self._sent = dict.fromkeys(OWNERS, 1), [], []
        self._nodes = scenario.nodes
        self._pods = self._some_pods(scenario.pods)

    def _some_pods(self, pods):
        """Some of the run's pods, and some gangs; one pod has a gate, and one is deleted."""
        some = self._draw.sample(pods, min(PODS, len(pods)))
        plain = replace(some[0][1], pod_group=None, priority=0)
        facts = [
            replace(plain, pod_group=GroupMembership(f"g{gang}", OF_GANG), priority=gang % 2)
            for gang in range(GANGS)
            for _ in range(OF_GANG)
        ]
        facts += [replace(plain, scheduling_gates=("wait",)), replace(plain, is_terminating=True)]
        return some + [
            (PodIdentity(f"uid-q{number}", each.namespace, f"q{number}"), each)
            for number, each in enumerate(facts)
        ]

    def problems(self):
        for shadow in self._shadows:
            shadow.look()
        return [each for shadow in self._shadows for each in shadow.problems]

    def step(self):
        kinds = (
            *((self._submit, 5), (self._leave, 1), (self._were_bound, 0.3), (self._lease, 6)),
            *((self._report, 6), (self._again, 1), (self._owner_ends, 1.5), (self._observe, 2)),
            *((self._gather, 1), (self._time, 3), (self._in_vain, 4)),
        )
        (kind,) = self._draw.choices([k for k, _ in kinds], [weight for _, weight in kinds])
        kind()

    def _do(self, name, *what, **how):
        """Make a call and deliver all nominations that it sends; then more pods may be leased."""
        try:
            answer = getattr(self.queue, name)(*what, **how)
            if hasattr(answer, "send"):
                answer = self._driven(answer)
        except IllegalTransitionError:
            return None
        self.queue.begin_gang_turn(self._now_s)
        return answer

    def _driven(self, steps):
        try:
            next(steps)
            while True:
                steps.send(self._now_s)
        except StopIteration as end:
            return end.value

    def _some(self, things, least=0, most=3):
        things = list(things)
        return self._draw.sample(things, min(len(things), self._draw.randint(least, most)))

    def _next_revision(self):
        draw = self._draw.random()
        self._revision += draw < 0.5
        return self._revision if draw < 0.7 else 0 if draw < 0.9 else max(0, self._revision - 2)

    # Pods are added and removed.

    def _submit(self):
        pods = self._some(self._pods, 1, 6)
        if self._draw.random() < 0.2:
            # They changed: a gate is removed, or a label changed.
            pods = [
                (who, replace(facts, scheduling_gates=(), labels=(("a", "b"),)))
                for who, facts in pods
            ]
        self._do("submit", pods, self._now_s, self._next_revision())

    def _leave(self):
        self._do("remove_deleted", self._some(self._pods, 1), self._now_s, self._next_revision())

    def _were_bound(self):
        new = [e for e in self._pods if self.queue.core.state_of(e[0].uid) is QueueState.NEW]
        of_gangs = [(who, facts) for who, facts in new if facts.pod_group is not None]
        self._do("add_bound", self._some(of_gangs, 0, 1), self._now_s, self._next_revision())

    # Leases.

    def _lease(self, owner=None, most=5):
        owner = owner or self._draw.choice(OWNERS)
        epoch = self._epochs[owner]
        batch = self.queue.lease(owner, epoch, self._draw.randint(1, most), self._now_s)
        self.queue.bound_of_gangs(batch)
        uids = [pod.identity.uid for pod in batch.pods]
        if uids:
            self._leases.append((owner, batch.lease_id, uids))
        return batch

    def _report(self):
        if not self._leases:
            return
        place = self._draw.randrange(len(self._leases)) if self._draw.random() < 0.3 else -1
        _, lease_id, uids = self._leases.pop(place)
        done = self._some(uids, 0, 1)
        back = [self._back(uid) for uid in uids if uid not in done]
        gone = [e for e in self._some(self._pods, 0, 1) if self._draw.random() < 0.2]
        self._send(lease_id, done, back, gone)

    def _send(self, lease_id, done, back, gone=()):
        keys = {who.uid: who.key for who, _ in self._pods}
        notes = [
            PendingReason(each.uid, keys[each.uid], f"{lease_id}: {each.reason}", (), ())
            for each in back
        ]
        report = lease_id, done, back, notes, gone
        self._sent.append(report)
        self._do("report", *report, self._now_s, revision=self._next_revision())

    def _again(self):
        """Send an earlier report again."""
        if self._sent:
            self._do("report", *self._draw.choice(self._sent[-4:]), self._now_s)

    def _back(self, uid, reason=None, by=None):
        draw = self._draw
        reason = reason or draw.choice((*RequeueReason, RequeueReason.UNSCHEDULABLE))
        by = tuple(self._some(PLUGINS, 0, 2)) if by is None else by
        pending = tuple(self._some(PLUGINS, 1, 1)) if draw.random() < 0.1 else ()
        node = draw.choice((None, None, None, "", self._nodes[0].name, "away"))
        preempts = bool(node) and draw.random() < 0.5
        return ReturnedPod(uid, str(reason), by, node, preempts, pending, draw.random() < 0.5)

    def _in_vain(self):
        """All pods fail, again and again, for one reason."""
        draw = self._draw
        reason = draw.choice((*RequeueReason, RequeueReason.UNSCHEDULABLE))
        by, is_freed = draw.choice(((), ("NodeResourcesFit",))), draw.random() < 0.8
        leases = draw.choice((1, 1, 3))
        for _ in range(draw.randint(1, TIMES)):
            self._now_s += draw.choice((1.0, 12.0))
            for _ in range(leases):
                self._lease(most=20)
            for _, lease_id, uids in self._leases:
                back = [self._back(uid, reason, by) for uid in uids]
                self._send(lease_id, (), [replace(each, freed=is_freed) for each in back])
            self._leases.clear()

    def _gather(self):
        groups = {(f.namespace, f.pod_group.name) for _, f in self._pods if f.pod_group}
        self.queue.activate_gangs(self._some(sorted(groups), 0, 2), self._now_s)

    # The cluster, and schedulers that end.

    def _observe(self):
        draw = self._draw
        node = draw.choice(self._nodes)
        changes = [NodeChange(None, node), NodeChange(node, None)]
        pods = [PodChange(facts, replace(facts, labels=())) for _, facts in self._some(self._pods)]
        gone = self._some(self._pods, 0, 1)
        self._do("observe", self._some(changes, 0, 1), gone, pods, self._now_s)

    def _owner_ends(self):
        draw, owner = self._draw, self._draw.choice(OWNERS)
        self._epochs[owner] += 1
        uids = self.queue.leased_to(owner, self._epochs[owner])
        if draw.random() < 0.2:
            uids = uids[1:]
        node_of = {uid: draw.choice(("", "", None, self._nodes[0].name)) for uid in uids}
        self._do("end_owner", owner, self._epochs[owner], node_of, self._now_s)
        if draw.random() < 0.7:
            self._leases = [each for each in self._leases if each[0] != owner]

    def _time(self):
        # Sometimes longer than a lease lasts.
        self._now_s += self._draw.choice((0.1, 0.5, 2.0, 6.0, 40.0))
