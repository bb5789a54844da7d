"""Node lists of workers: a batch with them is decided like one that evaluates all rows."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.cycle import merged_lists
from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.merged_lists import best_rows
from roadstead.cycle.messages import RankAnswer, RankRequest
from roadstead.cycle.ranker import Ranker
from roadstead.cycle.worker_rows import RowsByArrival, WorkerRows
from roadstead.facts.pod import HostPort, PodAffinityTerm, Volume
from roadstead.facts.selectors import LabelSelector
from roadstead.facts.wire import encode_facts
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.plain_data import pack, unpack
from tests.builders import node, pod, require, taint
from tests.inside import kernel_totals

NAME = "default-scheduler"
NOTHING = np.zeros(0, np.int64)
CPUS = 500, 1000, 2000, 4000


class Side:
    """A table with a profile of its own: a scheduler's or a worker's."""

    def __init__(self, tie_break=None):
        self.table = NodeTable(PodClasses())
        self.profile = Profile(
            default_config().profiles[0], in_tree_registry(), Handle(self.table.classes)
        )
        self.cycle = BatchBuilder(
            self.table, {NAME: self.profile}, tie_break or TieBreak("random", 7)
        )
        self.cycle.compiled_kernel = CompiledKernel(load(), DecisionCounts())
        self.own = RowsByArrival(self.table)
        self.ranker = Ranker(self.own, self.table, {NAME: self.profile})

    def place(self, name, facts, uid=""):
        self.table.add_pod(name, self.table.classes.pod_class(facts), uid=uid or f"{name}-{facts}")

    def pods(self, facts, prefix="p"):
        pod_classes = [self.table.classes.pod_class(each) for each in facts]
        return [
            PodInCycle(
                f"{prefix}{n}",
                f"ns/{prefix}{n}",
                pod_class,
                self.profile.signature_of(pod_class, f"{n}"),
            )
            for n, pod_class in enumerate(pod_classes)
        ]


class Fleet:
    """Nodes at a scheduler and at some workers, and a second scheduler without workers."""

    def __init__(self, nodes, workers, tie_break=None):
        self.ours, self.alone = Side(tie_break), Side(tie_break)
        self.workers = [Side() for _ in range(workers)]
        for arrival, each in enumerate(nodes):
            for side in (self.ours, self.alone, self.workers[arrival % workers]):
                side.table.add_node(each, arrival)
        self.rows = WorkerRows(self.ours.table, workers)

    def worker_of(self, name):
        return self.workers[int(name[1:]) % len(self.workers)]

    def ask(self, batch, pods, most, apart=(), touched=()):
        """Return the workers' lists for a batch's new classes. apart, touched: names of nodes."""
        new = batch.unlisted(pods)
        draws = batch.tie_break_hashes(new)
        rows = self.ours.table.rows_of(apart)
        arrivals = self.ours.table.arrivals[rows].astype(np.int64).tobytes()
        ask = RankRequest(
            0, arrivals, tuple(encode_facts(p.pod_class.facts) for p in new), draws.tobytes(), most
        )
        answers = {}
        for number, side in enumerate(self.workers):
            here = [name for name in touched if side.table.has_node(name)]
            changed = side.table.arrivals[side.table.rows_of(here)].astype(np.int64)
            answer = side.ranker.rank(ask, CompiledKernel(load(), DecisionCounts()), changed)
            answers[number] = from_wire(RankAnswer, unpack(pack(to_wire(answer))))
        return answers, [each.signature for each in new], draws, rows

    def lists(self, batch, pods, most, apart=(), touched=()):
        answers, signatures, draws, rows = self.ask(batch, pods, most, apart, touched)
        return best_rows(self.rows, answers, signatures, draws, most, rows)


def decided(side, pods, best=None, batch=None):
    """Return the decision of each pod, as far as the kernel decides it."""
    batch = batch or side.cycle.begin(pods)
    if best is not None:
        batch.use_lists(best, len(pods))
    found = batch.decide_by_kernel(pods)
    batch.flush()
    side.table.validate()
    return [(d.node_name, d.feasible, d.total, d.best_size) for d in found], batch


def classes_with_totals(batch):
    return int(kernel_totals(batch).has_totals.sum())


nodes_of = st.lists(
    st.tuples(st.sampled_from(CPUS), st.sampled_from([1, 2, 8]), st.booleans()),
    min_size=1,
    max_size=12,
)
shapes = st.tuples(
    st.sampled_from([0, 100, 101, 300, 700, 1500]), st.sampled_from([0, 64, 200]), st.booleans()
)


def node_of(number, shape):
    cpu, pods, is_tainted = shape
    taints = (taint("k", "v", "NoSchedule"),) if is_tainted and number % 3 == 0 else ()
    return node(f"n{number}", cpu=cpu, memory=cpu << 21, pods=pods, taints=taints)


def pod_of(shape):
    cpu, mib, has_port = shape
    ports = (HostPort("0.0.0.0", "TCP", 80),) if has_port else ()
    return pod(cpu=cpu, memory=mib << 20, host_ports=ports)


@given(
    nodes_of,
    st.lists(shapes, min_size=1, max_size=10),
    st.integers(1, 3),
    st.integers(1, 4),
    st.data(),
)
def test_a_batch_with_lists_is_decided_like_one_without(nodes, pods, workers, most, data):
    fleet = Fleet([node_of(n, each) for n, each in enumerate(nodes)], workers)
    names = [f"n{number}" for number in range(len(nodes))]
    some = st.lists(st.sampled_from(names), max_size=3, unique=True)
    apart, touched = data.draw(some, label="apart"), data.draw(some, label="touched")
    for name in data.draw(some, label="full"):
        for side in (fleet.ours, fleet.alone, fleet.worker_of(name)):
            side.place(name, pod(cpu=400))
    for name in apart:
        fleet.ours.place(name, pod(cpu=200))
        fleet.alone.place(name, pod(cpu=200))
    for name in touched:
        fleet.worker_of(name).place(name, pod(cpu=450))
    facts = [pod_of(each) for each in pods]
    batch = fleet.ours.cycle.begin(mine := fleet.ours.pods(facts))
    best = fleet.lists(batch, mine, most, apart, touched)

    found, _ = decided(fleet.ours, mine, best, batch)

    assert found == decided(fleet.alone, fleet.alone.pods(facts))[0]


def fleet_of(count, workers, **how):
    nodes = [node(f"n{n}", cpu=4000, pods=20, labels={"zone": "z"}) for n in range(count)]
    return Fleet(nodes, workers, **how)


def distinct(count):
    return [pod(cpu=100 + number) for number in range(count)]


def test_lists_of_equal_nodes_are_sufficient_for_every_pod():
    fleet = fleet_of(300, 3)
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(distinct(40)))

    found, batch = decided(fleet.ours, pods, fleet.lists(batch, pods, 64), batch)

    assert found == decided(fleet.alone, fleet.alone.pods(distinct(40)))[0]
    assert len(found) == 40
    assert not classes_with_totals(batch)


def test_all_rows_are_evaluated_for_a_class_with_an_exhausted_list():
    fleet = Fleet([node("n0", cpu=8000), *(node(f"n{n}", cpu=4000) for n in range(1, 9))], 1)
    facts = [pod(cpu=600 + number) for number in range(6)]
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(facts))
    best = fleet.lists(batch, pods, 1)

    found, batch = decided(fleet.ours, pods, best, batch)

    assert found == decided(fleet.alone, fleet.alone.pods(facts))[0]
    assert 0 < classes_with_totals(batch) < 6


def plain_and_others():
    term = PodAffinityTerm("zone", LabelSelector((require("a", "In", "b"),)), ("default",), None)
    disk = Volume("v", "gcePersistentDisk", (("pdName", "disk"),))
    return [
        pod(cpu=100),
        pod(cpu=101, labels={"a": "b"}, pod_anti_affinity=(term,)),
        pod(cpu=102, volumes=(disk,)),
        pod(cpu=103),
        pod(cpu=103),
    ]


def test_lists_are_requested_for_unique_classes_that_depend_on_pod_and_row_alone():
    fleet = fleet_of(4, 1)
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(plain_and_others()))

    assert [pod.uid for pod in batch.unlisted(pods)] == ["p0"]


def test_a_known_class_needs_no_list():
    fleet = fleet_of(4, 1)
    decided(fleet.ours, pods := fleet.ours.pods([pod(cpu=100)]))

    assert fleet.ours.cycle.begin(pods).unlisted(pods) == []


def test_no_list_is_requested_with_tie_break_first_or_for_nominated_pods():
    by_name = fleet_of(4, 1, tie_break=TieBreak("first"))
    pods = by_name.ours.pods([pod(cpu=100)])
    assert by_name.ours.cycle.begin(pods).unlisted(pods) == []

    fleet = fleet_of(4, 1)
    fleet.ours.table.nominate("n1", fleet.ours.table.classes.pod_class(pod(cpu=200)))
    pods = fleet.ours.pods([pod(cpu=100)])
    assert fleet.ours.cycle.begin(pods).unlisted(pods) == []


def test_a_worker_skips_classes_that_depend_on_other_nodes():
    fleet = fleet_of(4, 2)
    term = PodAffinityTerm("zone", LabelSelector((require("a", "In", "b"),)), ("default",), None)
    fleet.workers[0].place("n0", pod(labels={"x": "y"}, pod_anti_affinity=(term,)))
    facts = [pod(cpu=100), pod(cpu=101, labels={"a": "b"})]
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(facts))

    best = fleet.lists(batch, pods, 4)

    assert [each.signature for each in pods[:1]] == best.signatures


def test_the_scheduler_evaluates_rows_of_workers_without_a_usable_answer(monkeypatch):
    fleet = fleet_of(6, 3)
    fleet.workers[1].table.remove_node("n4")
    facts = distinct(5)
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(facts))
    answers, signatures, draws, rows = fleet.ask(batch, pods, 4)
    del answers[2]

    best = best_rows(fleet.rows, answers, signatures, draws, 4, rows)

    names = [fleet.ours.table.columns.names[row] for row in best.excluded]
    assert sorted(names) == ["n1", "n2", "n4", "n5"]
    found, _ = decided(fleet.ours, pods, best, batch)
    assert found == decided(fleet.alone, fleet.alone.pods(facts))[0]
    monkeypatch.setattr(merged_lists, "MAX_EXCLUDED", 3)
    assert best_rows(fleet.rows, answers, signatures, draws, 4, rows) is None


def test_without_a_usable_answer_there_are_no_lists():
    fleet = fleet_of(6, 2)
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(distinct(2)))
    answers, signatures, draws, rows = fleet.ask(batch, pods, 4)
    silent = {worker: RankAnswer(each.rows, each.digest, None) for worker, each in answers.items()}

    assert best_rows(fleet.rows, silent, signatures, draws, 4, rows) is None
    assert best_rows(fleet.rows, {}, signatures, draws, 4, rows) is None


def test_an_answer_that_does_not_match_its_request_is_refused():
    fleet = fleet_of(6, 1)
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(distinct(2)))
    answers, signatures, draws, rows = fleet.ask(batch, pods, 4)

    with pytest.raises(ValueError, match="reshape"):
        best_rows(fleet.rows, answers, signatures, draws, 5, rows)


@pytest.mark.parametrize("position", [-1, -100, 100])
def test_a_list_with_a_position_outside_the_rows_is_refused(position):
    fleet = fleet_of(6, 1)
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(distinct(2)))
    answers, signatures, draws, rows = fleet.ask(batch, pods, 4)
    positions = np.frombuffer(answers[0].positions, np.int32).copy()
    positions[0] = position
    wrong = {0: replace(answers[0], positions=positions.tobytes())}

    with pytest.raises(ValueError, match="a list has 5 rows from"):
        best_rows(fleet.rows, wrong, signatures, draws, 4, rows)


def test_lists_are_valid_until_the_table_changes_in_another_way():
    fleet = fleet_of(50, 2)
    facts = distinct(12)
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(facts))
    batch.use_lists(fleet.lists(batch, pods, 8), len(pods))
    twin = fleet.alone.cycle.begin(same := fleet.alone.pods(facts))
    first = batch.decide_by_kernel(pods[:6]), twin.decide_by_kernel(same[:6])
    # One pod is decided by the reference path, which places it on the table itself.
    second = batch.decide(pods[6]), twin.decide(same[6])
    third = batch.decide_by_kernel(pods[7:]), twin.decide_by_kernel(same[7:])

    for mine, theirs in (first, ([second[0]], [second[1]]), third):
        assert [d.node_name for d in mine] == [d.node_name for d in theirs]
        assert [d.feasible for d in mine] == [d.feasible for d in theirs]


@pytest.mark.parametrize("seed", range(5))
def test_large_batches_of_pods_fill_their_nodes(seed):
    draw = random.Random(seed)
    nodes = [node(f"n{n}", cpu=draw.choice(CPUS), pods=draw.choice([2, 5])) for n in range(400)]
    fleet = Fleet(nodes, 4)
    facts = [pod(cpu=draw.randrange(1, 900), memory=draw.randrange(1, 9) << 20) for _ in range(300)]
    batch = fleet.ours.cycle.begin(pods := fleet.ours.pods(facts))

    found, batch = decided(fleet.ours, pods, fleet.lists(batch, pods, 16), batch)

    assert found == decided(fleet.alone, fleet.alone.pods(facts))[0]
    assert classes_with_totals(batch) < 300
