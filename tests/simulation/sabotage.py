"""Sabotage: a finished journal continues with wrong records, and with some correct ones.

The checker must report each wrong record, under the invariant that it breaks, and nothing else. The
expected reports have other sources: the plugins' own filters decide whether a node may accept a
pod, a plain model of lives decides which event may follow which, and counts are computed again.
"""

import random
from dataclasses import replace

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.filter_rules import Rules
from roadstead.facts.pod import GroupMembership
from roadstead.facts.pod_groups import PodGroup
from roadstead.facts.run_mark import EPOCH, VOID, RunMark
from roadstead.invariants.checker import RULES, Checker
from roadstead.invariants.claim_binding import STORAGE_RULES
from roadstead.journal import JournalRecord, RecordKind
from roadstead.storage import StorageChange
from tests.builders import pod
from tests.simulation import random_objects, wrong_claims
from tests.simulation.devices_sabotage import without_devices
from tests.simulation.filters import Filters
from tests.simulation.recount import Recount
from tests.simulation.wrong_claims import Account, kind_of

HOSTS = tuple(f"h{number}" for number in range(5))
GROUPS = PodGroup("default", "gang1", 2), PodGroup("default", "gang2")
KEPT_NODES = 3
MORE_TIMES, FIRST_RECORDS = 12, 3
EVENTS = 36
SHOWN = 3
OF_ROOM = ("NodeResourcesFit", "NodePorts", "NodeVolumeLimits")
SOME = ("NodeResourcesFit", "TaintToleration", "PodTopologySpread", "NodeVolumeLimits")


class Sabotage:
    """Appends to a journal. problems: differences between the checker's reports and the expected
    ones.
    """

    def __init__(self, records, seed):
        self._draw = random.Random(f"sabotage {seed}")
        self._checker, self._recount = Checker(), Recount()
        self.problems = []
        for record in records:
            self._checker.apply(record)
            self._recount.take(record)
        self._lsn, self._serial = max(each.lsn for each in records), 0
        self._begin()
        self._seen = len(self._checker.result.violations)

    def _begin(self):
        """Replace the run's cluster by another one, with few of its nodes and all their pods."""
        draw, lives = self._draw, self._recount
        kept = draw.sample(sorted(lives.nodes), min(KEPT_NODES, len(lives.nodes)))
        names = (*HOSTS, *kept)
        cluster = random_objects.cluster(draw, names, GROUPS)
        self._filters, self._account = Filters(cluster), Account(cluster.storage)
        claims = (*(each.name for each in cluster.storage.claims), "nowhere")
        self._random_pods = random_objects.RandomPods(draw, names, claims)
        for name in sorted(lives.nodes.keys() - set(kept)):
            self._take(RecordKind.NODE_GONE, name, name)
        self._take(RecordKind.CLUSTER, subject=cluster)
        known = (("default-scheduler", self._filters.names), ("some", SOME))
        self._take(RecordKind.CLUSTER, subject=Rules(known))
        for name in kept:
            self._node(lives.nodes[name])
        for name in HOSTS:
            self._node(random_objects.host(draw, name))

    def run(self):
        """Append all events, then compare the final counts."""
        events = (
            (self._bind_rightly, 8),
            (self._bind_wrongly, 3),
            (self._accept, 5),
            (self._load, 2),
            (self._update, 2),
            (self._release, 3),
            (self._evict, 3),
            (self._mark, 2),
            (self._change_node, 1),
            (self._repeat_a_number, 1),
            (self._as_in_a_snapshot, 2),
        )
        weights = [weight for _, weight in events]
        for _ in range(EVENTS):
            (event,) = self._draw.choices([event for event, _ in events], weights)
            event()
            if len(self.problems) >= SHOWN:
                return self.problems
        self._finish()
        return self.problems

    def _finish(self):
        """The last record may be a bind, which is judged at the end."""
        name, uid = self._any_node(), "default/last"
        facts = pod(volumes=(random_objects.claimed("nowhere"),))
        names = self._refused_by(facts, self._ask_rules(facts))
        self._take(RecordKind.ADD, uid, facts=facts)
        found = self._bind(uid, facts, name, names, is_last=True)
        result = self._checker.finish()
        self._compare("the end", found | ({(0, "I10")} if self._recount.cut_gangs() else set()))
        reported = {each.pod for each in result.violations if each.invariant == "I10"}
        if reported != self._recount.cut_gangs():
            self._differs(f"gangs cut: {reported}, not {self._recount.cut_gangs()}")
        if dict(result.counts) != self._recount.counts():
            self._differs(f"counts: {dict(result.counts)}, not {self._recount.counts()}")
        if result.binds_checked != self._recount.binds:
            self._differs(f"binds checked: {result.binds_checked}, not {self._recount.binds}")
        if result.records != self._recount.records:
            self._differs(f"records: {result.records}, not {self._recount.records}")

    def _differs(self, text):
        self.problems.append(f"sabotage: {text}")

    def _compare(self, what, wanted):
        """Compare the checker's new problems, as (record, invariant), with the expected ones."""
        found = self._checker.result.violations[self._seen :]
        self._seen += len(found)
        reported = {(each.lsn, each.invariant) for each in found}
        if reported != wanted:
            self._differs(f"{what}: {sorted(reported)}, not {sorted(wanted)}: {found}")

    def _take(self, kind, uid="", node_name="", *, lsn=None, **more):
        self._lsn += lsn is None
        number = self._lsn if lsn is None else lsn
        record = JournalRecord(number, kind, uid, more.pop("key", uid), node_name, **more)
        self._checker.apply(record)
        self._recount.take(record)
        return record

    def _node(self, facts):
        self._take(RecordKind.NODE, facts.name, facts.name, subject=facts)
        on_it = self._recount.pods_on(facts.name)
        self._filters.node(facts, on_it)

    def _stranger(self):
        self._serial += 1
        facts = self._random_pods.make()
        return f"{facts.namespace}/s{self._serial}", facts

    def _some(self, *places):
        """A UID of a pod that is pending, bound or removed in the model; None if there is none."""
        found = sorted(uid for uid in self._recount.places if self._recount.state(uid) in places)
        return self._draw.choice(found) if found else None

    def _accept(self):
        uid = self._some("pending", "bound", "gone") if self._draw.random() < 0.4 else None
        facts = self._recount.facts.get(uid)
        if uid is None or facts is None:
            uid, facts = self._stranger()
        elif self._draw.random() < 0.3:
            facts = replace(facts, priority=facts.priority + 1)
        wanted = {"I4"} if self._recount.state(uid) == "bound" else set()
        key = self._recount.key(uid)
        alike = [each for each in self._recount.known if each.startswith(f"{facts.namespace}/")]
        if key == uid and alike and self._draw.random() < 0.2:
            # Another pod of that name existed, or exists.
            key = self._draw.choice(sorted(alike))
        record = self._take(RecordKind.ADD, uid, facts=facts, key=key)
        self._compare(f"accept {uid}", {(record.lsn, each) for each in wanted})

    def _load(self):
        uid = self._some("pending", "bound", "gone") if self._draw.random() < 0.7 else None
        facts = self._recount.facts.get(uid)
        if uid is None or facts is None:
            uid, facts = self._stranger()
        before = self._recount.places.get(uid)
        name = before if before and self._draw.random() < 0.3 else self._any_node()
        wanted = {"I3"} if before and before != name else set()
        if not wanted:
            self._move(uid, before, name, facts)
        record = self._take(RecordKind.LOAD, uid, name, facts=facts, key=self._recount.key(uid))
        self._compare(f"load {uid}", {(record.lsn, each) for each in wanted})

    def _update(self):
        """Change the facts of a bound pod, with its own node or a wrong one in the record, or of a
        pod that is not bound.
        """
        uid = self._some("bound") or self._some("pending", "gone")
        if self._draw.random() < 0.2:
            uid = self._some("pending", "gone")
        facts = self._recount.facts.get(uid)
        if uid is None or facts is None:
            return
        before = self._recount.places.get(uid)
        name = before if before and self._draw.random() < 0.8 else self._any_node()
        less = tuple((what, amount // 2) for what, amount in facts.requests)
        labels = (("app", self._draw.choice("xyz")),)
        facts = replace(facts, requests=less, labels=labels)
        wanted = set() if name == before else {"I4" if before else "I3"}
        if not wanted:
            self._move(uid, before, name, facts)
        record = self._take(RecordKind.ADD, uid, name, facts=facts, key=self._recount.key(uid))
        self._compare(f"update {uid}", {(record.lsn, each) for each in wanted})

    def _move(self, uid, before, name, facts):
        if before:
            self._filters.take(uid, before, self._recount.facts_there[uid])
        self._filters.put(uid, name, facts)

    def _any_node(self):
        return self._draw.choice(sorted(self._recount.nodes))

    def _bind_rightly(self):
        """Bind a waiting pod under a new token, to a node that accepts it or to any node."""
        if self._draw.random() < 0.7:
            uid, facts = self._stranger()
            self._take(RecordKind.ADD, uid, facts=facts)
        else:
            uid = self._some("pending")
            facts = self._recount.facts.get(uid)
            if uid is None or facts is None:
                return
        refusals = self._ask_rules(facts)
        names = self._refused_by(facts, refusals)
        good = sorted(set(self._recount.nodes) - set().union(*names.values()))
        is_good = bool(good) and self._draw.random() < 0.7
        name = self._draw.choice(good if is_good else sorted(self._recount.nodes))
        self._bind(uid, facts, name, names)

    def _bind_wrongly(self):
        """Bind a pod that is bound, removed or not accepted; or with an obsolete token, owner or
        node.
        """
        how = self._draw.choice(("life", "token", "void", "epoch", "node"))
        uid, facts = self._stranger()
        facts = replace(facts, volumes=())
        more, name = {}, self._any_node()
        lives = self._recount
        if how == "life":
            known = self._some("bound", "gone") if self._draw.random() < 0.6 else None
            if known is not None and lives.facts.get(known) is not None:
                uid, facts = known, replace(lives.facts[known], volumes=())
        else:
            self._take(RecordKind.ADD, uid, facts=facts)
        if how == "token" and lives.tokens:
            more["token"] = self._draw.choice(sorted(lives.tokens))
        elif how == "void" and lives.voided:
            more["token"] = self._draw.choice(sorted(lives.voided))
        elif how == "epoch" and lives.epochs:
            owner = self._draw.choice(sorted(lives.epochs))
            more |= {"owner": owner, "epoch": lives.epochs[owner] + self._draw.choice((-1, 0, 1))}
        elif how == "node":
            name = "nowhere"
        names = {} if name == "nowhere" else self._refused_by(facts, self._ask_rules(facts))
        self._bind(uid, facts, name, names, **more)

    def _bind(self, uid, facts, name, names, *, is_last=False, **more):
        """Append one bind and its expected problems. names: plugin → nodes that it refuses."""
        lives = self._recount
        epoch = lives.epochs.get("saboteur", 1)
        more = {"token": f"sabotage/{self._lsn}", "owner": "saboteur", "epoch": epoch} | more
        refused = {plugin for plugin, nodes in names.items() if name in nodes}
        wanted = {"I1" if plugin in OF_ROOM else "I2" for plugin in refused}
        wanted |= {"I2"} if name == "nowhere" else set()
        wanted |= lives.wrong_life(uid) | lives.wrong_attempt(uid, **more)
        before = lives.places.get(uid)
        binds_claims = facts.scheduler_name != "some" and name != "nowhere"
        waits = self._account.waiting(facts) if binds_claims else ()
        own = self._own_bindings(uid, facts, name) if waits else {}
        self._move(uid, before, name, facts)
        record = self._take(RecordKind.BIND, uid, name, facts=facts, key=lives.key(uid), **more)
        found = {(record.lsn, each) for each in wanted}
        if is_last:
            return found
        if waits:
            found |= self._bind_claims(record, waits, own)
        if facts.volumes:
            # Volumes are judged at the end of the commit.
            self._node(lives.nodes[self._any_node()])
        self._compare(f"bind {facts} to {name}, {sorted(refused)}", found)
        return found

    def _own_bindings(self, uid, facts, name):
        """Key → binding of each of a pod's claims on a node, where they can be bound."""
        reserved = self._filters.assumed_claims.assume(uid, facts, self._recount.nodes[name])
        self._filters.assumed_claims.forget(uid)
        changes = () if reserved is None else (each.change for each in reserved.bindings)
        return {
            each.claims[0].key: BoundClaims(each.claims, each.volumes, each.removed)
            for each in changes
        }

    def _bind_claims(self, record, waits, own):
        """Bind the waiting claims in the same commit; omit some, bind some wrongly."""
        account, node = self._account, self._recount.nodes[record.node_name]
        found, seen = set(), len(self._checker.result.violations)
        kinds = set()
        for key in waits:
            claim = account.claims[key]
            change = wrong_claims.binding(self._draw, account, key, own.get(key))
            if change is None:
                found.add((record.lsn, "I2"))
                kinds.add("missing")
                continue
            lsn = self._take(RecordKind.STORAGE, subject=change).lsn
            wrong = account.wrong_with(claim, change, node)
            found |= {(lsn, "I2")} if wrong else set()
            kinds |= wrong
            self._change_claims(change)
        if self._draw.random() < 0.1:
            change = wrong_claims.unasked(self._draw, account, waits)
            found.add((self._take(RecordKind.STORAGE, subject=change).lsn, "I2"))
            self._recount.unasked += 1
            kinds.add("unasked")
            self._change_claims(change)
        self._node(node)
        news = self._checker.result.violations[seen:]
        reported = {kind_of(each.text) for each in news if each.lsn > record.lsn}
        reported |= {kind_of(each.text) for each in news} & {"missing"}
        if reported != kinds:
            self._differs(f"claims of {record.uid}: {reported}, not {kinds}: {news}")
        return found

    def _change_claims(self, change):
        self._account.take(change)
        self._filters.assumed_claims.storage.apply(
            StorageChange(change.claims, change.volumes, change.removed)
        )

    def _refused_by(self, facts, refusals):
        """Plugin → refused nodes, of the plugins in the pod's profile."""
        has = SOME if facts.scheduler_name == "some" else self._filters.names
        return {plugin: nodes for plugin, nodes in refusals.items() if plugin in has}

    def _ask_rules(self, facts):
        """Return the filters' refusals; each rule of the checker must refuse the same nodes."""
        refusals = self._filters.refusals(facts)
        world, nodes = self._checker.world, self._recount.nodes
        reported = {}
        for _, plugin, rule in RULES:
            rows = {name for name, node in nodes.items() if any(rule(world, facts, node))}
            reported[plugin] = reported.get(plugin, set()) | rows
        storage = self._checker._claims.storage
        for _, plugin, rule in STORAGE_RULES:
            reported[plugin] = {
                name for name, node in nodes.items() if any(rule(storage, facts, node))
            }
        if self._account.waiting(facts):
            # A waiting claim is compared with its own volume, not with all volumes.
            refusals["VolumeBinding"] = frozenset(reported["VolumeBinding"])
        for plugin, unsure in self._filters.fails_on.items():
            refusals[plugin] = (refusals[plugin] - unsure) | (reported[plugin] & unsure)
        for plugin, rows in reported.items():
            assert plugin in refusals, f"RULES names {plugin}, no filter of the default profile"
            if rows != refusals[plugin]:
                self._differs(f"{plugin} for {facts}: {sorted(rows)}, not {refusals[plugin]}")
        return refusals

    def _release(self):
        uid = self._some("pending", "bound", "gone") if self._draw.random() < 0.9 else "default/x"
        if uid is None:
            return
        place = self._recount.places.get(uid) or ""
        name = self._any_node() if self._draw.random() < 0.3 else place
        wanted = set()
        if self._recount.state(uid) in ("gone", "unknown"):
            wanted = {"I4"} if self._recount.knows_accepted else set()
        elif name != place:
            wanted = {"I5"}
        self._leave(RecordKind.DELETE, uid, name, wanted)

    def _leave(self, kind, uid, name, wanted, **more):
        place = self._recount.places.get(uid)
        if place:
            self._filters.take(uid, place, self._recount.facts_there[uid])
        record = self._take(kind, uid, name, key=self._recount.key(uid), **more)
        self._compare(f"{kind} {uid} {more}", {(record.lsn, each) for each in wanted})

    def _evict(self):
        """Evict a pod for another one of any priority, or from a node where it was not."""
        uid = self._some("bound") if self._draw.random() < 0.85 else self._some("pending", "gone")
        if uid is None:
            return
        place = self._recount.places.get(uid)
        other = self._draw.choice((*sorted(self._recount.known), "", "default/nobody"))
        name = self._any_node() if self._draw.random() < 0.2 else place or ""
        wanted = set()
        if place and not self._recount.may_evict(other, self._recount.facts_there[uid]):
            wanted |= {"I2"}
        if name and not place:
            wanted |= {"I3"}
        elif name != (place or ""):
            wanted |= {"I5"}
        elif self._recount.state(uid) == "gone" and self._recount.knows_accepted:
            wanted |= {"I4"}
        self._leave(RecordKind.EVICT, uid, name, wanted, owner=other)

    def _mark(self):
        lives = self._recount
        if self._draw.random() < 0.5:
            tokens = [*sorted(lives.tokens), f"void/{self._lsn}"]
            self._take(RecordKind.RUN, subject=RunMark(VOID), token=self._draw.choice(tokens))
        else:
            owner = self._draw.choice((*sorted(lives.epochs), "saboteur"))
            epoch = lives.epochs.get(owner, 1) + self._draw.choice((-1, 0, 1))
            self._take(RecordKind.RUN, subject=RunMark(EPOCH), owner=owner, epoch=epoch)
        self._compare("a mark", set())

    def _change_node(self):
        """Remove and add a node, or replace it by another one."""
        name = self._draw.choice(HOSTS)
        if len(self._recount.nodes) > KEPT_NODES and self._draw.random() < 0.5:
            self._filters.node_removed(name)
            self._take(RecordKind.NODE_GONE, name, name)
            self._compare(f"{name} goes", set())
            return
        self._node(random_objects.host(self._draw, name))
        self._compare(f"{name} comes", set())

    def _repeat_a_number(self):
        name = self._any_node()
        facts = self._recount.nodes[name]
        lsn = self._draw.choice((1, self._lsn, self._lsn))
        record = self._take(RecordKind.NODE, name, name, lsn=lsn, subject=facts)
        self._compare("a number again", {(record.lsn, "I7")})

    def _as_in_a_snapshot(self):
        """Append records without a number of their own: removed pods, running pods, bound
        claims.
        """
        how = self._draw.choice(("gone", "runs", "gang", "claims"))
        if how == "gone":
            self._was_gone()
        elif how == "runs":
            self._ran(*self._stranger())
        elif how == "gang":
            self._gang_before()
        else:
            change = wrong_claims.unasked(self._draw, self._account, ())
            self._take(RecordKind.STORAGE, subject=change, lsn=0)
            self._change_claims(change)
        self._compare(how, set())

    def _was_gone(self):
        uid = self._some("pending", "bound", "gone") or "default/before"
        place = self._recount.places.get(uid)
        if place:
            self._filters.take(uid, place, self._recount.facts_there[uid])
        self._take(RecordKind.DELETE, uid, self._any_node(), lsn=0, key=self._recount.key(uid))

    def _ran(self, uid, facts, *, is_kept=False):
        """is_kept: its bind belongs to this run, and the snapshot has its token."""
        name = self._any_node()
        token = f"before/{self._serial}" if is_kept or self._draw.random() < 0.5 else ""
        self._take(RecordKind.LOAD, uid, name, lsn=0, facts=facts, token=token, owner="earlier")
        self._filters.put(uid, name, facts)

    def _gang_before(self):
        """Pods of a gang run; removed pods may have belonged to it."""
        draw, name = self._draw, f"kept{self._draw.randrange(3)}"
        least = draw.choice((None, 2, 3, 3))
        for _ in range(draw.choice((1, 1, 2))):
            uid, facts = self._stranger()
            uid = f"default/{uid.partition('/')[2]}"
            group = GroupMembership(name, least)
            facts = replace(facts, namespace="default", pod_group=group)
            self._ran(uid, facts, is_kept=draw.random() < 0.7)
        for _ in range(draw.choice((0, 1, 2))):
            self._was_gone()


def unreported(records, seed):
    """Return the first few differences between the checker's reports and the expected ones.

    Claims of devices have sabotage of their own (`devices_sabotage.py`). Sabotage follows the whole
    journal, and several times only its first records, which is cheap.
    """
    records = without_devices(records)
    if not records:
        return []
    problems = Sabotage(records, seed).run()
    for number in range(MORE_TIMES):
        problems += Sabotage(records[:FIRST_RECORDS], f"{seed} {number}").run()
    return problems[:SHOWN]
