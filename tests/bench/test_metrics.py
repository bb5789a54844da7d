import numpy as np
import pytest

from roadstead.bench.metrics import (
    BenchMetrics,
    KernelShare,
    Measurement,
    metrics_of,
    pods_since,
    workload_result,
)
from roadstead.bench.series import PodSeries
from roadstead.bench.tracking import Tracker
from tests.builders import pod


def measured(bound_s, started_s=10.0, submitted_s=None, pods=None, binder_s=None, **more):
    """binder_s: processor time of the binder's process at each bind; 1.0 at the start."""
    bound = np.array(bound_s, dtype=float)
    submitted = np.full(len(bound), started_s) if submitted_s is None else np.array(submitted_s)
    pods = len(bound) if pods is None else pods
    spent = np.array([1.0] * len(bound) if binder_s is None else binder_s)
    return Measurement("w", 3, pods, started_s, submitted, bound, 1.0, spent, **more)


def rated(rate):
    return BenchMetrics(
        "w", 1, 1, 1, 1.0, rate, 0.0, 0.0, 0.0, 0.0, 0, 1, 0.0, 0.0, 0.0, {}, {}, KernelShare(0, {})
    )


def test_the_rate_is_from_the_first_submission_to_the_last_bind():
    found = metrics_of(measured([11.0, 12.0, 12.5, 12.0]))

    assert found.seconds == 2.5
    assert found.pods_per_s == pytest.approx(1.6)
    assert (found.bound, found.pods) == (4, 4)


def test_latency_is_measured_from_each_pods_own_submission():
    found = metrics_of(measured([11.0, 13.0, 14.0], submitted_s=[10.0, 12.0, 12.0]))

    assert found.latency_p50_s == pytest.approx(1.0)
    assert found.latency_p99_s == pytest.approx(1.98)


def test_the_longest_gap_is_between_two_binds_in_order_of_time_or_before_the_first():
    assert metrics_of(measured([11.0, 14.0, 12.0])).longest_gap_s == 2.0
    assert metrics_of(measured([13.0, 14.0, 13.5])).longest_gap_s == 3.0
    assert metrics_of(measured([])).longest_gap_s == 0.0


def test_the_longest_gap_in_processor_time_may_be_between_other_binds():
    found = metrics_of(measured([11.0, 14.0, 12.0], binder_s=[1.5, 1.7, 1.6]))
    assert found.longest_gap_s == 2.0
    assert found.longest_gap_cpu_s == 0.5


def test_processor_time_per_bound_pod_is_that_of_the_busiest_process():
    process_s = {"control": 0.5, "driver": 0.1}
    found = metrics_of(measured([11.0, 12.0], processor_s=3.0, critical_s=0.5, process_s=process_s))

    assert found.processor_s == 3.0
    assert found.critical_us_per_pod == pytest.approx(250_000)
    assert found.process_us_per_pod == pytest.approx({"control": 250_000, "driver": 50_000})
    assert metrics_of(measured([], critical_s=0.5)).critical_us_per_pod == 0.0


def test_without_binds_there_is_no_rate():
    found = metrics_of(measured([], pods=5, spent_s={"scheduler-0: lease": 3.0}))

    assert (found.pods_per_s, found.seconds, found.latency_p99_s) == (0.0, 0.0, 0.0)
    assert found.shares == {}
    assert found.kernel.share is None


def test_phases_of_equal_actors_are_merged_and_the_largest_is_first():
    spent = {
        "worker-0: evaluate": 0.5,
        "worker-1: evaluate": 1.0,
        "binder: bind": 1.0,
        "scheduler-0: lease": 9.0,
        "queue: nothing": 0.0,
    }

    found = metrics_of(measured([12.0], spent_s=spent))

    assert found.shares == {
        "scheduler: lease": 1.0,
        "worker: evaluate": 0.75,
        "binder: bind": 0.5,
    }
    assert list(found.shares) == ["scheduler: lease", "worker: evaluate", "binder: bind"]


def test_the_kernels_share_counts_pods_decided_by_kernel_or_reference():
    counts = {
        "scheduler-0: kernel: pods": 60,
        "scheduler-1: kernel: pods": 15,
        "scheduler-0: kernel: by reference: NodePorts": 20,
        "scheduler-1: kernel: by reference: NodePorts": 5,
        "scheduler-1: kernel: by reference: narrowed": 0,
        "scheduler-0: kernel: stopped: end": 4,
        "binder: bound": 100,
    }

    found = metrics_of(measured([12.0], counts=counts))

    assert found.kernel == KernelShare(75, {"NodePorts": 25})
    assert found.kernel.share == 0.75


def test_the_median_of_several_runs_is_reported_with_the_spread_of_all():
    runs = [rated(rate) for rate in (120.0, 80.0, 100.0)]

    found = workload_result(runs)

    assert found.median_run is runs[2]
    assert found.rates == (120.0, 80.0, 100.0)
    assert found.spread == pytest.approx(0.4)
    assert workload_result([rated(0.0)]).spread == 0.0
    assert workload_result(runs[:2]).median_run is runs[1]


def test_a_measurement_has_the_pods_that_were_not_bound_before_it():
    tracker = Tracker()
    one = tracker.follow(PodSeries(4, "ns", (pod(cpu=1),), "p-"))
    one.parts.append((3, 1.0))
    one.record_bound(0, 2.0, 0.2)
    one.record_bound(1, 6.0, 0.6)

    pods, submitted_s, bound_s, spent_s = pods_since([one], 5.0)

    assert pods == 2
    assert submitted_s.tolist() == [1.0]
    assert bound_s.tolist() == [6.0]
    assert spent_s.tolist() == [0.6]
    assert pods_since([], 0.0)[0] == 0
