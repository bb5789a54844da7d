"""A plain model of a journal: lives of pods, tokens, gangs, evictions, overtaken pods.

The checker's results on lives and counts are compared with it (`sabotage.py`). It does not check
nodes.
"""

from collections import Counter
from dataclasses import replace

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod_groups import group_key
from roadstead.facts.run_mark import EPOCH, VOID
from roadstead.journal import RecordKind


class Recount:
    """Applies records in order.

    places: uid → node, "" for a waiting pod, None for a removed one. facts: the newest;
    facts_there: as counted on its node. known: key → uid → facts. unasked: claim records that no
    waiting pod requested.
    """

    def __init__(self):
        self.nodes, self.places, self.facts, self.facts_there = {}, {}, {}, {}
        self.known, self.tokens, self.epochs, self.voided = {}, {}, {}, set()
        self.ever_bound, self.knows_accepted = set(), False
        self.records, self.binds, self.unasked = Counter(), 0, 0
        self._keys, self._budgets, self._preemptors = {}, [], set()
        self._counts = Counter()
        self._alike, self._waiting, self._order = {}, {}, 0
        self._members, self._least, self._kept, self._gone_before = Counter(), {}, set(), 0

    def state(self, uid):
        if uid not in self.places:
            return "unknown"
        place = self.places[uid]
        return "gone" if place is None else "bound" if place else "pending"

    def key(self, uid):
        return self._keys.get(uid, uid)

    def pods_on(self, name):
        return [(uid, self.facts_there[uid]) for uid, at in self.places.items() if at == name]

    def wrong_life(self, uid):
        """The invariants that a pod's bind breaks, whatever the node and the token."""
        if uid in self.ever_bound:
            return {"I3"}
        is_unknown = self.knows_accepted and uid not in self.places
        return {"I4"} if is_unknown or self.state(uid) == "gone" else set()

    def wrong_attempt(self, uid, token, owner, epoch):
        """The invariants that a bind breaks by its token or epoch."""
        is_late = epoch < self.epochs.get(owner, epoch)
        is_of_another = self.tokens.get(token, uid) != uid
        broken = {"I8"} if is_late or is_of_another else set()
        return broken | ({"I6"} if token in self.voided else set())

    def may_evict(self, preemptor, victim):
        """Whether a pod may evict another one; an unknown priority cannot be checked."""
        known = self.known.get(preemptor)
        if not known:
            return True
        pods = known.values()
        is_higher = max(each.priority for each in pods) > victim.priority
        return is_higher and {each.preemption_policy for each in pods} != {"Never"}

    def take(self, record):
        self.records[record.kind.value] += 1
        if record.uid and record.kind not in (RecordKind.NODE, RecordKind.NODE_GONE):
            self._keys[record.uid] = record.key
        _TAKE[record.kind](self, record)

    def counts(self):
        """The counts as the checker reports them, without zeros."""
        waiting = {uid for uid, place in self.places.items() if place == ""}
        helpless = [key for key in self._preemptors if waiting & self.known[key].keys()]
        found = self._counts | Counter(preemptors_waiting=len(helpless))
        found["claims_bound"] -= self.unasked
        return dict(+found)

    def cut_gangs(self):
        """Names of gangs of which some pods were bound, but too few."""
        found = set()
        for key, bound in self._members.items():
            unknown = self._gone_before if key in self._kept else 0
            if bound + unknown < self._least.get(key, 0):
                found.add("/".join(key))
        return found

    def _cluster(self, record):
        if isinstance(record.subject, ClusterFacts):
            self._budgets = [[each, 0] for each in record.subject.budgets]
            for group in record.subject.pod_groups:
                if group.min_member is not None:
                    self._least[group.key] = group.min_member

    def _node(self, record):
        self.nodes[record.node_name] = record.subject

    def _node_gone(self, record):
        self.nodes.pop(record.node_name, None)

    def _add(self, record):
        uid, facts = record.uid, record.facts
        if record.node_name:
            # Updated on its node, or reported as such.
            self._know(record)
            if self.places.get(uid) == record.node_name:
                self.facts_there[uid] = facts
            return
        self.knows_accepted = True
        if not self.places.get(uid):
            self.places[uid] = ""
        self._know(record)
        alike = self._alike.setdefault(replace(facts, priority=0), len(self._alike))
        if self._waiting.get(uid, ())[:2] != (alike, facts.priority):
            self._order += 1
            self._waiting[uid] = alike, facts.priority, self._order

    def _know(self, record):
        self.facts[record.uid] = record.facts
        self.known.setdefault(record.key, {})[record.uid] = record.facts

    def _load(self, record):
        place = self.places.get(record.uid)
        self._try(record)
        if place and place != record.node_name:
            return
        self._put(record)
        if record.token and group_key(record.facts) is not None:
            self._kept |= {group_key(record.facts)} if self._is_first else set()

    def _bind(self, record):
        self._try(record)
        if record.node_name in self.nodes or record.node_name == "nowhere":
            self.binds += 1
        mine = self._waiting.get(record.uid)
        if mine is not None:
            alike, priority, order = mine
            before = (
                other[1] > priority or (other[1] == priority and other[2] < order)
                for other in self._waiting.values()
                if other[0] == alike
            )
            self._counts["overtaken"] += any(before)
        self._put(record)

    def _try(self, record):
        if record.token:
            self.tokens.setdefault(record.token, record.uid)
            self._see(record)

    def _see(self, record):
        self.epochs[record.owner] = max(record.epoch, self.epochs.get(record.owner, record.epoch))

    def _put(self, record):
        uid, group = record.uid, group_key(record.facts)
        self._is_first = uid not in self.ever_bound
        if group is not None and self._is_first:
            self._members[group] += 1
            least = record.facts.pod_group.min_member
            if least is not None:
                self._least.setdefault(group, least)
        self._waiting.pop(uid, None)
        self.ever_bound.add(uid)
        self._know(record)
        self.places[uid], self.facts_there[uid] = record.node_name, record.facts

    def _release(self, record):
        place = self.places.get(record.uid)
        self._waiting.pop(record.uid, None)
        self.places[record.uid] = None
        self._gone_before += record.lsn == 0
        if record.kind is RecordKind.EVICT and place:
            self._counts["evictions"] += 1
            self._charge(record)
            if self.known.get(record.owner):
                self._preemptors.add(record.owner)

    def _charge(self, record):
        """Charge each budget that covers the pod; exceeded budgets are those with nothing left."""
        victim, is_beyond = self.facts_there[record.uid], False
        labels = dict(victim.labels)
        for entry in self._budgets:
            budget, charged = entry
            chosen = budget.selector is not None and budget.selector.requirements
            if not chosen or budget.namespace != victim.namespace:
                continue
            is_going = f"{budget.namespace}/{record.key.partition('/')[2]}" in {
                f"{budget.namespace}/{name}" for name in budget.disrupted_pods
            }
            if not is_going and budget.selector.matches(labels):
                is_beyond |= charged >= budget.disruptions_allowed
                entry[1] += 1
        self._counts["beyond_budget"] += is_beyond

    def _mark(self, record):
        if record.subject.what == EPOCH:
            self._see(record)
        elif record.subject.what == VOID:
            self.voided.add(record.token)

    def _storage(self, record):
        # Claims of devices are no claims of volumes.
        is_bound = record.lsn > 0 and not record.subject.device_claims
        self._counts["claims_bound"] += is_bound and not record.subject.removed_claims


_TAKE = {
    RecordKind.CLUSTER: Recount._cluster,
    RecordKind.NODE: Recount._node,
    RecordKind.NODE_GONE: Recount._node_gone,
    RecordKind.ADD: Recount._add,
    RecordKind.LOAD: Recount._load,
    RecordKind.BIND: Recount._bind,
    RecordKind.EVICT: Recount._release,
    RecordKind.DELETE: Recount._release,
    RecordKind.RUN: Recount._mark,
    RecordKind.STORAGE: Recount._storage,
}
