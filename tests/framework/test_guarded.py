"""The guard's handling of the answers of a user's plugin, method by method."""

import numpy as np
import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    EVERYTHING,
    ActionType,
    ClusterEvent,
    EventResource,
    HintError,
    ObjectChange,
    RegisteredEvent,
)
from roadstead.framework.guarded import PluginFailure, guard
from roadstead.framework.plugin import (
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    PostFilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    QueueSortPlugin,
    Reads,
    ScorePlugin,
)
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.nodes.pod_class import PodClasses
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import Code, Status, unschedulable
from tests.builders import node, pod, table_of

ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)


class Answering(PreFilterPlugin, FilterPlugin, ScorePlugin, QueueSortPlugin, EnqueueExtensions):
    """A plugin that returns a given answer, or raises it."""

    name = "Answering"
    reads = Reads.ROW

    def __init__(self, answer):
        self.answer = answer

    def say(self):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def pre_filter(self, state, pod, table):
        return self.say()

    def filter(self, state, pod, table):
        return self.say()

    def score(self, state, pod, table):
        return self.say()

    def sort_key(self, pod, queued_s):
        return self.say()

    def events_to_register(self):
        return self.say()


def returning(answer, **how):
    return guard(Answering(answer), **how)


def line_of(method):
    """Return the line on which `Answering` defines a method, as failures name it."""
    return f"{__name__.replace('.', '/')}.py:{method.__code__.co_firstlineno}"


def asked():
    """Return (state, pod, table of two nodes)."""
    table = table_of(node("n1"), node("n2"))
    return CycleState(2), table.classes.pod_class(pod(cpu=100)), table


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint16, np.int64])
def test_scores_of_any_integer_type_become_int64(kind):
    scores = returning(np.array([3, 4], kind)).score(*asked())

    assert (scores.dtype, scores.tolist()) == (np.int64, [3, 4])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([1, 2], "list of 2, want int64[2]"),
        (np.array([1.0, 2.0]), "float64[2], want int64[2]"),
        (np.array([True, False]), "bool[2], want int64[2]"),
        (np.array([1, 2], np.uint64), "uint64[2], want int64[2]"),
        (np.array([1, 2, 3]), "int64[3], want int64[2]"),
        (np.array([[1, 2]]), "int64[1, 2], want int64[2]"),
        (np.array([1.0, np.nan]), "NaN, want int64[2]"),
        (np.array(["a", "b"]), "<U1[2], want int64[2]"),
    ],
)
def test_scores_of_another_type_or_shape_are_a_failure(answer, message):
    with pytest.raises(PluginFailure) as failed:
        returning(answer).score(*asked())

    text = f"returned {message} ({line_of(Answering.score)})"
    assert failed.value.status == Status(Code.ERROR, (text,), "Answering")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "None, want a FilterResult"),
        (FilterResult(np.array([0, 1])), "code 1, want 0..0"),
        (FilterResult(np.array([0, -1]), (unschedulable("no"),)), "code -1, want 0..1"),
        (FilterResult(np.array([0, 1]), ("no",)), '"no", want a Status'),
        (FilterResult(np.array([0]), ()), "int64[1], want int64[2]"),
    ],
)
def test_a_wrong_answer_of_filter_refuses_all_rows_with_an_error(answer, message):
    result = returning(answer).filter(*asked())

    assert result.codes.tolist() == [1, 1]
    text = f"returned {message} ({line_of(Answering.filter)})"
    assert result.statuses == (Status(Code.ERROR, (text,), "Answering"),)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        PreFilterResult(None),
        PreFilterResult(Status("Success")),
        PreFilterResult(Status(reasons=["list"])),
        PreFilterResult(Status(reasons=(1,))),
        PreFilterResult(node_names=["n1"]),
        PreFilterResult(node_names=frozenset([1])),
        SystemExit(3),
        MemoryError("no room"),
        RecursionError(),
    ],
)
def test_a_wrong_answer_of_prefilter_is_an_error(answer):
    status = returning(answer).pre_filter(*asked()[:3]).status

    assert (status.code, status.plugin) == (Code.ERROR, "Answering")


class Sizing(PostFilterPlugin):
    """A plugin that returns a given size of the dry run."""

    name = "Sizing"

    def __init__(self, answer):
        self.answer = answer

    def dry_run_size(self, pod, failed):
        return self.answer

    def post_filter(self, pod, failed):
        return PostFilterResult(unschedulable())


@pytest.mark.parametrize(
    ("answer", "size"), [(3, 3), (0, 0), (None, None), (True, None), (-1, None), ("3", None)]
)
def test_a_wrong_size_of_the_dry_run_is_no_dry_run(answer, size):
    assert guard(Sizing(answer)).dry_run_size(pod(), None) is size


def test_keys_of_any_types_compare_and_keep_their_order():
    answers = [(1, "a"), (1, 2.5), ("x",), (0,), (), (2, "a", 1)]
    keys = [returning(each).sort_key(pod(), 0.0) for each in answers]
    failed = returning(ValueError("no")).sort_key(pod(), 0.0)

    assert sorted(keys) == [
        returning(each).sort_key(pod(), 0.0)
        for each in [(), (0,), (1, 2.5), (1, "a"), (2, "a", 1), ("x",)]
    ]
    assert max([failed, *keys]) == failed
    for wrong in (7, (None,), (float("nan"),)):
        assert returning(wrong).sort_key(pod(), 0.0) == failed


def test_a_plugin_that_fails_to_register_events_gets_all_events():
    assert returning(ValueError("no")).events_to_register() == EVERYTHING
    assert returning([1]).events_to_register() == EVERYTHING


def test_a_hint_that_raises_is_a_failed_hint():
    def hint(*_):
        raise ZeroDivisionError("by zero")

    (registered,) = returning([RegisteredEvent(ADDED, hint)]).events_to_register()

    with pytest.raises(HintError, match="ZeroDivisionError: by zero"):
        registered.hint(pod(), ObjectChange(None, None), ClusterFacts())


@pytest.mark.parametrize(
    ("answer", "message"),
    [(ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"), (1, "want a bool")],
)
def test_a_failing_is_concerned_is_a_failed_hint(answer, message):
    def may_matter(*_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    (registered,) = returning([RegisteredEvent(ADDED, None, may_matter)]).events_to_register()

    assert registered.hint is None
    with pytest.raises(HintError, match=message):
        registered.may_matter(pod(), pod(), ClusterFacts())


def test_a_guarded_is_concerned_answers_like_the_plugin():
    (registered,) = returning(
        [RegisteredEvent(ADDED, None, lambda waiting, assigned, cluster: waiting == assigned)]
    ).events_to_register()

    assert registered.may_matter(pod(), pod(), ClusterFacts()) is True
    assert registered.may_matter(pod(), pod(cpu=1), ClusterFacts()) is False


class Detailing(PostFilterPlugin):
    """A plugin whose details for an explanation are a given answer, or raise it."""

    name = "Detailing"
    reads_refused_nodes = True

    def __init__(self, answer):
        self.answer = answer

    def post_filter(self, pod, failed):
        return PostFilterResult(unschedulable("no"))

    def details(self, pod, failed):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [ZeroDivisionError("by zero"), None, "text", ("text", 1)])
def test_an_explanation_lacks_details_that_a_plugin_fails_to_return(answer):
    assert guard(Detailing(answer)).details(pod(), None) == ()


def test_details_of_a_plugin_are_in_an_explanation():
    assert guard(Detailing(("n1 is old",))).details(pod(), None) == ("n1 is old",)


def test_unsupported_features_are_refused_as_without_a_guard():
    with pytest.raises(UnsupportedError):
        returning(UnsupportedError("DynamicResources", "", "x")).filter(*asked())


def test_a_strict_guard_raises_every_failure():
    with pytest.raises(PluginFailure, match='plugin "Answering" failed at Filter: returned None'):
        returning(None, is_strict=True).filter(*asked())


def test_a_long_text_of_a_failure_is_cut():
    (text,) = returning(ValueError("x" * 1000)).pre_filter(*asked()[:3]).status.reasons

    assert text.startswith("ValueError: " + "x" * 288 + "… (")


def test_the_class_of_a_guarded_plugin_is_unchanged():
    plugin = returning(None)

    assert type(plugin) is Answering
    assert "score" not in vars(PodClasses)
    assert Answering(None).is_guarded is False
    assert plugin.is_guarded is True
