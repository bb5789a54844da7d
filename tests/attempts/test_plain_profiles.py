"""A profile whose plugins decide nothing uses a shortcut with the same result as calling them
all.
"""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from roadstead.attempts.commands import Assume
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import AttemptState, BindOutcome, BindResult
from roadstead.cycle.batch import Decision
from roadstead.nodes.pod_class import PodClasses
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import unschedulable
from tests.attempts.core_world import POINTS, World, kinds, too_small
from tests.builders import profile_of

KINDS = ("lease", "place", "place", "none", "accept", "accept", "refuse", "answer", "answer")
ASKING = tuple(point for point in POINTS if point != "postFilter")


class Plainly(World):
    """A world whose one plugin hands pods to the binder."""

    def __init__(self, **given_too):
        super().__init__(**given_too)
        self.profile = profile_of({"bind": ["DefaultBinder"]}, classes=self.classes)
        assert self.profile.binds_without_plugins
        self.core = AttemptsCore("s", 1, {"default-scheduler": self.profile}, max_remembered=3)


def step(world, number, kind, picks, outcome, issued):
    """One call of a core. picks: indexes of pods, of undecided ones, or of the issued tokens."""
    core = world.core
    tokens = [f"s/1/{pick % (issued or 1) + 1}" for pick in picks]
    if kind == "lease":
        return core.lease(number, [world.pod(f"u{pick}", number) for pick in picks])
    if kind in ("place", "none"):
        node_name, why = ("n1", None) if kind == "place" else (None, too_small())
        pods = core.undecided(len(picks))
        return core.decided([Decision(each, node_name, diagnosis=why) for each in pods])
    if kind == "answer":
        node_name = "n1" if outcome is BindOutcome.BOUND else ""
        return core.bind_answered([BindResult(token, outcome, node_name) for token in tokens])
    if kind == "delete":
        return core.deleted([f"u{pick}" for pick in picks])
    if kind == "reject":
        world.profile.waiting.reject_where(lambda facts: True, "A", "no room for any")
        return core.tick(0.0)
    refused = [(token, unschedulable("held")) for token in tokens]
    calls = {
        "accept": lambda: core.assumed(tokens, [], 0.0),
        "refuse": lambda: core.assumed([], refused, 0.0),
        "lost": lambda: core.timed_out(tokens),
    }
    return calls[kind]()


def outcome_of(world, *call):
    try:
        return step(world, *call)
    except IllegalTransitionError as failure:
        return str(failure)


def issued_in(outcome):
    """Return the number of tokens that a call of `decided` issued."""
    return sum(len(each.attempts) for each in outcome if isinstance(each, Assume))


steps = st.tuples(
    st.sampled_from((*KINDS, "delete", "reject", "lost")),
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.sampled_from((BindOutcome.BOUND, *BindOutcome)),
)


def every(*kinds, outcome=BindOutcome.BOUND):
    """A program of these steps, each on three pods."""
    return [(kind, [0, 1, 2], outcome) for kind in kinds]


@settings(deadline=None)
@given(st.lists(steps, max_size=25))
@example(every("lease", "place", "refuse", "accept", "lease", "place", "accept"))
@example(every("lease", "place", "reject", "accept", "lease", "place", "accept", "answer"))
@example(every("lease", "place", "accept", "accept", "lost", "answer", "lease", "delete"))
@example(every("lease", "place", "accept", "answer", outcome=BindOutcome.FAILED))
def test_plugins_that_are_not_called_leave_no_trace(program):
    classes = PodClasses()
    plainly = Plainly(classes=classes)
    asking = World(plugins=("A",), points=ASKING, max_remembered=3, classes=classes)

    issued = 0
    for number, call in enumerate(program, 1):
        outcome = outcome_of(plainly, number, *call, issued)
        assert outcome == outcome_of(asking, number, *call, issued)
        issued += issued_in(outcome) if call[0] == "place" else 0
        assert plainly.picture() == asking.picture()
        plainly.core.validate()


def test_a_copy_of_an_answer_does_not_stop_the_others_of_its_batch():
    world = Plainly()
    world.lease("u1", "u2")
    first, second = world.place("u1", "u2")
    world.accept(first)

    assert kinds(world.accept(first, second)) == ["FinishBinding", "Bind"]
    assert [world.core.state_of(uid) for uid in ("u1", "u2")] == [AttemptState.BINDING] * 2
    for token in (first, second):
        assert kinds(world.answer(BindOutcome.BOUND, token)) == ["Confirm", "Done"]
