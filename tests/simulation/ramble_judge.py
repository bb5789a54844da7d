"""A judge that gets the state of the cluster from its caller."""

from dataclasses import replace

from tests.simulation.judge import Judge


class ShownJudge(Judge):
    """Follows a scheduler whose state is stale, and gets the cluster's state when that scheduler
    reads.
    """

    asked_every = 3

    def __init__(self, plan, members, bounds, opinions):
        super().__init__(plan, members, bounds, opinions)
        self._aside, self._here = {}, {}

    def _is_same(self, chosen, wanted):
        """The last added of equal victims are chosen, and here tables differ in that
        order.
        """
        if chosen is None or not wanted.victims:
            return chosen == wanted
        ranks = [
            sorted(self._placed[uid][0].facts.priority for uid in each.victims if uid)
            for each in (chosen, wanted)
        ]
        return ranks[0] == ranks[1] and replace(chosen, victims=()) == replace(wanted, victims=())

    def begin(self, pods):
        """Prepare to decide pods: remove them from the table, and take their nominations from their
        leases.
        """
        for uid in [pod.uid for pod in pods if pod.uid in self._placed]:
            pod_class, name, key = self._placed.pop(uid)
            if name in self._table.node_names():
                self._table.remove_pod(name, pod_class, uid=uid)
            if uid not in self._here:
                self._aside[uid] = pod_class, name, key
            elif facts := self._here.pop(uid):
                # An earlier decision here failed; its nomination is restored.
                self.nominate(uid, facts, facts.nominated_node_name, ())
        for pod in pods:
            if (
                self._nominated.get(pod.uid, (None, ""))[1]
                != pod.pod_class.facts.nominated_node_name
            ):
                self._withdraw(pod.uid)

    def passes_on(self, decision):
        """Check a pod that fits none of its scheduler's nodes, and that another scheduler decides
        on all nodes.
        """
        chosen = decision.diagnosis.message("")
        wanted = self._decide(decision.pod, decision.pod.pod_class.facts)
        if wanted.node_name is not None or not wanted.message.startswith(chosen):
            self.problems.append(f"{decision.pod.key} is passed on: {chosen}, not {wanted}")

    def end(self, decisions):
        """Put unplaced pods of a batch back where they were; remember the placed ones until the
        next view of the cluster, since they may be decided again.
        """
        for uid in [uid for uid in self._aside if uid not in self._placed]:
            self._put(uid, *self._aside.pop(uid))
        for each in decisions:
            if each.node_name is not None:
                facts = each.pod.pod_class.facts
                self._here[each.pod.uid] = facts if facts.nominated_node_name else None

    def _put(self, uid, pod_class, name, key):
        self._placed[uid] = pod_class, name, key
        if name in self._table.node_names():
            self._table.add_pod(name, pod_class, uid=uid, key=key)

    def see(self, placed, nominated):
        """Replace all pods and nominations. placed: uid → (facts, node, key)."""
        self._here.clear()
        self._aside.clear()
        for uid, (pod_class, name, _) in list(self._placed.items()):
            if uid not in placed or (pod_class.facts, name) != placed[uid][:2]:
                del self._placed[uid]
                if name in self._table.node_names():
                    self._table.remove_pod(name, pod_class, uid=uid)
        for uid in list(self._nominated):
            self._withdraw(uid)
        for uid, (facts, name, key) in placed.items():
            if uid not in self._placed:
                self._put(uid, self._classes.pod_class(facts), name, key)
        for uid, (name, facts) in nominated.items():
            self._nominated[uid] = pod_class, _ = self._classes.pod_class(facts), name
            self._table.nominate(name, pod_class)

    def release(self, uid):
        """Forget the claims of a pod whose attempt ended."""
        self._changes += self._volumes.forget(uid)

    def keep(self, uid):
        self._volumes.confirm(uid)
