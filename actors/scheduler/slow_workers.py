"""Workers that miss the deadline of an evaluation: left out of that batch, and of no other.

A pod that fits a node of the others goes there. One that fits none of them may fit a node that was
left out: it backs off and is tried again, however often, and nobody is evicted for it meanwhile.
Whether a worker is gone, and has to be replaced, is for the supervisor to say.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from roadstead.actors.logs import log
from roadstead.actors.messages import EVALUATE
from roadstead.actors.runtime.living import FIND_AGAIN_S
from roadstead.actors.seam import TRIES, ActorLostError, DeadlineError, PatientRef, clock_s
from roadstead.cycle.batch import Decision
from roadstead.cycle.messages import EvaluateRequest, ShardAnswer

LATE_SHARE = 0.1
"""How much of its deadline a worker gets that missed the last one: others need not wait again."""


class SlowWorkers:
    """Asks workers within a deadline; `late` are those that missed it in the present batch."""

    def __init__(self, owner: str, evaluate_s: float, call_s: float) -> None:
        self._owner = owner
        self._evaluate_s, self._call_s = evaluate_s, call_s
        self._missed_last: set[str] = set()
        self.late: set[str] = set()
        self.misses: Counter[str] = Counter()
        self.left_out: set[str] = set()
        self._since_s: dict[str, float] = {}

    def begin(self) -> None:
        """A batch begins: everyone is asked."""
        self._missed_last, self.late = self.late, set()

    async def ask(self, worker: PatientRef, request: EvaluateRequest) -> ShardAnswer | None:
        """A worker's answer; None where it is late, in this batch from then on.

        DeadlineError where it has not answered for as long as a patient caller asks, though the
        supervisor does not take it for gone; ActorLostError where it does not come back.
        """
        if worker.name in self.late:
            return None
        share = LATE_SHARE if worker.name in self._missed_last else 1.0
        since_s = self._since_s.setdefault(worker.name, clock_s())
        until_s = clock_s() + self._evaluate_s * share
        lost = 0
        while (left_s := until_s - clock_s()) > 0:
            try:
                timeout_s = min(left_s, self._call_s)
                answer = await worker.ref.call(EVALUATE, request, timeout_s=timeout_s)
                self._since_s.pop(worker.name, None)
                return answer
            except DeadlineError:
                # Lost on the way, perhaps; but one that only ever says that it is well is broken.
                if clock_s() - since_s >= TRIES * self._call_s:
                    raise
            except ActorLostError:
                # Another life of it may be about to come.
                lost += 1
                if lost == TRIES:
                    raise
                await asyncio.sleep(FIND_AGAIN_S)
        self.late.add(worker.name)
        self.misses[worker.name] += 1
        log(self._owner, "a worker is late", worker=worker.name, after_s=self._evaluate_s * share)
        return None

    def judge(self, decisions: Sequence[Decision]) -> list[Decision]:
        """Decisions of which those without a node say that some nodes were left out."""
        return [self._judged(each) for each in decisions] if self.late else list(decisions)

    def _judged(self, decision: Decision) -> Decision:
        if decision.node_name is not None or decision.error:
            return decision
        self.left_out.add(decision.pod.uid)
        names = ", ".join(sorted(self.late))
        why = f"{names} did not answer in time: its nodes were left out"
        return decision._replace(diagnosis=None, error=why)

    def take_left_out(self, uid: str) -> bool:
        """Whether a pod goes back because nodes were left out; asked once."""
        found = uid in self.left_out
        self.left_out.discard(uid)
        return found

    @property
    def story(self) -> str:
        """What there is to tell of late workers; "" for nothing."""
        told = (f"{name} was late {count} times" for name, count in sorted(self.misses.items()))
        return "".join(f"; {each}" for each in told)
