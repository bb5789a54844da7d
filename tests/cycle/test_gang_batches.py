import pytest

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.gangs import fails_gang
from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.framework.waiting import WaitingPod
from roadstead.nodes.pod_class import PodClasses
from tests.builders import pod

CLASSES = PodClasses()
A, B, NONE = (pod(pod_group=GroupMembership("a", 2)), pod(pod_group=GroupMembership("b", 2)), pod())


def decision(facts, node_name=None):
    return Decision(PodInCycle("u", "default/u", CLASSES.pod_class(facts), "class"), node_name)


def waits(facts):
    return WaitingPod(PodIdentity("w", "default", "w"), facts, "n1", ("Coscheduling",))


@pytest.mark.parametrize(
    ("last", "earlier", "waiting", "expected"),
    [
        (decision(A), [decision(A, "n1")], [], True),
        (decision(A), [], [waits(A)], True),
        (decision(A), [decision(B, "n1"), decision(A)], [waits(B), waits(NONE)], False),
        (decision(A, "n1"), [decision(A, "n2")], [waits(A)], False),
        (decision(NONE), [decision(NONE, "n1")], [waits(NONE)], False),
    ],
)
def test_a_gang_fails_if_one_member_fits_nowhere_and_another_has_a_node(
    last, earlier, waiting, expected
):
    assert fails_gang(last, earlier, waiting) is expected
