"""The ordinary path of a pod, from its lease to its bind, and the effects of each step."""

from roadstead.attempts.commands import (
    Assume,
    Bind,
    Confirm,
    Done,
    FinishBinding,
    PodReport,
    ReportKind,
    SendReports,
)
from roadstead.attempts.pods import Attempt, AttemptState, BindOutcome, BindResult
from roadstead.protocol.status import SKIP
from tests.attempts.core_world import World, kinds, only, tokens


def test_leased_pods_wait_for_their_decision_in_order_of_arrival():
    world = World()
    assert world.lease("u2", "u1", "u3") == []
    assert [pod.uid for pod in world.core.undecided(2)] == ["u2", "u1"]
    assert [pod.uid for pod in world.core.undecided(9)] == ["u2", "u1", "u3"]


def test_an_undecided_pod_stays_leased_and_is_first_in_the_next_batch():
    world = World()
    world.lease("u1", "u2", "u3")
    world.place("u1")
    world.lease("u4", lease_id=2)
    assert [pod.uid for pod in world.core.undecided(9)] == ["u2", "u3", "u4"]


def test_a_decision_for_a_node_sends_an_assumption_under_a_new_token():
    world = World()
    world.lease("u1", "u2")
    decisions = [world.to_node("u1"), world.to_node("u2", "n2")]
    effects = world.core.decided(decisions, {"n1": 7, "n3": 9})
    facts = world.pod_class.facts
    assert effects == [
        Assume(
            (
                Attempt("s/1/1", "u1", "default/u1", "n1", facts, 7),
                Attempt("s/1/2", "u2", "default/u2", "n2", facts, 0),
            )
        )
    ]
    assert world.log == []


def test_the_next_attempt_of_a_pod_has_another_token():
    world = World()
    world.lease()
    world.refuse(*world.place())
    world.lease(lease_id=2, attempt=2)
    assert world.place(attempt=2) == ["s/1/2"]


def test_accepted_pods_pass_all_plugins_and_reach_the_binder_in_one_batch():
    world = World()
    world.lease("u1", "u2")
    effects = world.accept(*world.place("u1", "u2"))
    assert kinds(effects) == ["FinishBinding", "Bind"]
    assert tokens(Bind, effects) == tokens(FinishBinding, effects) == ["s/1/1", "s/1/2"]
    steps = ["reserve A", "reserve B", "permit A", "permit B", "pre_bind A", "pre_bind B", "bind A"]
    assert world.log == [f"{step} {uid}" for uid in ("u1", "u2") for step in steps]


def test_plugins_receive_identity_facts_and_node():
    world = World(plugins=("A",))
    seen = []
    world.profile.post_bind[0].post_bind = lambda *arguments: seen.append(arguments)
    world.binding()
    world.answer(BindOutcome.BOUND)
    ((identity, facts, node_name),) = seen
    assert (identity.uid, identity.namespace, identity.name) == ("u1", "default", "u1")
    assert facts is world.pod_class.facts
    assert node_name == "n1"


def test_bound_pods_are_confirmed_to_the_cache_and_done_at_the_queue():
    world = World()
    sent = only(Bind, world.binding("u1", "u2")).attempts
    world.log.clear()
    effects = world.core.bind_answered(
        [BindResult(one.token, BindOutcome.BOUND, "n1") for one in sent]
    )
    assert effects == [Confirm(sent), Done(1, ("u1", "u2"))]
    assert world.log == [f"post_bind {name} {uid}" for uid in ("u1", "u2") for name in "AB"]
    assert world.core.state_of("u1") is AttemptState.BOUND
    assert world.core.idle


def test_done_pods_are_reported_lease_by_lease():
    world = World()
    world.lease("u1", "u2")
    world.lease("u3", lease_id=2)
    sent = only(Bind, world.accept(*world.place("u1", "u3", "u2"))).attempts
    effects = world.core.bind_answered(
        [BindResult(one.token, BindOutcome.BOUND, "n1") for one in sent]
    )
    assert effects[1:] == [Done(1, ("u1", "u2")), Done(2, ("u3",))]


def test_a_bind_plugin_that_skips_leaves_the_pod_to_the_next():
    world = World(answers={"A": {"bind": SKIP}})
    world.binding()
    assert world.log[-2:] == ["bind A u1", "bind B u1"]


def test_a_failing_post_bind_is_reported_and_changes_nothing():
    world = World(answers={"A": {"post_bind": RuntimeError("no network")}})
    world.binding()
    effects = world.answer(BindOutcome.BOUND)
    assert kinds(effects) == ["Confirm", "Done", "SendReports"]
    text = 'running PostBind plugin "A": RuntimeError: no network'
    assert only(SendReports, effects).reports == (
        PodReport("u1", "default/u1", ReportKind.WARNING, text),
    )
    assert world.log[-1] == "post_bind B u1"


def test_the_core_is_idle_only_without_pods_between_lease_and_end():
    world = World()
    assert world.core.idle
    world.lease()
    assert not world.core.idle
    world.accept(*world.place())
    assert not world.core.idle
    world.answer(BindOutcome.BOUND)
    assert world.core.idle


def test_counts_return_the_number_of_pods_in_each_state():
    world = World()
    world.binding("u1", "u2")
    world.core.timed_out(["s/1/2"])
    world.lease("u3", "u4", "u5", lease_id=2)
    world.place("u3")
    world.core.decided([world.to_none("u5")])
    counts = world.core.counts()
    assert (counts.binding, counts.asked, counts.assuming, counts.leased) == (1, 1, 1, 1)
    assert (counts.waiting, counts.live) == (0, 4)
    assert counts.bound_total == 0


def test_attempts_list_the_pods_that_the_cache_may_count():
    world = World()
    world.binding("u1", "u2")
    world.lease("u3", "u4", lease_id=2)
    world.place("u3")
    world.answer(BindOutcome.BOUND, "s/1/1")
    assert [one.token for one in world.core.attempts()] == ["s/1/2", "s/1/3"]


def test_the_state_of_an_unknown_pod_is_new():
    assert World().core.state_of("u9") is AttemptState.NEW
