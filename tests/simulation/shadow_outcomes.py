"""A shadow of the binder's state outside its core: bindings of claims, reasons of evictions, times
of acknowledgements, and changes without a revision.
"""

from tests.simulation.shadow_claims import PlainClaims

REVISED = (
    *("add_nodes", "remove_nodes", "add_running", "add_pending", "update_pods", "delete_pods"),
)
"""Calls whose last argument is a revision, which may be omitted where it is 0."""


class ShadowOutcomes:
    """Follows one life of a binder actor. binder: the shadow of its core. wrong: called with each
    difference. _batches: the pods that each batch bound, in order; _unanswered: pods of calls that
    raised. _evicted_pods: UIDs, also of earlier lives.
    """

    def __init__(self, actor, plan, binder, wrong):
        self._product, self._binder, self._wrong = actor.binder, binder, wrong
        self._claims = PlainClaims(plan.storage_state())
        self._batches, self._unanswered = [], []
        self._evicted_pods = {n.uid for n in self._product.outcomes.removed if n.preemptor}
        self._compare_claims("recovery")
        self._bind, self._product.bind = self._product.bind, self._bound
        self._evict, actor.evict = actor.evict, self._evicted
        self._commits, actor.commits = actor.commits, self._paged
        for name in REVISED:
            setattr(self._product, name, self._revised(name, getattr(self._product, name)))

    def _revisions(self):
        known = self._product.node_revisions, self._product.pod_revisions
        return {(place, *each) for place, one in enumerate(known) for each in one.all()}

    def _revised(self, name, original):
        """A change without a revision is not counted."""

        def call(*what):
            if what[-1] != 0:
                return original(*what)
            before, here = self._revisions(), {*self._binder.pods}
            answer = original(*what[:-1])
            if new := self._revisions() - before:
                self._wrong(f"{name} without a revision has one: {sorted(new)}")
            if name == "delete_pods":
                # A caller without revisions may repeat a call at once.
                self._evicted_pods.difference_update(what[0])
            if again := self._evicted_pods & self._binder.pods.keys() - here:
                self._wrong(f"by {name}, without a revision, {sorted(again)} come after eviction")
            return answer

        return call

    def _compare_claims(self, name):
        volumes = self._product.volumes
        for each in self._claims.differences(volumes.log, volumes._claims.storage):
            self._wrong(f"after {name} a claim or a volume is {each}")

    def _bound(self, requests, volumes=()):
        before = {*self._binder.listed}
        try:
            answer = self._bind(requests, volumes)
        finally:
            self._compare_claims("bind")
            self._unanswered += [uid for uid in self._binder.listed if uid not in before]
        # A snapshot that fails after the binds leaves them without an answer.
        if self._unanswered:
            self._batches.append(self._unanswered)
            self._unanswered = []
        return answer

    async def _evicted(self, ask):
        """Pods that were present are evicted for the pod that gets the room."""
        gone, known = self._product.outcomes.removed, self._binder.pods
        here = [(uid, known[uid].key, known[uid].node) for uid in {*ask.uids} & known.keys()]
        before, for_whom = len(gone), dict(zip(ask.uids, ask.preemptors, strict=True))
        answer = await self._evict(ask)
        self._evicted_pods.update(uid for uid, *_ in here)
        actual = sorted((n.uid, n.key, n.node_name, n.preemptor) for n in gone[before:])
        if actual != (wanted := sorted((*who, for_whom[who[0]]) for who in here)):
            self._wrong(f"evicted are {actual}, not {wanted}")
        return answer

    async def _paged(self, ask):
        """Binds with the times of their batches, each with at least one bind."""
        answer = await self._commits(ask)
        batch_of = [number for number, uids in enumerate(self._batches) for _ in uids]
        all_uids = [uid for uids in self._batches for uid in uids]
        stop = ask.start + ask.count
        numbers = batch_of[ask.start : stop]
        wanted = all_uids[ask.start : stop], [numbers.count(n) for n in sorted({*numbers})]
        actual = [*answer.uids], [count for count, *_ in answer.times]
        times = [at_s for _, at_s, _ in answer.times]
        if actual != wanted or answer.total != len(all_uids):
            self._wrong(f"{answer.total} binds, of which {actual}; not {len(all_uids)}, {wanted}")
        if times != sorted(times) or any(at_s > answer.now_s for at_s in times):
            self._wrong(f"binds were acknowledged at {times}; it is {answer.now_s}")
        return answer
