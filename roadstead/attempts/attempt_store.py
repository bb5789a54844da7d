"""AttemptStore: the leased pods of a scheduler by state, and the methods that change states."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence

from roadstead.attempts.pods import (
    ENDED,
    LIVE,
    TABLE,
    TRYING,
    UNDER_WAY,
    Attempt,
    AttemptCounts,
    AttemptEvent,
    AttemptRecord,
    AttemptState,
    BindOutcome,
)
from roadstead.cycle.batch import PodInCycle
from roadstead.facts.pod import PodFacts
from roadstead.framework.profile import Profile
from roadstead.framework.waiting import PermitDecision, WaitingPod
from roadstead.lazyheap import LazyHeap
from roadstead.pod_store import PodStore, forget_oldest


class AttemptStore:
    """Records by UID and by token. `transition` and `transition_all` alone change states.

    pods: records by UID, from lease to end. undecided: in LEASED, by UID, in order of arrival.
    attempts: in TRYING, by token. ended_attempts: the last `max_remembered` whose attempt has
    ended, by token. waiting: in WAITING, ordered by deadline.
    """

    def __init__(self, token_prefix: str, max_remembered: int) -> None:
        self._token_prefix = token_prefix
        self._last_attempt = 0
        self._last_seq = 0
        self.pods: PodStore[AttemptRecord, AttemptState, AttemptEvent] = PodStore(
            TABLE, AttemptState.NEW, UNDER_WAY, ENDED, max_remembered
        )
        self.undecided: dict[str, AttemptRecord] = {}
        self.attempts: dict[str, AttemptRecord] = {}
        self.waiting: LazyHeap[AttemptRecord] = LazyHeap()
        self.ended_attempts: OrderedDict[str, AttemptRecord] = OrderedDict()

    def new(self, pod: PodInCycle, profile: Profile, lease_id: int) -> AttemptRecord:
        """Return a new record, in state NEW."""
        self._last_seq += 1
        return AttemptRecord(pod.uid, pod, profile, self._last_seq, lease_id)

    def next_tokens(self, count: int) -> list[str]:
        """Return tokens for attempts that were never issued before."""
        first, self._last_attempt = self._last_attempt + 1, self._last_attempt + count
        return [f"{self._token_prefix}{number}" for number in range(first, first + count)]

    def attempt_number(self, attempt: Attempt) -> int:
        """Return the number of an attempt: attempts are numbered in order of decision."""
        return int(attempt.token.removeprefix(self._token_prefix))

    def find_waiting(self, uid: str) -> WaitingPod | None:
        """Return a pod in WAITING, as plugins see it; None for any other."""
        record = self.pods.present.get(uid)
        if record is None or record.state is not AttemptState.WAITING:
            return None
        identity, facts, node_name = record.target
        return WaitingPod(identity, facts, node_name, tuple(sorted(record.waits)))

    def all_waiting(self) -> Iterator[WaitingPod]:
        """Iterate over the pods in WAITING, in order of lease."""
        for uid in self.pods.present:
            if (found := self.find_waiting(uid)) is not None:
                yield found

    def uids_of(self, permit: PermitDecision) -> tuple[str, ...]:
        """Return the UIDs of a plugin's decision: of one pod, or of all waiting pods it selects.

        (`PermitDecision.chosen` selects pods by their facts, in place of one UID.)
        """
        if permit.chosen is None:
            return (permit.uid,)
        return tuple(each.pod.uid for each in self._selected(permit, AttemptState.WAITING))

    def before_permit(self, permit: PermitDecision) -> tuple[AttemptRecord, ...]:
        """Return the pods that a plugin's decision selects and that have not reached Permit yet."""
        return tuple(self._selected(permit, AttemptState.ASSUMING))

    def all_before_permit(self) -> Iterator[PodFacts]:
        """Iterate over the facts of pods before Permit that no plugin's decision has refused."""
        for record in self.attempts.values():
            if record.state is AttemptState.ASSUMING and record.refusal is None:
                yield record.placed_attempt.facts

    def _selected(self, permit: PermitDecision, state: AttemptState) -> Iterator[AttemptRecord]:
        chosen = permit.chosen
        if chosen is None:
            return
        for record in self.attempts.values():
            if record.state is state and chosen(record.placed_attempt.facts):
                yield record

    def of_token(self, token: str, event: AttemptEvent) -> AttemptRecord | None:
        """Return the record of an attempt; None for an ended one that is not stored any more.

        event: what is to happen to it, for the error. Raises IllegalTransitionError for a token
        that was never issued.
        """
        record = self.attempts.get(token) or self.ended_attempts.get(token)
        if record is None and not self._was_issued(token):
            why = "no attempt has this token"
            raise TABLE.illegal(token, AttemptState.NEW, event, history=(), why=why)
        return record

    def transition(self, record: AttemptRecord, event: AttemptEvent) -> None:
        """Change the state of a record, and the collections by state with it."""
        self.transition_all((record,), event)

    def transition_all(self, records: Sequence[AttemptRecord], *events: AttemptEvent) -> None:
        """Apply the events, one after another, to each of some distinct records.

        A record leaves the collection of its first state and enters that of its last.
        Raises IllegalTransitionError, with nothing changed.
        """
        for moved in self.pods.apply_all(records, *events):
            if moved.to is not moved.was:
                self._leave_collections(moved.select(records), moved.was)
                self._enter_collections(moved.select(records), moved.was, moved.to)

    def end_wait(self, record: AttemptRecord, plugin: str) -> None:
        """End a pod's wait for one plugin; it still waits for others."""
        self.waiting.remove(record.uid)
        del record.waits[plugin]
        self._add_deadline(record)

    def counts(self) -> AttemptCounts:
        """Return the number of pods in each state."""
        states = Counter(record.state for record in self.pods.present.values())
        return AttemptCounts(
            leased=states[AttemptState.LEASED],
            assuming=states[AttemptState.ASSUMING],
            waiting=states[AttemptState.WAITING],
            binding=states[AttemptState.BINDING],
            asked=states[AttemptState.ASKED],
            bound_total=self.pods.ended_as(AttemptState.BOUND),
        )

    def validate(self) -> None:
        """Check that every pod has one state and is in the collections of that state."""
        self.pods.validate()
        live = self.pods.present
        for uid, record in live.items():
            assert record.state in LIVE, f"{uid} is live and {record.state}"
            assert (uid in self.undecided) == (record.state is AttemptState.LEASED), (
                f"{uid}: decided?"
            )
            waits = record.state is AttemptState.WAITING
            assert (uid in self.waiting) == waits == bool(record.waits), f"{uid}: waiting?"
            assert record.answer is None, f"{uid} is live and answered"
        trying = [record for record in live.values() if record.state in TRYING]
        tokens = {record.placed_attempt.token: record for record in trying}
        assert tokens == self.attempts, "attempts and pods disagree"
        assert len(tokens) == len(trying), "two pods have one token"
        counts = self.counts()
        assert len(self.undecided) == counts.leased, "a pod waits for a decision and is not leased"
        assert len(self.waiting) == counts.waiting, "a pod that does not wait has a deadline"
        self._validate_ended()

    def _validate_ended(self) -> None:
        both = self.ended_attempts.keys() & self.attempts.keys()
        assert not both, "an attempt is live and ended"
        assert len(self.ended_attempts) <= self.pods.max_ended, "too many attempts are remembered"
        for record in (*self.pods.ended.values(), *self.ended_attempts.values()):
            assert record.state in ENDED, f"{record.uid} ended as {record.state}"
            if record.state is AttemptState.BOUND:
                bound = record.answer is not None and record.answer.outcome is BindOutcome.BOUND
                assert bound, f"{record.uid} is bound, and the binder did not report it"

    def _was_issued(self, token: str) -> bool:
        number = token.removeprefix(self._token_prefix)
        is_number = number.isdecimal() and len(number) <= len(str(self._last_attempt))
        is_ours = token.startswith(self._token_prefix)
        return is_ours and is_number and 1 <= int(number) <= self._last_attempt

    def _leave_collections(self, records: Sequence[AttemptRecord], was: AttemptState) -> None:
        if was is AttemptState.LEASED:
            for record in records:
                del self.undecided[record.uid]
        elif was is AttemptState.WAITING:
            for record in records:
                self.waiting.remove(record.uid)
                record.waits = {}

    def _enter_collections(
        self, records: Sequence[AttemptRecord], was: AttemptState, to: AttemptState
    ) -> None:
        if to is AttemptState.LEASED:
            self.undecided |= {record.uid: record for record in records}
        elif to is AttemptState.ASSUMING:
            self.attempts |= {each.placed_attempt.token: each for each in records}
        elif to is AttemptState.WAITING:
            for record in records:
                self._add_deadline(record)
        elif to in ENDED and was not in ENDED:
            ended = {each.attempt.token: each for each in records if each.attempt is not None}
            for token in ended:
                del self.attempts[token]
            self.ended_attempts |= ended
            forget_oldest(self.ended_attempts, self.pods.max_ended)

    def _add_deadline(self, record: AttemptRecord) -> None:
        self.waiting.put(record.uid, (record.deadline_s,), record.seq, record)
