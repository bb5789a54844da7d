"""All-or-nothing groups of requests, and rows that changed since they were read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.binder import BinderCore, BinderSettings, Bound, RejectCause, Rejected, TableStore
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import GroupMembership, PodFacts
from roadstead.protocol.status import SUCCESS, unschedulable
from tests.binder.test_binder_core import LARGE, SMALL, answers, ask, binder, causes, committed
from tests.inside import counts_of


def job(name, node_name="n1", *, of="job", **more):
    return ask(name, node_name, **more)._replace(transaction=of)


def outcomes(core, *requests):
    """Token → node, or the cause of its refusal."""
    found = committed(core, *requests)
    return {
        token: each.node_name if isinstance(each, Bound) else each.cause.value
        for token, each in found.items()
    }


def large(core, *names):
    for name in names:
        core.update_pods([(f"uid-{name}", LARGE)])


class TestTransactions:
    def test_a_transaction_that_fits_is_bound_as_a_whole(self):
        core = binder("a", "b")

        assert outcomes(core, job("a"), job("b", "n2")) == {"token-a": "n1", "token-b": "n2"}

    def test_nothing_of_a_transaction_that_does_not_fit_is_bound(self):
        core = binder("a", "b", "c")
        large(core, "a", "b")

        found = committed(
            core, job("a", facts=LARGE), job("c", "n2"), job("b", facts=LARGE), ask("d")
        )

        assert [found[f"token-{name}"].cause for name in "acb"] == [
            RejectCause.TRANSACTION,
            RejectCause.TRANSACTION,
            RejectCause.CONSTRAINT,
        ]
        assert found["token-b"].status.message == "Insufficient cpu"
        shared = "default/b of the same job was refused: constraint"
        assert found["token-a"].status.message == shared
        assert found["token-d"].cause is RejectCause.UNKNOWN_POD
        assert counts_of(core).bound == 0
        core.validate()

    def test_the_room_of_a_refused_transaction_is_free_for_the_next(self):
        core = binder("a", "b", "c")
        large(core, "a", "b", "c")
        broken = (job("a", facts=LARGE), job("b", facts=LARGE))

        found = outcomes(core, *broken, job("c", facts=LARGE, of="other"))

        assert found == {"token-a": "transaction", "token-b": "constraint", "token-c": "n1"}

    def test_a_request_after_the_refusal_of_its_transaction_uses_no_room(self):
        core = binder("a", "c")
        large(core, "a", "c")

        found = outcomes(core, job("x"), job("a", facts=LARGE), job("c", facts=LARGE, of="other"))

        assert found == {"token-x": "unknown_pod", "token-a": "transaction", "token-c": "n1"}

    def test_a_pod_requested_twice_is_bound_by_the_first_request(self):
        core = binder("a", "b")

        found = outcomes(
            core,
            job("a", of="first"),
            job("b", of="second"),
            job("a", "n2", of="second", token="again"),
        )

        assert found == {"token-a": "n1", "token-b": "transaction", "again": "already_bound"}

    def test_a_single_request_is_decided_next_to_a_refused_transaction(self):
        core = binder("a", "b", "c")

        found = outcomes(core, ask("z"), job("a"), ask("b"), job("y"), ask("c", "gone"))

        assert found == {
            "token-z": "unknown_pod",
            "token-a": "transaction",
            "token-b": "n1",
            "token-y": "unknown_pod",
            "token-c": "unknown_node",
        }

    def test_a_transaction_may_fail_for_room_that_another_one_used(self):
        core = binder("a", "b", "c")
        large(core, "a", "b", "c")

        found = outcomes(
            core,
            job("a", facts=LARGE, of="first"),
            job("b", facts=LARGE, of="second"),
            job("c", "n2", facts=LARGE, of="second"),
        )

        assert found == {"token-a": "n1", "token-b": "constraint", "token-c": "transaction"}

    def test_any_refusal_of_one_refuses_the_others(self):
        core = binder("a", "b")

        assert outcomes(core, job("a"), job("b", "gone")) == {
            "token-a": "transaction",
            "token-b": "unknown_node",
        }

    def test_a_repeated_request_gets_the_same_answers(self):
        core = binder("a", "b", "c")
        whole = (job("a"), job("b"))
        broken = (job("c", of="other"), job("x", of="other"))
        first = committed(core, *whole, *broken)

        assert committed(core, *whole, *broken) == first
        assert committed(core, *reversed(whole)) == {k: first[k] for k in ("token-a", "token-b")}

    def test_pods_bound_earlier_do_not_exclude_the_rest_of_their_transaction(self):
        core = binder("a", "b")
        committed(core, job("a"))

        assert outcomes(core, job("a"), job("b")) == {"token-a": "n1", "token-b": "n1"}

    def test_it_does_not_start_a_transaction_that_its_bound_cannot_finish(self):
        core = binder("a", "b", max_unflushed=1)

        effects = core.bind([job("a"), job("b")])

        assert causes(effects) == ["transaction", "busy"]
        assert counts_of(core).unflushed == 0

    def test_a_pod_bound_by_another_transaction_refuses_the_whole(self):
        core = binder("a", "b")
        committed(core, ask("a", token="earlier"))

        assert outcomes(core, job("a"), job("b")) == {
            "token-a": "already_bound",
            "token-b": "transaction",
        }


class TestGangsAndTransactions:
    def test_a_gang_with_enough_pods_may_be_bound_in_part_and_a_transaction_may_not(self):
        member = replace(SMALL, pod_group=GroupMembership("g", 1))
        needs = {"g": 1}

        def missing(facts):
            return needs.get(facts.pod_group.name, 0) if facts.pod_group else 0

        core = binder("a", "b", missing_members=missing)
        for name in "ab":
            core.update_pods([(f"uid-{name}", member)])
        of_gang = [ask("a", facts=member), ask("b", "gone", facts=member)]

        assert outcomes(core, *of_gang) == {"token-a": "n1", "token-b": "unknown_node"}

    def test_the_pods_that_a_gang_needs_are_counted_once_for_a_batch(self):
        member = replace(SMALL, pod_group=GroupMembership("g", 2))
        asked = []
        core = binder("a", "b", missing_members=lambda facts: asked.append(facts) or 2)
        for name in "ab":
            core.update_pods([(f"uid-{name}", member)])

        bound = outcomes(core, ask("a", facts=member), ask("b", facts=member))

        assert bound == {"token-a": "n1", "token-b": "n1"}
        assert asked == [member]

    def test_a_gang_that_does_not_reach_its_minimum_gets_that_reason(self):
        member = replace(SMALL, pod_group=GroupMembership("g", 2))
        core = binder("a", "b", missing_members=lambda facts: 2)
        for name in "ab":
            core.update_pods([(f"uid-{name}", member)])

        found = committed(core, ask("a", facts=member), ask("b", "gone", facts=member))

        assert found["token-a"].cause is RejectCause.CONSTRAINT
        assert found["token-a"].status.message == "too few pods of its group can be bound with it"
        assert found["token-b"].cause is RejectCause.UNKNOWN_NODE

    def test_requests_that_depend_on_a_refused_gang_are_tried_again_without_it(self):
        member = replace(SMALL, pod_group=GroupMembership("g", 2))
        store = TableStore()

        def fits(request):
            alone = store.table.row_facts("n1")["pod_count"] == 0
            return unschedulable("alone") if alone and request.uid == "uid-c" else SUCCESS

        core = BinderCore(store, fits, missing_members=lambda facts: 2 if facts.pod_group else 0)
        core.add_node(NodeFacts("n1"))
        facts = {"a": member, "b": member, "c": SMALL, "d": SMALL}
        core.add_pods([(f"uid-{name}", f"default/{name}", each) for name, each in facts.items()])

        found = outcomes(
            core, ask("a", facts=member), ask("b", "gone", facts=member), job("c"), job("d")
        )

        assert found == {
            "token-a": "constraint",
            "token-b": "unknown_node",
            "token-c": "constraint",
            "token-d": "transaction",
        }

    def test_the_trial_is_undone_before_the_decision(self):
        steps = []

        def verify(request):
            steps.append("verify")
            return SUCCESS

        core = BinderCore(
            TableStore(), verify, undo=lambda: steps.append("undo"), dry_run=lambda _: SUCCESS
        )
        core.add_node(NodeFacts("n1"))
        core.add_pods([("uid-a", "default/a", SMALL), ("uid-b", "default/b", SMALL)])

        core.bind([job("a"), job("b")])

        assert steps == ["undo", "verify", "verify"]

    def test_the_trial_is_undone_after_an_error_as_well(self):
        undone = []
        core = BinderCore(
            TableStore(), lambda _: SUCCESS, undo=lambda: undone.append(True), dry_run=_broken
        )
        core.add_node(NodeFacts("n1"))
        core.add_pods([("uid-a", "default/a", SMALL)])

        with pytest.raises(RuntimeError):
            core.bind([job("a")])

        assert undone == [True]


def _broken(_):
    raise RuntimeError("a filter failed")


class TestVersions:
    def test_a_bind_to_a_row_changed_by_another_scheduler_is_refused_with_the_version(self):
        core = binder("a", "b", checks_versions=True)
        first = committed(core, ask("a", owner="s0"))["token-a"]

        refused = committed(core, ask("b", owner="s1"))["token-b"]

        assert refused.cause is RejectCause.VERSION
        assert refused.row_version == first.lsn
        assert refused.status.message == f"the node changed with record {first.lsn}, 0 was read"

    def test_the_version_of_a_refusal_is_enough_for_the_next_attempt(self):
        core = binder("a", "b", checks_versions=True)
        committed(core, ask("a", owner="s0"))
        refused = committed(core, ask("b", owner="s1"))["token-b"]

        again = ask("b", owner="s1", token="again")._replace(read_version=refused.row_version)

        assert outcomes(core, again) == {"again": "n1"}

    def test_other_rows_and_own_binds_are_no_conflict(self):
        core = binder("a", "b", "c", checks_versions=True)
        committed(core, ask("a", owner="s0"))

        assert outcomes(core, ask("b", owner="s0")) == {"token-b": "n1"}
        assert outcomes(core, ask("c", "n2", owner="s1")) == {"token-c": "n2"}

    def test_changes_are_no_conflict_where_only_fit_counts(self):
        core = binder("a", "b")
        committed(core, ask("a", owner="s0"))

        assert outcomes(core, ask("b", owner="s1")) == {"token-b": "n1"}

    @pytest.mark.parametrize(
        "change",
        [
            lambda core: core.update_node(NodeFacts("n1", allocatable=(("cpu", 900),))),
            lambda core: core.delete(["uid-a"]),
            lambda core: core.evict(["uid-a"]),
        ],
        ids=["update", "delete", "evict"],
    )
    def test_changes_of_a_node_are_a_conflict_for_every_owner(self, change):
        core = binder("a", "b", checks_versions=True)
        read = committed(core, ask("a", owner="s0"))["token-a"].lsn
        change(core)

        refused = committed(core, ask("b", owner="s0")._replace(read_version=read))["token-b"]

        assert refused.cause is RejectCause.VERSION
        assert refused.row_version > read

    def test_a_removed_node_that_is_added_again_is_another_one(self):
        core = binder("a", "b", checks_versions=True)
        core.remove_node("n1")
        core.add_node(NodeFacts("n1", allocatable=(("cpu", 900),)))

        refused = committed(core, ask("a"))["token-a"]

        assert refused.cause is RejectCause.VERSION
        fresh = ask("b")._replace(read_version=refused.row_version)
        assert outcomes(core, fresh) == {"token-b": "n1"}

    def test_an_identical_node_and_waiting_pods_change_no_version(self):
        core = binder("a", "b", checks_versions=True)
        core.add_node(core.placements.nodes["n1"])
        core.delete(["uid-b"])

        assert core.row_versions.of("n1") == core.row_versions.of("") == 0

    def test_a_fresh_version_does_not_help_a_pod_that_does_not_fit(self):
        core = binder("a", "b", checks_versions=True)
        large(core, "a", "b")
        read = committed(core, ask("a", facts=LARGE))["token-a"].lsn
        fresh = ask("b", facts=LARGE)._replace(read_version=read)

        assert outcomes(core, fresh) == {"token-b": "constraint"}


requests = st.lists(
    st.tuples(
        st.sampled_from("abcdefgh"),
        st.sampled_from(["n1", "n2"]),
        st.sampled_from(["", "j1", "j2", "j3"]),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda each: each[0],
)


@given(requests, st.integers(100, 1000))
def test_transactions_are_all_or_nothing_and_no_node_is_overfilled(asked, room):
    store = TableStore()

    def fits(request):
        used = store.table.row_facts(request.node_name)["requested"].get("cpu", 0)
        return SUCCESS if used + 100 <= room else unschedulable("Insufficient cpu")

    core = BinderCore(store, fits, BinderSettings(checks_versions=True))
    for name in ("n1", "n2"):
        core.add_node(NodeFacts(name, allocatable=(("cpu", room),)))
    facts = PodFacts(requests=(("cpu", 100),))
    core.add_pods([(f"uid-{name}", f"default/{name}", facts) for name, _, _ in asked])

    effects = core.bind([job(name, node, of=of, facts=facts) for name, node, of in asked])
    found = answers([*effects, *core.flushed(core.last_lsn)])

    core.validate()
    for of in {of for _, _, of in asked if of}:
        bound = {isinstance(found[f"token-{name}"], Bound) for name, _, its in asked if its == of}
        assert len(bound) == 1
    for name, _, of in asked:
        if not of and isinstance(found[f"token-{name}"], Rejected):
            assert found[f"token-{name}"].cause is RejectCause.CONSTRAINT
