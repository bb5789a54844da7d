"""Checks after a simulated run is over and all its messages are delivered."""

from collections import Counter
from dataclasses import replace
from operator import attrgetter

from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.binder import BinderState
from roadstead.cache import CacheState
from roadstead.facts.pod_groups import group_key
from roadstead.invariants.checker import RULES, check
from roadstead.invariants.world import World
from roadstead.journal import RecordKind
from roadstead.journal.segments import Reader
from roadstead.placements import TableStore
from roadstead.queue import QueueState
from roadstead.queue.retries import FAILS_AGAIN
from tests.peculiar_plugins import BINDING
from tests.simulation.devices_left import DevicesLeft
from tests.simulation.filters import UsersFilters

AFFINITY, SPREAD = "InterPodAffinity", "PodTopologySpread"
REFUSING = {"DefaultPreemption", *(each.name for each in BINDING)}
"""Plugins that run after Filter. A pod that one of them refuses waits for an event, as does a pod
that is evicted while it waits for Permit; that event may never happen, as upstream.
"""

QUEUED = (QueueState.ACTIVE, QueueState.BACKOFF, QueueState.UNSCHEDULABLE, QueueState.GATED)


def problems_of(scenario, actors, disk, acknowledged, kept=()):
    """Return one line for each violation. acknowledged: uid → node as reported to schedulers. kept:
    pods that the client still has because the queue is full.

    The machine stops first: everything that is not durable by then may be lost.
    """
    disk.crash()
    records = list(Reader(disk).records())
    return [
        *_of_journal(records),
        *_of_acknowledged(records, acknowledged),
        *_of_cores(actors),
        *_of_tables(actors),
        *_of_pods(scenario, actors, records, kept),
        *_of_gangs(scenario, actors),
        *_of_nominations(actors),
        *_left_lying(scenario, actors, records),
    ]


def problems_of_journal(disk, acknowledged):
    """Like `problems_of`, for the disk of a run that ended early."""
    disk.crash()
    records = list(Reader(disk).records())
    return [*_of_journal(records, is_whole=False), *_of_acknowledged(records, acknowledged)]


def _of_journal(records, *, is_whole=True):
    for each in check(records).violations:
        # The journal does not report a gang whose last record did not fit on the disk.
        if is_whole or each.invariant != "I10":
            yield f"{each.invariant}: record {each.lsn}: {each.pod} on {each.node}: {each.text}"


def _of_acknowledged(records, acknowledged):
    kept = (RecordKind.BIND, RecordKind.LOAD)
    bound = {each.uid: each.node_name for each in records if each.kind in kept}
    # A snapshot contains the last nodes of removed pods.
    ends = (RecordKind.DELETE, RecordKind.EVICT)
    gone = {each.uid: each.node_name for each in records if each.kind in ends and not each.lsn}
    bound = gone | bound
    for uid, node_name in acknowledged.items():
        if bound.get(uid) != node_name:
            yield f"I9: {uid} was acknowledged on {node_name}, in the journal on {bound.get(uid)}"


def _of_cores(actors):
    for name, actor in sorted(actors.items()):
        validate = getattr(getattr(actor, "core", None), "validate", None)
        try:
            if validate is not None:
                validate()
        except AssertionError as broken:
            yield f"{name}: {broken}"
        if name == CACHE and (open_claims := actor.state.volumes.assumed_claims._open):
            yield f"{name}: claims are still held open: {sorted(open_claims)}"
        error = getattr(actor, "failure", None)
        if error is not None:
            yield f"{name}: {type(error).__name__}: {error}"


def _of_tables(actors):
    cache = actors[CACHE]
    rebuilt = cache.core.rebuild(TableStore())
    yield from (f"I5: cache: {line}" for line in cache.core.compare(rebuilt))
    yield from (f"cache and binder: {line}" for line in _cache_and_binder(actors))
    storage, binder = cache.state.volumes.assumed_claims.storage, actors[BINDER].binder
    yield from _claims_apart("the binder", binder.volumes._claims.storage, storage)
    table = cache.core.placements.store.table
    for name, actor in sorted(actors.items()):
        follower = actor if name.startswith("worker") else getattr(actor, "_nodes", None)
        stream = cache.stream
        if follower is None or name in stream.unfilled or stream.refill.is_under_way(name):
            continue
        _read_anew(follower)
        if hasattr(follower, "_storage"):
            yield from _claims_apart(name, follower._storage, storage)
        mine, should = set(follower.table.node_names()), set(table.node_names())
        if name.startswith("worker"):
            arrivals = dict(zip(table.names, table.arrivals.tolist(), strict=True))
            should = {node for node in should if actor._owns(arrivals[node])}
        if mine != should:
            yield f"I5: {name} holds {sorted(mine)}, not {sorted(should)}"
        for node_name in sorted(mine & should):
            here, there = follower.table.row_facts(node_name), table.row_facts(node_name)
            if here != there:
                yield f"I5: {name}: {node_name} is {_differing(here, there)}"


def _claims_apart(name, storage, cache):
    """I5: after all messages, every actor has the cache's claims of devices; none is in flight."""
    mine, should = _sorted_claims(storage), _sorted_claims(cache)
    for key in sorted({*mine, *should}):
        if mine.get(key) != should.get(key):
            yield f"I5: {name} has claim {mine.get(key)}, the cache {should.get(key)}"
        elif mine[key].is_in_flight:
            yield f"I6: claim {key} is still in flight"


def _sorted_claims(storage):
    """Claims by key with their consumers by UID: binder and cache confirm pods in own orders."""
    return {
        key: replace(each, reserved_for=tuple(sorted(each.reserved_for, key=attrgetter("uid"))))
        for key, each in storage.devices.claims.items()
    }


def _read_anew(follower):
    """Prepare for a next batch, which may never start: apply waiting changes and drop decisions
    that were not assumed.
    """
    follower.is_paused = False
    while (batch := follower._next_batch()) is not None:
        follower._apply(batch)
    if tentative := getattr(follower, "tentative", None):
        tentative.undo_unconfirmed()


def _differing(here, there):
    return {key: (here[key], there[key]) for key in here if here[key] != there[key]}


def _cache_and_binder(actors):
    """Cache and binder count the same pods on the same nodes, and no assumption is left (I6)."""
    cache, binder = actors[CACHE].core, actors[BINDER].core
    yield from cache.placements.compare(binder.placements)
    for uid in sorted(cache.pods.present):
        if cache.state_of(uid) is not CacheState.ADDED:
            yield f"I6: {uid} is still {cache.state_of(uid).value} on {cache.node_of(uid)}"


def _of_pods(scenario, actors, records, kept):
    """I4: every accepted pod is waiting, bound or removed, and queue and binder agree on which."""
    queue, binder = actors[QUEUE].core, actors[BINDER].core
    room = queue.settings.max_pods - queue.counts().queued
    if kept and room > 0:
        yield f"{sorted(kept)} are kept by their client, and the queue has room for {room}"
    for identity, _ in scenario.pods:
        waits = queue.state_of(identity.uid) in QUEUED
        state, _ = binder.pod_status(identity.uid)
        if state is BinderState.PENDING and not waits and identity.uid not in kept:
            yield f"I4: {identity.uid} is pending, the queue has it as {_queued(queue, identity)}"
        if state is not BinderState.PENDING and waits:
            yield f"I4: {identity.uid} is {state.value} and waits ({_queued(queue, identity)})"
    bound_pods = _bound_pods(records)
    counted = {uid: binder.placements.node_of(uid) for uid in bound_pods}
    if counted != bound_pods or len(binder.placements) != len(bound_pods):
        yield f"outcome and journal: {_differing(counted, bound_pods)}"


def _of_gangs(scenario, actors):
    """The queue, which sends the number with each lease, counts the bound pods of each gang."""
    members, binder = actors[QUEUE].queue._members, actors[BINDER].core
    bound = Counter()
    for identity, facts in scenario.pods:
        state, _ = binder.pod_status(identity.uid)
        if facts.pod_group is not None and state is BinderState.BOUND:
            bound[group_key(facts)] += 1
    for key in dict.fromkeys((*members.groups(), *bound)):
        if members.bound(key) != bound[key]:
            yield f"the queue counts {members.bound(key)} bound pods of {key}, not {bound[key]}"


def _of_nominations(actors):
    """Queue and cache have the same pods nominated to the same nodes."""
    queue, cache = actors[QUEUE].core, actors[CACHE].core
    waiting = {p.identity.uid: p.facts.nominated_node_name for p in queue.nominations()}
    holding = {uid: name for uid, (name, _) in cache.placements.nominated.items()}
    if waiting != holding:
        yield f"nominated are {waiting} at the queue, {holding} at the cache"


def _queued(queue, identity):
    return queue.state_of(identity.uid).value


def _bound_pods(records):
    """uid → node, after all journal records."""
    bound_pods = {}
    for each in records:
        if each.kind in (RecordKind.BIND, RecordKind.LOAD):
            bound_pods[each.uid] = each.node_name
        elif each.kind in (RecordKind.EVICT, RecordKind.DELETE):
            bound_pods.pop(each.uid, None)
    return bound_pods


def _left_lying(scenario, actors, records):
    """I12: no waiting pod fits a node by the rules of the checker and of the plan's plugins, and no
    waiting gang fits enough nodes.

    Claims may be unbound: the rules do not cover what they need. Two cases wake nobody, as
    upstream. A pod that changes its own labels is not woken for InterPodAffinity, whose hint
    ignores pods without a node. No pod is woken for PodTopologySpread when a pod on a node starts
    to terminate and is no longer counted.
    """
    queue, facts_of = actors[QUEUE].core, _facts_now(scenario, actors)
    # A bind can also lose a race for a row's version needlessly, and after enough losses the pod is
    # parked.
    may_fail = scenario.is_strained or scenario.plan.settings.conflicts == "version"
    relabelled = {
        who.uid for who, facts in scenario.pods if facts.labels != facts_of[who.uid].labels
    }
    devices = DevicesLeft(records)
    room = _Room(_world(scenario, records, facts_of), queue, scenario.plan, devices)
    bound_pods = [facts_of[uid] for uid in _bound_pods(records) if uid in facts_of]
    bound = Counter(map(group_key, bound_pods))
    ending = {facts.namespace for facts in bound_pods if facts.is_terminating}
    gangs = {}
    for identity, _ in scenario.pods:
        facts = facts_of[identity.uid]
        key, state = group_key(facts), queue.state_of(identity.uid)
        if state not in QUEUED or facts.scheduling_gates or facts.is_terminating:
            continue
        rejected_by = set(queue.rejected_by(identity.uid)) if may_fail else set()
        if rejected_by == {FAILS_AGAIN} or rejected_by & REFUSING:
            continue
        if identity.uid in relabelled and AFFINITY in queue.rejected_by(identity.uid):
            continue
        if facts.namespace in ending and SPREAD in queue.rejected_by(identity.uid):
            continue
        if any("local" in _claim(each) for each in facts.volumes):
            continue
        if key is not None and facts.device_claims:
            # Of devices, members would have to be counted one after another.
            continue
        if key is not None:
            gangs.setdefault(key, []).append((identity.uid, facts))
        elif fits := [*room.nodes_for(identity.uid, facts)]:
            yield f"I12: {identity.uid} waits ({state.value}) and would fit {fits}"
    for key, pods in sorted(gangs.items()):
        needed = max(1, pods[0][1].pod_group.min_member - bound[key])
        places = room.places(pods[:needed])
        if len(places) == needed:
            yield f"I12: {len(pods)} of gang {key[1]} wait, {bound[key]} are bound; fit {places}"


def _facts_now(scenario, actors):
    """uid → facts: the newest ones, or those with which a pod was bound before."""
    binder, now = actors[BINDER].core, {}
    for uid, versions in scenario.facts_sent.items():
        state, record = binder.pod_status(uid)[0], binder.pods.present.get(uid)
        is_bound = state is BinderState.BOUND and record.facts in versions
        now[uid] = record.facts if is_bound else versions[-1]
    return now


def _world(scenario, records, facts_of):
    """Nodes and pods after all journal records."""
    world = World(scenario.plan.cluster)
    for each in records:
        if each.kind is RecordKind.NODE:
            world.nodes[each.node_name] = each.subject
        elif each.kind is RecordKind.NODE_GONE:
            world.nodes.pop(each.node_name, None)
    facts_of = facts_of | {identity.uid: facts for identity, facts, _ in scenario.running}
    for uid, node_name in _bound_pods(records).items():
        world.put(uid, node_name, facts_of[uid])
    return world


def _claim(volume):
    return dict(volume.source).get("claimName", "")


class _Room:
    """Free room for pods. A nomination reserves room for the nominated pod."""

    def __init__(self, world, queue, plan, devices):
        self._world, self._queue, self._devices = world, queue, devices
        self._users = UsersFilters(plan, world)

    def nodes_for(self, uid, facts):
        """Return the names of the nodes that a pod fits."""
        return (name for name in sorted(self._users.passed(facts)) if self._fits(uid, facts, name))

    def _fits(self, uid, facts, node_name):
        node = self._world.nodes[node_name]
        if self._queue.nominated(node_name):
            return False
        if any(text for _, _, rule in RULES for text in rule(self._world, facts, node)):
            return False
        return not facts.device_claims or self._devices.suffice(uid, facts, node)

    def places(self, pods):
        """Return nodes for equal pods, one after another; fewer where the room is used up."""
        placed = []
        for uid, facts in pods:
            if (name := next(self.nodes_for(uid, facts), None)) is not None:
                self._world.put(uid, name, facts)
                placed.append((uid, name))
        for uid, name in placed:
            self._world.remove(uid, name)
        return [name for _, name in placed]
