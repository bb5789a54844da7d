"""The binder's core receives the batches of a scheduler in order, and no batch waits long."""

import asyncio

import pytest

from roadstead.actors.binder.order import HOLD_S, MAX_WAITING, BindOrder, SendOrder
from roadstead.actors.runtime.virtual_time import run_virtual

LATE_S = HOLD_S / 2


def arriving(*arrivals, owner="s", order=None):
    """Return the order in which batches (arrival in seconds, epoch, number) are bound."""
    order = order or BindOrder()
    taken = []

    async def batch(at_s, epoch, number):
        await asyncio.sleep(at_s)
        await order.wait_for_previous(owner, epoch, number)
        taken.append((number, round(asyncio.get_running_loop().time(), 3)))

    async def all_of_them():
        began_s = asyncio.get_running_loop().time()
        await asyncio.gather(*(batch(*each) for each in arrivals))
        return [(number, round(at_s - began_s, 3)) for number, at_s in taken]

    return run_virtual(all_of_them)


def test_batches_in_order_do_not_wait():
    assert arriving((0.0, 1, 1), (0.001, 1, 2), (0.002, 1, 3)) == [(1, 0), (2, 0.001), (3, 0.002)]


def test_batches_that_overtook_others_wait_for_them():
    found = arriving((0.0, 1, 3), (0.001, 1, 2), (0.002, 1, 1))

    assert found == [(1, 0.002), (2, 0.002), (3, 0.002)]


def test_a_lost_batch_delays_only_the_next_one_for_a_moment():
    found = arriving((0.0, 1, 1), (0.001, 1, 3), (0.1, 1, 4), (0.2, 1, 2))

    assert found == [(1, 0), (3, round(0.001 + HOLD_S, 3)), (4, 0.1), (2, 0.2)]


def test_copies_and_batches_of_an_ended_epoch_or_without_number_do_not_wait():
    found = arriving((0.0, 2, 1), (0.001, 2, 1), (0.002, 1, 9), (0.003, 2, 0))

    assert found == [(1, 0), (1, 0.001), (9, 0.002), (0, 0.003)]


def test_a_new_epoch_counts_from_one():
    found = arriving((0.0, 1, 1), (0.001, 1, 2), (0.002, 2, 2), (0.003, 2, 1))

    assert found == [(1, 0), (2, 0.001), (1, 0.003), (2, 0.003)]


def test_the_number_of_waiting_batches_is_limited():
    late = [(0.0, 1, number) for number in range(2, MAX_WAITING + 3)]

    found = arriving(*late)

    assert found[0] == (MAX_WAITING + 2, 0)
    # Batches that arrive later are due, or were overtaken.
    assert {at_s for _, at_s in found[1:]} == {0}


def test_schedulers_do_not_wait_for_each_other():
    order = BindOrder()

    assert arriving((0.0, 1, 1), order=order) == [(1, 0)]
    assert arriving((0.0, 1, 1), (0.0, 1, 2), owner="other", order=order) == [(1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("late_s", "wanted"),
    [
        (LATE_S, [("first", 1, LATE_S), ("second", 2, LATE_S)]),
        (3 * HOLD_S, [("second", 1, HOLD_S), ("first", 2, 3 * HOLD_S)]),
        (None, [("second", 1, LATE_S)]),
    ],
)
def test_a_scheduler_numbers_its_batches_in_the_order_of_decision(late_s, wanted):
    """late_s: delay of the first batch; None if it has nothing left to send."""

    async def both():
        order, sent = SendOrder(), []
        loop = asyncio.get_running_loop()
        began_s = loop.time()

        async def send(name, turn, after_s):
            await asyncio.sleep(after_s)
            sent.append((name, await turn.wait_turn(), round(loop.time() - began_s, 3)))

        async def nothing_left(turn):
            await asyncio.sleep(LATE_S)
            turn.ended.set()

        first, second = order.begin(), order.begin()
        one = nothing_left(first) if late_s is None else send("first", first, late_s)
        await asyncio.gather(one, send("second", second, 0.0))
        return sent

    found = run_virtual(both)

    assert found == [(name, number, pytest.approx(at_s)) for name, number, at_s in wanted]
