"""The thread that lists nodes for a sweep: it checks late nodes again, and ends for no error."""

import threading

import pytest
import ray.autoscaler.sdk

from roadstead.actors.runtime import ray_checks
from roadstead.actors.runtime.ray_checks import NodeReport
from roadstead.actors.runtime.ray_placement import RayNode
from roadstead.actors.sweeps import node_watch
from roadstead.actors.sweeps.node_watch import NodeWatch
from tests.actors.world import GENEROUS_S
from tests.waiting import until

NODE = RayNode("1", "h1", "10.0.0.1", 7000, 4.0, 4.0)

WITHDRAWAL_S = 0.2
"""How long a request to the autoscaler lets a withdrawal overtake it."""


@pytest.fixture(autouse=True)
def _one_node_without_pauses(monkeypatch):
    monkeypatch.setattr(node_watch, "LIST_EVERY_S", 0.001)
    monkeypatch.setattr(node_watch, "alive_nodes", lambda: [NODE])
    monkeypatch.setattr(ray_checks, "RECHECK_PAUSE_S", 0.0)


@pytest.fixture
def watched():
    """Return a function that starts a watch, which ends with the test."""
    watches = []

    def start():
        watches.append(NodeWatch(dict))
        return watches[-1]

    yield start
    for watch in watches:
        watch.stop()


def uses_the_node(watch):
    """Return a condition: the watch has published a listing with the node."""

    def holds():
        listing = watch.collect()
        return listing is not None and listing.nodes == (NODE,) and listing.problems == ()

    return holds


def answering(monkeypatch, *answers):
    """Let checks of the node have these results, and then succeed; an exception is raised."""
    left = iter(answers)

    async def check_nodes(nodes, journal, deadlines_s):
        answer = next(left, NodeReport(NODE))
        if isinstance(answer, Exception):
            raise answer
        return [answer]

    monkeypatch.setattr(node_watch, "check_nodes", check_nodes)


def test_a_late_node_is_checked_again_and_used(monkeypatch, watched):
    answering(monkeypatch, NodeReport(NODE, {}, "did not answer its check", is_late=True))
    watch = watched()

    assert until(uses_the_node(watch), GENEROUS_S)
    assert list(watch.notes()) == ["Left out: h1 (10.0.0.1): did not answer its check"]


def test_an_error_of_any_type_is_noted_and_nodes_are_listed_again(monkeypatch, watched):
    answering(monkeypatch, OSError("too many open files"), KeyError("Alive"))
    watch = watched()

    assert until(uses_the_node(watch), GENEROUS_S)
    notes = list(watch.notes())
    assert len(notes) == 2
    assert notes[0] == "The nodes of Ray cannot be listed: too many open files"


def test_no_request_is_sent_after_the_withdrawal(monkeypatch, watched):
    answering(monkeypatch)
    sending, withdrawn, requests = threading.Event(), threading.Event(), []

    def request_resources(bundles):
        if bundles:
            sending.set()
            withdrawn.wait(WITHDRAWAL_S)
        requests.append(bundles)
        if not bundles:
            withdrawn.set()

    monkeypatch.setattr(ray.autoscaler.sdk, "request_resources", request_resources)
    watch = watched()
    watch.request([1.0])
    assert sending.wait(GENEROUS_S)
    watch.stop()

    assert requests[-2:] == [[{"CPU": 1.0}], []]
