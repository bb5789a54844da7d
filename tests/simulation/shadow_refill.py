"""A shadow of the cache's part in recoveries: the contents sent to new lives, the attempts that end
with a scheduler, and the queries to the binder.

It sits between the cache's actor and its core, its stream and the actors it calls, and compares
each of these with the plain model of `shadow_cache`: all changes of the core are sent on, in order;
a new follower gets the whole state; and each attempt whose scheduler or time has ended gets the
result in the binder's answer.
"""

from collections import deque
from dataclasses import dataclass, field

from roadstead.actors.cache import encoding, recovery
from roadstead.actors.interface import clock_s
from roadstead.actors.messages import STORAGE, VERSION
from roadstead.actors.messages.changes import OBSERVE
from roadstead.actors.messages.recovery import (
    RESOLVE,
    RESTORE,
    STORAGE_LOG,
    ResolveAttempts,
    Restore,
)
from roadstead.placements import DeltaKind
from tests.simulation.overheard import Overheard, OverheardRef, change_row, rows_of

LOOKS_EVERY_S = 1.0
"""How often the cache looks for expired attempts."""

LAST = 64
"""Number of messages to the queue that are searched for an expected one."""

HANDLERS = (
    *(
        "add_nodes",
        "add_running",
        "update_running",
        "remove_nodes",
        "assume",
        "update_assumptions",
        "nominate",
    ),
    *("load_storage", "restream", "remove_pods", "merge_revisions", "nominated", "assumed_by"),
    "end_owner",
)


@dataclass(eq=False)
class _Filling:
    """The contents sent to one new life. parts: the whole state. sent: (follower, message)."""

    parts: list = field(default_factory=list)
    sent: list = field(default_factory=list)


class ShadowRefill:
    """Follows the actor of a cache. cache: the shadow of its core. late_s: maximum delay of timers.

    streamed: the version up to which changes are sent. filling: the last new life. ends: the
    expected result of a scheduler's end, until it is reached.
    """

    def __init__(self, actor, cache, late_s):
        self._actor, self._core, self._cache, self._late_s = actor, actor.core, cache, late_s
        self._streamed, self._changes = actor.core.version, list(actor.state.volumes.log)
        self._owed = 0
        self._filling, self._should_stay, self._claims = _Filling(), {}, {}
        self._awaits_commits = actor.state.volumes.awaits_commits
        self._observed, self._freed = deque(maxlen=LAST), deque(maxlen=LAST)
        self._ends = self._owner = self._looked_s = self._compared_s = None
        self._is_due = self._is_reported = self._is_looking = False
        stream, encoder, recovery = actor.stream, actor.encoder, actor.recovery
        for part in (actor.release_reports, recovery):
            part._directory = Overheard(part._directory, self._asked)
        follower = stream._follower
        stream._follower = lambda name: OverheardRef(follower(name), self._sent)
        self._fill, stream.fill = stream.fill, self._filled
        for name in ("send", "send_nodes", "send_storage", "_publish"):
            before = getattr(self, f"_{name.lstrip('_')}")
            setattr(stream, name, _preceded(before, getattr(stream, name)))
        self._report_release, self._everything_of = (
            actor.release_reports.report,
            encoder.cluster_state,
        )
        self._report, self._end_claims = recovery._log_differences, recovery._end_claims
        actor.release_reports.report, encoder.cluster_state = self._released, self._everything
        recovery._log_differences, recovery._end_claims = self._reported, self._claims_end
        self._look_once = recovery.expire
        recovery.expire = self._followed("expire", self._looked)
        self._compare, actor.compare = actor.compare, self._compared
        for name in HANDLERS:
            setattr(actor, name, self._followed(name, getattr(actor, name)))

    def _wrong(self, text):
        self._cache.wrong(text)

    def _same(self, what, here, there):
        if here != there:
            self._wrong(f"{what}: {str(here)[:400]}, not {str(there)[:400]}")

    def _followed(self, name, handler):
        check = getattr(self, f"_{name}", None)

        async def followed(*what):
            finish = check(*what) if check is not None else None
            answer = await handler(*what)
            if finish is not None:
                finish(answer)
            if not self._actor.stream.lost:
                self._same(f"{name}: sent up to", self._streamed, self._core.version)
                self._same(f"{name}: claims sent", self._changes, self._actor.state.volumes.log)
                self._same(f"{name}: changes that do not go", self._owed, 0)
            return answer

        return followed

    # Forwarded changes.

    def _send(self, deltas):
        for delta in () if self._actor.stream.lost else deltas:
            self._same("a change is sent", delta.version, self._streamed + 1)
            self._streamed = delta.version
            self._owed += 1

    def _send_nodes(self, nodes):
        self._streamed += len(nodes)
        self._owed += len(nodes)

    def _send_storage(self, changes):
        self._changes += changes
        self._owed += len(changes)

    def _publish(self, batch):
        self._same("changes are numbered from", batch.first_seq, self._actor.stream.seq + 1)
        self._owed -= batch.count - sum(kind == VERSION for kind in batch.kinds)
        rows = [row for row in rows_of(batch) if row[0] == STORAGE]
        if rows:
            self._same("claims go", rows, [change_row(row[-2]) for row in rows])

    def _sent(self, name, method, message):
        if method is RESTORE:
            self._filling.sent.append((name, message))

    def _asked(self, name, method, message):
        if method is STORAGE_LOG:
            if not self._orphaned():
                self._wrong("the binder is asked for claims, and nobody holds any who is gone")
            return self._note_confirmed
        if method is OBSERVE:
            if not (message.nodes or message.gone.uids or message.pods):
                self._wrong("nothing is reported to the queue")
            self._observed.append(list(message.gone.pods()))
        if method is not RESOLVE:
            return None
        if not message.uids:
            self._wrong("the binder is asked about nobody")
        asks, self._has_asked = self._cache.asks, True
        uids, tokens = tuple(uid for uid, _ in asks), tuple(token for _, token in asks)
        self._same("the binder is asked", message, ResolveAttempts(uids, tokens))
        return lambda answer: self._heard(message, answer)

    def _heard(self, ask, answer):
        self._note_claims(zip(ask.uids, ask.tokens, answer.nodes, strict=True))
        nodes = (node or "" for node in answer.nodes)
        self._cache.binder_answers = list(zip(ask.uids, ask.tokens, nodes, strict=True))

    def _note_claims(self, node_names):
        """Record the expected claims after the binder's answer: bound pods keep theirs, and of the
        others those are free that no other attempt holds.
        """
        pods, assumed = self._cache.pods, self._actor.state.volumes.assumed_claims
        heeded = [
            (uid, node)
            for uid, token, node in node_names
            if uid in self._cache.asked and pods[uid][2] == token
        ]
        bound = {key for uid, node in heeded if node for key in assumed.keys_of(uid)}
        over = {uid for uid, node in heeded if not node}
        self._claims = dict.fromkeys(bound.intersection(assumed._open), True)
        for key, each in assumed._open.items():
            if key not in bound and each.holders <= over:
                self._claims[key] = False

    def _check_claims(self):
        assumed, claims = self._actor.state.volumes.assumed_claims, self._claims
        self._claims = {}
        for key, is_bound in claims.items():
            if key in assumed._open or bool(assumed.storage.claims[key].volume_name) != is_bound:
                self._wrong(f"{key} is {assumed.storage.claims[key]}; it stays bound: {is_bound}")

    # New lives.

    def _load_storage(self, message):
        volumes = self._actor.state.volumes
        log = list(volumes.log)
        # A cache that replaces another one applies what it is sent first, any other one only what
        # precedes its own changes.
        first = self._awaits_commits or not log
        self._awaits_commits = False

        def finish(_):
            self._same("claims of before", volumes.log[: len(log)], log)
            more, wanted = volumes.log[len(log) :], list(message.changes) if first else []
            # Before them, assumptions are undone; behind them, the devices of ended pods are freed.
            starts = range(len(more) + 1)
            if not any(more[start : start + len(wanted)] == wanted for start in starts):
                self._wrong(f"claims of commits are {more}, not {wanted}")
            if not first and more:
                self._wrong(f"claims are loaded twice: {more}")
            claims = volumes.assumed_claims.storage.claims
            last = {claim.key: claim for change in volumes.log for claim in change.claims}
            self._same("claims", {key: claims.get(key) for key in last}, last)

        return finish

    def _learn_revisions(self, known):
        state = self._actor.state
        both = (state.node_revisions, known.nodes), (state.pod_revisions, known.pods)
        wanted = [{n: max(r, here.of(n)) for n, r in there} for here, there in both]

        def finish(_):
            actual = [{n: here.of(n) for n, _ in there} for here, there in both]
            self._same("revisions", actual, wanted)

        return finish

    async def _filled(self, ask):
        """Fill a new life, or a worker that missed a change. All is sent before any wait."""
        self._filling = filling = _Filling()
        stream, seq = self._actor.stream, self._actor.stream.seq
        await self._fill(ask)
        count = len(filling.parts)
        wanted = [
            (ask.follower, Restore(seq, number, count, part, ask.epoch))
            for number, part in enumerate(filling.parts)
        ]
        self._same("a follower gets", filling.sent, wanted)
        if ask.follower in stream.unfilled and not stream.refill.is_under_way(ask.follower):
            self._wrong(f"{ask.follower} has all, and gets no changes")

    def _everything(self, seq):
        """The parts of the whole state are consecutive, up to the last change that other followers
        got.
        """
        found = self._filling.parts = self._everything_of(seq)
        begins = [each.first_seq for each in found]
        ends = [each.first_seq + each.count for each in found]
        if [*begins[1:], self._actor.stream.seq + 1] != ends:
            text = f"begin at {begins} and end at {ends}, {self._actor.stream.seq} are numbered"
            self._wrong(f"parts {text}")
        sizes = [each.count for each in found[1:-1]]
        if any(size > encoding.PAGE for size in sizes) or any(
            size < encoding.PAGE for size in sizes[:-1]
        ):
            self._wrong(f"parts have {sizes} changes, where a page has {encoding.PAGE}")
        self._check_content(found)
        return found

    def _check_content(self, parts):
        actor, cache = self._actor, self._cache
        changes, nodes, pods, named, versions, order = [], {}, {}, {}, {}, []
        for batch in parts:
            for kind, name, uid, facts, key, started_s, node, arrival, change, version in rows_of(
                batch
            ):
                order.append(kind)
                if kind == STORAGE:
                    changes.append(change)
                elif kind == VERSION:
                    versions[name] = version
                elif kind == DeltaKind.ADD_NODE:
                    nodes[name] = node, arrival
                elif kind == DeltaKind.ADD_POD and name in nodes:
                    pods[uid] = name, facts, key or uid, started_s
                elif kind == DeltaKind.NOMINATE and name in nodes:
                    named[uid] = name, facts
                else:
                    self._wrong(f"a new life gets {kind} of {uid or name}")
        here = dict(cache.nodes)
        table, known = actor.core.placements.store.table, actor.state.versions
        started = actor.state.started_s
        for what, actual, wanted in (
            ("changes of claims", changes, list(actor.state.volumes.log)),
            (
                "nodes",
                nodes,
                {n: (f, int(table.arrivals[table.row_of(n)])) for n, f in here.items()},
            ),
            (
                "pods",
                pods,
                {
                    uid: (node, facts, cache.keys[uid], started.get(uid))
                    for uid, (_, node, _, facts) in cache.pods.items()
                    if node in here
                },
            ),
            ("nominations", named, {u: one for u, one in cache.named.items() if one[0] in here}),
            ("versions", versions, dict(known.of(here))),
            ("changes", len(order), sum(map(len, (changes, nodes, pods, named, versions)))),
        ):
            self._same(f"{what} that a new life gets", actual, wanted)

    # Ends of lives.

    def _remove_pods(self, message):
        cache = self._cache
        over = {uid for uid in message.uids if self._is_over(uid, message.revision)}
        before = cache.pods.keys() - over, cache.named.keys() - over
        # Check around the call: it does not wait, so no other call can run in between.
        return lambda _: self._same(
            f"{sorted(over)} are gone; left", (cache.pods.keys(), cache.named.keys()), before
        )

    def _remove_nodes(self, message):
        known, revision = self._actor.state.node_revisions, message.revision
        names = {name for name in message.names if not revision or revision > known.of(name)}
        names &= self._cache.nodes.keys()
        there = sorted(u for u, (_, node, _, _) in self._cache.pods.items() if node in names)

        def finish(_):
            if there and there not in self._freed:
                self._wrong(f"{sorted(names)} went, and the queue does not hear of {there}")

        return finish

    def _nominate(self, message):
        """Check around the call: it does not wait, so no other call can run in between."""
        named, is_gone = dict(self._cache.named), self._actor.state.pod_revisions.is_gone
        counted = self._cache.pods.keys() - {*message.evicted}
        rows = zip(message.pods.pods(), message.nodes, message.preempts, strict=True)
        for (who, facts), node, preempts in rows:
            if is_gone(who.uid):
                continue
            for uid, (where, other) in list(named.items()) if preempts and node else ():
                if where == node and other.priority < facts.priority:
                    del named[uid]
            if not node or who.uid not in counted:
                named.pop(who.uid, None)
            if node and who.uid not in counted:
                named[who.uid] = node, facts
        return lambda _: self._same("nominated are", self._cache.named, named)

    def _is_over(self, uid, revision):
        known = self._actor.state.pod_revisions
        return not revision or revision > known.of(uid) or known.is_gone(uid)

    def _nominated(self, _):
        named = self._cache.named.items()
        wanted = [(uid, facts.namespace, node, facts) for uid, (node, facts) in named]

        def finish(answer):
            pods = zip(answer.pods.pods(), answer.nodes, strict=True)
            actual = [(who.uid, who.namespace, node, facts) for (who, facts), node in pods]
            self._same("nominated", (actual, answer.none), (wanted, ()))

        return finish

    def _orphans(self, owner):
        """uid → token of the attempts that earlier lives of a scheduler assumed."""
        pods = self._cache.pods.items()
        trial = {uid: token for uid, (is_added, _, token, _) in pods if not is_added}
        return {uid: token for uid, token in trial.items() if _is_earlier(token, owner)}

    def _assumed_by(self, owner):
        wanted = tuple(self._orphans(owner))
        return lambda answer: self._same("assumed by earlier lives", answer.uids, wanted)

    def _end_owner(self, end):
        """The queue gets the message about freed resources after everything else has ended."""
        node_of, pods = dict(zip(end.uids, end.nodes, strict=True)), dict(self._cache.pods)
        bound, over = {}, []
        for uid in self._orphans(end.owner):
            if node_of.get(uid):
                bound[uid] = node_of[uid]
            else:
                over.append(uid)
        is_gone = self._actor.state.pod_revisions.is_gone
        late = [uid for uid in over if is_gone(uid)]
        should = {uid: pod for uid, pod in pods.items() if uid not in over}
        should |= {uid: (True, node, *pods[uid][2:]) for uid, node in bound.items()}
        self._ends = should, sorted(late), {*bound, *over}

        def finish(_):
            if self._ends is not None:
                self._wrong(f"{end.owner} ends, and the queue would not hear of the room")
            for uid in self._actor.state.volumes.assumed_claims.holders():
                if uid not in self._cache.pods and _is_earlier(self._core.token_of(uid), end.owner):
                    self._wrong(f"{uid} of {end.owner} holds claims, and is gone")

        return finish

    async def _released(self, pods):
        """Report the resources of attempts that no scheduler returns to the queue."""
        cache, uids = self._cache, sorted(who.uid for who, _ in pods)
        if uids:
            # An answer may be late, after many messages to the queue without pods.
            self._freed.append(uids)
        for who, facts in pods:
            namespace, _, name = cache.keys[who.uid].partition("/")
            self._same("the queue hears of", (who.namespace, who.name), (namespace, name))
            if facts not in (known := cache.facts[who.uid]):
                self._wrong(f"it had {known}, not {facts}")
        if self._ends is not None:
            (should, late, over), self._ends = self._ends, None
            self._same("at the end of a scheduler there are", cache.pods, should)
            self._same("the queue hears of", uids, late)
            held = over.intersection(self._actor.state.volumes.assumed_claims.holders())
            self._same("claims held by attempts that are over", held, set())
        elif cache.expired:
            self._same("the queue hears of", uids, sorted(cache.expired))
            held = cache.expired.intersection(self._actor.state.volumes.assumed_claims.holders())
            self._same("claims held by attempts that expired", held, set())
        cache.expired = set()
        self._check_claims()
        await self._report_release(pods)
        if pods and list(pods) not in self._observed:
            self._wrong(f"the queue heard nothing of {pods}")

    async def _claims_end(self, owner):
        """Claims that commits bound stay bound, claims without a holder are free."""
        self._owner = owner
        await self._end_claims(owner)
        assumed, self._owner = self._actor.state.volumes.assumed_claims, None
        for key, stays in self._should_stay.items():
            claim = assumed.storage.claims[key]
            if key in assumed._open or bool(claim.volume_name) != stays:
                self._wrong(f"{key} is on {claim.volume_name!r}; it stays bound: {stays}")

    def _note_confirmed(self, answer):
        """Record the expected claims of attempts that only ended lives hold."""
        assumed, orphans = self._actor.state.volumes.assumed_claims, self._orphaned()
        decided = {claim.key for change in answer.changes for claim in change.claims}
        self._should_stay = {
            key: any(decided.issuperset(assumed.keys_of(uid)) for uid in each.holders)
            for key, each in assumed._open.items()
            if each.holders <= orphans
        }

    def _orphaned(self):
        """Pods that hold claims, and were removed while an ended life assumed them."""
        return {
            uid
            for uid in self._actor.state.volumes.assumed_claims.holders()
            if uid not in self._cache.pods and _is_earlier(self._core.token_of(uid), self._owner)
        }

    # Time.

    def _assume(self, _):
        if self._looked_s is None:
            self._looked_s = self._compared_s = clock_s()
        self._look()

    def _look(self):
        waited_s = clock_s() - self._looked_s
        if not self._is_looking and waited_s > LOOKS_EVERY_S + self._late_s + 1e-6:
            self._wrong(f"nobody looked for {waited_s:g} s whose time is over")

    async def _looked(self):
        """The cache looks for expired attempts, and compares itself now and then."""
        if self._looked_s is None:
            await self._look_once()
            return
        self._look()
        self._same("compared with one made anew", self._is_reported, self._is_due)
        self._is_looking, self._has_asked = True, False
        try:
            await self._look_once()
            if self._cache.asks and not self._has_asked:
                self._wrong(f"the binder is not asked about {self._cache.asks}")
        finally:
            now_s, self._is_looking, self._is_reported = clock_s(), False, False
            size, self._looked_s = len(self._cache.nodes) + len(self._cache.pods), now_s
            is_time = now_s - self._compared_s >= recovery.COMPARE_S
            self._is_due = is_time and size <= recovery.COMPARED_MAX
            self._compared_s = now_s if self._is_due else self._compared_s

    async def _compared(self, message):
        """Every caller gets an answer; when the cache compares itself does not depend on it."""
        before = self._is_reported
        answer = await self._compare(message)
        self._is_reported = before
        self._same("one made anew", answer.lines, ())
        return answer

    def _reported(self, lines):
        self._is_reported = True
        self._same("one made anew", lines, [])
        self._report(lines)


def _preceded(before, method):
    def call(*what):
        what = [[*each] if hasattr(each, "__next__") else each for each in what]
        before(*what)
        return method(*what)

    return call


def _is_earlier(token, owner):
    """Tokens are owner/epoch/number."""
    name, _, rest = token.partition("/")
    epoch = rest.split("/")[0]
    return name == owner.name and epoch.isdigit() and int(epoch) < owner.epoch
