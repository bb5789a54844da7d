"""The kernel's coverage, the pods it returns to the reference, and its state beside the table."""

from dataclasses import replace

import numpy as np
import pytest

from roadstead.config.model import PluginRef, default_config
from roadstead.cycle.batch import Batch, ClassInput, CompiledKernel, PodInCycle
from roadstead.cycle.class_scores import ClassScores
from roadstead.facts.pod import HostPort, Volume
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.guarded import guard
from roadstead.framework.plugin import Handle, Reads, ScorePlugin
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.kernel import kernel_cache
from roadstead.kernel.arrays import BUCKETS
from roadstead.kernel.compiled_code import load
from roadstead.kernel.covered_classes import KernelClass
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.kernel.jit import bucket_at, position_of_bucket
from roadstead.plugins.in_tree import in_tree_registry
from tests.actors import fleets
from tests.builders import ROW_PLUGINS, config_of, node, pod, table_of
from tests.inside import kernel_of

DEFAULT = default_config().profiles[0]
PORT = HostPort("0.0.0.0", "TCP", 80)


class KernelBatch:
    """A batch over one table, of pods of some classes in turn."""

    def __init__(self, table, *classes, config=DEFAULT, plugins=(), tie_break=None, kernel=True):
        self.table = table
        factories = {kind.name: lambda args, handle, kind=kind: guard(kind()) for kind in plugins}
        registry = in_tree_registry().merged(factories)
        profile = Profile(config, registry, Handle(table.classes))
        inputs, self.pods = {}, []
        for number, facts in enumerate(classes):
            pod_class = table.classes.pod_class(facts)
            key = profile.signature_of(pod_class, f"u{number}")
            self.pods.append(PodInCycle(f"u{number}", f"ns/p{number}", pod_class, key))
            if key not in inputs:
                evaluation = Evaluation(profile, pod_class, table)
                pre_filter = evaluation.run_pre_filter()
                evaluation.update(pre_filter)
                run, pre_score = ClassScores(evaluation), evaluation.run_pre_score()
                inputs[key] = ClassInput(run, pre_filter, pre_score)
        self.coverage = DecisionCounts()
        self.run = Batch(
            table,
            inputs,
            Chooser(tie_break or TieBreak("first")),
            compiled_kernel=CompiledKernel(load(), self.coverage) if kernel else None,
        )

    def decide(self):
        return [each.node_name for each in self.run.decide_by_kernel(self.pods)]


def test_a_run_of_pods_is_decided_in_one_call():
    batch = KernelBatch(table_of(node("n1"), node("n2")), *[pod(cpu=1000)] * 3)

    assert batch.decide() == ["n1", "n2", "n1"]
    assert batch.coverage.by_kernel == 3


def test_the_table_is_updated_when_the_run_is_finished():
    batch = KernelBatch(table_of(node("n1")), pod(cpu=1000))
    batch.decide()

    before = batch.table.pod_count.tolist()
    batch.run.flush()

    assert (before, batch.table.pod_count.tolist()) == ([0], [1])
    batch.table.validate()


def test_a_pod_without_a_node_is_left_to_the_reference_with_all_later_ones():
    batch = KernelBatch(table_of(node("n1", cpu=1000)), *[pod(cpu=1000)] * 3)

    assert batch.decide() == ["n1"]
    assert batch.run.decide(batch.pods[1]).node_name is None
    assert batch.run.decide_by_kernel(batch.pods[2:]) == []
    assert batch.coverage.by_reference == {"no feasible node": 1}


def test_a_host_port_used_by_a_pod_of_the_run_is_occupied_for_the_next():
    batch = KernelBatch(table_of(node("n1"), node("n2")), *[pod(host_ports=(PORT,))] * 3)

    assert batch.decide() == ["n1", "n2"]


def test_a_run_ends_before_an_unsupported_class():
    disk = pod(volumes=(Volume("v", "gcePersistentDisk", (("pdName", "disk"),)),))
    batch = KernelBatch(table_of(node("n1")), pod(cpu=1), disk, pod(cpu=1))

    assert batch.decide() == ["n1"]


@pytest.mark.parametrize(
    ("left_out", "why"),
    [
        ("NodeResourcesFit", "no NodeResourcesFit in Filter"),
        ("NodePorts", "no NodePorts in Filter"),
    ],
)
def test_a_profile_without_the_compiled_filters_is_not_supported(left_out, why):
    filters = [name for name in ROW_PLUGINS["filter"] if name != left_out]
    config = config_of(ROW_PLUGINS | {"filter": filters})
    batch = KernelBatch(table_of(node("n1")), pod(cpu=1), config=config)

    assert batch.decide() == []
    assert batch.coverage.by_reference == {why: 1}


def test_a_profile_without_scores_is_not_supported():
    batch = KernelBatch(table_of(node("n1")), pod(), config=config_of(ROW_PLUGINS | {"score": []}))

    assert batch.decide() == []
    assert batch.coverage.by_reference == {"no score plugins": 1}


def test_weights_with_a_too_large_total_are_not_supported():
    config = config_of(ROW_PLUGINS | {"score": [("NodeResourcesFit", 2**30)]})
    batch = KernelBatch(table_of(node("n1")), pod(), config=config)

    assert batch.decide() == []
    assert batch.coverage.by_reference == {"weights": 1}


def test_the_kernel_decides_nothing_while_pods_are_nominated():
    table = table_of(node("n1"))
    table.nominate("n1", table.classes.pod_class(pod(cpu=1000)))
    batch = KernelBatch(table, pod(cpu=1000))

    assert batch.decide() == []
    assert batch.coverage.by_reference == {"nominated pods": 1}


def test_rows_changed_by_the_reference_are_used_by_the_next_run():
    batch = KernelBatch(table_of(node("n1"), node("n2")), *[pod(cpu=1000)] * 3)
    batch.pods, (first, *others) = batch.pods[1:], batch.pods

    assert batch.run.decide_by_kernel([first])[0].node_name == "n1"
    assert batch.run.decide(others[0]).node_name == "n2"
    batch.pods = others[1:]
    assert batch.decide() == ["n1"]


def test_counts_of_coverage_name_the_obstacle():
    batch = KernelBatch(table_of(node("n1", cpu=1000)), *[pod(cpu=1000)] * 2)
    batch.decide()
    batch.run.decide_by_kernel(batch.pods[1:])

    assert batch.coverage.counts() == (
        ("kernel: pods", 1),
        ("kernel: by reference: no feasible node", 1),
        ("kernel: stopped: no feasible node", 1),
    )
    assert DecisionCounts().counts() == ()


SOFT_ZONE = fleets.spread(when="ScheduleAnyway", selector=fleets.apps("web"))
SOFT_HOST = fleets.spread(fleets.HOSTNAME, 3, "ScheduleAnyway", fleets.apps("web"))
WEB = {"app": "web"}
RELATED = {
    "hard spread": {"spread_constraints": (fleets.spread(selector=fleets.apps("web")),)},
    "soft spread": {"spread_constraints": (SOFT_HOST, SOFT_ZONE)},
    "affinity": {"pod_affinity": (fleets.near(fleets.apps("web")),)},
    "anti-affinity": {"pod_anti_affinity": (fleets.near(fleets.apps("web"), fleets.HOSTNAME),)},
    "preferred affinity": {
        "preferred_pod_affinity": (fleets.near(fleets.apps("web"), weight=10),),
        "preferred_pod_anti_affinity": (
            fleets.near(fleets.apps("web"), fleets.HOSTNAME, weight=5),
        ),
    },
}


def zones(count=6):
    return table_of(*(fleets.host(number, "abc"[number % 3]) for number in range(count)))


@pytest.mark.parametrize("kind", RELATED)
def test_a_class_that_depends_on_other_nodes_is_supported(kind):
    related = pod(cpu=100, labels=WEB, **RELATED[kind])
    batch = KernelBatch(zones(), *[related] * 4, pod(cpu=100))

    placed = batch.decide()

    assert len(placed) == 5
    assert batch.coverage.by_kernel == 5
    assert not batch.coverage.by_reference


def test_a_pod_that_repels_equal_pods_from_all_nodes_ends_the_run():
    alone = pod(labels=WEB, **RELATED["anti-affinity"])
    batch = KernelBatch(zones(3), *[alone] * 4)

    assert sorted(batch.decide()) == ["n0", "n1", "n2"]
    assert batch.coverage.stops == {"no feasible node": 1}


def test_pods_placed_in_the_run_repel_a_class_with_anti_affinity():
    wary = pod(labels={"app": "db"}, pod_anti_affinity=(fleets.near(fleets.apps("web")),))
    batch = KernelBatch(zones(3), wary, *[pod(labels=WEB)] * 3)

    first, *others = batch.decide()

    assert len(others) == 3
    assert first not in others


class SilentOracle(ScorePlugin):
    """A plugin that scores, and fails when its scores are normalized."""

    name, reads, normalizes = "SilentOracle", Reads.NODE, True

    def score(self, state, pod, table):
        return np.arange(len(table), dtype=np.int64)

    def normalize(self, state, pod, raw, extremes):
        raise RuntimeError("the oracle is silent")

    def sign(self, pod):
        return ()


def test_a_class_is_left_to_the_reference_each_time_a_plugin_fails():
    score = (*DEFAULT.plugins["score"], PluginRef(SilentOracle.name))
    config = replace(DEFAULT, plugins={**DEFAULT.plugins, "score": score})
    related = pod(labels=WEB, **RELATED["soft spread"])
    batch = KernelBatch(zones(), related, config=config, plugins=(SilentOracle,))

    assert batch.decide() == []
    kernel_of(batch.run).begin_batch()

    assert batch.decide() == []
    assert batch.coverage.stops == {"score out of range": 2}


def test_with_too_many_domains_the_reference_decides(monkeypatch):
    monkeypatch.setattr("roadstead.kernel.counter_layout.MAX_COUNTS", 3)
    batch = KernelBatch(zones(), pod(labels=WEB, **RELATED["hard spread"]))

    assert batch.decide() == []
    assert batch.coverage.by_reference == {"too many domains": 1}


def test_a_plugin_that_scores_without_preparation_is_left_to_the_reference():
    points = ROW_PLUGINS | {
        "preFilter": ["PodTopologySpread"],
        "filter": [*ROW_PLUGINS["filter"], "PodTopologySpread"],
        "score": [*ROW_PLUGINS["score"], ("PodTopologySpread", 2)],
    }
    batch = KernelBatch(zones(), pod(), config=config_of(points))

    assert batch.decide() == []
    assert batch.coverage.by_reference == {"node search, or an error": 1}


@pytest.mark.parametrize("kind", ["first", "random"])
@pytest.mark.parametrize(("nodes", "pods"), [(9, 30), (150, 170), (400, 60)])
def test_the_kernel_chooses_among_equal_nodes_like_the_reference(kind, nodes, pods):
    def decided(kernel):
        table = table_of(*(node(f"n{number}", cpu=4000) for number in range(nodes)))
        classes = [pod(cpu=1000), pod(cpu=500)]
        wanted = [classes[number % 3 % 2] for number in range(pods)]
        batch = KernelBatch(table, *wanted, tie_break=TieBreak(kind, 5), kernel=kernel)
        return batch.decide() or [batch.run.decide(each).node_name for each in batch.pods]

    assert decided(True) == decided(False)


@pytest.mark.parametrize("draw", [0, 1, 0x0123456789ABCDEF, 2**64 - 1])
def test_each_bucket_is_found_by_its_position(draw):
    draw = np.uint64(draw)
    places = [int(position_of_bucket(np.uint64(bucket), draw)) for bucket in range(BUCKETS)]

    found = [int(bucket_at(np.uint64(place), draw, True)) for place in places]

    assert found == list(range(BUCKETS))


def test_a_cached_kernel_keeps_only_classes_used_again(monkeypatch):
    made = []
    monkeypatch.setattr(
        kernel_cache, "Kernel", lambda *given, **_: made.append(given[2]) or Remembers()
    )
    keeps, table, chooser = kernel_cache.KernelCache(), table_of(node("n1")), Chooser(TieBreak())
    often, once, late = (KernelClass(each, pod(), None, None) for each in ("often", "once", "late"))

    for batch in ({"a": often, "b": once}, {"a": often, "c": late}, {"d": once}):
        keeps.get(load(), table, batch, chooser)

    assert [sorted(classes) for classes in made] == [["a", "b"], ["a", "c"], ["a", "d"]]


class Remembers:
    """A kernel that covers every class, all unchanged."""

    def covers(self, signature):
        return True

    def update_per_pod_filters(self, signature):
        return True

    def resume(self):
        raise AssertionError("no batch has only classes that are known")
