"""The checker of histories accepts results of one-at-a-time execution, and reports all others."""

import pytest

from tests.simulation.histories import Histories


class Recorded(Histories):
    """Histories with calls that begin and end at once, unless they are held open."""

    def __init__(self):
        super().__init__(lease_s=6.0, now=lambda: self.time_s)
        self.time_s = 0.0

    def done(self, what, asked, answer=None):
        call = self.begin(what, asked)
        self.end(call, answer)
        return self

    def bind(self, token, uid, node="", cause="", owner="s", epoch=1):
        return self.done("bind", {token: (uid, owner, epoch)}, {token: (node, cause)})

    def lease(self, owner, lease, *uids, epoch=1):
        return self.done("lease", (owner, epoch), (lease, uids))


def only(history):
    (problem,) = history.problems()
    return problem.partition(": ")[2]


def test_accepting_binding_reading_and_deleting_a_pod_is_no_problem():
    history = Recorded().done("accept", ("a",)).bind("t0", "a", cause="constraint")
    history.bind("t1", "a", "n1").bind("t1", "a", "n1").done("placement", [("a", "")], ("n1",))
    history.done("delete", ("a",), ("a",)).done("placement", [("a", "")], (None,))

    assert history.problems() == []


@pytest.mark.parametrize("again", [("n2", ""), ("", "constraint")])
def test_a_token_has_one_answer(again):
    node, cause = again
    history = Recorded().bind("t", "a", "n1").bind("t", "a", node, cause)

    assert "token t: answered" in history.problems()[0]


def test_a_refusal_by_a_stopped_binder_is_no_answer():
    assert Recorded().bind("t", "a", cause="halted").bind("t", "a", "n1").problems() == []


def test_a_pod_is_bound_under_one_token():
    history = Recorded().bind("t1", "a", "n1").bind("t2", "a", "n1")

    assert only(history) == "a: bound under ('t1', 'n1') and ('t2', 'n1')"
    assert Recorded().bind("t1", "a", "n1").bind("t2", "a", cause="already_bound").problems() == []


def test_a_bind_requested_after_the_pod_was_deleted_does_not_succeed():
    history = Recorded().done("delete", ("a",), ("a",)).bind("t", "a", "n1")

    assert only(history) == "a: bound under t, which was asked after it was gone"


def test_a_bind_requested_before_the_pod_was_deleted_may_be_answered_later():
    history = Recorded()
    call = history.begin("bind", {"t": ("a", "s", 1)})
    history.done("delete", ("a",), ("a",))
    history.end(call, {"t": ("n1", "")})

    # The same token, sent again, is not another attempt either.
    assert history.bind("t", "a", "n1").problems() == []


def test_a_pod_that_was_added_again_may_be_bound():
    history = Recorded().done("delete", ("a",), ("a",)).done("accept", ("a",))

    assert history.bind("t", "a", "n1").problems() == []


def test_an_accepted_pod_is_known():
    history = Recorded().done("accept", ("a",)).bind("t", "a", cause="unknown_pod")

    assert only(history) == "a: accepted, and refused as unknown"
    gone = Recorded().done("accept", ("a",)).done("delete", ("a",), ("a",))
    assert gone.bind("t", "a", cause="unknown_pod").problems() == []
    early = Recorded()
    call = early.begin("accept", ("a",))
    early.bind("t", "a", cause="unknown_pod").end(call)
    assert early.problems() == []


@pytest.mark.parametrize("answer", ["", "n2", None])
def test_a_read_after_a_bind_returns_that_bind(answer):
    history = Recorded().bind("t", "a", "n1").done("placement", [("a", "")], (answer,))

    assert only(history) == f"a: it was bound on n1, and is reported on {answer!r}"


def test_a_read_during_a_bind_may_return_the_previous_state():
    history = Recorded()
    call = history.begin("placement", [("a", "")])
    history.bind("t", "a", "n1").end(call, ("",))

    assert history.problems() == []


def test_a_read_of_a_deleted_pod_returns_that_it_is_deleted():
    history = Recorded().bind("t", "a", "n1").done("delete", ("a",), ("a",))

    assert only(history.done("placement", [("a", "")], ("n1",))) == (
        "a: it was gone, and is reported on 'n1'"
    )


def test_no_pod_is_bound_under_a_token_that_was_resolved_as_void():
    history = Recorded().done("placement", [("a", "t")], ("",))

    assert history.bind("u", "a", "n1").problems() == []
    assert only(Recorded().done("placement", [("a", "t")], ("",)).bind("t", "a", "n1")) == (
        "a: bound under t, which was resolved as void"
    )


def test_a_fenced_life_binds_nothing_that_it_requests_later():
    history = Recorded()
    call = history.begin("bind", {"t1": ("a", "s", 1)})
    history.done("fence", ("s", 2)).end(call, {"t1": ("n1", "")})

    assert history.bind("t2", "b", "n1", epoch=2).problems() == []
    assert only(history.bind("t3", "c", "n1", epoch=1)) == (
        "c: bound by s of epoch 1 after 2 was fenced"
    )


def test_a_resumed_process_may_start_with_an_epoch_that_bound_nothing():
    history = Recorded().bind("t", "a", cause="constraint").done("fence", ("s", 2))
    history.resumed()

    assert history.bind("t", "b", "n1", epoch=2).problems() == []
    # Bound pods stay bound, and fenced owners stay fenced.
    assert len(history.bind("u", "b", "n2", epoch=2).problems()) == 1
    assert len(history.bind("v", "c", "n2", epoch=1).problems()) == 2


def test_a_pod_is_leased_to_one_scheduler_at_a_time():
    history = Recorded().lease("s0", 1, "a", "b").lease("s1", 2, "c", "a")

    assert only(history) == "a: leased to s1 (2) while s0 (1) has it"


@pytest.mark.parametrize(
    "end",
    [
        (1, None, ("a",)),
        (None, None, ("a",)),
        (None, "s0", ()),
        (7, None, (), "a"),
    ],
)
def test_a_pod_whose_lease_ends_may_be_leased_again(end):
    history = Recorded().lease("s0", 1, "a").done("end", end).lease("s1", 2, "a")

    assert history.problems() == []


def test_the_end_of_another_lease_ends_nothing():
    history = Recorded().lease("s0", 1, "a").done("end", (7, None, ("a",))).lease("s1", 2, "a")

    assert len(history.problems()) == 1


def test_leases_end_with_their_time_and_with_the_life_of_the_queue():
    late = Recorded().lease("s0", 1, "a")
    late.time_s = 6.0
    assert late.lease("s1", 2, "a").problems() == []

    replaced = Recorded().lease("s0", 1, "a")
    replaced.restarted()
    assert replaced.lease("s1", 1, "a").problems() == []


def test_a_new_epoch_of_an_owner_takes_over_its_pods():
    history = Recorded().lease("s0", 1, "a", epoch=1).lease("s0", 2, "a", epoch=2)

    assert history.problems() == []
    assert len(history.lease("s0", 3, "a", epoch=2).problems()) == 1


def test_calls_that_are_never_answered_cause_no_problem():
    history = Recorded()
    history.begin("bind", {"t": ("a", "s", 1)})
    history.begin("delete", ("a",))
    history.begin("lease", ("s", 1))
    history.begin("placement", [("a", "")])

    assert history.bind("u", "a", "n1").problems() == []
