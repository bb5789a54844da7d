import numpy as np

from roadstead.bench.series import PodSeries
from roadstead.bench.tracking import Tracker
from tests.builders import pod


def series(count, prefix="p-", namespace="ns", **labels):
    return PodSeries(count, namespace, (pod(cpu=100, labels=labels),), prefix)


def follow(tracker, count, submitted=None, **kind):
    found = tracker.follow(series(count, **kind))
    found.parts.append((count if submitted is None else submitted, 1.0))
    return found


def test_pods_are_missing_until_they_are_bound():
    tracker = Tracker()
    one, two = follow(tracker, 2), follow(tracker, 3, prefix="q-")

    tracker.record_commits(["ns/q-2", "ns/p-0", "other/x"], [(2, 5.0, 0.5), (1, 6.0, 0.6)])

    assert (one.missing, two.missing) == (1, 2)
    assert one.bound_s[0] == two.bound_s[2] == 5.0
    assert one.bound_processor_s[0] == two.bound_processor_s[2] == 0.5
    assert np.isnan(one.bound_s[1])
    assert tracker.commits == 3


def test_the_first_report_on_a_pod_counts():
    tracker = Tracker()
    one = follow(tracker, 1)

    tracker.record_commits(["ns/p-0", "ns/p-0"], [(1, 5.0, 0.5), (1, 6.0, 0.6)])

    assert one.bound_s[0] == 5.0
    assert one.bound == 1


def test_commits_of_unknown_pods_are_counted_too():
    tracker = Tracker()

    tracker.record_commits(["x/y"], [(1, 1.0, 0.1)])

    assert tracker.commits == 1


def test_only_submitted_pods_are_missing_and_deleted_ones_are_not():
    tracker = Tracker()
    one = follow(tracker, 10, submitted=4)
    one.record_bound(0, 2.0, 0.2)
    one.remove(0)
    one.remove(3)

    assert one.submitted == 4
    assert one.missing == 2
    assert [place for _, place in tracker.remaining("ns", ())] == [1, 2]


def test_each_pod_has_the_submission_time_of_its_part():
    one = Tracker().follow(series(5))
    assert one.submitted == 0

    one.parts += [(2, 1.0), (5, 3.0)]

    assert one.submitted_s().tolist() == [1.0, 1.0, 3.0, 3.0, 3.0]


def test_series_are_found_by_namespace_and_labels():
    tracker = Tracker()
    plain = follow(tracker, 1)
    web = follow(tracker, 1, namespace="b", app="web", tier="1")

    assert tracker.of() == [plain, web]
    assert tracker.of(("b",)) == [web]
    assert tracker.of((), (("app", "web"),)) == [web]
    assert tracker.of(("ns",), (("app", "web"),)) == []
    assert tracker.remaining("b", (("app", "db"),)) == []
