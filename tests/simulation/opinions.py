"""An extender whose answers depend on pod and node alone, so that a judge can compute them, too."""

from zlib import crc32

from roadstead.extenders.caller import InProcessExtenders
from roadstead.protocol.status import Code, Status, error

WHY = "it does not please"
STRANGER = "n-of-nobody"
FAILS = "the extender is out of order"
HUGE, MOST = 1 << 58, 1 << 60
"""A score for some pods, and the bound of the amount added to a total, which has to fit an int64.
"""


class Opinions:
    """caller_of: returns the function that calls it. weight: of its scores."""

    def __init__(self, draw):
        self.weight, self._salt = draw.choice((1, 3)), draw.random()
        self.preempts = draw.random() < 0.7
        self.caller_of = InProcessExtenders(lambda config, clock: self)

    def config(self):
        verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
        verbs |= {"preemptVerb": "preempt"} if self.preempts else {}
        url = {"urlPrefix": "http://extender.test/opinions", "nodeCacheCapable": True}
        return {**url, **verbs, "weight": self.weight}

    def _drawn(self, *what):
        return crc32(repr((self._salt, *what)).encode())

    # Called by a judge.

    def filter(self, uid, names):
        """Return (the nodes that are left, node → reason of the others); None where it fails.

        For some pods it also refuses a node that does not exist.
        """
        if self._drawn(uid) % 12 == 0:
            return None
        refused = {name: self._refusal(uid, name) for name in names}
        if self._drawn(uid) % 12 < 4:
            refused[STRANGER] = Status(Code.UNSCHEDULABLE, (WHY,), "Extender")
        left = [name for name in names if refused[name] is None]
        return left, {name: why for name, why in refused.items() if why is not None}

    def _refusal(self, uid, name):
        drawn = self._drawn(uid, name) % 8
        if self._drawn(uid) % 12 in (1, 6):
            # Some pods are refused everywhere.
            drawn %= 2
        codes = {0: Code.UNSCHEDULABLE, 1: Code.UNSCHEDULABLE_AND_UNRESOLVABLE}
        return Status(codes[drawn], (WHY,), "Extender") if drawn in codes else None

    def failure(self):
        return error(FAILS)

    def added(self, uid, names):
        """node → amount added to its total, where there are several nodes to compare."""
        if len(names) < 2:
            return {}
        added = {name: 10 * self.weight * self._score(uid, name) for name in names}
        return {name: max(-MOST, min(MOST, each)) for name, each in added.items()}

    def _score(self, uid, name):
        score = self._drawn(uid, name) // 8 % 11
        if self._drawn(uid, "scores") % 8 == 0:
            return HUGE * (score % 3 - 1)
        return score

    def keeps(self, uid, name):
        """Whether it keeps a node among the candidates of a preemption."""
        return not self.preempts or self._drawn(uid, name, "preempts") % 3 > 0

    # Called by the product.

    def call(self, verb, payload):
        pod = payload["Pod"]["metadata"]["uid"]
        if verb == "preempt":
            victims = payload["NodeNameToMetaVictims"]
            kept = {name: each for name, each in victims.items() if self.keeps(pod, name)}
            return {"NodeNameToMetaVictims": kept}
        names = list(payload["NodeNames"])
        if verb == "prioritize":
            return [{"Host": name, "Score": self._score(pod, name)} for name in names]
        answer = self.filter(pod, names)
        if answer is None:
            return {"Error": FAILS}
        left, refused = answer
        fails = {name: WHY for name, each in refused.items() if each.code is Code.UNSCHEDULABLE}
        for_good = {name: WHY for name in refused if name not in fails}
        return {
            "NodeNames": left,
            "FailedNodes": fails,
            "FailedAndUnresolvableNodes": for_good,
        }
