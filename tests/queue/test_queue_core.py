"""The queue's contract: order, leases, backoff, gates, hints, bounds, and no lost event."""

from dataclasses import replace

import pytest

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.status import SUCCESS, Code, Status
from roadstead.queue import (
    EndedLease,
    EventRules,
    QueueCore,
    QueueSettings,
    QueueState,
    Requeue,
    RequeueReason,
)
from tests.inside import store_of

FIT, TAINT, GATES = "NodeResourcesFit", "TaintToleration", "SchedulingGates"
PLAIN = PodFacts()


def pod(name: str) -> PodIdentity:
    return PodIdentity(f"uid-{name}", "default", name)


def gate(facts: PodFacts) -> Status:
    if facts.scheduling_gates:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("gated",), GATES)
    return SUCCESS


def named_hint(plugin: str, event: str, facts: PodFacts) -> bool:
    """An event helps the plugins that it names."""
    return plugin in event.split("+")


def queue_of(*names: str, facts: PodFacts = PLAIN, **settings: float) -> QueueCore[str]:
    core: QueueCore[str] = QueueCore(
        gate=gate, rules=EventRules(hint=named_hint), settings=replace(QueueSettings(), **settings)
    )
    core.add([(pod(name), facts) for name in names], 0.0)
    return core


def names(pods) -> list[str]:
    return [one.identity.name for one in pods]


def rejected(name: str, *plugins: str, pending: tuple[str, ...] = ()) -> Requeue:
    return Requeue(f"uid-{name}", RequeueReason.UNSCHEDULABLE, plugins, pending)


def conflict(name: str) -> Requeue:
    return Requeue(f"uid-{name}", RequeueReason.CONFLICT)


def failed(name: str) -> Requeue:
    return Requeue(f"uid-{name}", RequeueReason.ERROR)


def parked(*names: str, plugin: str = FIT) -> QueueCore[str]:
    """Pods that `plugin` rejected at 0 s; their backoff ends at 2 s."""
    core = queue_of(*names)
    lease = core.lease("s", 1, len(names), 0.0)
    core.requeue(lease.lease_id, [rejected(name, plugin) for name in names], 0.0)
    return core


class TestDraws:
    """The draw decides between equal nodes: the same for the same decisions."""

    def draws(self, core, owner="s", epoch=1, now_s=100.0):
        core.tick(now_s)
        core.activate(["uid-a"], now_s)
        lease = core.lease(owner, epoch, 10, now_s)
        return lease.lease_id, [(one.attempts, one.tie_break_number) for one in lease.pods]

    def test_a_node_that_failed_is_not_drawn_again(self):
        core = queue_of("a")

        for number, report in enumerate((conflict("a"), failed("a"), conflict("a")), 1):
            lease_id, drawn = self.draws(core, now_s=100.0 * number)
            assert drawn == [(number, number)]
            core.requeue(lease_id, [report], 100.0 * number)

        assert self.draws(core, now_s=400.0)[1] == [(4, 4)]

    def test_the_number_of_attempts_does_not_change_the_draw(self):
        core = queue_of("a")
        lease_id, _ = self.draws(core)
        core.requeue(lease_id, [rejected("a", FIT)], 100.0)

        assert self.draws(core, now_s=200.0)[1] == [(2, 1)]

    def test_a_lease_that_ended_with_its_owner_or_its_time_does_not_change_a_draw(self):
        core = queue_of("a", lease_s=10.0)
        self.draws(core)
        core.revoke("s", 2, 101.0)
        assert self.draws(core, epoch=2, now_s=102.0)[1] == [(2, 1)]
        core.expire(113.0)

        assert self.draws(core, epoch=2, now_s=114.0)[1] == [(3, 1)]


class TestBeingDeleted:
    """Upstream: skipPodSchedule in pkg/scheduler/schedule_one.go."""

    GOING = PodFacts(is_terminating=True)

    def test_a_terminating_pod_is_never_leased(self):
        core = queue_of("a", facts=self.GOING)
        core.add([(pod("b"), PLAIN)], 0.0)

        assert names(core.lease("s", 1, 10, 0.0).pods) == ["b"]
        assert names(core.pods(QueueState.GATED)) == ["a"]
        assert core.gate(self.GOING).message == "skip schedule deleting pod"
        core.validate()

    def test_a_pod_terminated_while_waiting_is_skipped_at_its_turn(self):
        core = queue_of("a", "b", "c")
        core.update(pod("b"), self.GOING, 1.0)

        assert names(core.lease("s", 1, 10, 2.0).pods) == ["a", "c"]
        assert names(core.pods(QueueState.GATED)) == ["b"]
        core.validate()

    def test_no_lease_is_created_if_all_pods_are_terminating(self):
        core = queue_of("a", "b")
        for name in ("a", "b"):
            core.update(pod(name), self.GOING, 1.0)

        batch = core.lease("s", 1, 10, 2.0)

        assert (batch.lease_id, batch.pods) == (0, ())
        assert core.counts().leases == 0
        core.validate()

    def test_events_do_not_bring_it_back(self):
        core = queue_of("a", facts=self.GOING)

        assert core.move([FIT], 1.0) == ()
        assert core.lease("s", 1, 10, 100.0).pods == ()

    def test_a_pod_terminated_in_flight_is_not_tried_again(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        core.update(pod("a"), self.GOING, 1.0)

        core.requeue(lease.lease_id, [conflict("a")], 2.0)

        assert core.lease("s", 1, 1, 3.0).pods == ()
        core.delete(["uid-a"])
        assert core.counts().queued == 0
        core.validate()


class TestAdding:
    def test_add_is_idempotent(self):
        core = queue_of("a", "b")
        again = core.add([(pod("a"), PLAIN), (pod("c"), PLAIN)], 1.0)
        assert again.duplicates == ("uid-a",)
        assert again.accepted == ("uid-c",)
        assert names(core.pods(QueueState.ACTIVE)) == ["a", "b", "c"]

    def test_add_of_a_known_pod_with_other_facts_updates_it(self):
        core = queue_of("a", "b")
        core.add([(pod("b"), PodFacts(priority=5))], 1.0)
        assert names(core.pods(QueueState.ACTIVE)) == ["b", "a"]

    def test_a_full_queue_refuses_the_rest_and_reports_it(self):
        core = queue_of("a", max_pods=2)
        result = core.add([(pod("b"), PLAIN), (pod("c"), PLAIN), (pod("d"), PLAIN)], 0.0)
        assert result.accepted == ("uid-b",)
        assert result.refused == ("uid-c", "uid-d")
        assert result.status.message == "the queue is full: it holds 2 pods"
        assert core.counts().queued == 2

    def test_pods_in_flight_count_for_the_bound_and_done_ones_do_not(self):
        core = queue_of("a", max_pods=1)
        lease = core.lease("s", 1, 1, 0.0)
        assert core.add([(pod("b"), PLAIN)], 0.0).refused == ("uid-b",)
        core.done(lease.lease_id, ["uid-a"])
        assert core.add([(pod("b"), PLAIN)], 0.0).accepted == ("uid-b",)

    def test_a_late_copy_of_an_add_does_not_bring_a_bound_pod_back(self):
        core = queue_of("a")
        core.done(core.lease("s", 1, 1, 0.0).lease_id, ["uid-a"])
        assert core.add([(pod("a"), PLAIN)], 1.0).done == ("uid-a",)
        assert core.counts().queued == 0

    def test_bound_pods_are_forgotten_after_a_bound_and_on_delete(self):
        core = queue_of("a", "b", "c", max_done_remembered=2)
        core.done(core.lease("s", 1, 3, 0.0).lease_id, ["uid-a", "uid-b", "uid-c"])
        assert [core.state_of(f"uid-{name}") for name in "abc"] == [
            QueueState.NEW,
            QueueState.DONE,
            QueueState.DONE,
        ]
        assert names(core.pods(QueueState.DONE)) == ["b", "c"]
        assert core.delete(["uid-b"]) == ()
        assert core.add([(pod("b"), PLAIN)], 1.0).accepted == ("uid-b",)
        core.validate()

    def test_the_same_pod_twice_in_one_batch_is_one_pod(self):
        core = queue_of("a", "a")
        assert core.counts().active == 1


class TestOrder:
    def test_higher_priority_first_then_older_then_arrival(self):
        core = queue_of()
        core.add([(pod("late"), PLAIN)], 2.0)
        core.add([(pod("early"), PLAIN), (pod("early2"), PLAIN)], 1.0)
        core.add([(pod("high"), PodFacts(priority=1))], 3.0)
        leased = core.lease("s", 1, 10, 4.0).pods
        assert names(leased) == ["high", "early", "early2", "late"]

    def test_the_caller_defines_the_sort_order(self):
        core: QueueCore[str] = QueueCore(sort=lambda facts, timestamp_s: (-timestamp_s,))
        core.add([(pod("old"), PLAIN)], 1.0)
        core.add([(pod("new"), PLAIN)], 2.0)
        assert names(core.lease("s", 1, 2, 3.0).pods) == ["new", "old"]

    def test_priority_changed_while_active_changes_the_rank(self):
        core = queue_of("a", "b")
        core.update(pod("b"), PodFacts(priority=9), 1.0)
        assert names(core.lease("s", 1, 1, 1.0).pods) == ["b"]


class TestLeases:
    def test_a_lease_has_at_most_the_requested_number_of_pods(self):
        core = queue_of("a", "b", "c")
        batch = core.lease("s", 1, 2, 5.0)
        assert names(batch.pods) == ["a", "b"]
        assert (batch.owner, batch.epoch, batch.deadline_s) == ("s", 1, 35.0)
        assert batch.status.is_success
        assert core.counts().in_flight == 2

    def test_an_empty_queue_returns_an_empty_lease_without_an_id(self):
        core = queue_of()
        assert core.lease("s", 1, 5, 0.0).lease_id == 0
        assert core.counts().leases == 0

    def test_a_request_for_no_pods_returns_none(self):
        assert queue_of("a").lease("s", 1, 0, 0.0).pods == ()

    def test_a_leased_pod_counts_its_attempts_and_keeps_its_first_time(self):
        core = queue_of("a")
        for attempt in (1, 2):
            batch = core.lease("s", 1, 1, 7.0)
            assert batch.pods[0].attempts == attempt
            assert batch.pods[0].initial_attempt_s == 0.0
            core.requeue(batch.lease_id, [conflict("a")], 7.0)

    def test_an_expired_lease_returns_its_pods_to_the_head(self):
        core = queue_of("a", "b", "c", lease_s=10.0)
        core.lease("s", 1, 2, 0.0)
        assert core.expire(9.9) == ()
        assert core.expire(10.0) == (EndedLease(1, "s", 1, ("uid-a", "uid-b")),)
        assert names(core.pods(QueueState.ACTIVE)) == ["a", "b", "c"]

    def test_a_renewed_lease_stays_open(self):
        core = queue_of("a", lease_s=10.0)
        lease = core.lease("s", 1, 1, 0.0)
        assert core.renew(lease.lease_id, 8.0).is_success
        assert core.expire(17.9) == ()
        assert len(core.expire(18.0)) == 1

    def test_a_late_renewal_is_refused(self):
        core = queue_of("a", lease_s=10.0)
        core.lease("s", 1, 1, 0.0)
        core.expire(10.0)
        assert core.renew(1, 11.0).message == "lease 1 is over"

    def test_a_renewal_never_shortens_a_lease(self):
        core = queue_of("a", lease_s=10.0)
        core.lease("s", 1, 1, 5.0)
        core.renew(1, 1.0)
        assert core.next_wakeup_s() == 15.0

    def test_reports_on_an_expired_lease_are_stale_and_change_nothing(self):
        core = queue_of("a", "b", lease_s=10.0)
        lease = core.lease("s", 1, 2, 0.0)
        core.expire(10.0)
        assert core.done(lease.lease_id, ["uid-a"]).stale == ("uid-a",)
        assert core.requeue(lease.lease_id, [failed("b")], 11.0).stale == ("uid-b",)
        assert core.counts().active == 2

    def test_a_pod_leased_again_belongs_to_its_second_owner_only(self):
        core = queue_of("a", lease_s=10.0)
        first = core.lease("s", 1, 1, 0.0)
        core.expire(10.0)
        second = core.lease("t", 1, 1, 10.0)
        assert core.done(first.lease_id, ["uid-a"]).stale == ("uid-a",)
        assert core.done(second.lease_id, ["uid-a"]).applied == ("uid-a",)

    def test_a_repeated_report_is_a_duplicate(self):
        core = queue_of("a", "b")
        lease = core.lease("s", 1, 2, 0.0)
        assert core.done(lease.lease_id, ["uid-a", "uid-a"]).duplicates == ("uid-a",)
        assert core.done(lease.lease_id, ["uid-a"]).duplicates == ("uid-a",)
        assert core.counts().done_total == 1

    def test_a_report_on_a_deleted_pod_is_stale(self):
        core = queue_of("a", "b")
        lease = core.lease("s", 1, 2, 0.0)
        assert core.delete(["uid-a"]) == ("uid-a",)
        assert core.done(lease.lease_id, ["uid-a", "uid-b"]).stale == ("uid-a",)

    def test_a_newer_epoch_of_an_owner_ends_its_older_leases(self):
        core = queue_of("a", "b")
        old = core.lease("s", 1, 1, 0.0)
        new = core.lease("s", 2, 2, 1.0)
        assert names(new.pods) == ["a", "b"]
        assert core.done(old.lease_id, ["uid-a"]).stale == ("uid-a",)

    def test_an_older_epoch_of_an_owner_is_refused(self):
        core = queue_of("a")
        core.revoke("s", 3, 0.0)
        batch = core.lease("s", 2, 1, 0.0)
        assert batch.pods == ()
        assert batch.status.message == "s: epoch 2 is over, 3 is current"

    def test_a_revoked_owner_loses_only_its_own_leases(self):
        core = queue_of("a", "b")
        core.lease("s", 1, 1, 0.0)
        core.lease("t", 1, 1, 0.0)
        assert [ended.owner for ended in core.revoke("s", 2, 0.0)] == ["s"]
        assert core.counts().in_flight == 1


class TestComingBack:
    def test_a_conflict_returns_to_the_head_without_backoff(self):
        core = queue_of("a", "b")
        lease = core.lease("s", 1, 1, 0.0)
        core.requeue(lease.lease_id, [conflict("a")], 9.0)
        assert names(core.lease("s", 1, 2, 9.0).pods) == ["a", "b"]

    def test_a_conflict_never_overtakes_a_higher_priority(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        core.add([(pod("high"), PodFacts(priority=1))], 1.0)
        core.requeue(lease.lease_id, [conflict("a")], 2.0)
        assert names(core.pods(QueueState.ACTIVE)) == ["high", "a"]

    def test_a_rejected_pod_waits_with_the_plugins_that_rejected_it(self):
        core = parked("a")
        waiting = core.pods(QueueState.UNSCHEDULABLE)
        assert waiting[0].rejected_by == (FIT,)
        assert core.lease("s", 1, 1, 0.0).pods == ()

    def test_an_error_backs_off_and_returns_by_itself(self):
        core = queue_of("a")
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [failed("a")], 3.0)
        assert core.state_of("uid-a") is QueueState.BACKOFF
        assert core.flush_backoff(4.9) == 0
        assert core.flush_backoff(5.0) == 1
        assert core.state_of("uid-a") is QueueState.ACTIVE

    def test_a_rejection_without_a_plugin_counts_as_an_error(self):
        core = queue_of("a")
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [rejected("a")], 0.0)
        assert core.state_of("uid-a") is QueueState.BACKOFF

    def test_an_error_after_a_rejection_clears_the_rejection(self):
        core = parked("a")
        core.move([FIT], 5.0)
        lease = core.lease("s", 1, 1, 5.0)
        assert lease.pods[0].rejected_by == ()
        core.requeue(lease.lease_id, [failed("a")], 5.0)
        assert core.state_of("uid-a") is QueueState.BACKOFF
        assert core.pods(QueueState.BACKOFF)[0].rejected_by == ()

    def test_backoff_doubles_from_one_second_to_ten_and_lasts_to_the_end_of_its_window(self):
        core = queue_of("a")
        waits = []
        now_s = 0.0
        for _ in range(6):
            core.requeue(core.lease("s", 1, 1, now_s).lease_id, [failed("a")], now_s)
            waits.append(core.next_wakeup_s() - now_s)
            now_s = core.next_wakeup_s()
            core.flush_backoff(now_s)
        assert waits == [2.0, 3.0, 5.0, 9.0, 11.0, 11.0]

    def test_backoff_of_errors_restarts_after_a_rejection(self):
        core = queue_of("a", backoff_max_s=1000.0)
        for now_s in (0.0, 100.0, 200.0):
            core.requeue(core.lease("s", 1, 1, now_s).lease_id, [failed("a")], now_s)
            core.flush_backoff(now_s + 50.0)
        core.requeue(core.lease("s", 1, 1, 300.0).lease_id, [rejected("a", FIT)], 300.0)
        core.move([FIT], 300.0)
        assert core.next_wakeup_s() == 302.0

    def test_backoff_stays_finite_after_very_many_failures(self):
        assert QueueSettings().backoff_s(100_000) == 10.0

    def test_conflicts_do_not_lengthen_the_backoff(self):
        core = queue_of("a")
        for _ in range(5):
            core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [conflict("a")], 0.0)
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [failed("a")], 0.0)
        assert core.next_wakeup_s() == 2.0

    def test_backoffs_that_end_in_one_window_expire_together(self):
        core = queue_of("a", "b", backoff_window_s=5.0)
        lease = core.lease("s", 1, 2, 0.0)
        core.requeue(lease.lease_id, [failed("a")], 1.0)
        core.requeue(lease.lease_id, [failed("b")], 3.9)
        assert core.flush_backoff(4.9) == 0
        assert core.flush_backoff(5.0) == 2

    def test_rejected_pods_of_one_window_are_ordered_as_in_active(self):
        core = queue_of("a", "b")
        core.update(pod("b"), PodFacts(priority=9), 0.0)
        lease = core.lease("s", 1, 2, 0.0)
        core.move([FIT], 0.1)
        core.requeue(lease.lease_id, [rejected("a", FIT)], 0.2)
        core.requeue(lease.lease_id, [rejected("b", FIT)], 0.4)
        assert names(core.pods(QueueState.BACKOFF)) == ["b", "a"]

    def test_rejected_pods_in_backoff_are_leased_while_no_others_wait(self):
        core = parked("a")
        core.move([FIT], 0.5)
        core.add([(pod("b"), PLAIN)], 0.5)
        assert names(core.lease("s", 1, 1, 0.6).pods) == ["b"]
        lease = core.lease("s", 1, 1, 0.7)
        assert names(lease.pods) == ["a"]
        assert lease.pods[0].attempts == 2
        core.validate()

    def test_failed_pods_in_backoff_are_not_leased(self):
        core = queue_of("a")
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [failed("a")], 0.0)
        assert core.lease("s", 1, 1, 0.5).pods == ()
        assert core.state_of("uid-a") is QueueState.BACKOFF

    def test_failed_and_rejected_pods_return_in_the_order_of_their_backoffs(self):
        core = queue_of("a", "b")
        lease = core.lease("s", 1, 2, 0.0)
        core.requeue(lease.lease_id, [failed("a")], 0.0)
        core.move([FIT], 5.0)
        core.requeue(lease.lease_id, [rejected("b", FIT)], 5.0)
        assert names(core.pods(QueueState.BACKOFF)) == ["b", "a"]
        assert core.next_wakeup_s() == 2.0
        assert core.flush_backoff(2.0) == 1
        assert names(core.pods(QueueState.ACTIVE)) == ["a"]

    def test_a_pod_unschedulable_for_five_minutes_is_tried_again(self):
        core = parked("a")
        assert core.flush_unschedulable(299.9) == 0
        assert core.flush_unschedulable(300.0) == 1
        assert core.state_of("uid-a") is QueueState.ACTIVE


class TestHints:
    def test_a_helping_event_after_the_backoff_moves_the_pod_to_active(self):
        core = parked("a")
        assert core.move([FIT], 2.0) == ("uid-a",)
        assert core.state_of("uid-a") is QueueState.ACTIVE

    def test_a_helping_event_during_the_backoff_moves_the_pod_to_backoff(self):
        core = parked("a")
        assert core.move([FIT], 0.5) == ("uid-a",)
        assert core.state_of("uid-a") is QueueState.BACKOFF
        assert core.next_wakeup_s() == 2.0

    def test_an_unhelpful_event_leaves_the_pod(self):
        core = parked("a")
        assert core.move([TAINT], 5.0) == ()
        assert core.state_of("uid-a") is QueueState.UNSCHEDULABLE

    def test_an_event_moves_only_pods_that_it_concerns(self):
        rules = EventRules(concerns=lambda event, facts, rejected_by: event in rejected_by)
        core: QueueCore[str] = QueueCore(rules=rules)
        core.add([(pod(name), PLAIN) for name in "ab"], 0.0)
        lease = core.lease("s", 1, 2, 0.0)
        core.requeue(lease.lease_id, [rejected("a", FIT), rejected("b", TAINT)], 0.0)
        assert core.move([TAINT], 1.0) == ("uid-b",)

    def test_an_event_moves_only_selected_pods(self):
        core = parked("a", "b")
        chosen = core.move([FIT], 5.0, predicate=lambda identity, facts: identity.name == "b")
        assert chosen == ("uid-b",)
        assert core.state_of("uid-a") is QueueState.UNSCHEDULABLE

    def test_one_of_several_events_is_enough(self):
        core = parked("a")
        assert core.move([TAINT, FIT], 5.0) == ("uid-a",)

    def test_without_hints_every_event_helps(self):
        core: QueueCore[str] = QueueCore()
        core.add([(pod("a"), PLAIN)], 0.0)
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [rejected("a", FIT)], 0.0)
        assert core.move(["anything"], 2.0) == ("uid-a",)

    def test_an_event_for_a_pending_plugin_skips_the_backoff(self):
        core = queue_of("a")
        report = rejected("a", FIT, pending=("DynamicResources",))
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [report], 0.0)
        core.move(["DynamicResources"], 0.1)
        assert core.state_of("uid-a") is QueueState.ACTIVE

    def test_an_event_for_another_rejecting_plugin_does_not_skip_it(self):
        core = queue_of("a")
        report = rejected("a", FIT, pending=("DynamicResources",))
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [report], 0.0)
        core.move([FIT], 0.1)
        assert core.state_of("uid-a") is QueueState.BACKOFF

    def test_the_best_of_several_events_in_flight_decides(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        for event in (TAINT, FIT, "DynamicResources", TAINT):
            core.move([event], 0.0)
        report = rejected("a", FIT, pending=("DynamicResources",))
        core.requeue(lease.lease_id, [report], 0.0)
        assert core.state_of("uid-a") is QueueState.ACTIVE

    def test_a_hint_is_called_once_per_class_of_pods(self):
        asked = []

        def hint(plugin: str, event: str, facts: PodFacts) -> bool:
            asked.append((plugin, facts))
            return True

        core: QueueCore[str] = QueueCore(rules=EventRules(hint=hint))
        core.add([(pod(str(number)), PLAIN) for number in range(100)], 0.0)
        lease = core.lease("s", 1, 100, 0.0)
        core.requeue(lease.lease_id, [rejected(str(n), FIT) for n in range(100)], 0.0)
        assert len(core.move(["event"], 5.0)) == 100
        assert asked == [(FIT, PLAIN)]


class TestEventsInFlight:
    def test_an_event_between_lease_and_rejection_is_not_lost(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        core.move([FIT], 0.5)
        core.requeue(lease.lease_id, [rejected("a", FIT)], 1.0)
        assert core.state_of("uid-a") is QueueState.BACKOFF

    def test_an_event_before_the_lease_does_not_count(self):
        core = queue_of("a", "b")
        core.lease("s", 1, 1, 0.0)
        core.move([FIT], 0.5)
        late = core.lease("s", 1, 1, 0.6)
        core.requeue(late.lease_id, [rejected("b", FIT)], 1.0)
        assert core.state_of("uid-b") is QueueState.UNSCHEDULABLE

    def test_an_irrelevant_event_does_not_count(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        core.move([TAINT], 0.5)
        core.requeue(lease.lease_id, [rejected("a", FIT)], 1.0)
        assert core.state_of("uid-a") is QueueState.UNSCHEDULABLE

    def test_events_are_kept_only_while_some_lease_may_need_them(self):
        core = queue_of("a", "b")
        first = core.lease("s", 1, 1, 0.0)
        core.move([FIT], 0.1)
        second = core.lease("t", 1, 1, 0.2)
        core.move([TAINT], 0.3)
        assert store_of(core).in_flight.event_count == 2
        core.done(first.lease_id, ["uid-a"])
        assert store_of(core).in_flight.event_count == 1
        core.requeue(second.lease_id, [rejected("b", TAINT)], 1.0)
        assert store_of(core).in_flight.event_count == 0
        assert core.state_of("uid-b") is QueueState.BACKOFF

    def test_ending_a_younger_lease_keeps_the_events_of_the_older(self):
        core = queue_of("a", "b")
        first = core.lease("s", 1, 1, 0.0)
        second = core.lease("t", 1, 1, 0.0)
        core.move([FIT], 0.1)
        core.done(second.lease_id, ["uid-b"])
        core.requeue(first.lease_id, [rejected("a", FIT)], 1.0)
        assert core.state_of("uid-a") is QueueState.BACKOFF

    def test_a_storm_of_events_is_bounded_and_causes_at_most_a_needless_retry(self):
        core = queue_of("a", "b", max_in_flight_events=3)
        first = core.lease("s", 1, 1, 0.0)
        for _ in range(4):
            core.move([TAINT], 0.1)
        assert store_of(core).in_flight.event_count == 1
        late = core.lease("s", 1, 1, 0.2)
        core.requeue(first.lease_id, [rejected("a", FIT)], 1.0)
        core.requeue(late.lease_id, [rejected("b", FIT)], 1.0)
        assert core.state_of("uid-a") is QueueState.BACKOFF
        assert core.state_of("uid-b") is QueueState.UNSCHEDULABLE

    def test_an_event_of_a_storm_is_not_lost_for_a_lease_that_began_within_it(self):
        core = queue_of("a", "b", max_in_flight_events=3)
        core.lease("s", 1, 1, 0.0)
        for _ in range(3):
            core.move([TAINT], 0.1)
        late = core.lease("t", 1, 1, 0.2)
        core.move([FIT], 0.3)
        core.requeue(late.lease_id, [rejected("b", FIT)], 1.0)
        assert core.state_of("uid-b") is QueueState.BACKOFF

    def test_an_update_while_in_flight_brings_the_pod_back_with_new_facts(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        newer = PodFacts(labels=(("tier", "web"),))
        core.update(pod("a"), newer, 0.5, [TAINT])
        core.requeue(lease.lease_id, [rejected("a", TAINT)], 1.0)
        assert core.pods(QueueState.BACKOFF)[0].facts == newer

    def test_an_update_of_one_pod_in_flight_does_not_help_another(self):
        core = queue_of("a", "b")
        lease = core.lease("s", 1, 2, 0.0)
        core.update(pod("a"), PodFacts(priority=1), 0.5)
        core.requeue(lease.lease_id, [rejected("a", FIT), rejected("b", FIT)], 1.0)
        assert core.state_of("uid-a") is QueueState.BACKOFF
        assert core.state_of("uid-b") is QueueState.UNSCHEDULABLE

    def test_many_updates_of_one_pod_in_flight_are_bounded(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        for number in range(100):
            core.update(pod("a"), PodFacts(priority=number), 0.5, [TAINT])
        assert len(store_of(core).pods.present["uid-a"].own_events) <= 64, (
            "events beyond the bound are dropped"
        )
        core.requeue(lease.lease_id, [rejected("a", FIT)], 1.0)
        assert core.state_of("uid-a") is QueueState.BACKOFF

    def test_an_expired_lease_stops_the_recording_of_events(self):
        core = queue_of("a", lease_s=10.0)
        core.lease("s", 1, 1, 0.0)
        core.move([FIT], 1.0)
        core.expire(10.0)
        assert store_of(core).in_flight.event_count == 0


class TestUpdatesAndDeletes:
    def test_an_update_of_an_unknown_pod_adds_it(self):
        core = queue_of()
        assert core.update(pod("a"), PLAIN, 0.0).is_success
        assert core.state_of("uid-a") is QueueState.ACTIVE

    def test_a_full_queue_refuses_an_update_of_an_unknown_pod(self):
        assert queue_of("a", max_pods=1).update(pod("b"), PLAIN, 0.0).is_rejected

    def test_a_helping_update_brings_an_unschedulable_pod_back(self):
        core = parked("a", plugin=TAINT)
        core.update(pod("a"), PodFacts(priority=1), 5.0, [FIT])
        assert core.state_of("uid-a") is QueueState.UNSCHEDULABLE
        core.update(pod("a"), PodFacts(priority=2), 5.0, [TAINT])
        assert core.pods(QueueState.ACTIVE)[0].facts.priority == 2

    def test_an_update_without_named_events_causes_a_retry_if_facts_changed(self):
        core = parked("a")
        core.update(pod("a"), PLAIN, 5.0)
        assert core.state_of("uid-a") is QueueState.UNSCHEDULABLE
        core.update(pod("a"), PodFacts(priority=1), 5.0)
        assert core.state_of("uid-a") is QueueState.ACTIVE

    def test_an_update_in_backoff_keeps_the_backoff(self):
        core = queue_of("a")
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [failed("a")], 0.0)
        core.update(pod("a"), PodFacts(priority=3), 0.5)
        assert core.next_wakeup_s() == 2.0
        assert core.pods(QueueState.BACKOFF)[0].facts.priority == 3

    def test_an_update_in_backoff_gives_a_rejected_pod_its_new_rank(self):
        core = parked("a", "b")
        core.move([FIT], 0.5)
        assert names(core.pods(QueueState.BACKOFF)) == ["a", "b"]
        core.update(pod("b"), PodFacts(priority=9), 0.6)
        assert names(core.pods(QueueState.BACKOFF)) == ["b", "a"]
        assert names(core.lease("s", 1, 1, 0.7).pods) == ["b"]

    @pytest.mark.parametrize("leave", ["delete", "assigned"])
    def test_a_pod_leaves_from_any_state(self, leave):
        core = queue_of("active", "flying", "waiting", "late")
        core.add([(pod("gated"), PodFacts(scheduling_gates=("g",)))], 0.0)
        lease = core.lease("s", 1, 4, 0.0)
        reports = [conflict("active"), rejected("waiting", FIT), failed("late")]
        core.requeue(lease.lease_id, reports, 0.0)
        everyone = [f"uid-{name}" for name in ("active", "flying", "waiting", "late", "gated")]
        gone = getattr(core, leave)([*everyone, "uid-unknown", "uid-active"])
        assert sorted(gone) == sorted(everyone)
        assert core.counts().queued == core.counts().leases == 0
        core.validate()


class TestGates:
    def parked_and_shut(self, registered) -> QueueCore[str]:
        """One pod, rejected by FIT, and gated since it was updated."""
        rules = EventRules(hint=named_hint, registered=registered)
        core: QueueCore[str] = QueueCore(gate=gate, rules=rules)
        core.add([(pod("a"), PLAIN)], 0.0)
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [rejected("a", FIT)], 0.0)
        core.update(pod("a"), self.SHUT, 5.0, [FIT])
        return core

    SHUT = PodFacts(scheduling_gates=("wait",))

    def test_a_gated_pod_waits_separately_and_has_no_first_attempt(self):
        core = queue_of("a", facts=self.SHUT)
        assert core.pods(QueueState.GATED)[0].rejected_by == (GATES,)
        assert core.pods(QueueState.GATED)[0].initial_attempt_s is None
        assert core.lease("s", 1, 1, 0.0).pods == ()

    def test_a_pod_without_gates_is_active(self):
        core = queue_of("a", facts=self.SHUT)
        core.update(pod("a"), PLAIN, 4.0, [GATES])
        assert core.pods(QueueState.ACTIVE)[0].initial_attempt_s == 4.0

    def test_an_event_that_the_gating_plugin_ignores_does_not_check_the_gate(self):
        core = queue_of("a", facts=self.SHUT)
        history = store_of(core).pods.present["uid-a"].history
        core.move([FIT], 1.0)
        assert store_of(core).pods.present["uid-a"].history == history

    def test_an_event_for_another_plugin_does_not_check_the_gate(self):
        core = self.parked_and_shut(registered=lambda plugin, event: plugin == event)
        history = store_of(core).pods.present["uid-a"].history
        assert core.pods(QueueState.GATED)[0].rejected_by == (FIT, GATES)
        core.move([FIT], 6.0)
        assert store_of(core).pods.present["uid-a"].history == history

    def test_an_event_of_the_gating_plugin_allows_hints_of_any_rejecting_plugin(self):
        core = self.parked_and_shut(registered=lambda plugin, event: plugin == GATES)
        history = store_of(core).pods.present["uid-a"].history
        core.move([FIT], 6.0)
        assert core.state_of("uid-a") is QueueState.GATED
        assert store_of(core).pods.present["uid-a"].history == (*history, "gate→gated")

    def test_a_pod_that_leaves_its_backoff_passed_the_gate_on_entry(self):
        core = queue_of("a")
        core.requeue(core.lease("s", 1, 1, 0.0).lease_id, [failed("a")], 0.0)
        core.update(pod("a"), self.SHUT, 0.5)
        core.flush_backoff(2.0)
        assert core.state_of("uid-a") is QueueState.ACTIVE

    def test_an_event_for_the_gating_plugin_checks_the_gate_again(self):
        core = queue_of("a", facts=self.SHUT)
        assert core.move([GATES], 1.0) == ()
        assert core.state_of("uid-a") is QueueState.GATED

    def test_a_gate_opened_by_an_event_lets_the_pod_through(self):
        open_now = []
        core: QueueCore[str] = QueueCore(
            gate=lambda facts: SUCCESS if open_now else Status(Code.PENDING, ("wait",), GATES),
            rules=EventRules(hint=named_hint),
        )
        core.add([(pod("a"), PLAIN)], 0.0)
        open_now.append(True)
        assert core.move([GATES], 1.0) == ("uid-a",)

    def test_a_gate_without_a_plugin_is_checked_on_every_event(self):
        core: QueueCore[str] = QueueCore(
            gate=lambda facts: Status(Code.PENDING), rules=EventRules(hint=named_hint)
        )
        core.add([(pod("a"), PLAIN)], 0.0)
        assert core.move(["anything"], 1.0) == ()
        assert core.pods(QueueState.GATED)[0].rejected_by == ()

    def test_a_pod_that_returns_to_a_closed_gate_is_gated(self):
        core = queue_of("a", "b", "c", lease_s=10.0)
        lease = core.lease("s", 1, 3, 0.0)
        for name in "abc":
            core.update(pod(name), self.SHUT, 0.0)
        core.requeue(lease.lease_id, [conflict("a"), failed("b")], 1.0)
        core.expire(10.0)
        assert names(core.pods(QueueState.GATED)) == ["a", "c", "b"]

    def test_a_long_wait_does_not_open_a_gate(self):
        core = queue_of("a", facts=self.SHUT)
        core.tick(10_000.0)
        assert core.state_of("uid-a") is QueueState.GATED

    def test_an_unschedulable_pod_at_a_closed_gate_is_gated(self):
        core = parked("a")
        core.update(pod("a"), self.SHUT, 5.0, [TAINT])
        assert core.state_of("uid-a") is QueueState.UNSCHEDULABLE
        core.tick(300.0)
        assert core.state_of("uid-a") is QueueState.GATED
        assert core.pods(QueueState.GATED)[0].rejected_by == (FIT, GATES)

    def test_a_gate_that_opens_during_the_backoff_leads_to_backoff(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        core.update(pod("a"), self.SHUT, 0.0)
        core.requeue(lease.lease_id, [failed("a")], 0.0)
        core.update(pod("a"), PLAIN, 0.5, [GATES])
        assert core.state_of("uid-a") is QueueState.BACKOFF


def test_a_parked_pod_lists_the_plugins_it_waits_for():
    core = queue_of("a", "b")
    lease = core.lease("s", 1, 1, 0.0)
    assert core.rejected_by("uid-a") == core.rejected_by("uid-nobody") == ()

    core.requeue(lease.lease_id, [rejected("a", FIT, TAINT)], 0.0)
    assert core.rejected_by("uid-a") == (FIT, TAINT)

    core.move([FIT], 0.5)
    assert core.rejected_by("uid-a") == ()


class TestActivate:
    def test_activate_skips_the_backoff(self):
        core = parked("a", "b")
        core.move([FIT], 0.5)
        assert core.activate(["uid-a", "uid-z"], 0.6) == ("uid-a",)
        assert core.state_of("uid-a") is QueueState.ACTIVE
        assert core.state_of("uid-b") is QueueState.BACKOFF

    def test_activate_of_an_active_pod_changes_nothing(self):
        assert queue_of("a").activate(["uid-a"], 0.0) == ()

    def test_activate_does_not_open_a_gate(self):
        core = queue_of("a", facts=TestGates.SHUT)
        assert core.activate(["uid-a"], 0.0) == ()

    def test_activate_in_flight_is_kept_until_the_pod_returns(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        core.activate(["uid-a"], 0.5)
        core.requeue(lease.lease_id, [rejected("a", FIT)], 1.0)
        assert core.state_of("uid-a") is QueueState.BACKOFF

    def test_activation_of_one_attempt_does_not_help_the_next(self):
        core = queue_of("a")
        lease = core.lease("s", 1, 1, 0.0)
        core.activate(["uid-a"], 0.5)
        core.requeue(lease.lease_id, [conflict("a")], 1.0)
        lease = core.lease("s", 1, 1, 2.0)
        core.requeue(lease.lease_id, [rejected("a", FIT)], 2.0)
        assert core.state_of("uid-a") is QueueState.UNSCHEDULABLE


class TestTime:
    def test_a_queue_of_active_pods_needs_no_timer(self):
        assert queue_of("a").next_wakeup_s() is None

    def test_tick_does_the_work_due_at_each_wakeup(self):
        core = queue_of("a", "b", "c", lease_s=50.0)
        lease = core.lease("s", 1, 3, 0.0)
        core.requeue(lease.lease_id, [rejected("a", FIT), failed("b")], 0.0)
        wakeups = []
        while (now_s := core.next_wakeup_s()) is not None:
            wakeups.append(now_s)
            core.tick(now_s)
        assert wakeups == [2.0, 50.0, 300.0]
        assert core.counts().active == 3

    def test_tick_returns_the_leases_that_it_ended(self):
        core = queue_of("a", lease_s=5.0)
        core.lease("s", 4, 1, 0.0)
        assert core.tick(5.0) == (EndedLease(1, "s", 4, ("uid-a",)),)


class TestValidate:
    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda store: store.pods.present.popitem(), "is not known"),
            (lambda store: store.active.heap.remove("uid-a"), "in no container"),
            (
                lambda store: store.backoff.put([store.pods.present["uid-a"]]),
                "is in two containers",
            ),
            (
                lambda store: setattr(store.pods.present["uid-a"], "state", QueueState.GATED),
                "has gated",
            ),
            (
                lambda store: setattr(store.pods, "begun", 7),
                "of 7 pods 1 are present and 0 ended",
            ),
        ],
    )
    def test_validate_finds_damage(self, damage, message):
        core = queue_of("a")
        damage(store_of(core))
        with pytest.raises(AssertionError, match=message):
            core.validate()


def test_ten_thousand_pods_are_leased_in_order_of_rank():
    facts = [PodFacts(priority=number) for number in range(7)]
    core: QueueCore[str] = QueueCore()
    core.add([(pod(str(n)), facts[n % 7]) for n in range(10_000)], 0.0)
    ranks = []
    while (batch := core.lease("s", 1, 512, 1.0)).pods:
        ranks += [(-one.facts.priority, one.seq) for one in batch.pods]
        core.done(batch.lease_id, [one.identity.uid for one in batch.pods])
    assert len(ranks) == 10_000
    assert ranks == sorted(ranks)
    assert core.counts().done_total == 10_000
    core.validate()
