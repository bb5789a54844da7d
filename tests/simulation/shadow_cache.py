"""A shadow of the cache: what is counted where, kept plainly and compared after each call.

It knows uid → (is it confirmed, node, token, facts), until when each attempt has time, which are
over and who is gone, within their bounds, and nothing of batches, groups of deadlines, deltas or
transition tables. A difference is told in the run in which it arises, before something else repairs
it.
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
    "expire",
)


class ShadowCache:
    """Follows one life of a cache core. problems: where they differ, the first few."""

    def __init__(self, core):
        self._core = core
        self._pods, self._over, self._gone = {}, {}, {}
        self._until_s, self._asked, self._expired = {}, set(), set()
        self._bound = core.settings.max_gone_remembered
        self.problems = []
        for name in CALLS:
            setattr(core, name, self._followed(name, getattr(core, name)))

    def look(self):
        """Nothing more is to be compared in the end: all is, after each call."""

    def follow_actor(self, actor):
        """The queue hears of the room of attempts that expired: no scheduler gives these back."""
        tell = actor._tell_of_room

        async def told(pods):
            if self._expired and {who.uid for who, _ in pods} != self._expired:
                self.problems.append(
                    f"shadow of the cache: {sorted(self._expired)}: {pods} is told"
                )
            self._expired = set()
            await tell(pods)

        actor._tell_of_room, actor._parts = told, self._numbered(actor, actor._parts)
        return self

    def _numbered(self, actor, parts_of):
        """What a new follower gets follows one another, up to the last change that others got."""

        def parts():
            found = parts_of()
            begins = [each.first_seq for each in found]
            ends = [each.first_seq + len(each.kinds) for each in found]
            if [*begins[1:], actor._seq + 1] != ends:
                text = f"begin at {begins} and end at {ends}, {actor._seq} are numbered"
                self.problems.append(f"shadow of the cache: parts {text}")
            return found

        return parts

    def _followed(self, name, original):
        def call(*what, **how):
            # Batches may be iterators, which are read once.
            is_batch = name not in ("update_pod", "expire")
            what = (list(what[0]), *what[1:]) if is_batch else what
            answer = original(*what, **how)
            about = getattr(self, f"_{name}")(*what)
            self._compare(name, about, answer)
            return answer

        return call

    def _compare(self, name, refused, answer):
        if len(self.problems) >= 3:
            return
        of = answer if name == "expire" else getattr(answer, "refused", ())
        told = sorted(each.uid for each in of)
        if told != sorted(refused):
            self.problems.append(f"shadow of the cache: {name} refuses {told}, not {refused}")
        core = self._core
        self._compare_times(name)
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

    def _compare_times(self, name):
        """Until when attempts have time, which of them are asked about or over, and who is gone."""
        core, trial = (
            self._core,
            {uid for uid, (is_added, *_) in self._pods.items() if not is_added},
        )
        self._until_s = {uid: at_s for uid, at_s in self._until_s.items() if uid in trial}
        self._asked &= trial
        counts = core.counts()
        for what, here, there in (
            ("deadlines", {each.uid: each.deadline_s for each in core.on_trial()}, self._until_s),
            ("the first one", core.next_deadline_s(), min(self._until_s.values(), default=None)),
            (
                "asked",
                (counts.asked, counts.assumed + counts.asked),
                (len(self._asked), len(trial)),
            ),
            ("added", counts.added, len(self._pods) - len(trial)),
            ("over", list(core._forgotten), list(self._over)),
            ("gone", list(core._gone), list(self._gone)),
        ):
            if here != there:
                self.problems.append(
                    f"shadow of the cache: after {name}: {what}: {here}, not {there}"
                )

    def _end(self, uid, token):
        """An attempt is over."""
        self._over[uid, token] = None
        while len(self._over) > self._bound:
            del self._over[next(iter(self._over))]

    def _leave(self, uid):
        """A pod is gone, or its attempt has expired: it is remembered, if not for ever."""
        self._gone.setdefault(uid)
        while len(self._gone) > self._bound:
            del self._gone[next(iter(self._gone))]

    def _expire(self, now_s):
        if self._expired:
            self.problems.append(f"shadow of the cache: nobody is told of {sorted(self._expired)}")
        late = [uid for uid, at_s in self._until_s.items() if at_s <= now_s]
        self._until_s |= dict.fromkeys(late, now_s + self._core.settings.ask_again_s)
        self._asked |= set(late)
        return late

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
            self._gone.pop(uid, None)
            self._until_s[uid] = now_s + self._core.settings.assume_s
        return refused

    def _forget(self, batch):
        refused = []
        for uid, token in batch:
            self._end(uid, token)
            is_added, _, holder, _ = self._pods.get(uid, (None, None, None, None))
            if is_added is None:
                continue
            if is_added or holder != token:
                refused.append(uid)
            else:
                del self._pods[uid]
        return refused

    def _finish_binding(self, batch, now_s):
        pods = [(uid, token, self._pods.get(uid)) for uid, token in batch]
        ours = [uid for uid, token, known in pods if known and not known[0] and known[2] == token]
        self._until_s |= dict.fromkeys(ours, now_s + self._core.settings.bind_s)
        self._asked -= set(ours)
        return [uid for uid, token, known in pods if known and not known[0] and known[2] != token]

    def _confirm(self, batch):
        for item in batch:
            known = self._pods.get(item.uid)
            token = known[2] if known else ""
            self._pods[item.uid] = True, item.node_name, token, item.facts
            self._gone.pop(item.uid, None)
        return []

    def _confirm_assumed(self, uids):
        for uid in uids:
            if uid in self._pods:
                self._pods[uid] = True, *self._pods[uid][1:]
        return []

    def _update_pod(self, uid, facts, node_name):
        known = self._pods.get(uid)
        self._pods[uid] = True, node_name, known[2] if known else "", facts
        self._gone.pop(uid, None)
        return []

    def _remove_pods(self, uids):
        for uid in uids:
            known = self._pods.pop(uid, None)
            token = known[2] if known is not None else self._core.token_of(uid)
            if token:
                self._end(uid, token)
            self._leave(uid)
        return []

    def _resolve(self, words):
        refused = []
        for word in words:
            known = self._pods.get(word.uid)
            if known is None or known[0] or known[2] != word.token or word.uid not in self._asked:
                refused.append(word.uid)
            elif word.node_name is None:
                del self._pods[word.uid]
                self._leave(word.uid)
                self._expired.add(word.uid)
            else:
                self._pods[word.uid] = True, word.node_name, *known[2:]
        return refused
