import numpy as np
import pytest

from roadstead.actors.interface import RunFailedError
from roadstead.actors.runs import bench_run
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime import kernel_loader
from roadstead.bench.catalog import built_in, choose
from roadstead.bench.metrics import metrics_of
from roadstead.bench.roadstead_workloads import TEN_NODES, all_distinct, million, openb, ten_classes
from roadstead.bench.script import (
    AddNodes,
    AwaitPods,
    BeginMeasuring,
    ChurnObjects,
    EndMeasuring,
    RemovePods,
    Script,
    SleepStep,
    SteadyPods,
    SubmitPods,
    WaitMode,
)
from roadstead.bench.series import ENDLESS, NodeSeries, PodSeries
from roadstead.facts.node import NodeFacts
from roadstead.fleet.generate import generate_fleet
from roadstead.invariants.checker import check
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from roadstead.kernel import compiled_code
from tests.actors.world import GENEROUS_S, plan_of
from tests.bench.cases import measured_pods, node_count
from tests.bench.sessions import bench, launched
from tests.builders import MIB, pod

SMALL = [
    each
    for each in built_in()
    if each.workload.startswith(("5Nodes", "10Nodes", "fast", "1Node_10G"))
]
BIG_NODE = NodeFacts("", allocatable=(("cpu", 64_000), ("memory", 1 << 40)), allocatable_pods=500)


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(bench_run, "BENCH_POLL_S", 0.002)
    monkeypatch.setattr(bench_run, "DELETE_EVERY_S", 0.001)


def nodes(count=2, facts=BIG_NODE, prefix="n-"):
    return AddNodes(NodeSeries((facts,), count, prefix))


def pods(count, prefix="p-", namespace="ns", cpu=100, labels=None, **facts):
    facts = pod(cpu=cpu, memory=MIB, namespace=namespace, labels=labels or {}, **facts)
    return PodSeries(count, namespace, (facts,), prefix)


def measured(series, wait=WaitMode.BOUND):
    return SubmitPods(series, wait, measured=True)


def checked(folder):
    return check(list(Reader(RealDisk(folder)).records()))


@pytest.mark.parametrize("entry", SMALL, ids=lambda each: each.name)
def test_every_workload_binds_its_pods_and_the_checker_finds_no_error(entry, tmp_path):
    script = entry.make()

    benched = launched(script, journal=tmp_path)

    (found,) = benched.measured
    assert len(found.bound_s) == found.pods > 0
    if not any(isinstance(each, SteadyPods) for each in script.steps):
        assert found.pods == measured_pods(script)
    assert found.nodes == node_count(script)
    assert (found.bound_s >= found.submitted_s).all()
    result = checked(tmp_path)
    assert result.violations == []
    assert result.binds_checked >= found.pods


@pytest.mark.parametrize("make", [ten_classes, all_distinct, million])
@pytest.mark.parametrize("kernel", [False, True])
def test_own_workloads_bind_their_pods_with_the_kernel_and_without(make, kernel, tmp_path):
    script = make("own", 30, 300, 1)

    (found,) = launched(script, journal=tmp_path, kernel=kernel).measured

    assert len(found.bound_s) == 300
    assert checked(tmp_path).violations == []


def test_ten_pods_of_ten_classes_fit_on_a_node_at_any_size(tmp_path):
    script = ten_classes("ten", TEN_NODES, 10 * TEN_NODES, 0)

    (found,) = launched(script).measured

    assert len(found.bound_s) == 10 * TEN_NODES


def test_pods_of_a_trace_that_fit_nowhere_stay_pending(tmp_path):
    script = openb("openb", generate_fleet(3, 200, 1))

    (found,) = launched(script, journal=tmp_path).measured

    assert 0 < len(found.bound_s) < found.pods == 200
    assert checked(tmp_path).violations == []


def test_placements_are_the_same_for_the_same_seed(tmp_path):
    folders = [tmp_path / name for name in ("a", "b")]
    for folder, workers in zip(folders, (0, 3), strict=True):
        launched(ten_classes("ten", 20, 100, 1), journal=folder, workers=workers)

    binds = [
        {r.key: r.node_name for r in Reader(RealDisk(folder)).records() if r.kind == "bind"}
        for folder in folders
    ]
    assert binds[0] == binds[1]
    assert len(binds[0]) == 100


def test_only_measured_pods_count():
    (found,), _ = bench(nodes(), SubmitPods(pods(20)), measured(pods(7, "m-")))

    figures = metrics_of(found)
    assert (figures.pods, figures.bound, figures.nodes) == (7, 7, 2)
    assert found.started_s <= found.submitted_s.min()
    assert figures.pods_per_s > 0
    assert figures.peak_bytes > 0
    assert found.counts["binder: bound"] == 7
    assert found.setup_s > 0


def test_each_measured_step_has_its_own_measurement():
    found, _ = bench(nodes(), measured(pods(3)), measured(pods(4, "q-")))

    assert [each.pods for each in found] == [3, 4]


def test_submitted_parts_have_their_own_times(monkeypatch):
    monkeypatch.setattr(bench_run, "PODS_PER_MESSAGE", 2)
    monkeypatch.setattr(bench_run, "PREBUILT_PODS", 3)

    (found,), _ = bench(nodes(), measured(pods(5)))

    assert len(set(found.submitted_s.tolist())) == 3
    assert np.all(np.diff(found.submitted_s) >= 0)


def test_a_barrier_waits_for_pods_of_steps_that_did_not_wait():
    found, actors = bench(
        nodes(),
        SubmitPods(pods(9, namespace="a", labels={"app": "x"}), WaitMode.NOTHING),
        SubmitPods(pods(9, namespace="b"), WaitMode.NOTHING),
        AwaitPods(("a",), (("app", "x"),)),
        AwaitPods(),
        measured(pods(1, namespace="c")),
    )

    assert len(actors["binder"].binder.outcomes.bound) == 19
    assert len(found) == 1


def test_gated_pods_count_as_tried():
    gated = pods(5, scheduling_gates=("hold",))

    found, actors = bench(
        nodes(),
        SubmitPods(gated, WaitMode.NOTHING),
        AwaitPods(attempted=True),
        measured(pods(2, "q-")),
    )

    assert len(found[0].bound_s) == 2
    assert actors["queue"].core.counts().gated == 5


def test_pods_of_a_namespace_with_labels_can_be_deleted_together_or_in_turn():
    labelled = {"labels": {"app": "x"}, "namespace": "a"}

    _, actors = bench(
        nodes(),
        SubmitPods(pods(5, "x-", **labelled)),
        SubmitPods(pods(5, "y-", namespace="a")),
        SubmitPods(pods(5, "z-", namespace="b")),
        RemovePods("a", (("app", "x"),)),
        RemovePods("b", per_s=5000),
        measured(pods(1, namespace="c")),
    )

    assert {uid.rpartition("-")[0] for uid in actors["binder"].binder.outcomes.bound} == {
        "a/y",
        "c/p",
    }
    actors["cache"].core.validate()
    assert actors["cache"].core.counts().added == 6


def test_deletions_continue_in_the_background_until_the_end():
    _, actors = bench(
        nodes(),
        SubmitPods(pods(500, "old-")),
        RemovePods("ns", per_s=5, waits=False),
        measured(pods(50)),
    )

    assert 50 < len(actors["binder"].binder.outcomes.bound) <= 550


def test_churned_objects_are_created_while_others_are_measured():
    churned = PodSeries(ENDLESS, "ns", (pod(cpu=64_001),), "c-")
    node_maker = NodeSeries((NodeFacts(""),), ENDLESS, "extra-")

    _, actors = bench(
        nodes(),
        ChurnObjects((churned, node_maker), 0.001, number=3, recreates=False),
        SubmitPods(pods(40)),
        SleepStep(0.05),
        measured(pods(40, "m-")),
    )

    assert actors["queue"].core.counts().unschedulable == 3
    assert actors["cache"].core.counts().nodes == 5


def test_recreated_objects_exist_at_most_as_often_as_their_number():
    churned = PodSeries(ENDLESS, "ns", (pod(cpu=64_001),), "c-")
    node_maker = NodeSeries((NodeFacts(""),), ENDLESS, "extra-")

    _, actors = bench(
        nodes(),
        ChurnObjects((node_maker, churned), 0.001, number=2, recreates=True),
        SleepStep(0.05),
        measured(pods(20)),
    )

    core = actors["queue"].core
    assert core.counts().unschedulable + core.counts().active + core.counts().in_flight <= 2
    assert 2 <= actors["cache"].core.counts().nodes <= 4, "at most two nodes beside the first two"
    actors["cache"].core.validate()


def test_measured_pods_can_be_selected_by_namespace():
    found, _ = bench(
        nodes(),
        SubmitPods(pods(5, namespace="a")),
        BeginMeasuring("part", ("a", "b")),
        SubmitPods(pods(3, "q-", namespace="a")),
        SubmitPods(pods(4, namespace="b")),
        SubmitPods(pods(6, namespace="c")),
        EndMeasuring(),
        BeginMeasuring("", ("c",)),
        SubmitPods(pods(2, "q-", namespace="c")),
        EndMeasuring(),
    )

    assert [(each.name, each.pods) for each in found] == [("test/part", 7), ("test", 2)]


def test_overlapping_or_unstarted_measurements_end_the_run():
    with pytest.raises(RunFailedError, match="two measurements overlap"):
        bench(BeginMeasuring("a", ("x",)), BeginMeasuring("b", ("x",)))
    with pytest.raises(RunFailedError, match="ends without a beginning"):
        bench(EndMeasuring())


def test_pods_that_fit_nowhere_end_the_run_with_the_reason():
    with pytest.raises(RunFailedError) as failed:
        bench(nodes(), measured(pods(3, cpu=64_001)))

    message = str(failed.value)
    assert (
        "test: 3 of 3 pods fit on no node. 3 pods wait, the first of them: ns/p-0: 0/2 nodes"
        in message
    )
    assert "Insufficient cpu" in message


def test_pods_that_fit_nowhere_may_stay_where_the_script_allows_it():
    (found,), _ = bench(nodes(), measured(pods(3, cpu=40_000), WaitMode.IDLE))

    assert (found.pods, len(found.bound_s)) == (3, 2)


def test_a_step_that_takes_too_long_ends_the_run():
    endless = PodSeries(ENDLESS, "ns", (pod(cpu=64_001),), "c-")
    churn = ChurnObjects((endless,), 0.001, number=0, recreates=False)

    with pytest.raises(RunFailedError, match=r"2 of 2 pods were not bound within 0\.01 s"):
        bench(nodes(), churn, measured(pods(2, cpu=64_001)), timeout_s=0.01)


def test_a_barrier_for_tried_pods_does_not_wait_forever():
    many = SubmitPods(pods(2000), WaitMode.NOTHING)

    with pytest.raises(RunFailedError, match="no attempt for some pods within"):
        bench(nodes(), many, AwaitPods(attempted=True), timeout_s=1e-9)


def test_failing_background_work_ends_the_run(monkeypatch):
    def broken(self, maker, place):
        raise RunFailedError("the churn broke")

    monkeypatch.setattr(bench_run.BenchRun, "create_object", broken)
    churn = ChurnObjects((pods(ENDLESS, "c-"),), 0.001, number=0, recreates=False)

    with pytest.raises(RunFailedError, match="the churn broke"):
        bench(nodes(), churn, SleepStep(0.05), measured(pods(2, cpu=64_001)))


def test_progress_reports_nodes_submissions_and_binds():
    seen = []

    bench(nodes(3), measured(pods(30)), seen=seen)

    assert {each.phase for each in seen} >= {"creating nodes: 0 of 3", "submitting pods"}
    assert all(each.placed <= each.total for each in seen)


def test_a_profile_has_the_functions_that_ran(tmp_path):
    script = Script("profiled", (nodes(), measured(pods(400))))

    benched = ActorLauncher().bench(
        script, plan_of(batch=4), lambda progress: None, timeout_s=GENEROUS_S, profiles=True
    )

    (samples,) = benched.samples["all actors"]
    assert samples.stacks
    names = {frame.name for frame in samples.frames}
    assert any("run" in name for name in names)


def test_an_unknown_step_is_a_broken_script():
    with pytest.raises(AssertionError, match="no such step"):
        bench("nothing")


def test_the_catalogs_names_are_unique():
    names = [each.name for each in choose(built_in(), ["*/*"])]

    assert len(names) == len(set(names)) > 100


def test_progress_of_many_nodes_is_reported_in_tenths(monkeypatch):
    monkeypatch.setattr(bench_run, "NODES_PER_MESSAGE", 1)
    seen = []

    bench(nodes(40), measured(pods(1)), seen=seen)

    phases = [each.phase for each in seen if each.phase.startswith("creating nodes")]
    assert phases == [f"creating nodes: {start} of 40" for start in range(0, 40, 4)]


def test_the_kernel_is_loaded_before_the_first_pods():
    seen = []
    many = pods(2000)

    (found,), _ = bench(nodes(20), measured(many), plan=plan_of(kernel=True), seen=seen)

    assert seen[0].phase.startswith("loading the kernel (its first use compiles it")
    assert metrics_of(found).kernel.pods > 1000


def test_the_reference_decides_all_pods_if_the_kernel_can_not_be_loaded(monkeypatch):
    def broken(report=None):
        raise ImportError("no numba")

    monkeypatch.setattr(compiled_code, "load", broken)
    monkeypatch.setattr(kernel_loader, "load", broken)
    monkeypatch.setattr(kernel_loader, "loaded", lambda: None)

    (found,), _ = bench(nodes(20), measured(pods(300)), plan=plan_of(kernel=True))

    assert len(found.bound_s) == 300
