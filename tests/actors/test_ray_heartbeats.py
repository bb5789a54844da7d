"""A node is lost if it refuses several connections in a row."""

import socket
import threading

import pytest

from roadstead.actors.runtime import ray_heartbeats
from roadstead.actors.runtime.ray_heartbeats import (
    HEAD_LOST_BEATS,
    LOST_BEATS,
    Heartbeats,
    address_of,
    await_loss,
    connected,
)
from tests.actors.world import GENEROUS_S

A, B, HEAD = ("10.0.0.1", 1), ("10.0.0.2", 2), ("10.0.0.1", 6379)


class Answers:
    """A network in which some addresses answer."""

    def __init__(self, *keys):
        self.keys = set(keys)

    def __call__(self, addresses, timeout_s):
        return self.keys & addresses.keys()


@pytest.fixture
def network():
    return Answers("a", "b", "head")


@pytest.fixture
def heartbeats(network):
    found = Heartbeats(HEAD, network)
    found.watch({"a": A, "b": B})
    return found


def beat(heartbeats, times):
    for _ in range(times):
        heartbeats.beat()


def test_a_node_is_lost_after_several_failed_connections(heartbeats, network):
    beat(heartbeats, 10)
    network.keys.discard("b")

    beat(heartbeats, LOST_BEATS - 1)
    assert heartbeats.lost == frozenset()
    heartbeats.beat()
    assert heartbeats.lost == {"b"}


def test_a_node_that_answers_in_between_is_not_lost(heartbeats, network):
    for _ in range(5):
        network.keys.discard("b")
        beat(heartbeats, LOST_BEATS - 1)
        network.keys.add("b")
        heartbeats.beat()

    assert heartbeats.lost == frozenset()


def test_a_lost_node_stays_lost(heartbeats, network):
    network.keys.discard("b")
    beat(heartbeats, LOST_BEATS)
    network.keys.add("b")

    beat(heartbeats, 10)

    assert heartbeats.lost == {"b"}


def test_the_head_may_be_restarted(heartbeats, network):
    network.keys.discard("head")
    beat(heartbeats, HEAD_LOST_BEATS - 1)
    assert (heartbeats.is_head_silent, heartbeats.is_head_lost) == (True, False)
    heartbeats.beat()
    assert heartbeats.is_head_lost

    network.keys.add("head")
    heartbeats.beat()

    assert (heartbeats.is_head_silent, heartbeats.is_head_lost) == (False, False)
    assert heartbeats.lost == frozenset()


def test_only_addresses_that_accept_a_connection_are_returned():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        addresses = {"up": server.getsockname(), "down": closed.getsockname()}

        assert connected(addresses, 5.0) == {"up"}


def test_a_loss_is_awaited_until_enough_connections_in_a_row_failed():
    answers = iter([True, False, False, True, *[False] * 10])
    pauses = []

    await_loss(A, 3, lambda asked, _: set(asked) if next(answers) else set(), pause=pauses.append)

    assert len(pauses) == 7, "two failures, one answer, three failures after the first answer"


def test_an_error_of_this_process_is_no_failed_connection_and_ends_no_thread(monkeypatch):
    answers = iter([set(), OSError("too many open files"), set(), set()])
    connected_again, errors = threading.Event(), iter([OSError("too many open files")])

    def connect(asked, _):
        if isinstance(answer := next(answers), OSError):
            raise answer
        return answer

    def connect_in_thread(asked, _):
        for failure in errors:
            raise failure
        connected_again.set()
        return set(asked)

    pauses = []
    await_loss(A, 3, connect, pause=pauses.append)
    monkeypatch.setattr(ray_heartbeats, "BEAT_S", 0.001)
    heartbeats = Heartbeats(HEAD, connect_in_thread)
    heartbeats.start()

    assert len(pauses) == 4
    assert connected_again.wait(GENEROUS_S)
    heartbeats.stop()


def test_an_ipv6_address_is_connected_to_without_its_brackets():
    assert address_of("[::1]:6379") == ("::1", 6379)
    assert address_of("head.example.com:6379") == ("head.example.com", 6379)
