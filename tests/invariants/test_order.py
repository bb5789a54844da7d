"""PendingOrder counts the pods that overtake equal ones: random calls against a plain list."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead.invariants.order import PendingOrder
from tests.builders import pod

UIDS = tuple("abcde")
SHAPES = (pod(cpu=100), pod(cpu=200))


class PlainOrder:
    """Waiting pods in the order of their acceptance: [uid, shape, priority]."""

    def __init__(self):
        self.waiting, self.overtaken = [], 0

    def wait(self, uid, shape, priority):
        if [uid, shape, priority] not in self.waiting:
            self.leave(uid)
            self.waiting.append([uid, shape, priority])

    def leave(self, uid):
        self.waiting = [each for each in self.waiting if each[0] != uid]

    def bind(self, uid):
        for at, (own, shape, priority) in enumerate(self.waiting):
            if own == uid:
                self.overtaken += any(
                    other == shape and (their > priority or (their == priority and index < at))
                    for index, (_, other, their) in enumerate(self.waiting)
                )
        self.leave(uid)


CALLS = st.tuples(
    st.sampled_from(("wait", "wait", "wait", "bind", "bind", "leave")),
    st.sampled_from(UIDS),
    st.integers(0, len(SHAPES) - 1),
    st.integers(-1, 1),
)


@given(st.lists(CALLS, max_size=40))
def test_pods_that_overtake_equal_ones_are_counted_like_in_a_plain_list(calls):
    order, plain = PendingOrder(), PlainOrder()
    facts = {
        (shape, priority): pod(cpu=100 * (shape + 1), priority=priority)
        for shape in range(len(SHAPES))
        for priority in (-1, 0, 1)
    }
    for call, uid, shape, priority in calls:
        if call == "wait":
            order.wait(uid, facts[shape, priority])
            plain.wait(uid, shape, priority)
        else:
            getattr(order, call)(uid)
            getattr(plain, call)(uid)

        assert order.overtaken == plain.overtaken, (call, uid)
