"""A shadow of the cache: its counts, kept plainly and compared after each call.

It has uid → (whether it is confirmed, node, token, facts), the deadline of each attempt, expired
and removed pods within their bounds, nominations and nodes; it has no batches, groups of deadlines
or transition tables. From the returned deltas it builds a copy, as their readers do, which must
have the same contents. A difference is reported in the run in which it arises, before anything
repairs it.
"""

from dataclasses import asdict

from roadstead.placements import TableStore
from roadstead.protocol.errors import IllegalTransitionError
from tests.inside import next_deadline_s
from tests.simulation.cache_copy import CacheCopy
from tests.simulation.plain_binder import nodes_to_compare

CALLS = (
    *("assume", "forget", "finish_binding", "confirm", "confirm_assumed", "update_pod"),
    *("remove_pods", "resolve", "expire", "nominate", "withdraw"),
    *("add_node", "add_nodes", "update_node", "remove_node"),
)
SINGLE = ("update_pod", "expire", "nominate", "add_node", "add_nodes", "update_node", "remove_node")
"""Calls without a batch, which may be an iterator."""

REBUILT_EVERY = 25
"""Calls after which the cache is rebuilt, and compared with itself."""


class ShadowCache:
    """Follows one life of a cache core. problems: the first few differences.

    expired: attempts that the binder's answer ended, whose room must be reported to the queue.
    asks: (uid, token) of the attempts asked about last. binder_answers: (uid, token, node or "")
    of the binder's answer, until the core has it. keys: uid → namespace/name. facts: of each pod
    that was ever counted, at that time. asked: pods about whose attempts the binder is asked.
    _came_from: state of each pod, "" for none, when it was assumed.
    """

    def __init__(self, core):
        self._core = core
        self.pods, self._over, self._gone = {}, {}, {}
        # All facts with which each pod was counted: a message in transit may belong to an earlier
        # attempt.
        self.keys, self.facts = {}, {}
        self._until_s, self.asked, self.expired, self._came_from = {}, set(), set(), {}
        self.asks, self.binder_answers = [], None
        self.nodes, self.named = {}, {}
        self._copy = CacheCopy()
        self._bound = core.settings.max_gone_remembered
        self._calls = self._is_inside = 0
        self.problems = []
        for name in CALLS:
            setattr(core, name, self._followed(name, getattr(core, name)))

    def look(self):
        """Compare with a rebuilt cache; everything else is compared after each call."""
        self._compare_anew("all")

    def expect_settings(self, plan, limits):
        """Check the settings of a run, except limits that are smaller."""
        usual = {"assume_s": 900.0, "ask_again_s": 5.0, "max_gone_remembered": 65_536}
        wanted = {**usual, "bind_s": plan.settings.deadlines.assume_s, **limits}
        if asdict(self._core.settings) != wanted:
            self.wrong(f"the settings are {self._core.settings}, not {wanted}")

    def wrong(self, text):
        if len(self.problems) < 3:
            self.problems.append(f"shadow of the cache: {text}")

    def _followed(self, name, original):
        def call(*what, **how):
            if self._is_inside:
                return original(*what, **how)
            # Batches may be iterators, which can be read once.
            what = what if name in SINGLE else (list(what[0]), *what[1:])
            self._is_inside, is_forbidden = True, self._forbids(name, *what)
            try:
                answer = original(*what, **how)
            except IllegalTransitionError:
                if not is_forbidden:
                    self.wrong(f"{name} of {what} is refused")
                self._compare(f"{name}, which was refused")
                raise
            finally:
                self._is_inside = False
            if is_forbidden:
                self.wrong(f"{name} of {what} is allowed")
                return answer
            about = getattr(self, f"_{name}")(*what, **how)
            self._compare_answer(name, about, answer)
            self._compare(name)
            return answer

        return call

    # State.

    def _compare(self, name):
        if self.problems:
            return
        self._compare_times(name)
        self._compare_pods(name)
        core, known = self._core, self._core.placements
        counted = {u: (node, f) for u, (_, node, _, f) in self.pods.items() if node in self.nodes}
        named = {uid: one for uid, one in self.named.items() if one[0] in self.nodes}
        counts = core.counts()
        for what, here, there in (
            ("nodes", *nodes_to_compare(name, known.nodes, self.nodes)),
            ("nominations", known.nominated, self.named),
            ("nodes by deltas", self._copy.nodes, self.nodes),
            ("pods by deltas", self._copy.pods, counted),
            ("nominations by deltas", self._copy.named, named),
            ("deltas", (core.version, self._copy.problems), (self._copy.version, [])),
            (
                "numbers",
                (counts.nodes, counts.on_unknown_nodes, len(known)),
                (len(self.nodes), len(self.pods) - len(counted), len(self.pods)),
            ),
        ):
            if here != there:
                self.wrong(f"after {name}: {what}: {_short(here, there)}")
        self._calls += 1
        if self._calls % REBUILT_EVERY == 0:
            self._compare_anew(name)

    def _forbids(self, name, *what):
        """Whether a call contradicts the state: it raises, and nothing changes."""
        if name == "confirm":
            actual = {(item.uid, item.node_name) for item in what[0]}
            actual |= {
                (u, self.pods[u][1]) for u, _ in actual if u in self.pods and self.pods[u][0]
            }
            return len(actual) > len({uid for uid, _ in actual})
        if name == "update_pod":
            uid, _, node = what
            known = self.pods.get(uid)
            if known is None:
                return self._gone.get(uid, ("deleted",))[0] == "deleted"
            return known[0] and known[1] != node
        if name == "remove_pods":
            return any(uid not in self.pods and uid not in self._gone for uid in what[0])
        return name == "remove_node" and what[0] not in self.nodes

    def _compare_answer(self, name, refused, answer):
        if name == "expire":
            actual = [(each.uid, each.key, each.token, each.node_name) for each in answer]
        elif name == "add_nodes":
            actual = answer
        else:
            actual = sorted(each.uid for each in getattr(answer, "refused", ()))
            refused = sorted(refused)
        if actual != refused:
            self.wrong(f"{name} refuses {actual}, not {refused}")
        if name not in ("expire", "add_nodes", "confirm_assumed"):
            self._copy.take(answer if isinstance(answer, list) else answer.deltas)

    def _compare_pods(self, name):
        core = self._core
        here = {uid: core.node_of(uid) for uid in self.pods}
        should = {uid: node for uid, (_, node, _, _) in self.pods.items()}
        if here != should:
            self.wrong(f"after {name}: {_short(here, should)}")
        for uid, (is_added, node, token, facts) in self.pods.items():
            state = "added" if is_added else "asked" if uid in self.asked else "assumed"
            placed, history = core.placement_of(uid), core.pods.present[uid].history
            if not history or not history[-1].endswith(f"→{state}"):
                self.wrong(f"after {name}: {uid} is {state}, by {history}")
            elif history[-1].startswith("assume→"):
                before = history[-2].rpartition("→")[2] if len(history) > 1 else ""
                if before != self._came_from[uid]:
                    self.wrong(f"after {name}: {uid} was {self._came_from[uid]}, not {history}")
            actual = core.state_of(uid).value, core.token_of(uid), core.key_of(uid)
            actual = *actual, placed.node_name, placed.key
            wanted = state, token, self.keys[uid], node, self.keys[uid]
            if actual != wanted:
                self.wrong(f"after {name}: {uid} is {actual}, not {wanted}")
            if not facts == placed.facts == core.facts_of(uid) == core.placements.facts_of(uid):
                self.wrong(f"after {name}: {uid} has other facts")
        for uid, (state, token) in self._gone.items():
            actual = core.state_of(uid).value, core.token_of(uid), core.key_of(uid)
            if actual != (state, token, self.keys[uid]):
                self.wrong(f"after {name}: {uid}, which is gone, is {actual}, not {(state, token)}")

    def _compare_times(self, name):
        """Compare the deadlines of attempts, the attempts that are queried or expired, and removed
        pods.
        """
        core = self._core
        trial = {uid for uid, (is_added, *_) in self.pods.items() if not is_added}
        self._until_s = {uid: at_s for uid, at_s in self._until_s.items() if uid in trial}
        self.asked &= trial
        counts = core.counts()
        for what, here, there in (
            (
                "deadlines",
                {each.uid: each.deadline_s for each in core.unconfirmed()},
                self._until_s,
            ),
            ("the first one", next_deadline_s(core), min(self._until_s.values(), default=None)),
            (
                "asked",
                (counts.asked, counts.assumed + counts.asked),
                (len(self.asked), len(trial)),
            ),
            ("added", counts.added, len(self.pods) - len(trial)),
            ("over", list(core._forgotten), list(self._over)),
            ("gone", list(core.pods.ended), list(self._gone)),
        ):
            if here != there:
                self.wrong(f"after {name}: {what}: {here}, not {there}")

    def _compare_anew(self, name):
        """A rebuilt cache has the same contents, and so has the first part of a new copy."""
        if self.problems:
            return
        core = self._core
        again, copy = core.rebuild(TableStore()), CacheCopy()
        copy.begin(core.snapshot(), core.version)
        here = copy.nodes, copy.pods, copy.named, copy.problems
        if here != (self._copy.nodes, self._copy.pods, self._copy.named, []):
            self.wrong(f"after {name}: a snapshot holds {here}")
        times = {each.uid: (each.state, each.deadline_s) for each in again.unconfirmed()}
        first_s, trial = next_deadline_s(again), core.unconfirmed()
        if times != {each.uid: (each.state, each.deadline_s) for each in trial}:
            self.wrong(f"after {name}: one made anew has the deadlines {times}")
        if core.compare(again) or again.counts() != core.counts():
            self.wrong(f"after {name}: one made anew differs: {core.compare(again)}")
        if first_s != next_deadline_s(core):
            self.wrong(f"after {name}: one made anew asks at {first_s} first")
        for uid in self.pods:
            if again.placement_of(uid) != core.placement_of(uid):
                self.wrong(f"after {name}: one made anew has {again.placement_of(uid)}")
        again.validate()

    # Results of attempts.

    def _end(self, uid, token):
        """End an attempt."""
        self._over[uid, token] = None
        while len(self._over) > self._bound:
            del self._over[next(iter(self._over))]

    def _leave(self, uid, state, token):
        """Remove a pod that was deleted or whose attempt expired; remember it for a bounded
        time.
        """
        self._gone[uid] = state, token
        while len(self._gone) > self._bound:
            del self._gone[next(iter(self._gone))]

    def _place(self, uid, is_added, node, token, facts):
        self.pods[uid] = is_added, node, token, facts
        if facts not in (known := self.facts.setdefault(uid, [])):
            known.append(facts)
        self._gone.pop(uid, None)
        self.named.pop(uid, None)

    def _token_of(self, uid):
        """The attempt with which a pod is counted, or was."""
        return self.pods[uid][2] if uid in self.pods else self._gone.get(uid, ("", ""))[1]

    def _take_time(self, uid, at_s):
        # After all attempts with the same deadline.
        self._until_s.pop(uid, None)
        self._until_s[uid] = at_s

    def _expire(self, now_s):
        if self.expired:
            self.wrong(f"expired assumptions are not reported: {sorted(self.expired)}")
        late = [uid for uid, at_s in self._until_s.items() if at_s <= now_s]
        late.sort(key=lambda uid: self._until_s[uid])
        for uid in late:
            self._take_time(uid, now_s + self._core.settings.ask_again_s)
        self.asked |= set(late)
        self.asks = [(uid, self.pods[uid][2]) for uid in late]
        return [(uid, self.keys[uid], self.pods[uid][2], self.pods[uid][1]) for uid in late]

    def _assume(self, batch, now_s):
        refused = []
        for uid, key, facts, node, token in batch:
            known = self.pods.get(uid)
            if known == (False, node, token, facts):
                continue
            if known is not None or (uid, token) in self._over:
                refused.append(uid)
                continue
            self._came_from[uid] = self._gone.get(uid, ("", ""))[0]
            self._place(uid, False, node, token, facts)
            self.keys[uid] = key
            self._take_time(uid, now_s + self._core.settings.assume_s)
        return refused

    def _forget(self, batch):
        refused = []
        for uid, token in batch:
            self._end(uid, token)
            is_added, _, holder, _ = self.pods.get(uid, (None, None, None, None))
            if is_added is None:
                continue
            if is_added or holder != token:
                refused.append(uid)
            else:
                del self.pods[uid]
        return refused

    def _finish_binding(self, batch, now_s):
        pods = [(uid, token, self.pods.get(uid)) for uid, token in batch]
        ours = [uid for uid, token, known in pods if known and not known[0] and known[2] == token]
        for uid in dict.fromkeys(ours):
            self._take_time(uid, now_s + self._core.settings.bind_s)
        self.asked -= set(ours)
        return [uid for uid, token, known in pods if known and not known[0] and known[2] != token]

    # Cluster events.

    def _confirm(self, batch):
        for item in batch:
            if item.uid not in self.pods and item.uid not in self._gone:
                self.keys[item.uid] = item.key
            self._place(item.uid, True, item.node_name, self._token_of(item.uid), item.facts)
        return []

    def _confirm_assumed(self, uids):
        for uid in uids:
            if uid in self.pods:
                self.pods[uid] = True, *self.pods[uid][1:]
        return []

    def _update_pod(self, uid, facts, node_name):
        self._place(uid, True, node_name, self._token_of(uid), facts)
        return []

    def _remove_pods(self, uids):
        for uid in dict.fromkeys(uids):
            token = self._token_of(uid)
            self.pods.pop(uid, None)
            if token:
                self._end(uid, token)
            self._leave(uid, "deleted", token)
        return []

    def _resolve(self, binder_answers):
        refused = []
        actual = [(each.uid, each.token, each.node_name or "") for each in binder_answers]
        if self.binder_answers not in (None, actual):
            self.wrong(f"the binder answered {self.binder_answers}, and the core receives {actual}")
        self.binder_answers = None
        for each in binder_answers:
            known = self.pods.get(each.uid)
            if known is None or known[0] or known[2] != each.token or each.uid not in self.asked:
                refused.append(each.uid)
            elif each.node_name is None:
                del self.pods[each.uid]
                self._leave(each.uid, "expired", each.token)
                self.expired.add(each.uid)
            else:
                self.pods[each.uid] = True, each.node_name, *known[2:]
        return refused

    def _nominate(self, uid, node_name, facts, *, preempts=False):
        if not node_name:
            self.named.pop(uid, None)
            return []
        for other, (where, known) in list(self.named.items()):
            if preempts and where == node_name and known.priority < facts.priority:
                del self.named[other]
        if uid not in self.pods and self.named.get(uid) != (node_name, facts):
            self.named.pop(uid, None)
            self.named[uid] = node_name, facts
        return []

    def _withdraw(self, uids):
        for uid in uids:
            self.named.pop(uid, None)
        return []

    def _add_node(self, facts):
        self.nodes[facts.name] = facts
        return []

    _update_node = _add_node

    def _add_nodes(self, nodes):
        """Add all nodes where none is known; return whether they were added."""
        names = set(nodes.names)
        known = {node for _, node, _, _ in self.pods.values()} | self.nodes.keys()
        known |= {node for node, _ in self.named.values()}
        if len(names) < len(nodes) or known & names:
            return False
        self.nodes |= {facts.name: facts for facts in nodes}
        self._copy.come(nodes)
        return True

    def _remove_node(self, name):
        del self.nodes[name]
        return []


def _short(here, there):
    if isinstance(here, dict):
        names = {n for n in here.keys() | there.keys() if here.get(n) != there.get(n)}
        here, there = ({n: each.get(n) for n in sorted(names)[:2]} for each in (here, there))
    return f"{str(here)[:300]}, not {str(there)[:300]}"
