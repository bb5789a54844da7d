"""The binder's contract: one effect per token, one node per pod, no acknowledgement before
durability.
"""

import pytest

from roadstead.binder import (
    Acknowledge,
    AppendJournal,
    BindConflictError,
    BinderCore,
    BinderHaltedError,
    BinderSettings,
    BinderState,
    BindRequest,
    Bound,
    Halted,
    RejectCause,
    Rejected,
    Released,
    TableStore,
)
from roadstead.binder.all_or_nothing import MissingMembers
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts
from roadstead.journal import RecordKind
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SUCCESS, Status, unschedulable
from tests.inside import counts_of, tokens_of, unflushed_of
from tests.journal.memory_journal import MemoryJournal

SMALL = PodFacts(requests=(("cpu", 100),))
LARGE = PodFacts(requests=(("cpu", 900),))


def binder(
    *pods: str,
    nodes: tuple[str, ...] = ("n1", "n2"),
    missing_members: MissingMembers = lambda _: 0,
    **settings: int,
) -> BinderCore:
    """A binder of nodes with 1000 milli-CPU each, whose filter is the fit of CPU."""
    store = TableStore()

    def fits(request: BindRequest) -> Status:
        row = store.table.row_facts(request.node_name)
        asked = dict(request.facts.requests).get("cpu", 0)
        used = row["requested"].get("cpu", 0)
        return SUCCESS if used + asked <= 1000 else unschedulable("Insufficient cpu")

    core = BinderCore(store, fits, BinderSettings(**settings), missing_members=missing_members)
    for name in nodes:
        core.add_node(NodeFacts(name, allocatable=(("cpu", 1000),)))
    core.add_pods([(f"uid-{name}", f"default/{name}", SMALL) for name in pods])
    return core


def ask(
    name: str,
    node_name: str = "n1",
    token: str = "",
    facts: PodFacts = SMALL,
    owner: str = "s",
    epoch: int = 1,
) -> BindRequest:
    token = token or f"token-{name}"
    return BindRequest(token, f"uid-{name}", f"default/{name}", node_name, facts, owner, epoch)


def answers(effects) -> dict[str, object]:
    return {one.token: one.result for one in effects if isinstance(one, Acknowledge)}


def causes(effects) -> list[str]:
    return [one.cause.value for one in answers(effects).values() if isinstance(one, Rejected)]


def committed(core: BinderCore, *requests: BindRequest) -> dict[str, object]:
    """Bind, flush, and collect every answer."""
    effects = core.bind(requests)
    return answers([*effects, *core.flushed(core.last_lsn)])


def cpu(core: BinderCore) -> list[int]:
    table = core.placements.store.table
    return table.requested(table.resource_code("cpu")).tolist()


class TestGroupCommit:
    def test_an_accepted_bind_is_journaled_at_once_and_acknowledged_after_the_flush(self):
        core = binder("a")
        (append,) = core.bind([ask("a")])
        assert isinstance(append, AppendJournal)
        assert append.last_lsn == 1
        assert core.pod_status("uid-a") == (BinderState.TENTATIVE, "n1")
        (ack,) = core.flushed(1)
        assert ack == Acknowledge("token-a", "s", Bound("uid-a", "n1", 1, core.version))
        assert core.pod_status("uid-a") == (BinderState.BOUND, "n1")

    def test_the_record_of_a_bind_has_everything_that_a_checker_needs(self):
        core = binder("a")
        (record,) = core.bind([ask("a", epoch=4)])[0].records
        assert (record.lsn, record.kind, record.uid, record.key) == (
            1,
            RecordKind.BIND,
            "uid-a",
            "default/a",
        )
        assert (record.node_name, record.token, record.owner) == ("n1", "token-a", "s")
        assert (record.epoch, record.facts) == (4, SMALL)

    def test_the_next_bind_is_verified_on_top_of_the_unflushed_ones(self):
        core = binder("a", "b")
        core.update_pods([("uid-a", LARGE)])
        core.update_pods([("uid-b", LARGE)])
        effects = core.bind([ask("a", facts=LARGE), ask("b", facts=LARGE)])
        rejected = answers(effects)["token-b"]
        assert rejected.cause is RejectCause.CONSTRAINT
        assert rejected.status.message == "Insufficient cpu"
        assert rejected.version == core.version

    def test_a_flush_acknowledges_only_the_records_that_it_covers(self):
        core = binder("a", "b", "c")
        core.bind([ask("a"), ask("b")])
        core.bind([ask("c")])
        assert list(answers(core.flushed(2))) == ["token-a", "token-b"]
        assert core.pod_status("uid-c")[0] is BinderState.TENTATIVE
        assert list(answers(core.flushed(3))) == ["token-c"]

    def test_a_repeated_flush_acknowledges_once(self):
        core = binder("a")
        core.bind([ask("a")])
        core.flushed(1)
        assert core.flushed(1) == []
        assert core.flushed(0) == []

    def test_refusals_do_not_wait_for_a_flush(self):
        core = binder("a")
        effects = core.bind([ask("a"), ask("z")])
        assert causes(effects) == ["unknown_pod"]
        assert [type(effect) for effect in effects] == [Acknowledge, AppendJournal]

    def test_an_empty_batch_has_no_effect(self):
        assert binder().bind([]) == []

    def test_numbers_continue_after_the_end_of_the_journal(self):
        core = BinderCore(TableStore(), lambda _: SUCCESS, next_lsn=41)
        core.add_node(NodeFacts("n1"))
        (append,) = core.load([("u1", "default/a", SMALL, "n1")])
        assert append.last_lsn == 41

    def test_records_fit_the_journal(self):
        core, journal = binder("a", "b"), MemoryJournal()
        for effects in (core.bind([ask("a")]), core.bind([ask("b")]), core.delete(["uid-a"])):
            for effect in effects:
                assert journal.append(effect.records) == effect.last_lsn
        journal.flush()
        core.flushed(journal.flushed_lsn)
        kinds = [(record.kind.value, record.uid) for record in journal.durable]
        assert kinds == [("bind", "uid-a"), ("bind", "uid-b"), ("delete", "uid-a")]


class TestTokens:
    def test_the_same_token_gets_the_same_answer_and_has_one_effect(self):
        core = binder("a")
        first = committed(core, ask("a"))
        assert committed(core, ask("a")._replace(read_version=99)) == first
        assert core.last_lsn == 1

    def test_a_refused_token_is_refused_again_even_if_it_would_now_fit(self):
        core = binder("a", "b")
        core.update_pods([("uid-a", LARGE)])
        core.update_pods([("uid-b", LARGE)])
        committed(core, ask("a", facts=LARGE))
        first = committed(core, ask("b", facts=LARGE))
        core.delete(["uid-a"])
        assert committed(core, ask("b", facts=LARGE)) == first
        assert isinstance(committed(core, ask("b", token="again", facts=LARGE))["again"], Bound)

    def test_a_token_that_waits_for_its_flush_is_answered_once(self):
        core = binder("a")
        core.bind([ask("a")])
        assert core.bind([ask("a"), ask("a")]) == []
        assert len(core.flushed(1)) == 1

    def test_the_same_request_twice_in_a_batch_is_one_bind(self):
        core = binder("a")
        (append,) = core.bind([ask("a"), ask("a")])
        assert len(append.records) == 1

    @pytest.mark.parametrize(
        "other",
        [
            ask("a", "n2"),
            ask("b", token="token-a"),
            ask("a", facts=LARGE),
            ask("a", owner="t"),
            ask("a", epoch=2),
        ],
    )
    def test_the_same_token_with_another_request_is_an_error_and_changes_nothing(self, other):
        core = binder("a", "b")
        core.bind([ask("a")])
        with pytest.raises(BindConflictError, match=r"token token-a .* asked before for default/a"):
            core.bind([ask("b"), other])
        assert core.pod_status("uid-b")[0] is BinderState.PENDING

    def test_the_same_token_with_another_request_in_one_batch_is_an_error(self):
        core = binder("a", "b")
        with pytest.raises(BindConflictError, match="asked before for default/a on n1"):
            core.bind([ask("a", token="t"), ask("b", token="t")])
        assert core.last_lsn == 0

    def test_the_number_of_remembered_tokens_is_bounded(self):
        core = binder("a", max_tokens=2)
        core.bind([ask(str(number)) for number in range(5)])
        assert counts_of(core).tokens == 2

    def test_tokens_that_wait_for_their_flush_are_not_forgotten(self):
        core = binder("a", "b", "c", max_tokens=1)
        core.bind([ask("a"), ask("b"), ask("c")])
        assert counts_of(core).tokens == 3
        assert len(core.flushed(3)) == 3
        core.validate()

    def test_a_forgotten_token_of_a_bound_pod_still_gets_its_answer(self):
        core = binder("a", max_tokens=1)
        first = committed(core, ask("a"))
        core.bind([ask("y"), ask("z")])
        assert committed(core, ask("a")) == first
        with pytest.raises(BindConflictError, match="asked before for default/a on n1"):
            core.bind([ask("a", "n2")])

    def test_a_token_of_an_old_epoch_still_gets_its_answer(self):
        core = binder("a", "b")
        first = committed(core, ask("a"), ask("z"))
        core.advance_epoch("s", 2)
        assert committed(core, ask("a"), ask("z")) == first
        assert causes(core.bind([ask("b")])) == ["stale_epoch"]


class TestRefusals:
    def test_a_pod_that_was_never_added_is_refused(self):
        assert causes(binder().bind([ask("a")])) == ["unknown_pod"]

    def test_a_bound_pod_is_refused_under_another_token(self):
        core = binder("a")
        core.bind([ask("a")])
        assert causes(core.bind([ask("a", "n2", token="other")])) == ["already_bound"]
        core.flushed(1)
        assert causes(core.bind([ask("a", "n1", token="third")])) == ["already_bound"]
        assert core.pod_status("uid-a") == (BinderState.BOUND, "n1")

    def test_a_deleted_pod_is_refused(self):
        core = binder("a")
        core.delete(["uid-a"])
        assert causes(core.bind([ask("a")])) == ["deleted"]

    def test_an_old_epoch_is_refused(self):
        core = binder("a")
        core.advance_epoch("s", 2)
        assert causes(core.bind([ask("a", epoch=1)])) == ["stale_epoch"]
        assert core.pod_status("uid-a")[0] is BinderState.PENDING

    def test_a_newer_epoch_in_a_request_is_recorded(self):
        core = binder("a", "b")
        assert core.current_epoch("s") is None
        core.bind([ask("a", epoch=5)])
        assert core.current_epoch("s") == 5
        assert causes(core.bind([ask("b", epoch=4)])) == ["stale_epoch"]

    def test_epochs_of_owners_are_separate_and_never_decrease(self):
        core = binder("a")
        core.advance_epoch("s", 5)
        core.advance_epoch("s", 3)
        core.advance_epoch("t", 1)
        assert (core.current_epoch("s"), core.current_epoch("t")) == (5, 1)

    def test_a_removed_node_is_refused(self):
        core = binder("a")
        core.remove_node("n1")
        assert causes(core.bind([ask("a")])) == ["unknown_node"]

    def test_a_full_binder_refuses_permanently_and_another_attempt_may_succeed(self):
        core = binder("a", "b", max_unflushed=1)
        assert causes(core.bind([ask("a"), ask("b")])) == ["busy"]
        core.flushed(1)
        assert causes(core.bind([ask("b")])) == ["busy"]
        assert isinstance(committed(core, ask("b", token="again"))["again"], Bound)

    def test_a_pod_changed_since_its_decision_is_refused_until_it_is_decided_again(self):
        core = binder("a")
        core.update_pods([("uid-a", LARGE)])
        assert causes(core.bind([ask("a", facts=SMALL)])) == ["changed"]
        assert cpu(core) == [0, 0]
        committed(core, ask("a", facts=LARGE, token="again"))
        assert cpu(core) == [900, 0]


class TestPodEvents:
    def test_a_repeated_add_changes_nothing(self):
        core = binder("a")
        committed(core, ask("a"))
        core.add_pods([("uid-a", "default/a", LARGE)])
        assert core.pod_status("uid-a") == (BinderState.BOUND, "n1")
        assert cpu(core) == [100, 0]

    def test_the_first_of_two_copies_of_a_pod_in_one_call_counts(self):
        core = binder()
        core.add_pods([("uid-a", "default/a", SMALL), ("uid-a", "default/a", LARGE)])
        assert core.pod("uid-a")[1] == SMALL
        assert counts_of(core).pending == 1

    def test_a_pending_pod_added_with_other_facts_is_updated_and_journaled(self):
        core = BinderCore(TableStore(), lambda _: SUCCESS, journals_all=True)
        core.add_pods([("uid-a", "default/a", SMALL)])

        (append,) = core.add_pods([("uid-a", "default/a", LARGE)], revision=3)

        (record,) = append.records
        assert (record.kind, record.facts, record.epoch) == (RecordKind.ADD, LARGE, 3)
        assert core.add_pods([("uid-a", "default/a", LARGE)], revision=3) == []
        core.validate()

    def test_running_pods_are_loaded_without_a_check(self):
        core = binder()
        pods = [(f"u{n}", f"default/{n}", LARGE, "n1") for n in range(2)]
        (append,) = core.load(pods)
        assert [record.kind for record in append.records] == [RecordKind.LOAD] * 2
        assert append.records[0].facts == LARGE
        assert cpu(core) == [1800, 0]
        assert core.flushed(2) == []
        assert core.load(pods) == []
        core.validate()

    def test_a_pending_pod_that_the_cluster_shows_bound_is_loaded(self):
        core = binder("a")
        core.load([("uid-a", "default/a", SMALL, "n2")])
        assert causes(core.bind([ask("a")])) == ["already_bound"]

    def test_an_update_of_a_bound_pod_counts_its_new_facts(self):
        core = binder("a")
        committed(core, ask("a"))
        core.update_pods([("uid-a", LARGE)])
        assert cpu(core) == [900, 0]

    def test_a_deleted_pod_frees_its_node_at_once_and_is_released_after_the_flush(self):
        core = binder("a", "b")
        core.update_pods([("uid-a", LARGE)])
        core.update_pods([("uid-b", LARGE)])
        committed(core, ask("a", facts=LARGE))
        (append,) = core.delete(["uid-a"])
        assert append.records[0].kind is RecordKind.DELETE
        assert append.records[0].facts is None
        core.bind([ask("b", facts=LARGE)])
        released, bound = core.flushed(core.last_lsn)
        assert released == Released("uid-a", "default/a", "n1", evicted=False, preemptor="")
        assert bound.token == "token-b"

    def test_a_pod_deleted_before_its_flush_is_acknowledged_and_then_released(self):
        core = binder("a")
        core.bind([ask("a")])
        core.delete(["uid-a"])
        ack, released = core.flushed(2)
        assert isinstance(ack.result, Bound)
        assert isinstance(released, Released)
        assert core.pod_status("uid-a") == (BinderState.DELETED, None)
        core.validate()

    def test_a_pod_created_again_before_the_flush_of_its_end_stays_pending(self):
        core = binder("a")
        core.bind([ask("a")])
        core.delete(["uid-a"])
        core.add_pods([("uid-a", "default/a", SMALL)])
        core.flushed(2)
        assert core.pod_status("uid-a")[0] is BinderState.PENDING
        core.validate()

    def test_an_evicted_pod_is_released_as_such(self):
        core = binder("a")
        committed(core, ask("a"))
        core.evict(["uid-a", "uid-a"], {"uid-a": "default/p"})
        assert core.flushed(core.last_lsn) == [
            Released("uid-a", "default/a", "n1", evicted=True, preemptor="default/p")
        ]

    def test_a_repeated_end_of_a_pod_changes_nothing(self):
        core = binder("a")
        core.delete(["uid-a"])
        assert core.delete(["uid-a"]) == core.evict(["uid-a"]) == []

    def test_one_unknown_pod_in_a_batch_of_ends_changes_nothing(self):
        core = binder("a")
        with pytest.raises(IllegalTransitionError, match="never added"):
            core.delete(["uid-a", "uid-z"])
        assert core.pod_status("uid-a")[0] is BinderState.PENDING

    def test_the_number_of_remembered_deleted_pods_is_bounded(self):
        core = binder("a", "b", "c", max_gone_remembered=2)
        core.delete(["uid-a", "uid-b", "uid-c"])
        assert core.pod_status("uid-a") == (BinderState.UNKNOWN, None)
        assert core.pod_status("uid-b") == (BinderState.DELETED, None)
        core.validate()


class TestNodes:
    def test_pods_stay_bound_to_a_removed_node_and_count_again_when_it_returns(self):
        core = binder("a", nodes=("n1",))
        committed(core, ask("a"))
        core.remove_node("n1")
        assert core.pod_status("uid-a") == (BinderState.BOUND, "n1")
        core.update_node(NodeFacts("n1"))
        assert cpu(core) == [100]

    def test_removal_of_an_unknown_node_raises(self):
        with pytest.raises(IllegalTransitionError, match="node n9"):
            binder().remove_node("n9")


class TestHalt:
    def test_a_failed_flush_stops_acknowledging_and_lists_unacknowledged_records(self):
        core = binder("a", "b")
        committed(core, ask("a"))
        core.bind([ask("b")])
        assert core.flush_failed("disk full") == [Halted("disk full", 1, 2, ("token-b",))]
        assert core.flushed(2) == []
        assert core.pod_status("uid-b")[0] is BinderState.TENTATIVE
        core.validate()

    def test_a_halted_binder_refuses_binds_and_remembers_no_refusal(self):
        core = binder("a")
        core.flush_failed("disk full")
        assert causes(core.bind([ask("a")])) == ["halted"]
        assert counts_of(core).tokens == 0

    def test_a_halted_binder_still_gives_earlier_answers(self):
        core = binder("a")
        first = committed(core, ask("a"))
        core.flush_failed("disk full")
        assert answers(core.bind([ask("a")])) == first

    def test_a_second_failure_reports_the_first(self):
        core = binder()
        assert core.flush_failed("first") == core.flush_failed("second")

    @pytest.mark.parametrize(
        "change",
        [
            lambda core: core.add_pods([]),
            lambda core: core.load([]),
            lambda core: core.update_pods([("uid-a", LARGE)]),
            lambda core: core.delete(["uid-a"]),
            lambda core: core.evict(["uid-a"]),
            lambda core: core.add_nodes(NodeList.of([NodeFacts("n8"), NodeFacts("n9")])),
            lambda core: core.update_node(NodeFacts("n1", allocatable_pods=3)),
            lambda core: core.remove_node("n1"),
        ],
    )
    def test_a_halted_binder_accepts_no_changes(self, change):
        core = binder("a")
        core.flush_failed("disk full")
        before, version = dict(core.placements.nodes), core.version
        with pytest.raises(BinderHaltedError, match="halted: disk full"):
            change(core)
        assert (dict(core.placements.nodes), core.version) == (before, version)


def test_counts_return_the_number_of_pods_in_each_state():
    core = binder("a", "b", "c")
    committed(core, ask("a"))
    core.bind([ask("b"), ask("z")])
    counts = counts_of(core)
    assert (counts.nodes, counts.pending, counts.tentative, counts.bound) == (2, 1, 1, 1)
    assert (counts.unflushed, counts.tokens) == (1, 3)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda core: setattr(core.pods.present["uid-b"], "state", BinderState.DELETED),
            "uid-b is present as deleted",
        ),
        (lambda core: setattr(core.pods.present["uid-a"], "node_name", "n2"), "is elsewhere"),
        (lambda core: setattr(core.pods.present["uid-a"], "facts", LARGE), "has other facts"),
        (lambda core: setattr(core.pods.present["uid-a"], "lsn", 9), "waits for nothing"),
        (lambda core: core.placements.place("uid-z", "n1", SMALL), "counted and not bound"),
        (lambda core: core.pods.ended.update({"uid-a": None}), "present and ended"),
        (lambda core: unflushed_of(core).append(unflushed_of(core)[0]), "out of order"),
        (lambda core: setattr(core, "flushed_lsn", 1), "a flushed record waits"),
        (lambda core: setattr(core, "last_lsn", 0), "not appended"),
        (
            lambda core: tokens_of(core).answer("token-a", Rejected("u", RejectCause.BUSY, 0)),
            "disagree about waiting requests",
        ),
    ],
)
def test_validate_finds_damage(damage, message):
    core = binder("a", "b")
    core.bind([ask("a")])
    damage(core)
    with pytest.raises(AssertionError, match=message):
        core.validate()


def test_nodes_added_together_are_one_group_in_the_journal():
    core = BinderCore(TableStore(), lambda _: SUCCESS, journals_all=True)
    nodes = NodeList.of([NodeFacts("n1"), NodeFacts("n2")])

    (first,) = core.add_nodes(nodes, revision=3)
    (second,) = core.add_nodes(nodes, revision=4)

    for effect, lsns, revision in ((first, (1, 2), 3), (second, (3, 4), 4)):
        assert isinstance(effect, AppendJournal)
        assert [record.subject for record in effect.records] == [*nodes]
        assert tuple(record.lsn for record in effect.records) == lsns
        assert {record.epoch for record in effect.records} == {revision}


def test_nodes_added_together_without_a_journal_are_only_counted():
    core = BinderCore(TableStore(), lambda _: SUCCESS)

    assert core.add_nodes(NodeList.of([NodeFacts("n1"), NodeFacts("n2")])) == []
    assert counts_of(core).nodes == 2
