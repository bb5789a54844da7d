"""Random calls of a queue, for situations that runs seldom reach: a new core, with a run's pods,
profiles and hints and with small limits, is called at random, and followed by its shadow.

Late and contradictory reports, pods that are added again under other names, change or terminate,
changing nominations, new epochs of owners, profiles of their own, bounds of one or two.
"""

import random
from dataclasses import replace

from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.queue import QueueCore, QueueSettings, QueueState, Requeue, RequeueReason
from roadstead.queue.event_rules import event_rules
from roadstead.queue.events import PodEvents, node_events, pod_events
from roadstead.queue.reports import NodeChange, PodChange
from tests.builders import pod, taint
from tests.simulation.scenarios import HOSTNAME
from tests.simulation.scenarios import _term as term
from tests.simulation.shadow_queue import ShadowQueue, rules_for

CALLS = 400
PODS = 14
LOOK_EVERY = 4
"""Calls after which the whole state is compared."""

PLUGINS = (
    *("NodeResourcesFit", "PodTopologySpread", "TaintToleration", "NodePorts", "NodeAffinity"),
    *("Coscheduling", "SchedulingGates", "fails", *("InterPodAffinity",) * 4),
)
"""The last one often: only it looks at pods leased to other owners."""
OWNERS = ("s", "t")


def problems_of(actor, scenario, drawn):
    """Return the first few differences between a core that is called at random and its shadow."""
    ramble = _Ramble(actor, scenario, random.Random(f"ramble queue {drawn}"))
    for number in range(CALLS):
        ramble.step()
        if number % LOOK_EVERY == 0:
            ramble.shadow.look()
        if ramble.shadow.problems:
            return [f"call {number} at random: {each}" for each in ramble.shadow.problems]
    ramble.shadow.look()
    ramble.core.validate()
    return ramble.shadow.problems + ramble.nominated_alike()


def _settings(draw):
    return QueueSettings(
        max_pods=draw.choice((4, 10, 1000)),
        lease_s=draw.choice((2.0, 5.0)),
        backoff_initial_s=draw.choice((0.5, 1.0)),
        backoff_max_s=draw.choice((2.0, 10.0)),
        backoff_window_s=draw.choice((1.0, 0.25)),
        unschedulable_max_s=draw.choice((4.0, 20.0)),
        max_in_flight_events=draw.choice((1, 3, 1000)),
        max_done_remembered=draw.choice((0, 1, 2, 1000)),
        max_bypasses=draw.choice((1, 2, 10)),
        by_profile=draw.random() < 0.4,
    )


class _Ramble:
    """One core and its shadow. now_s, epochs: of the caller. leases: (id, uids)."""

    def __init__(self, actor, scenario, draw):
        self._draw, settings = draw, _settings(draw)
        rules, asked = event_rules(actor.queue.hints), rules_for(actor)
        if draw.random() < 0.2:
            # Any event brings any pod back.
            rules, everybody = None, lambda *_: True
            asked = replace(
                asked,
                hint=everybody,
                registered=everybody,
                concerns=everybody,
                any_of=lambda _: None,
            )
        self.core = QueueCore(
            gate=actor.queue.gate, rules=rules, sort=asked.sort, settings=settings
        )
        self.shadow = ShadowQueue(self.core, settings, asked)
        self._now_s, self._epochs, self._leases = 0.0, dict.fromkeys(OWNERS, 1), []
        self._came = 0
        self._pods = draw.sample(scenario.pods, min(PODS, len(scenario.pods)))
        self._nodes = scenario.nodes
        self._names = [*(node.name for node in self._nodes[:2]), "away"]
        self._classes = self._some_classes()
        self._events = PodEvents()

    def _some_classes(self):
        """A few shared classes: some of the run's, with variations of special fields."""
        draw = self._draw
        facts = [facts for _, facts in self._pods]
        some = draw.sample(facts, min(4, len(facts)))
        plain, urgent = replace(some[0], pod_group=None), replace(some[0], priority=100)
        gang = replace(plain, pod_group=GroupMembership("g", 2))
        near = pod(labels={"app": "near0"}, pod_affinity=(term("near0", HOSTNAME),))
        gangs = [gang, replace(gang, priority=7)] * draw.choice((1, 1, 6))
        self._near, near = near, [near] * draw.choice((2, 4, 12))
        return [
            *(*some, *some, *some, plain, urgent, *gangs, *near),
            *(replace(each, nominated_node_name=self._names[0]) for each in some[:2]),
            replace(plain, scheduling_gates=("wait",)),
            replace(plain, scheduling_gates=("wait",), nominated_node_name=self._names[-1]),
            replace(some[-1], is_terminating=True),
            replace(plain, scheduler_name="other"),
        ]

    def nominated_alike(self):
        """Pods of one class that are nominated to one node have one class again."""
        name = self._nodes[0].name
        for facts in self._classes:
            first, again = (self.core._nominator.facts_for(facts, name) for _ in range(2))
            if first is not again or first != replace(facts, nominated_node_name=name):
                return [f"nominated to {name}, {facts} becomes {first}, then {again}"]
        return []

    def step(self):
        draw = self._draw
        kinds = (
            *((self._add, 6), (self._lease, 7), (self._done, 1), (self._requeue, 9)),
            *((self._update, 2), (self._leave, 1), (self._move, 6), (self._activate, 1)),
            *((self._time, 4), (self._begin_anew, 1), (self._renew, 1), (self._ask, 2)),
            (self._many_events, 0.2),
        )
        (kind,) = draw.choices([each for each, _ in kinds], [weight for _, weight in kinds])
        kind()

    def _do(self, name, *what):
        try:
            return getattr(self.core, name)(*what)
        except IllegalTransitionError:
            return None

    def _some(self, things, most=3, least=0):
        things = list(things)
        return self._draw.sample(things, min(len(things), self._draw.randint(least, most)))

    def _uids(self):
        return self._some(who.uid for who, _ in self._pods)

    def _add(self):
        # Finished pods are not added again; others replace them.
        for place, (who, facts) in enumerate(self._pods):
            if self.core.state_of(who.uid) in (QueueState.DONE, QueueState.NEW):
                number, self._came = self._came, self._came + 1
                if self._draw.random() < 0.3:
                    who = PodIdentity(f"uid-x{number}", who.namespace, f"x{number}")
                    self._pods[place] = who, facts
        pods = self._some(self._pods, 6, 1)
        if pods and self._draw.random() < 0.1:
            pods.append(pods[0])
        self._do("add", [(who, self._draw.choice(self._classes)) for who, _ in pods], self._now_s)

    def _lease(self):
        draw, owner = self._draw, self._draw.choice(OWNERS)
        epoch = self._epochs[owner] - (draw.random() < 0.1)
        profile = ""
        if self.core.settings.by_profile:
            usual = self._pods[0][1].scheduler_name
            profile = draw.choice((usual, usual, "other", ""))
        leased = self._do("lease", owner, epoch, draw.randint(0, 5), self._now_s, profile)
        if leased is not None and leased.pods:
            self._leases.append((leased.lease_id, [pod.identity.uid for pod in leased.pods]))

    def _reported(self):
        lease_id, uids = self._draw.choice(self._leases[-3:])
        if self._draw.random() < 0.05:
            uids = [*uids, self._draw.choice(self._pods)[0].uid]
        chosen = self._some(uids, len(uids))
        if chosen and self._draw.random() < 0.1:
            chosen.append(chosen[0])
        return (lease_id if self._draw.random() < 0.95 else 999), chosen

    def _done(self):
        if self._leases:
            self._do("done", *self._reported())

    def _requeue(self):
        if not self._leases:
            return
        draw, (lease_id, chosen) = self._draw, self._reported()
        reason = draw.choice((*RequeueReason, *(RequeueReason.UNSCHEDULABLE,) * 4))
        by = tuple(dict.fromkeys(self._some(PLUGINS, 2, draw.random() < 0.9)))
        pending = tuple(self._some(PLUGINS, 1)) if draw.random() < 0.3 else ()
        node = draw.choice((None, None, "", *self._names))
        pods = [
            Requeue(uid, reason, by, pending, node, bool(node) and draw.random() < 0.5)
            for uid in chosen
        ]
        self._do("requeue", lease_id, pods, self._now_s)

    def _update(self):
        who, _ = self._draw.choice(self._pods)
        events = self._draw.choice((None, self._some_events()))
        self._do("update", who, self._draw.choice(self._classes), self._now_s, events)

    def _leave(self):
        self._do(self._draw.choice(("delete", "assigned")), self._uids())

    def _some_events(self):
        draw = self._draw
        old, new = draw.choice(self._nodes), draw.choice(self._nodes)
        changed = replace(old, taints=(taint("k", "v", "NoSchedule"),), labels=new.labels)
        larger = replace(old, allocatable=tuple((n, 2 * v) for n, v in old.allocatable))
        classes = [*self._classes, *[self._near] * len(self._classes)]
        facts = [replace(draw.choice(classes), nominated_node_name="") for _ in range(2)]
        events = [
            *self._events.assigned(facts),
            *self._events.assigned(facts[:1]),
            *self._events.unassigned(facts[:1]),
            *self._events.unassigned(facts[:1], spares_gangs=True),
            *self._events.added(facts[1:]),
            *node_events([NodeChange(None, new), NodeChange(old, larger), NodeChange(new, None)]),
            *node_events([NodeChange(changed, old), NodeChange(old, changed)]),
            *pod_events([PodChange(facts[0], facts[1])]),
        ]
        return self._some(events, 4)

    def _move(self):
        among, chosen = None, set(self._uids())
        if self._draw.random() < 0.3:
            among = lambda who, facts: who.uid in chosen  # noqa: E731
        self._do("move", self._some_events(), self._now_s, among)

    def _activate(self):
        self._do("activate", self._uids(), self._now_s)

    def _many_events(self):
        """Send more events than are recorded for a pod in flight."""
        who, facts = self._draw.choice(self._pods)
        for _ in range(22):
            self._do("update", who, facts, self._now_s, [*self._some_events(), None, None])

    def _time(self):
        # Backoffs end in whole windows, and sometimes so do these steps.
        self._now_s += self._draw.choice((0.0, 0.25, 0.25, 0.5, 1.0, 3.0))
        name = self._draw.choice(("tick", "tick", "flush_backoff", "flush_unschedulable", "expire"))
        self._do(name, self._now_s)

    def _begin_anew(self):
        owner = self._draw.choice(OWNERS)
        self._epochs[owner] += 1
        self._do("leased_to", owner, self._epochs[owner] - self._draw.randint(0, 1))
        if self._draw.random() < 0.7:
            self._do("revoke", owner, self._epochs[owner], self._now_s)

    def _renew(self):
        if self._leases:
            self._do("renew", self._draw.choice(self._leases)[0], self._now_s)

    def _ask(self):
        self._do(self._draw.choice(("pop_cleared", "pop_released", "next_wakeup_s")))
        uids = self._uids()
        self._do("known_uids", uids)
        for uid in uids:
            for name in ("state_of", "facts_of", "rejected_by"):
                self._do(name, uid)
        self._do("nominated", self._draw.choice(self._names))
        self._do("nominations")
        self._do("gate", self._draw.choice(self._classes))
