"""The watch over users' plugins: deadlines, strikes, and the mark that outlives a process."""

import subprocess
import sys

import numpy as np
import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import EVERYTHING, HintError, ObjectChange, RegisteredEvent
from roadstead.framework.guarded import PluginFailure, guard
from roadstead.framework.plugin import EnqueueExtensions, Reads, ScorePlugin
from roadstead.framework.plugin_calls import (
    MAX_FOR_CLASS,
    MAX_IN_PROCESS,
    RUNNING_CALLS,
    PluginCall,
    PluginCalls,
    PluginSuspendedError,
)
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugin_watch import (
    POD_KEY_FINDERS,
    Mark,
    PluginWatch,
    call_at_exit,
    call_text,
    describe_pod,
)
from tests.builders import node, pod, table_of

SOON_S = 0.2


@pytest.fixture(autouse=True)
def _no_strikes():
    yield
    RUNNING_CALLS.forget()


class Asked(ScorePlugin):
    """Runs a given function when a score is requested."""

    name = "Asked"
    reads = Reads.ROW

    def __init__(self, does):
        self.does = does

    def score(self, state, pod, table):
        self.does()
        return np.zeros(len(table), np.int64)


def ask(does):
    """Call a plugin's score once; the plugin runs a function before."""
    table = table_of(node("n1"))
    pod_class = table.classes.pod_class(pod(cpu=100))
    return guard(Asked(does)).score(CycleState(1), pod_class, table)


def for_ever():
    while True:
        pass


def swallowing():
    try:
        for_ever()
    except BaseException:
        return


@pytest.fixture
def stuck():
    """Return the calls that were reported as stuck, while a watch observes this process."""
    found = []
    watch = PluginWatch(SOON_S, found.append, grace_s=SOON_S)
    watch.start()
    yield found
    watch.stop()


@pytest.mark.parametrize("does", [for_ever, swallowing])
def test_a_call_that_never_returns_is_interrupted_and_fails_by_name(stuck, does):
    with pytest.raises(PluginFailure) as failed:
        ask(does)

    message = f'plugin "Asked" failed at Score: did not return within {SOON_S:g} s'
    line = str(failed.value).removeprefix(f"{message} (tests/framework/test_plugin_watch.py:")
    # The line on which the call was interrupted.
    assert line.removesuffix(")").isdecimal()
    assert stuck == []


def test_after_two_interrupts_a_plugin_is_not_called_for_such_pods(stuck):
    asked = []
    for _ in range(MAX_FOR_CLASS + 1):
        with pytest.raises(PluginFailure) as failed:
            ask(lambda: (asked.append(1), for_ever()))

    assert len(asked) == MAX_FOR_CLASS
    assert "is not called for such pods any more: it did not return within" in str(failed.value)


class Hinting(EnqueueExtensions):
    name = "Hinting"

    def __init__(self, hint):
        self.hint = hint

    def events_to_register(self):
        return (RegisteredEvent(EVERYTHING[0].event, self.hint),)


def test_a_hint_that_never_returns_is_interrupted_and_fails(stuck):
    (registered,) = guard(Hinting(lambda *_: for_ever())).events_to_register()

    with pytest.raises(HintError, match=f"^did not return within {SOON_S:g} s "):
        registered.hint(pod(cpu=100), ObjectChange(None, None), ClusterFacts())
    assert stuck == []


def test_a_hint_with_an_invalid_answer_fails():
    (registered,) = guard(Hinting(lambda *_: True)).events_to_register()

    with pytest.raises(HintError, match="returned True, want a QueueingHint"):
        registered.hint(pod(cpu=100), ObjectChange(None, None), ClusterFacts())


def test_a_stuck_call_is_reported_with_its_pod():
    call = PluginCall("Asked", "Score", 0, pod(cpu=100))

    asks = 'a pod of namespace "default" that asks for cpu=100'
    assert call_text(call) == f'plugin "Asked" did not return from Score for {asks} in time'


def test_an_actor_that_knows_the_pod_names_it():
    facts = pod(cpu=100)
    POD_KEY_FINDERS["scheduler-0"] = lambda asked: "default/p" if asked == facts else None
    try:
        assert describe_pod(facts) == 'pod "default/p"'
        assert "asks for cpu=200" in describe_pod(pod(cpu=200))
    finally:
        POD_KEY_FINDERS.clear()


def test_a_single_process_ends_with_status_1_and_the_reason():
    program = (
        "from roadstead.plugin_watch import end_process\n"
        "from roadstead.framework.plugin_calls import PluginCall\n"
        "print('before')\n"
        "end_process(PluginCall('Mine', 'Filter', 0, None), 'The journal is kept.')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (1, "before\n")
    message = 'The run failed: plugin "Mine" did not return from Filter in time, '
    assert done.stderr == message + "and cannot be interrupted. The journal is kept.\n"


def entered(calls, pod_class, plugin="Mine"):
    return calls.enter(plugin, "Score", (None, pod_class))


def lives(path, ends):
    """Return the calls of a process after restarts that each ended during a call."""
    for plugin, pod_class in ends:
        calls = PluginCalls()
        Mark(path).begin(calls, "worker-0")
        entered(calls, pod_class, plugin)
    calls = PluginCalls()
    Mark(path).begin(calls, "worker-0")
    return calls


def pod_classes(*amounts):
    classes = PodClasses()
    return [classes.pod_class(pod(cpu=amount)) for amount in amounts]


def test_a_plugin_is_not_called_for_a_class_with_which_a_process_ended_twice(tmp_path):
    one, other = pod_classes(100, 200)
    once = lives(tmp_path / "a", [("Mine", one)])
    twice = lives(tmp_path / "b", [("Mine", one)] * 2)

    once.leave(entered(once, one))
    with pytest.raises(PluginSuspendedError, match="it ended the process worker-0 at Score"):
        entered(twice, one)
    twice.leave(entered(twice, other))
    twice.leave(entered(twice, one, "Another"))


def test_a_plugin_that_ends_its_process_with_several_classes_is_not_called_at_all(
    tmp_path,
):
    *classes, last = pod_classes(*range(100, 100 * (MAX_IN_PROCESS + 2), 100))
    calls = lives(tmp_path / "a", [("Mine", each) for each in classes])

    with pytest.raises(PluginSuspendedError, match="is not called any more"):
        entered(calls, last)
    calls.leave(entered(calls, last, "Another"))


def test_a_finished_call_leaves_no_mark(tmp_path):
    (one,) = pod_classes(100)
    calls = PluginCalls()
    Mark(tmp_path / "a").begin(calls, "worker-0")

    call = entered(calls, one)
    assert call_at_exit(tmp_path / "a") == ("Mine", "Score", call.facts_digest)
    calls.leave(call)
    assert call_at_exit(tmp_path / "a") is None
    assert call_at_exit(tmp_path / "never") is None
