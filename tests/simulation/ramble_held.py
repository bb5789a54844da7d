"""Random changes of the table that a scheduler holds, for situations that runs seldom reach: pods
are placed on it, refused, forgotten and decided again before the cache's changes confirm that.

The chosen nodes are not checked. After each batch, pods are where the batch and the earlier table
have them; after all changes, pods and nominations equal those of the cache.
"""

import random
from collections import Counter
from dataclasses import replace
from itertools import takewhile
from types import SimpleNamespace

from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.cache import CacheCore, CacheSettings, PodOnNode
from roadstead.cache.pods import Assumption
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.facts.pod import PodIdentity, without_nomination
from roadstead.framework.victims import Victim
from roadstead.nodes.pod_class import PodClasses
from roadstead.placements import DeltaKind, TableStore

STEPS = 300
NODES, CLASSES, PODS = 3, 2, 6
KINDS = {
    **{"decide": 8, "hear": 4, "catch_up": 3, "nominate": 6, "end": 3, "run": 2},
    **{"go": 1, "come": 2, "preempt": 4},
}


def problems_of(plan, scenario, drawn):
    """Return the first few differences between a table and its expected state."""
    ramble = _Ramble(plan, scenario, random.Random(f"ramble held {drawn}"))
    for number in range(STEPS):
        ramble.step()
        if ramble.problems:
            return [f"held nodes, step {number} at random: {each}" for each in ramble.problems[:2]]
    return []


def hear(held, delta, pod_class, key, arrival):
    """Apply one change of the cache to a scheduler's table. arrival: of an added node."""
    _, kind, name, uid, _, node = delta
    if kind is DeltaKind.ADD_NODE:
        held._add_node(node, arrival)
    elif kind is DeltaKind.UPDATE_NODE:
        held._update_node(node)
    elif kind is DeltaKind.REMOVE_NODE:
        held._remove_node(name)
    elif kind is DeltaKind.ADD_POD:
        held._add_pod(name, pod_class, uid, key, None)
    elif kind is DeltaKind.REMOVE_POD:
        held._remove_pod(name, pod_class, uid)
    elif kind is DeltaKind.NOMINATE:
        held._add_nomination(name, pod_class, uid)
    else:
        held._remove_nomination(name, pod_class, uid)


def nominations_of(table, names):
    """(node, class) → number of pods, from the nominations to some nodes."""
    return Counter(
        {
            (name, pod_class): count
            for name in names
            for pod_class, count in table.nominations.to(name).items()
        }
    )


def nominations_at(cache, classes):
    """The same at the cache, for existing nodes."""
    known = cache.placements
    return Counter(
        (name, classes.pod_class(without_nomination(facts)))
        for name, facts in known.nominated.values()
        if name in known.nodes
    )


class _Ramble:
    """late: changes that the table does not have. reported, named: uid → node of the pods placed
    and nominated by the changes that it has. given_up: uids of pods whose nominations placements
    or leases ended. ahead: preemptors whose preemption the cache has not confirmed; leaving: their
    victims with their nodes. decided: uids of the pods placed since the last full update.
    """

    def __init__(self, plan, scenario, draw):
        self._draw, self.problems = draw, []
        self._classes = PodClasses()
        self._held = SchedulerNodes("ramble", plan, self._classes, is_new=False, epoch=1)
        self._cache = CacheCore(TableStore(), CacheSettings())
        self._late, self._reported, self._arrivals, self._tokens = [], {}, 0, 0
        self._named, self._ended_nominations = {}, set()
        self._ahead, self._leaving, self._decided_here = set(), {}, set()
        self._hosts = scenario.nodes[:NODES]
        for facts in self._hosts:
            self._late += self._cache.add_node(facts)
        some = [facts for _, facts in scenario.pods if not facts.volumes][:CLASSES]
        self._facts = {
            PodIdentity(f"uid-{number}", "default", f"p{number}"): replace(
                some[number % len(some)], namespace="default", nominated_node_name=""
            )
            for number in range(PODS if some else 0)
        }
        self._attempts = {}
        self._catch_up()

    def step(self):
        if not self._facts:
            return
        (kind,) = self._draw.choices([*KINDS], [*KINDS.values()])
        getattr(self, f"_{kind}")()
        self._see_nodes()

    def _pick(self):
        return self._draw.choice([*self._facts])

    def _host(self):
        return self._draw.choice(self._hosts)

    # The cluster, and the table's copy of it.

    def _hear(self):
        """Apply some of the changes; the table may lack others."""
        count = self._draw.randint(0, len(self._late))
        coming, self._late = self._late[:count], self._late[count:]
        while coming:
            some = [*takewhile(lambda delta: delta[1] is DeltaKind.ADD_POD, coming)]
            some = some if len({delta[3] for delta in some}) == len(some) else some[:1]
            if len(some) > 1:
                self._hear_together(some)
            else:
                some = coming[:1]
                self._hear_one(some[0])
            for delta in some:
                self._note(*delta[1:5])
            coming = coming[len(some) :]

    def _hear_one(self, delta):
        uid, pod = delta[3:5]
        pod_class = None if pod is None else self._classes.pod_class(pod)
        hear(self._held, delta, pod_class, f"default/{uid}", self._arrivals)

    def _hear_together(self, some):
        batch = SimpleNamespace(
            names=[delta[2] for delta in some],
            uids=[delta[3] for delta in some],
            keys=[f"default/{delta[3]}" for delta in some],
            pods=range(len(some)),
        )
        self._held._add_pods_only(batch, [self._classes.pod_class(delta[4]) for delta in some], 0)

    def _note(self, kind, name, uid, pod):
        """Record a change that the table now has."""
        if kind is DeltaKind.ADD_NODE:
            self._arrivals += 1
        elif kind is DeltaKind.REMOVE_NODE:
            gone = [uid for uid, place in self._leaving.items() if place == name]
            for uid in gone:
                del self._leaving[uid]
        elif kind is DeltaKind.ADD_POD:
            self._reported[uid] = name
            self._leaving.pop(uid, None)
            self._decided_here.discard(uid)
            if uid in self._ahead:
                del self._named[uid]
                self._ahead.discard(uid)
                self._ended_nominations.discard(uid)
        elif kind is DeltaKind.REMOVE_POD:
            del self._reported[uid]
            self._leaving.pop(uid, None)
        elif kind is DeltaKind.NOMINATE:
            own = name, self._classes.pod_class(pod)
            if uid in self._ahead and self._named[uid] != own:
                self._ended_nominations.discard(uid)
            self._named[uid] = own
            self._ahead.discard(uid)
        elif kind is DeltaKind.WITHDRAW:
            del self._named[uid]
            self._ahead.discard(uid)
            self._ended_nominations.discard(uid)

    def _catch_up(self):
        while self._late:
            self._hear()
        self._held.tentative.undo_unconfirmed()
        self._ended_nominations.clear()
        for uid in self._ahead:
            del self._named[uid]
        for each in (self._ahead, self._leaving, self._decided_here):
            each.clear()
        table, known = self._held.table, self._cache.placements
        table.validate()
        here = {each.uid: name for name in table.node_names() for each in table.residents.on(name)}
        there = {
            uid: self._cache.node_of(uid)
            for uid in self._cache.pods.present
            if self._cache.node_of(uid) in known.nodes
        }
        if not here == there == self._reported:
            self.problems.append(f"the table holds {here}, not {there}")
        if nominations_at(self._cache, self._classes) != Counter(self._named.values()):
            self.problems.append(f"nominated are not those of the changes: {self._named}")

    def _see_nodes(self):
        """The table reports every node on which it differs from the applied changes; nominations
        that placed pods gave up, or that leases do not contain, are excluded.
        """
        table = self._held.table
        here = {each.uid: name for name in table.node_names() for each in table.residents.on(name)}
        differing = {
            uid for uid in {*here, *self._reported} if here.get(uid) != self._reported.get(uid)
        }
        nodes = {each.get(uid) for uid in differing for each in (here, self._reported)} - {None}
        counts = {name: table.row_facts(name)["pod_count"] for name in table.node_names()}
        if counts != {name: [*here.values()].count(name) for name in counts}:
            self.problems.append(f"{counts} pods are counted, {here} are there")
        wanted = Counter(
            each for uid, each in self._named.items() if uid not in self._ended_nominations
        )
        if (named := nominations_of(table, table.nominations)) != wanted:
            self.problems.append(f"nominated are {named}, not {wanted}")
        away = {uid: name for uid, name in self._leaving.items() if here.get(uid) == name}
        if away.keys() - self._decided_here:
            self.problems.append(f"{away} are to go, and are on their nodes")
        if not nodes <= self._held.tentative.nodes():
            self.problems.append(
                f"{nodes} differ, {self._held.tentative.nodes()} are reported to differ"
            )

    def _go(self):
        name = self._host().name
        if name in self._cache.placements.nodes and len(self._cache.placements.nodes) > 1:
            self._late += self._cache.remove_node(name)

    def _come(self):
        facts = self._host()
        if facts.name not in self._cache.placements.nodes:
            self._late += self._cache.add_node(facts)

    def _run(self):
        """Another scheduler's attempt is bound."""
        who = self._pick()
        if self._cache.node_of(who.uid) is None:
            facts = without_nomination(self._facts[who])
            placed = PodOnNode(who.uid, f"default/{who.uid}", facts, self._host().name)
            self._late += self._cache.confirm([placed])

    def _end(self):
        """Forget an attempt, or delete a pod."""
        who = self._pick()
        if self._cache.node_of(who.uid) is None:
            return
        token = self._attempts.pop(who, None)
        if token is None:
            self._late += self._cache.remove_pods([who.uid])
        else:
            self._late += self._cache.forget([(who.uid, token)]).deltas

    def _nominate(self):
        who = self._pick()
        if self._cache.node_of(who.uid) is None:
            name = self._draw.choice((self._host().name, self._host().name, ""))
            self._facts[who] = replace(self._facts[who], nominated_node_name=name)
            self._late += self._cache.nominate(who.uid, name, without_nomination(self._facts[who]))

    # A batch and its results.

    def _decide(self):
        draw, table, tentative = self._draw, self._held.table, self._held.tentative
        some = draw.sample([*self._facts], draw.randint(1, 4))
        pods = [self._pod(who) for who in some]
        before = {who.uid: table.residents.node_of(who.uid) for who in self._facts}
        ours = {who.uid for who in self._facts if before[who.uid] != self._reported.get(who.uid)}
        ours |= self._leaving.keys()
        tentative.remove_from_table(pods)
        self._ended_nominations.difference_update(pod.uid for pod in pods)
        # Where a lease differs from the cache, the cache's nomination does not reserve room.
        named = {pod.uid: pod.pod_class.facts.nominated_node_name for pod in pods}
        self._ended_nominations.update(
            uid for uid in named.keys() & self._named.keys() if self._named[uid][0] != named[uid]
        )
        if there := {pod.uid for pod in pods if table.residents.node_of(pod.uid) is not None}:
            self.problems.append(f"{there} stand on the table and are about to be decided")
            return
        decisions = [self._decided(pod) for pod in pods[: draw.randint(0, len(pods))]]
        tentative.record_decisions(decisions)
        placed = {each.pod.uid: each.node_name for each in decisions if each.node_name is not None}
        self._ended_nominations.update(uid for uid in placed if uid in self._named)
        self._decided_here -= {pod.uid for pod in pods}
        self._decided_here |= placed.keys()
        for pod in pods:
            was = before[pod.uid]
            stays = placed.get(pod.uid) or (None if pod.uid in ours else was)
            if pod.uid not in ours and table.residents.node_of(pod.uid) != stays:
                self.problems.append(f"{pod.uid} came from {was} and is not on {stays}")
        for who in some:
            if who.uid in placed and draw.random() < 0.7:
                self._assume(who, placed[who.uid])

    def _preempt(self):
        """A pod without a feasible node preempts: the table shows it, and mostly the cache confirms
        it.
        """
        who, table = self._pick(), self._held.table
        name = self._draw.choice(table.node_names())
        uids = [each.uid for each in table.residents.on(name) if each.uid != who.uid]
        if table.residents.node_of(who.uid) is not None or not uids:
            return
        uids = self._draw.sample(uids, self._draw.randint(1, len(uids)))
        pod, victims = self._pod(who), [Victim(uid, f"default/{uid}", 0) for uid in uids]
        may = not (who.uid in self._named or pod.pod_class.facts.nominated_node_name)
        there = table.nominations.to(name)
        may = may and all(each.facts.priority >= pod.pod_class.facts.priority for each in there)
        is_shown = self._held.tentative.preempt(pod, name, victims)
        if is_shown != (may and not self._decided_here.intersection(uids)):
            self.problems.append(f"{who.uid} preempts {uids}; the table shows it: {is_shown}")
        if is_shown:
            self._named[who.uid] = name, pod.pod_class
            self._ahead.add(who.uid)
            self._leaving |= dict.fromkeys(uids, name)
            self._facts[who] = replace(self._facts[who], nominated_node_name=name)
        if is_shown and self._draw.random() < 0.8 and self._cache.node_of(who.uid) is None:
            self._late += self._cache.remove_pods(self._cache.pods.present.keys() & uids)
            self._late += self._cache.nominate(who.uid, name, without_nomination(self._facts[who]))

    def _pod(self, who):
        pod_class = self._classes.pod_class(self._facts[who])
        return PodInCycle(who.uid, f"default/{who.uid}", pod_class, pod_class)

    def _decided(self, pod):
        """Place a pod as a batch does, or leave it unplaced."""
        table, nominated = self._held.table, pod.pod_class.facts.nominated_node_name
        if self._draw.random() < 0.3:
            return Decision(pod, None)
        name = self._draw.choice(table.node_names())
        table.add_pod(name, pod.pod_class, uid=pod.uid, key=pod.key)
        if nominated:
            table.withdraw(nominated, pod.pod_class)
        return Decision(pod, name)

    def _assume(self, who, name):
        self._tokens += 1
        token, facts = f"ramble/1/{self._tokens}", without_nomination(self._facts[who])
        item = Assumption(who.uid, f"default/{who.uid}", facts, name, token)
        answer = self._cache.assume([item], 0.0)
        self._late += answer.deltas
        if not answer.refused:
            self._attempts[who] = token
