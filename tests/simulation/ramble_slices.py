"""Slices that change at random while pods with claims are placed, bound and deleted.

A driver publishes pools again: a higher generation with devices added, removed, tainted or with
other attributes and amounts, in one slice or in two, or no slice any more. Scheduler, cache and
binder receive each slice by itself, in order and at different times, as from informers. Each answer
of the plugin must be that of a plugin with nothing kept, and the binder's records must satisfy the
checker in the order of the commits, by the slices that the binder had received.
"""

import random
from collections import deque
from dataclasses import replace

from roadstead.config.plugin_args import DynamicResourcesArgs
from roadstead.devices.assumed import AssumedDevices
from roadstead.devices.claims import reservation_error
from roadstead.devices.gates import gates_on
from roadstead.devices.state import released
from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import AttributeFacts
from roadstead.facts.filter_rules import Rules
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Handle
from roadstead.invariants.checker import check
from roadstead.journal import JournalRecord, RecordKind
from roadstead.plugins.dynamic_resources import DynamicResources
from tests.builders import node, pod, table_of
from tests.simulation.devices import TAINT

STEPS = 250
PODS = 24


def problems_of(plan, scenario, drawn):
    """Return the first few violations, or decisions that differ from those with nothing kept."""
    pods = [each for each in scenario.pods if each[1].device_claims]
    if not pods:
        return []
    ramble = _Ramble(plan, scenario, pods, random.Random(f"ramble slices {drawn}"))
    ramble.go_on(STEPS)
    ramble.finish()
    return [f"slices at random: {each}" for each in ramble.problems[:2]]


class _Party:
    """A process with its copy of the devices. waiting: slices, and names of removed ones."""

    def __init__(self, devices):
        self.devices, self.waiting = devices, deque()

    def receive(self):
        found = self.waiting.popleft()
        if isinstance(found, str):
            self.devices.remove_slice(found)
        else:
            self.devices.put_slice(found)


class _Driver:
    """Publishes slices: by pool, the present ones and their generation."""

    def __init__(self, draw, slices):
        self._draw = draw
        self._pools = {(each.driver, each.pool): [each] for each in slices}
        self._first = {key: each for key, (each,) in self._pools.items()}
        self._latest = dict(self._first)

    def publish(self):
        """Return the changes by which a pool is published again."""
        draw = self._draw
        key = draw.choice(sorted(self._pools))
        before = self._pools[key]
        if before and draw.random() < 0.1:
            self._pools[key] = []
            return [each.name for each in before]
        last = self._latest[key]
        devices = [device for each in before or [last] for device in each.devices]
        # A pool without devices gets its first ones again.
        devices = devices or [*self._first[key].devices]
        whole = replace(
            last,
            generation=last.generation + 1,
            devices=tuple(self._changed(devices)),
            shared_counters=self._other_counters(last.shared_counters),
        )
        self._latest[key] = whole
        # Devices that share counters are in one slice.
        parts = [whole]
        if draw.random() < 0.3 and not whole.shared_counters:
            cut, name = len(whole.devices) // 2, whole.name
            parts = [
                replace(whole, slices_in_pool=2, devices=whole.devices[:cut]),
                replace(whole, name=f"{name}-2", slices_in_pool=2, devices=whole.devices[cut:]),
            ]
        self._pools[key] = parts
        gone = {each.name for each in before} - {each.name for each in parts}
        changes = [*parts, *sorted(gone)]
        draw.shuffle(changes)
        return changes

    def _changed(self, devices):
        draw, found = self._draw, list(devices)
        for _ in range(draw.choice((1, 1, 2))):
            what = draw.choice(("add", "remove", "change", "taint", "order"))
            if not found:
                break
            if what == "add":
                # Now and then it has the name of another one: the pool is then invalid.
                found.append(replace(found[0], name=f"x{draw.randint(0, 9)}"))
                continue
            index = draw.randrange(len(found))
            device = found[index]
            if what == "remove":
                del found[index]
            elif what == "change":
                found[index] = self._other(device)
            elif what == "taint":
                found[index] = replace(device, taints=() if device.taints else (TAINT,))
            else:
                draw.shuffle(found)
        return found

    def _other(self, device):
        draw = self._draw
        attributes = (
            AttributeFacts("model", "string", draw.choice(("big", "small"))),
            AttributeFacts("numa", "int", draw.choice((0, 1))),
        )
        capacity = tuple(
            replace(each, amount=draw.choice(("4", "8", "12"))) for each in device.capacity
        )
        return replace(device, attributes=attributes, capacity=capacity)

    def _other_counters(self, sets):
        amount = self._draw.choice(("2", "4", "4", "6"))
        return tuple(
            replace(each, counters=tuple((name, amount) for name, _ in each.counters))
            for each in sets
        )


class _Ramble:
    """waiting: pods; in_flight: pods with nodes and claims; bound: by UID, with nodes."""

    def __init__(self, plan, scenario, pods, draw):
        self._draw, self.problems = draw, []
        self._facts = plan.cluster.devices
        self._gates = plan.storage_state().devices.gates
        self._nodes = {
            each.name: node(each.name, labels=dict(each.labels)) for each in scenario.nodes
        }
        self._table = table_of(*self._nodes.values())
        handle = self._handle(self._facts)
        self._plugin = DynamicResources(DynamicResourcesArgs(), handle)
        self._scheduler = _Party(handle.storage.devices)
        self._cache = _Party(plan.storage_state().devices)
        self._binder = _Party(plan.storage_state().devices)
        self._assumed = AssumedDevices(self._cache.devices)
        self._checked = AssumedDevices(self._binder.devices)
        self._driver = _Driver(draw, self._facts.slices)
        self._unsent = deque()
        self._waiting = [(who, _with_claims(facts)) for who, facts in pods[:PODS]]
        self._in_flight, self._bound, self._records = [], {}, []
        self._begin()

    def _handle(self, facts):
        return Handle(self._table.classes, ClusterFacts(devices=facts), gates=self._gates)

    def _begin(self):
        self._record_cluster()
        filters = tuple(
            (name, ("DynamicResources",))
            for name in {facts.scheduler_name for _, facts in self._waiting}
        )
        gates = gates_on(self._gates)
        self._record(RecordKind.CLUSTER, subject=Rules(filters, device_gates=gates))
        for name, facts in self._nodes.items():
            self._record(RecordKind.NODE, node_name=name, subject=facts)
        for who, facts in self._waiting:
            self._record(RecordKind.ADD, who, facts=facts)

    def _record(self, kind, who=None, node_name="", **fields):
        uid, key = ("", "") if who is None else (who.uid, who.key)
        self._records.append(
            JournalRecord(len(self._records) + 1, kind, uid, key, node_name, **fields)
        )

    def _record_cluster(self):
        devices = self._binder.devices
        facts = replace(
            self._facts,
            slices=tuple(devices.slices.values()),
            claims=tuple(devices.claims.values()),
        )
        self._record(RecordKind.CLUSTER, subject=ClusterFacts(devices=facts))

    def _record_claims(self, claims, removed=()):
        if claims or removed:
            change = BoundClaims(device_claims=tuple(claims), removed_claims=tuple(removed))
            self._record(RecordKind.STORAGE, subject=change)

    def go_on(self, steps):
        kinds = (
            *((self._place, 8), (self._commit, 6), (self._receive, 8)),
            *((self._publish, 2), (self._end, 1)),
        )
        for _ in range(steps):
            (kind,) = self._draw.choices([k for k, _ in kinds], [weight for _, weight in kinds])
            kind()
            if self.problems:
                return

    def finish(self):
        """Every change is received and every attempt ends; then all is compared once more."""
        for party in (self._scheduler, self._cache, self._binder):
            while party.waiting:
                self._receive_one(party)
        while self._in_flight:
            self._commit()
        self._apply_changes()
        for _, facts in self._waiting:
            self._reasons(facts)
        self._assumed.validate()
        for party in (self._scheduler, self._binder):
            party.devices.validate()
        if self._cache.devices.claims != self._binder.devices.claims:
            self.problems.append("cache and binder do not have the same claims")
        self.problems += [
            f"{each.invariant} in record {each.lsn}: {each.text}"
            for each in check(self._records).violations
        ]

    def _publish(self):
        for change in self._driver.publish():
            for party in (self._scheduler, self._cache, self._binder):
                party.waiting.append(change)

    def _receive(self):
        party = self._draw.choice((self._scheduler, self._cache, self._binder))
        for _ in range(min(len(party.waiting), self._draw.choice((1, 1, 3)))):
            self._receive_one(party)

    def _receive_one(self, party):
        party.receive()
        if party is self._binder:
            self._record_cluster()

    def _apply_changes(self):
        while self._unsent:
            self._scheduler.devices.apply(*self._unsent.popleft())

    def _place(self):
        """The scheduler filters nodes for a pod, and the cache allocates its claims on one."""
        if not self._waiting:
            return
        if self._draw.random() < 0.8:
            self._apply_changes()
        who, facts = self._draw.choice(self._waiting)
        reasons = self._reasons(facts)
        fitting = [name for name, each in zip(self._nodes, reasons, strict=True) if not each]
        if not fitting:
            return
        on = self._nodes[self._draw.choice(fitting)]
        claims = self._assumed.assume(who.uid, facts, on)
        if claims is not None:
            self._waiting.remove((who, facts))
            self._in_flight.append((who, facts, on, claims))
            self._unsent.append((claims, ()))

    def _reasons(self, facts):
        """Return the reasons of each node, which a plugin with nothing kept must have, too."""
        devices = self._scheduler.devices
        now = replace(
            self._facts,
            slices=tuple(devices.slices.values()),
            claims=tuple(devices.claims.values()),
        )
        fresh = DynamicResources(DynamicResourcesArgs(), self._handle(now))
        found, expected = (self._filtered(each, facts) for each in (self._plugin, fresh))
        if found != expected:
            self.problems.append(f"nodes for {facts.claims_as}: {found}, not {expected}")
        return found

    def _filtered(self, plugin, facts):
        pod_class, state = self._table.classes.pod_class(facts), CycleState(len(self._table))
        status = plugin.pre_filter(state, pod_class, self._table).status
        if not status.is_success:
            return [status.reasons or ("skipped",)] * len(self._table)
        found = plugin.filter(state, pod_class, self._table)
        codes = [0] * len(self._table) if found.codes is None else found.codes.tolist()
        return [() if not code else found.statuses[code - 1].reasons for code in codes]

    def _commit(self):
        """The binder commits a pod that is in flight, or refuses it."""
        if not self._in_flight:
            return
        who, facts, on, claims = self._in_flight.pop(self._draw.randrange(len(self._in_flight)))
        is_full = bool(reservation_error(self._binder.devices.claims, facts))
        tried = None if is_full else self._checked.try_out(claims, facts, on)
        if tried is None:
            self._unsent.append(self._assumed.forget(who.uid))
            self._waiting.append((who, facts))
            return
        _, after = tried
        self._record(
            *(RecordKind.BIND, who, on.name),
            token=f"t{len(self._records)}",
            owner="scheduler-0",
            epoch=1,
            facts=facts,
        )
        self._record_claims(after)
        self._unsent.append((self._assumed.confirm(who.uid), ()))
        self._bound[who.uid] = who, on.name

    def _end(self):
        """A bound pod is deleted, and its claims end or are free."""
        if not self._bound:
            return
        uid = self._draw.choice(sorted(self._bound))
        who, name = self._bound.pop(uid)
        self._record(RecordKind.DELETE, who, name)
        change = released(self._binder.devices, (uid,))
        self._binder.devices.apply(*change)
        self._record_claims(*change)
        change = released(self._cache.devices, (uid,))
        self._cache.devices.apply(*change)
        self._unsent.append(change)


def _with_claims(facts):
    """A pod with these claims and nothing else."""
    return replace(pod(), device_claims=facts.device_claims, claims_as=facts.claims_as)
