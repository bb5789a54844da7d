"""A binder rebuilt from the flushed records equals a binder that got only those requests."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from roadstead.binder import (
    Acknowledge,
    AppendJournal,
    BinderCore,
    BinderSettings,
    BinderState,
    BindRequest,
    Bound,
)
from roadstead.binder.recovery import SnapshotExtras, recover, snapshot_records, split_by_kind
from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.run_mark import BEGUN, RunMark
from roadstead.invariants.checker import check
from roadstead.journal import JournalError, JournalRecord, RecordKind
from roadstead.journal.files import FileJournal
from roadstead.journal.segments import Reader
from roadstead.placements import TableStore
from roadstead.protocol.status import SUCCESS, unschedulable
from tests.inside import tokens_of
from tests.journal.simulated_disk import SimulatedDisk

FACTS = (PodFacts(requests=(("cpu", 100),)), PodFacts(requests=(("cpu", 300),)))
PODS_PER_NODE = 3
NODES = ("n1", "n2")
uids = st.sampled_from([f"u{number}" for number in range(6)])


def new_core():
    store = TableStore()

    def verify(request):
        count = store.table.row_facts(request.node_name)["pod_count"]
        return SUCCESS if count < PODS_PER_NODE else unschedulable("Too many pods")

    return BinderCore(store, verify, journals_all=True)


def picture(core):
    """All state on which later decisions depend."""
    pods = {
        uid: (each.state, each.key, each.facts, each.node_name, each.token, each.lsn, each.bound)
        for uid, each in core.pods.present.items()
    }
    rows = {name: core.placements.store.table.row_facts(name) for name in core.placements.nodes}
    placed = {uid: core.placements.node_of(uid) for uid in pods}
    return pods, list(pods), set(core.pods.ended), rows, placed, core.placements.nodes


def recovered(disk):
    core, journal = new_core(), FileJournal(disk)
    subjects = recover(core, split_by_kind(journal.recovered_groups()), journal.last_lsn).subjects
    core.last_lsn = core.flushed_lsn = journal.last_lsn
    return core, journal, subjects


class CrashMachine(RuleBasedStateMachine):
    """Any requests, and process crashes at any time, also between append and flush."""

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed):
        self.disk = SimulatedDisk(seed)
        self.core, self.journal, _ = recovered(self.disk)
        self.acknowledged = {}
        self.requests = {}
        self.tokens = 0
        for name in NODES:
            self.do(self.core.add_node(NodeFacts(name)))

    def do(self, effects, is_flushed=True):
        waiting = list(effects)
        while waiting:
            effect = waiting.pop(0)
            if isinstance(effect, AppendJournal):
                self.journal.append(effect.records)
                if is_flushed:
                    self.journal.flush()
                    waiting += self.core.flushed(effect.last_lsn)
            elif isinstance(effect, Acknowledge) and isinstance(effect.result, Bound):
                self.acknowledged[effect.token] = effect.result

    @rule(chosen=st.lists(st.tuples(uids, st.sampled_from(FACTS)), max_size=4))
    def add(self, chosen):
        self.do(self.core.add_pods([(uid, uid, facts) for uid, facts in chosen]))

    def asked(self, uid, node, epoch):
        self.tokens += 1
        facts = self.core.pods.present[uid].facts if uid in self.core.pods.present else FACTS[0]
        request = BindRequest(f"t{self.tokens}", uid, uid, node, facts, "s", epoch)
        self.requests[request.token] = request
        return request

    @rule(
        batch=st.lists(st.tuples(uids, st.sampled_from([*NODES, "n9"])), max_size=4),
        epoch=st.integers(1, 3),
        is_flushed=st.booleans(),
    )
    def bind(self, batch, epoch, is_flushed):
        requests = [self.asked(uid, node, epoch) for uid, node in batch]
        self.do(self.core.bind(requests), is_flushed)
        if not is_flushed:
            self.crash()

    @rule(chosen=st.lists(uids, max_size=2))
    def evict_or_delete(self, chosen):
        for uid in chosen:
            state, _ = self.core.pod_status(uid)
            if state is BinderState.BOUND:
                self.do(self.core.evict([uid]))
            elif state is BinderState.PENDING:
                self.do(self.core.delete([uid]))

    @rule(uid=uids, node=st.sampled_from(NODES))
    def load(self, uid, node):
        if self.core.pod_status(uid)[0] is not BinderState.BOUND:
            self.do(self.core.load([(uid, uid, FACTS[1], node)]))

    @rule()
    def a_node_goes_and_comes_back(self):
        self.do(self.core.remove_node("n1"))
        self.crash()
        self.do(self.core.add_node(NodeFacts("n1")))

    @rule()
    def snapshot(self):
        self.journal.snapshot(snapshot_records(self.core))

    @rule()
    def crash(self):
        self.disk.crash()
        self.core, self.journal, _ = recovered(self.disk)

    @invariant()
    def a_binder_rebuilt_from_a_copy_is_the_same(self):
        if not hasattr(self, "core"):
            return
        self.core.validate()
        self.core.placements.store.table.validate()
        copy = SimulatedDisk()
        copy.contents, copy.durable = dict(self.disk.contents), dict(self.disk.durable)
        again, *_ = recovered(copy)
        again.validate()
        mine, theirs = picture(self.core), picture(again)
        assert without_versions(mine) == without_versions(theirs)
        assert again.last_lsn == self.core.last_lsn

    @invariant()
    def tokens_of_bound_pods_answer_as_before(self):
        for token, decision in getattr(self, "acknowledged", {}).items():
            record = self.core.pods.present.get(decision.uid)
            if record is None or record.token != token:
                continue
            before = self.core.last_lsn
            (answer,) = self.core.bind([self.requests[token]])
            assert isinstance(answer.result, Bound)
            found = answer.result
            assert (found.uid, found.node_name, found.lsn) == (
                decision.uid,
                decision.node_name,
                decision.lsn,
            )
            assert self.core.last_lsn == before

    @invariant()
    def what_was_acknowledged_stands(self):
        for decision in getattr(self, "acknowledged", {}).values():
            assert self.core.pod_status(decision.uid)[0] is not BinderState.UNKNOWN

    def teardown(self):
        if hasattr(self, "disk"):
            self.crash()
            broken = {each.invariant for each in check(Reader(self.disk).records()).violations}
            assert "I7" not in broken


def without_versions(seen):
    pods, order, *rest = seen
    slim = {
        uid: (*one[:-1], one[-1] and (one[-1].node_name, one[-1].lsn)) for uid, one in pods.items()
    }
    pending = [uid for uid in order if pods[uid][0] is BinderState.PENDING]
    return slim, pending, *rest


CrashMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestCrashMachine = CrashMachine.TestCase


def recovered_from_records(*records):
    core = new_core()
    return core, recover(core, split_by_kind([records]))


def add(lsn, uid, facts=FACTS[0]):
    return JournalRecord(lsn, RecordKind.ADD, uid, uid, "", facts=facts)


def bind(lsn, uid, node="n1", epoch=1, facts=FACTS[0]):
    return JournalRecord(lsn, RecordKind.BIND, uid, uid, node, f"t-{uid}", "s", epoch, facts)


def has_node(lsn, name="n1"):
    return JournalRecord(lsn, RecordKind.NODE, name, name, name, subject=NodeFacts(name))


def test_the_number_of_the_last_record_continues():
    core, result = recovered_from_records(has_node(1), add(2, "a"), bind(3, "a"))

    (journal,) = core.add_pods([("b", "b", FACTS[0])])

    assert (result.records, journal.last_lsn, core.flushed_lsn) == (3, 4, 3)


def test_an_owner_of_an_old_epoch_stays_fenced():
    core, _ = recovered_from_records(has_node(1), add(2, "a"), add(3, "b"), bind(4, "a", epoch=7))

    (answer,) = core.bind([BindRequest("late", "b", "b", "n1", FACTS[0], "s", 6)])

    assert answer.result.cause == "stale_epoch"


def test_pods_are_pending_in_order_of_arrival():
    core, _ = recovered_from_records(add(1, "z"), add(2, "a"), add(3, "m"))

    assert list(core.pods.present) == ["z", "a", "m"]


def test_a_pod_that_was_accepted_again_has_its_last_facts():
    later = add(2, "a")._replace(facts=FACTS[1])
    core, _ = recovered_from_records(add(1, "a"), later, add(3, "b"))

    assert core.pods.present["a"].facts == FACTS[1]
    assert core.pod_status("a") == (BinderState.PENDING, None)


def test_an_updated_bound_pod_is_counted_with_its_new_facts():
    live = new_core()
    live.add_node(NodeFacts("n1"))
    live.add_pods([("a", "a", FACTS[0])])
    request = BindRequest("t-a", "a", "a", "n1", FACTS[0], "s", 1)
    bound = live.bind([request])
    updated = live.update_pods([("a", FACTS[1])], revision=7)
    records = [record for effect in (*bound, *updated) for record in effect.records]
    assert records[-1]._replace(lsn=0) == JournalRecord(
        0, RecordKind.ADD, "a", "a", "n1", epoch=7, facts=FACTS[1]
    )
    live.flushed(live.last_lsn)

    for source in ([has_node(1), add(2, "a"), *records], [*snapshot_records(live)]):
        core = new_core()
        recover(core, split_by_kind([source]), live.last_lsn)
        core.validate()
        assert core.pods.present["a"].facts == FACTS[1]
        assert core.placements.facts_of("a") == FACTS[1]
        # The request under the token is known as it was.
        (again,) = core.bind([request])
        assert again.result.node_name == "n1"
    assert live.update_pods([("a", FACTS[1])]) == []


def test_a_journal_without_accepted_pods_is_read_as_well():
    core, _ = recovered_from_records(has_node(1), bind(2, "a"))

    assert core.pod_status("a") == (BinderState.BOUND, "n1")


def test_contradictory_records_are_refused_with_their_numbers():
    with pytest.raises(JournalError, match=r"records 3 to 3 do not follow .* commit"):
        recovered_from_records(has_node(1), bind(2, "a"), add(3, "a"))


def test_a_pod_bound_twice_in_one_group_is_a_contradiction():
    with pytest.raises(JournalError, match=r"records 2 to 3 do not follow .* add"):
        recovered_from_records(has_node(1), bind(2, "a"), bind(3, "a"))


def test_versions_equal_the_answered_ones():
    live = new_core()
    live.add_node(NodeFacts("n1"))
    live.add_pods([("a", "a", FACTS[0]), ("b", "b", FACTS[0])])
    requests = [BindRequest(f"t-{uid}", uid, uid, "n1", FACTS[0], "s", 1) for uid in "ab"]
    (journal,) = live.bind(requests)
    answered = [each.result for each in live.flushed(journal.last_lsn)]

    core, _ = recovered_from_records(
        has_node(1), add(2, "a"), add(3, "b"), bind(4, "a"), bind(5, "b")
    )

    assert [each.result for each in core.bind(requests)] == answered
    assert core.version == live.version


def test_the_token_of_a_deleted_pod_gets_its_original_answer():
    gone = JournalRecord(4, RecordKind.DELETE, "a", "a", "n1")
    core, _ = recovered_from_records(has_node(1), add(2, "a"), bind(3, "a"), gone)

    (again,) = core.bind([BindRequest("t-a", "a", "a", "n1", FACTS[0], "s", 1)])
    (other,) = core.bind([BindRequest("t-b", "a", "a", "n1", FACTS[0], "s", 1)])

    assert (again.result.node_name, again.result.lsn) == ("n1", 3)
    assert other.result.cause == "deleted"


def test_a_token_twice_in_a_journal_is_as_recent_as_its_last_bind():
    core = BinderCore(TableStore(), lambda _: SUCCESS, BinderSettings(max_tokens=2))
    come = has_node(1), add(2, "u1"), add(3, "u2"), add(4, "u3")
    bound = bind(5, "u1"), bind(6, "u2"), bind(7, "u3")
    came_again = JournalRecord(8, RecordKind.DELETE, "u1", "u1", "n1"), add(9, "u1")
    recover(core, split_by_kind([(*come, *bound, *came_again, bind(10, "u1"))]), 10)
    remembered = tokens_of(core)
    assert [remembered.knows_any([f"t-u{number}"]) for number in (1, 2, 3)] == [True, False, True]
    core.bind([BindRequest("t-new", "u9", "u9", "n1", FACTS[0], "s", 1)])
    assert [remembered.knows_any([token]) for token in ("t-u1", "t-u3")] == [True, False]


def test_a_refusal_returns_the_same_row_version_as_before():
    live = new_core()
    live.add_node(NodeFacts("n1"))
    live.add_pods([(uid, uid, FACTS[0]) for uid in "abcd"])
    requests = [BindRequest(f"t-{uid}", uid, uid, "n1", FACTS[0], "s", 1) for uid in "abcd"]
    binds = live.bind(requests[:PODS_PER_NODE])
    live.flushed(live.last_lsn)
    (refused,) = live.bind(requests[PODS_PER_NODE:])

    pods = [add(lsn, uid) for lsn, uid in enumerate("abcd", 2)]
    core, _ = recovered_from_records(
        has_node(1), *pods, *(each for effect in binds for each in effect.records)
    )
    (again,) = core.bind(requests[PODS_PER_NODE:])

    assert refused.result.cause == again.result.cause == "constraint"
    assert again.result.row_version == refused.result.row_version


def test_records_of_other_components_are_passed_on_in_order_and_kept_in_a_snapshot():
    subjects = (ClusterFacts(), RunMark(BEGUN, "digest"), BoundClaims())
    core = new_core()
    kinds = (RecordKind.CLUSTER, RecordKind.RUN, RecordKind.STORAGE)
    records = [
        JournalRecord(lsn, kind, "", "", "", subject=subject)
        for lsn, (kind, subject) in enumerate(zip(kinds, subjects, strict=True), 1)
    ]

    found = recover(core, split_by_kind([records])).subjects

    assert found == subjects
    assert (
        tuple(each.subject for each in snapshot_records(core, SnapshotExtras(subjects=found)))
        == subjects
    )


def test_records_of_many_kinds_in_one_group_are_applied_in_order():
    core, result = recovered_from_records(
        *(add(lsn, f"u{lsn}") for lsn in (1, 2)), bind(3, "u1"), add(4, "u4")
    )

    assert result.records == 4
    assert {uid: each.state for uid, each in core.pods.present.items()} == {
        "u1": BinderState.BOUND,
        "u2": BinderState.PENDING,
        "u4": BinderState.PENDING,
    }


def versioned():
    settings = BinderSettings(checks_versions=True)
    return BinderCore(TableStore(), lambda _: SUCCESS, settings, journals_all=True)


def test_row_versions_and_missed_changes_equal_those_before_recovery():
    core, records = versioned(), []

    def log(effects):
        for effect in effects:
            if isinstance(effect, AppendJournal):
                records.extend(effect.records)
                core.flushed(effect.last_lsn)

    for name in ("n1", "n2", "n3"):
        log(core.add_node(NodeFacts(name)))
    log(core.add_pods([(f"u{n}", f"d/u{n}", FACTS[0]) for n in range(4)]))
    for number, (owner, node) in enumerate(
        [("s0", "n1"), ("s1", "n1"), ("s0", "n2"), ("s1", "n3")]
    ):
        uid = f"u{number}"
        log(core.bind([BindRequest(uid, uid, f"d/{uid}", node, FACTS[0], owner, 1, 99)]))
    log(core.evict(["u2"]))
    log(core.update_node(NodeFacts("n3", labels=(("disk", "ssd"),))))
    log(core.remove_node("n2"))
    log(core.add_node(NodeFacts("n2")))

    again = versioned()
    recover(again, split_by_kind([records]))

    for node in ("n1", "n2", "n3"):
        assert again.row_versions.of(node) == core.row_versions.of(node) > 0, (
            "the node had binds, and both have its version"
        )
        for owner in ("s0", "s1", "s2"):
            for read in range(core.last_lsn + 1):
                missed = core.row_versions.changed_by_others(node, owner, read)
                assert again.row_versions.changed_by_others(node, owner, read) == missed


def test_a_snapshot_keeps_all_state_that_later_decisions_depend_on():
    """Fenced epochs, void tokens, answers, deleted pods, pending pods: over files."""
    disk = SimulatedDisk()
    core, journal, _ = recovered(disk)

    def do(effects):
        waiting = list(effects)
        while waiting:
            effect = waiting.pop(0)
            if isinstance(effect, AppendJournal):
                journal.append(effect.records)
                journal.flush()
                waiting += core.flushed(effect.last_lsn)

    do(core.add_node(NodeFacts("n1")))
    do(core.add_pods([(uid, uid, FACTS[0]) for uid in ("bound", "gone", "late", "waits")]))
    first = BindRequest("t-bound", "bound", "bound", "n1", FACTS[0], "s", 3)
    do(core.bind([first]))
    do(core.delete(["gone"]))
    do(core.void(["t-late"]))
    core.advance_epoch("idle", 5)
    journal.snapshot(snapshot_records(core))
    disk.crash()

    again, *_ = recovered(disk)

    def cause(uid, token, owner="s", epoch=3):
        request = BindRequest(token, uid, uid, "n1", FACTS[0], owner, epoch)
        (answer,) = [e for e in again.bind([request]) if isinstance(e, Acknowledge)]
        return answer.result.cause

    assert (again.current_epoch("s"), again.current_epoch("idle")) == (3, 5)
    assert cause("waits", "t-1", epoch=2) == "stale_epoch"
    assert cause("waits", "t-2", owner="idle", epoch=4) == "stale_epoch"
    assert cause("late", "t-late") == "expired"
    assert cause("gone", "t-3") == "deleted"
    assert cause("bound", "t-4") == "already_bound"
    (same,) = again.bind([first])
    assert (same.result.node_name, same.result.lsn) == (
        "n1",
        next(iter(core.pods.present.values())).lsn,
    )


def test_a_snapshot_keeps_name_and_namespace_of_deleted_pods():
    core, _ = recovered_from_records(JournalRecord(0, RecordKind.DELETE, "a", "blue/a", "n1"))

    assert core.pod("a") == ("blue/a", PodFacts("blue"))
