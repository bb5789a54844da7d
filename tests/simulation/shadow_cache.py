"""A shadow of the cache: what is counted where, kept plainly and compared after each call.

It knows uid → (is it confirmed, node, token, facts) and which attempts are over, and nothing of
batches, deadlines, deltas or transition tables. A difference is told in the run in which it arises,
before something else repairs it.
"""

CALLS = (
    "assume",
    "forget",
    "finish_binding",
    "confirm",
    "confirm_assumed",
    "update_pod",
    "remove_pods",
    "resolve",
)


class ShadowCache:
    """Follows one life of a cache core. problems: where they differ, the first few."""

    def __init__(self, core):
        self._core = core
        self._pods, self._over = {}, set()
        self.problems = []
        for name in CALLS:
            setattr(core, name, self._followed(name, getattr(core, name)))

    def look(self):
        """Nothing more is to be compared in the end: all is, after each call."""

    def _followed(self, name, original):
        def call(*what, **how):
            # Batches may be iterators, which are read once.
            what = (list(what[0]), *what[1:]) if name != "update_pod" else what
            answer = original(*what, **how)
            about = getattr(self, f"_{name}")(*what)
            self._compare(name, about, answer)
            return answer

        return call

    def _compare(self, name, refused, answer):
        if len(self.problems) >= 3:
            return
        told = sorted(each.uid for each in getattr(answer, "refused", ()))
        if told != sorted(refused):
            self.problems.append(f"shadow of the cache: {name} refuses {told}, not {refused}")
        core = self._core
        here = {uid: core.node_of(uid) for uid in self._pods}
        should = {uid: node for uid, (_, node, _, _) in self._pods.items()}
        if here != should or len(core.placements) != len(should):
            wrong = {uid: (here[uid], should[uid]) for uid in here if here[uid] != should[uid]}
            sizes = f"{len(core.placements)} pods, not {len(should)}"
            self.problems.append(f"shadow of the cache: after {name}: {wrong or sizes}")
        if self._pods.keys() & {each.uid for each in core.on_trial()} != {
            uid for uid, (is_added, *_) in self._pods.items() if not is_added
        }:
            self.problems.append(f"shadow of the cache: after {name}: others are assumed")

    def _assume(self, batch, now_s):
        refused = []
        for uid, _, facts, node, token in batch:
            known = self._pods.get(uid)
            if known == (False, node, token, facts):
                continue
            if known is not None or (uid, token) in self._over:
                refused.append(uid)
                continue
            self._pods[uid] = False, node, token, facts
        return refused

    def _forget(self, batch):
        refused = []
        for uid, token in batch:
            self._over.add((uid, token))
            is_added, _, holder, _ = self._pods.get(uid, (None, None, None, None))
            if is_added is None:
                continue
            if is_added or holder != token:
                refused.append(uid)
            else:
                del self._pods[uid]
        return refused

    def _finish_binding(self, batch, now_s):
        pods = ((uid, token, self._pods.get(uid)) for uid, token in batch)
        return [uid for uid, token, known in pods if known and not known[0] and known[2] != token]

    def _confirm(self, batch):
        for item in batch:
            known = self._pods.get(item.uid)
            token = known[2] if known else ""
            self._pods[item.uid] = True, item.node_name, token, item.facts
        return []

    def _confirm_assumed(self, uids):
        for uid in uids:
            if uid in self._pods:
                self._pods[uid] = True, *self._pods[uid][1:]
        return []

    def _update_pod(self, uid, facts, node_name):
        known = self._pods.get(uid)
        self._pods[uid] = True, node_name, known[2] if known else "", facts
        return []

    def _remove_pods(self, uids):
        for uid in uids:
            known = self._pods.pop(uid, None)
            if known is not None:
                self._over.add((uid, known[2]))
        return []

    def _resolve(self, words):
        refused = []
        for word in words:
            known = self._pods.get(word.uid)
            if known is None or known[0] or known[2] != word.token:
                refused.append(word.uid)
            elif word.node_name is None:
                del self._pods[word.uid]
            else:
                self._pods[word.uid] = True, word.node_name, *known[2:]
        return refused
