"""The ledger: every pod of a scheduler in its state, and the one way to move it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.pods import (
    ENDED,
    LIVE,
    TABLE,
    TRYING,
    BindOutcome,
    CycleCounts,
    PodEvent,
    PodRecord,
    PodState,
)
from roadstead.facts.pod import PodFacts
from roadstead.framework.profile import Profile
from roadstead.framework.waiting import WaitingPod, Word
from roadstead.lazyheap import LazyHeap


class Ledger:
    """Records by uid and by token; `go` takes one along an arrow of `pods.TABLE`.

    live: from lease to end. undecided: those of them in LEASED, in the order in which they came.
    attempts: those that have an attempt, by token. waiting: those in WAITING, by deadline.
    ended: the last record of each pod that is not live; ended_attempts: by token. Of both the last
    `max_remembered` are kept.
    """

    def __init__(self, token_prefix: str, max_remembered: int) -> None:
        self._token_prefix = token_prefix
        self._max_remembered = max_remembered
        self._last_attempt = 0
        self._begun = 0
        self._ends: Counter[PodState] = Counter()
        self.live: dict[str, PodRecord] = {}
        self.undecided: dict[str, PodRecord] = {}
        self.attempts: dict[str, PodRecord] = {}
        self.waiting: LazyHeap[PodRecord] = LazyHeap()
        self.ended: OrderedDict[str, PodRecord] = OrderedDict()
        self.ended_attempts: OrderedDict[str, PodRecord] = OrderedDict()

    def begin(self, pod: PodInCycle, profile: Profile, before: PodRecord | None) -> PodRecord:
        """A new record, to be leased; it goes on with the story of the pod's last one."""
        self._begun += 1
        record = PodRecord(pod, profile, self._begun)
        if before is not None:
            record.state, record.history = before.state, before.history
        return record

    def next_token(self) -> str:
        self._last_attempt += 1
        return f"{self._token_prefix}{self._last_attempt}"

    def find(self, uid: str) -> PodRecord | None:
        return self.live.get(uid) or self.ended.get(uid)

    def find_waiting(self, uid: str) -> WaitingPod | None:
        """A pod in WAITING, as plugins see it."""
        record = self.live.get(uid)
        if record is None or record.state is not PodState.WAITING:
            return None
        identity, facts, node_name = record.target
        return WaitingPod(identity, facts, node_name, tuple(sorted(record.waits)))

    def all_waiting(self) -> Iterator[WaitingPod]:
        """All pods in WAITING, in the order in which they were leased."""
        for uid in self.live:
            if (found := self.find_waiting(uid)) is not None:
                yield found

    def waiting_for(self, word: Word) -> tuple[str, ...]:
        """The UIDs that a plugin speaks of: one, or those of all waiting pods that it chooses."""
        if word.chosen is None:
            return (word.uid,)
        return tuple(each.pod.uid for each in self._chosen(word, PodState.WAITING))

    def coming(self, word: Word) -> tuple[PodRecord, ...]:
        """The pods that a plugin chooses among those on their way to Permit."""
        return tuple(self._chosen(word, PodState.ASSUMING))

    def all_coming(self) -> Iterator[PodFacts]:
        """Those on their way to Permit, but for those that are refused already."""
        for record in self.attempts.values():
            if record.state is PodState.ASSUMING and record.refusal is None:
                yield record.trial.facts

    def _chosen(self, word: Word, state: PodState) -> Iterator[PodRecord]:
        chosen = word.chosen
        if chosen is None:
            return
        for record in self.attempts.values():
            if record.state is state and chosen(record.trial.facts):
                yield record

    def of_token(self, token: str, event: PodEvent) -> PodRecord | None:
        """The record of an attempt; None for one that ended so long ago that it is forgotten.

        Raises IllegalTransitionError for a token that was never given.
        """
        record = self.attempts.get(token) or self.ended_attempts.get(token)
        if record is None and not self._was_given(token):
            raise TABLE.illegal(token, PodState.NEW, event, (), "no attempt has this token")
        return record

    def go(self, record: PodRecord, event: PodEvent) -> None:
        """The one mutator of states; what is kept by state follows it."""
        was = record.state
        arrow = TABLE.follow(record.pod.uid, was, event, record.history)
        record.state = arrow.target
        record.history = arrow.extend(record.history)
        if record.state is not was:
            self._take(record, was)
            self._put(record, was)

    def go_all(self, records: Iterable[PodRecord], *events: PodEvent) -> None:
        """As `go` for many, along several arrows; nothing is kept by a state that is passed."""
        walk = TABLE.walk(*events)
        for record in records:
            was = record.state
            record.state, record.history = walk.follow(record.pod.uid, was, record.history)
            if record.state is not was:
                self._take(record, was)
                self._put(record, was)

    def let_go(self, record: PodRecord, plugin: str) -> None:
        """A waiting pod does not wait for this plugin any more, but for others."""
        self.waiting.take(record.pod.uid)
        del record.waits[plugin]
        self._wait(record)

    def counts(self) -> CycleCounts:
        states = Counter(record.state for record in self.live.values())
        return CycleCounts(
            leased=states[PodState.LEASED],
            assuming=states[PodState.ASSUMING],
            waiting=states[PodState.WAITING],
            binding=states[PodState.BINDING],
            asked=states[PodState.ASKED],
            begun_total=self._begun,
            bound_total=self._ends[PodState.BOUND],
            unschedulable_total=self._ends[PodState.UNSCHEDULABLE],
            failed_total=self._ends[PodState.FAILED],
            conflict_total=self._ends[PodState.CONFLICT],
            gone_total=self._ends[PodState.GONE],
        )

    def validate(self) -> None:
        """Every pod in exactly one state, and kept where that state says."""
        for uid, record in self.live.items():
            assert record.pod.uid == uid, f"{record.pod.uid} under {uid}"
            assert record.state in LIVE, f"{uid} is live and {record.state}"
            assert (uid in self.undecided) == (record.state is PodState.LEASED), f"{uid}: decided?"
            waits = record.state is PodState.WAITING
            assert (uid in self.waiting) == waits == bool(record.waits), f"{uid}: waiting?"
            assert record.answer is None, f"{uid} is live and answered"
        trying = [record for record in self.live.values() if record.state in TRYING]
        tokens = {record.trial.token: record for record in trying}
        assert tokens == self.attempts, "attempts and pods disagree"
        assert len(tokens) == len(trying), "two pods have one token"
        counts = self.counts()
        assert len(self.undecided) == counts.leased, "a pod waits for a decision and is not leased"
        assert len(self.waiting) == counts.waiting, "a pod that does not wait has a deadline"
        assert counts.begun_total == len(self.live) + counts.ended_total, counts
        self._validate_ended()

    def _validate_ended(self) -> None:
        assert not self.ended.keys() & self.live.keys(), "a pod is live and ended"
        assert not self.ended_attempts.keys() & self.attempts.keys(), "an attempt is both"
        assert len(self.ended) <= self._max_remembered, "too many pods are remembered"
        assert len(self.ended_attempts) <= self._max_remembered, "too many attempts are remembered"
        for record in (*self.ended.values(), *self.ended_attempts.values()):
            assert record.state in ENDED, f"{record.pod.uid} ended as {record.state}"
            if record.state is PodState.BOUND:
                bound = record.answer is not None and record.answer.outcome is BindOutcome.BOUND
                assert bound, f"{record.pod.uid} is bound, and the binder did not say so"

    def _was_given(self, token: str) -> bool:
        number = token.removeprefix(self._token_prefix)
        is_number = number.isdecimal() and len(number) <= len(str(self._last_attempt))
        is_ours = token.startswith(self._token_prefix)
        return is_ours and is_number and 1 <= int(number) <= self._last_attempt

    def _take(self, record: PodRecord, was: PodState) -> None:
        uid = record.pod.uid
        if was is PodState.LEASED:
            del self.undecided[uid]
        elif was is PodState.WAITING:
            self.waiting.take(uid)
            record.waits = {}

    def _put(self, record: PodRecord, was: PodState) -> None:
        uid = record.pod.uid
        if record.state is PodState.LEASED:
            self.ended.pop(uid, None)
            self.live[uid] = self.undecided[uid] = record
        elif record.state is PodState.ASSUMING:
            self.attempts[record.trial.token] = record
        elif record.state is PodState.WAITING:
            self._wait(record)
        elif record.state in ENDED and was not in ENDED:
            self._put_aside(record)

    def _wait(self, record: PodRecord) -> None:
        self.waiting.put(record.pod.uid, (record.deadline_s,), record.seq, record)

    def _put_aside(self, record: PodRecord) -> None:
        self._ends[record.state] += 1
        del self.live[record.pod.uid]
        _remember(self.ended, record.pod.uid, record, self._max_remembered)
        if record.attempt is not None:
            token = record.attempt.token
            del self.attempts[token]
            _remember(self.ended_attempts, token, record, self._max_remembered)


def _remember(memory: OrderedDict[str, PodRecord], name: str, record: PodRecord, most: int) -> None:
    memory[name] = record
    if len(memory) > most:
        memory.popitem(last=False)
