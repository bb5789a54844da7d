"""Workers' results for their rows equal those of one table of all, however old their states are."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.cycle.messages import PluginColumn, ScoreAnswer
from roadstead.cycle.scored_parts import ScoredParts
from roadstead.cycle.scorer import Scorer, packed, unpacked
from roadstead.facts.wire import encode_facts
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import (
    FilterPlugin,
    FilterResult,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from roadstead.framework.worker_results import worker_calls
from roadstead.nodes.changed_nodes import ChangedNodes
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.plain_data import pack, unpack
from roadstead.protocol.status import SKIP, SUCCESS, error
from tests.builders import ROW_PLUGINS, advance, node, pod, profile_of, table_of
from tests.peculiar_plugins import FailsOnSomeNodes, FailsToScore, LikesDigits, LikesFewPods

USERS = (FailsOnSomeNodes, FailsToScore, LikesDigits, LikesFewPods)
POINTS = {
    **ROW_PLUGINS,
    "filter": [*ROW_PLUGINS["filter"], "FailsOnSomeNodes"],
    "preScore": [*ROW_PLUGINS["preScore"], "FailsToScore"],
    "score": [*ROW_PLUGINS["score"], "FailsToScore", ("LikesDigits", 2), ("LikesFewPods", 5)],
}
CPUS = [100, 250, 300, 500, 600, 800, 900]


@dataclass
class Holder:
    """A table that follows a stream of changes, all of it or every nth node.

    changes: ("add", name), ("update", name, cpu), ("gone", name), ("pod", name, is_added).
    """

    part: int = 0
    parts: int = 1
    seq: int = 0
    arrived: int = 0
    calls: int = 0
    table: NodeTable = field(default_factory=lambda: NodeTable(PodClasses()))
    touched: ChangedNodes = field(default_factory=ChangedNodes)

    def __post_init__(self):
        self.profile = profile_of(POINTS, plugins=USERS, classes=self.table.classes)

    def follow(self, changes, upto):
        while self.seq < min(upto, len(changes)):
            kind, name, *rest = changes[self.seq]
            self.seq += 1
            self.touched.note(self.seq, [name])
            if kind == "add":
                arrival = self.arrived
                self.arrived += 1
                if arrival % self.parts == self.part:
                    self.table.add_node(node(name, cpu=4000), arrival)
            elif not self.table.has_node(name):
                continue
            elif kind == "update":
                self.table.update_node(node(name, cpu=rest[0]))
            elif kind == "gone":
                self.table.remove_node(name)
            else:
                change = self.table.add_pod if rest[0] else self.table.remove_pod
                change(name, self.table.classes.pod_class(pod(cpu=100)))

    def answer(self, ask_seq, classes):
        scorer = Scorer(self.table, {"default-scheduler": self.profile})
        columns = tuple(scorer.columns(encode_facts(each), 0) for each in classes)
        names = self.touched.since(ask_seq)
        touched = (
            None if names is None else scorer.arrivals_of(names & _names(self.table)).tobytes()
        )
        answer = ScoreAnswer(self.seq, len(self.table), scorer.digest, touched, columns)
        return from_wire(ScoreAnswer, unpack(pack(to_wire(answer))))


def _names(table):
    return set(table.columns.names)


@st.composite
def streams(draw):
    """Draw changes in a possible order."""
    here, pods, changes = [], {}, []
    for number in range(draw(st.integers(1, 8))):
        here.append(f"n{number}")
        changes.append(("add", here[-1]))
    came = len(here)
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["pod", "pod", "pod", "leave", "update", "add", "gone"]))
        name = draw(st.sampled_from(here)) if here else None
        if kind == "add" or name is None:
            here.append(f"n{came}")
            came += 1
            changes.append(("add", here[-1]))
        elif kind == "update":
            changes.append(("update", name, draw(st.sampled_from([0, 900, 4000]))))
        elif kind == "gone":
            here.remove(name)
            pods.pop(name, None)
            changes.append(("gone", name))
        elif kind == "pod":
            pods[name] = pods.get(name, 0) + 1
            changes.append(("pod", name, True))
        elif pods.get(name):
            pods[name] -= 1
            changes.append(("pod", name, False))
    return changes


def by_row(evaluation):
    """Return all results of an evaluation, statuses by their text."""
    texts = [None, *evaluation.statuses]
    codes = [code if code < 1 else texts[code] for code in evaluation.codes.tolist()]
    raw = [None if each is None else each.tolist() for each in evaluation.raw]
    return codes, evaluation.feasible.tolist(), evaluation.positions.tolist(), raw


@given(streams(), st.integers(1, 3), st.data())
def test_with_answers_of_workers_at_other_states_a_class_has_the_same_results(
    changes, workers, data
):
    lags = st.integers(0, len(changes))
    classes = [pod(cpu=cpu) for cpu in data.draw(st.lists(st.sampled_from(CPUS), min_size=1))]
    ours = Holder()
    ours.follow(changes, data.draw(lags))
    ask_seq = ours.seq
    answers = {}
    for part in range(workers):
        worker = Holder(part, workers)
        worker.follow(changes, data.draw(lags))
        if data.draw(st.booleans()) or part == 0:
            answers[part] = worker.answer(ask_seq, classes)
    ours.follow(changes, data.draw(lags))
    parts = ScoredParts(ours.table, workers)
    touched = {part: ours.touched.since(each.seq) for part, each in answers.items()}

    found = parts.merge_answers(answers, touched, len(classes))

    ours.follow(changes, data.draw(lags))
    late = data.draw(lags)
    for place, facts in enumerate(classes):
        pod_class = ours.table.classes.pod_class(facts)
        with_given, plain = (Evaluation(ours.profile, pod_class, ours.table) for _ in range(2))
        with_given.worker_results = found and found[place]
        for each in (with_given, plain):
            advance(each)
        assert by_row(with_given) == by_row(plain)
        ours.follow(changes, late)
        for each in (with_given, plain):
            advance(each)
        assert by_row(with_given) == by_row(plain)


def test_no_row_of_an_up_to_date_worker_is_evaluated_again():
    changes = [("add", f"n{number}") for number in range(6)] + [("pod", "n1", True)]
    facts = pod(cpu=800)
    ours, workers = Holder(), [Holder(part, 2) for part in range(2)]
    for each in (ours, *workers):
        each.follow(changes, len(changes))
    answers = {part: each.answer(ours.seq, [facts]) for part, each in enumerate(workers)}

    (found,) = ScoredParts(ours.table, 2).merge_answers(answers, {0: set(), 1: set()}, 1)

    assert not found.redo.any()
    assert list(found.filters) == ["FailsOnSomeNodes"]
    assert found.scores["LikesFewPods"].tolist() == [0, 1, 0, 0, 0, 0]
    assert list(found.scores) == ["LikesDigits", "LikesFewPods"], "FailsToScore returns Skip"


def test_no_plugin_is_called_for_answers_of_an_up_to_date_worker():
    changes = [("add", f"n{number}") for number in range(6)] + [("pod", "n1", True)]
    facts = pod(cpu=800)
    ours, worker = Holder(), Holder()
    for each in (ours, worker):
        each.follow(changes, len(changes))
    answer = worker.answer(ours.seq, [facts])
    pod_class = ours.table.classes.pod_class(facts)
    with_given, plain = (Evaluation(ours.profile, pod_class, ours.table) for _ in range(2))
    advance(plain)

    (with_given.worker_results,) = ScoredParts(ours.table, 1).merge_answers(
        {0: answer}, {0: set()}, 1
    )
    for plugin, point in worker_calls(ours.profile):
        setattr(plugin, point.lower(), None)
    advance(with_given)

    assert by_row(with_given) == by_row(plain)


def test_only_the_rows_of_a_worker_with_unknown_changes_are_evaluated_again():
    changes = [("add", f"n{number}") for number in range(6)]
    ours, workers = Holder(), [Holder(part, 3) for part in range(3)]
    for each in (ours, *workers):
        each.follow(changes, len(changes))
    answers = {part: each.answer(ours.seq, [pod(cpu=800)]) for part, each in enumerate(workers)}

    (found,) = ScoredParts(ours.table, 3).merge_answers(answers, {0: None, 1: set(), 2: set()}, 1)

    assert found.redo.tolist() == [True, False, False] * 2


def test_answers_of_a_worker_about_other_nodes_are_ignored():
    ours, worker = Holder(), Holder()
    ours.follow([("add", "n1")], 1)
    worker.follow([("add", "n1"), ("add", "n2")], 2)
    answer = worker.answer(1, [pod(cpu=800)])

    assert ScoredParts(ours.table, 1).merge_answers({0: answer}, {0: set()}, 1) is None


def test_plugins_with_state_or_across_nodes_are_not_sent_to_workers():
    profile = Holder().profile

    assert [(plugin.name, point) for plugin, point in worker_calls(profile)] == [
        ("FailsOnSomeNodes", "Filter"),
        ("FailsToScore", "Score"),
        ("LikesDigits", "Score"),
        ("LikesFewPods", "Score"),
    ]


STATUS_OF = {"yes": SUCCESS, "skip": SKIP, "fail": error("the oracle is silent")}


class Prepares(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """A plugin whose PreFilter and PreScore return the status that a pod's labels name."""

    name = "Prepares"
    reads = Reads.NODE

    def pre_filter(self, state, pod, table):
        return PreFilterResult(STATUS_OF[dict(pod.facts.labels)["filter"]])

    def filter(self, state, pod, table):
        return FilterResult()

    def pre_score(self, state, pod, table, feasible):
        return STATUS_OF[dict(pod.facts.labels)["score"]]

    def score(self, state, pod, table):
        return np.zeros(len(table), np.int64)

    def sign(self, pod):
        return pod.labels


@pytest.mark.parametrize(
    ("before_filter", "before_score", "answered"),
    [
        ("yes", "yes", ["Filter", "Score"]),
        ("skip", "yes", ["Score"]),
        ("yes", "skip", ["Filter"]),
        ("fail", "yes", []),
        ("yes", "fail", []),
    ],
)
def test_a_plugin_is_left_out_after_skip_and_all_are_after_a_failure(
    before_filter, before_score, answered
):
    table = table_of(node("n1"), node("n2"))
    points = {point: ["Prepares"] for point in ("preFilter", "filter", "preScore", "score")}
    profile = profile_of(points, plugins=[Prepares], classes=table.classes)
    facts = pod(labels={"filter": before_filter, "score": before_score})

    columns = Scorer(table, {"default-scheduler": profile}).columns(encode_facts(facts), 2)

    assert [column.point for column in columns] == answered


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_columns_use_the_narrowest_type_for_their_numbers(values):
    size, data = packed(np.array(values, np.int64))
    column = PluginColumn("p", "Score", size, data)

    assert np.broadcast_to(unpacked(column, len(values)), len(values)).tolist() == values
    if size:
        assert len(data) == size * len(values)


def test_touched_returns_none_for_forgotten_changes():
    touched = ChangedNodes()
    touched.note(3, ["a"])
    touched.note(4, ["b"])
    assert touched.since(3) == {"b"}
    assert touched.since(2) == {"a", "b"}
    touched.note(5, None)
    assert touched.since(4) is None
    assert touched.since(5) == set()
    touched.note(6, ["c"])
    assert (touched.since(4), touched.since(5)) == (None, {"c"})
    assert ChangedNodes(unknown_up_to=5).since(4) is None
