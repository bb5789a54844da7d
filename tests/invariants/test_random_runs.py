"""Rules of simulated runs against their definitions: random histories, one number or row wrong.

Each history is counted here at every sample by itself, from the times of pods and nodes; the rules
follow the changes in one pass instead.
"""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roadstead.invariants.amounts import amount_of
from roadstead.invariants.simulated_rows import (
    AllocationRow,
    ClassSampleRow,
    DeviceRow,
    NodeRow,
    PodRow,
    RunRows,
    SampleRow,
)
from roadstead.invariants.simulated_run import check_run

END = 12
"""Times are small, so that many things happen at one time."""

CPU = {0: 100, 1: 250, 2: 0}
"""Request by class of pods."""

NODES = ("n1", "n2")
ENDINGS = ("done", "failed", "deleted", "preempted", "evicted", "lost")


@st.composite
def pod_rows(draw):
    pods = []
    for number in range(draw(st.integers(0, 8))):
        created = draw(st.integers(0, END))
        bound = draw(st.none() | st.integers(created, END))
        ended = draw(st.none() | st.integers(created if bound is None else bound, END))
        pods.append(
            PodRow(
                number,
                f"default/p{number}",
                draw(st.sampled_from(sorted(CPU))),
                created,
                bound,
                bound,
                ended,
                None if ended is None else draw(st.sampled_from(ENDINGS)),
                None if bound is None else draw(st.sampled_from(NODES)),
                first_tried_us=bound,
                waited_us=None if bound is None else bound - created,
            )
        )
    return tuple(pods)


@st.composite
def node_rows(draw, allocatable):
    """Draw rows of the nodes, of which each exists from time 0. allocatable: drawn for each row."""
    rows = []
    for name in NODES:
        for time_us in sorted({0} | draw(st.sets(st.integers(1, END), max_size=3))):
            zone = draw(st.sampled_from(("a", "b", None)))
            rows.append(NodeRow(time_us, name, draw(allocatable), draw(st.integers(0, 9)), zone))
    return tuple(rows)


LARGE = st.just({"cpu": 10**6})


def is_pending(pod, at_us):
    ends = (pod.bound_us, pod.ended_us)
    return pod.created_us <= at_us and not any(each is not None and each <= at_us for each in ends)


def has_ended(pod, at_us):
    return pod.ended_us is not None and pod.ended_us <= at_us


def is_running(pod, at_us):
    return pod.bound_us is not None and pod.bound_us <= at_us and not has_ended(pod, at_us)


def row_at(nodes, name, at_us):
    return [each for each in nodes if each.node == name and each.time_us <= at_us][-1]


def samples_of(pods, nodes, times):
    """Return the samples: of the whole fleet, and of the zones with pods."""
    rows = []
    for at_us in times:
        for metric, holds in (
            ("pending", is_pending),
            ("running", is_running),
            ("ended", has_ended),
        ):
            rows.append(SampleRow(at_us, metric, sum(holds(pod, at_us) for pod in pods)))
        running = [pod for pod in pods if is_running(pod, at_us)]
        zones = Counter(row_at(nodes, pod.node, at_us).zone for pod in running)
        rows += [
            SampleRow(at_us, "running", zones[zone], zone) for zone in ("a", "b") if zones[zone]
        ]
    return tuple(rows)


def class_row(pods, at_us, number, classes):
    of = [pod for pod in pods if pod.pod_class in classes and pod.created_us <= at_us]
    ended = [pod for pod in of if has_ended(pod, at_us)]
    finished = sum(pod.ending in ("done", "failed") for pod in ended)
    pending = sum(is_pending(pod, at_us) for pod in of)
    running = sum(is_running(pod, at_us) for pod in of)
    return ClassSampleRow(at_us, number, len(of), pending, running, finished, len(ended) - finished)


def class_samples_of(pods, times, *, joined):
    """Return a row of each class where it differs from the last one. joined: classes 1 and 2 have
    no rows of their own."""
    groups = {0: (0,), None: (1, 2)} if joined else {each: (each,) for each in CPU}
    rows, last = [], {}
    for at_us in times:
        for number, classes in groups.items():
            row = class_row(pods, at_us, number, classes)
            numbers = replace(row, time_us=0)
            if last.get(number, ClassSampleRow(0, number, 0, 0, 0, 0, 0)) != numbers:
                rows.append(row)
                last[number] = numbers
    return tuple(rows)


@st.composite
def runs(draw, nodes=LARGE):
    pods = draw(pod_rows())
    rows = tuple(replace(each, pods=10**6) for each in draw(node_rows(nodes)))
    times = sorted(draw(st.sets(st.integers(0, END), min_size=1, max_size=5)))
    bound = [each for each in pods if each.bound_us is not None]
    return RunRows(
        pods,
        {number: {"cpu": amount} for number, amount in CPU.items()},
        rows,
        tuple((each.bound_us, each.number, each.node) for each in bound),
        samples_of(pods, rows, times),
        first_attempts={each.number: each.bound_us for each in bound},
        class_samples=class_samples_of(pods, times, joined=draw(st.booleans())),
    )


FEW = settings(max_examples=50)
"""For histories with one mistake: each example is a history of its own."""


def violations(tables):
    return [(each.rule, each.subject) for each in check_run(tables)]


@given(runs())
def test_any_history_that_is_counted_right_has_no_violations(tables):
    assert list(check_run(tables)) == []


@FEW
@given(runs(), st.data())
def test_any_sample_with_another_number_is_found(tables, data):
    index = data.draw(st.integers(0, len(tables.samples) - 1))
    row = tables.samples[index]
    other = replace(row, value=row.value + data.draw(st.sampled_from((-1, 1, 100))))
    samples = (*tables.samples[:index], other, *tables.samples[index + 1 :])

    where = f"zone {row.zone}" if row.zone else "sample"
    subject = f"{where} at {row.time_us} us"
    assert violations(replace(tables, samples=samples)) == [("conservation", subject)]


@FEW
@given(runs(), st.data())
def test_a_missing_sample_of_a_zone_with_pods_is_found(tables, data):
    in_zones = [each for each in tables.samples if each.zone]
    assume(in_zones)
    missing = data.draw(st.sampled_from(in_zones))
    samples = tuple(each for each in tables.samples if each is not missing)

    subject = f"zone {missing.zone} at {missing.time_us} us"
    assert violations(replace(tables, samples=samples)) == [("conservation", subject)]


@FEW
@given(runs(), st.data())
def test_any_row_of_a_class_with_another_number_is_found(tables, data):
    assume(tables.class_samples)
    index = data.draw(st.integers(0, len(tables.class_samples) - 1))
    row = tables.class_samples[index]
    field = data.draw(st.sampled_from(("created", "pending", "running", "finished", "removed")))
    other = replace(row, **{field: getattr(row, field) + 1})
    rows = (*tables.class_samples[:index], other, *tables.class_samples[index + 1 :])

    found = violations(replace(tables, class_samples=rows))

    assert found, "the row is wrong at its own time"
    assert {rule for rule, _ in found} == {"conservation"}
    assert found[0][1].endswith(f"at {row.time_us} us"), "no violation is reported before it"


@FEW
@given(runs(), st.data())
def test_a_pod_that_is_in_no_row_is_found(tables, data):
    assume(len(tables.pods) > 1)
    lost = data.draw(st.sampled_from(tables.pods[:-1]))
    pods = tuple(each for each in tables.pods if each is not lost)

    assert ("conservation", f"pod {lost.number}") in violations(replace(tables, pods=pods))


def arrives_before(pod, other):
    """Whether a pod is on their node when the other arrives there."""
    is_earlier = (pod.bound_us, pod.number) <= (other.bound_us, other.number)
    return is_earlier and pod.bound_us != pod.ended_us and not has_ended(pod, other.bound_us)


@given(
    pod_rows(),
    node_rows(st.none() | st.sampled_from(({"cpu": 300}, {"cpu": 100}, {"cpu": 600}, {}))),
)
def test_a_bind_beyond_the_capacity_is_found_and_no_other(pods, nodes):
    expected = set()
    for pod in pods:
        if pod.bound_us is None or pod.bound_us == pod.ended_us:
            continue
        row = row_at(nodes, pod.node, pod.bound_us)
        there = [
            each
            for each in pods
            if each.node == pod.node and each.bound_us is not None and arrives_before(each, pod)
        ]
        cpu = sum(CPU[each.pod_class] for each in there)
        amount = CPU[pod.pod_class]
        if (
            row.allocatable is None
            or len(there) > row.pods
            or (amount and cpu > row.allocatable.get("cpu", 0))
        ):
            expected.add((pod.node, pod.uid))
    tables = RunRows(pods, {number: {"cpu": each} for number, each in CPU.items()}, nodes, (), ())

    found = [each for each in check_run(tables) if each.rule == "capacity"]

    binds = {(each.subject, each.text.split()[0]) for each in found if "was bound" in each.text}
    assert binds == expected
    for row in nodes:
        there = [
            each
            for each in pods
            if each.node == row.node
            and each.bound_us is not None
            and each.bound_us < row.time_us
            and not has_ended(each, row.time_us)
        ]
        text = f"was removed at {row.time_us} us with {len(there)} pods"
        is_found = any((each.subject, each.text) == (row.node, text) for each in found)
        assert is_found is (row.allocatable is None and bool(there)), text


DEVICES = tuple(
    DeviceRow(("gpu.example.com", "pool", f"g{index}"), "s", None) for index in range(3)
)


@st.composite
def device_histories(draw):
    """Draw pods with a claim each, that share few devices one after the other: (pods, rows)."""
    pods, rows, free, running = [], [], [each.id for each in DEVICES], []
    for now_us in range(1, draw(st.integers(4, 12))):
        for pod, device in list(running):
            if draw(st.booleans()):
                running.remove((pod, device))
                free.append(device)
                pods[pod.number] = replace(pod, ended_us=now_us, ending="done")
                rows += [
                    AllocationRow(now_us, "unreserved", claim_of(pod), pod.number),
                    AllocationRow(now_us, "deallocated", claim_of(pod), pod.number, device, "r"),
                ]
        while free and draw(st.booleans()):
            number, device = len(pods), free.pop(draw(st.integers(0, len(free) - 1)))
            times = now_us, now_us, None, None
            pod = PodRow(number, f"default/p{number}", 0, 0, *times, "n1", "default", f"p{number}")
            pods.append(pod)
            running.append((pod, device))
            rows += [
                AllocationRow(now_us, "allocated", claim_of(pod), number, device, "r"),
                AllocationRow(now_us, "reserved", claim_of(pod), number),
            ]
    return tuple(pods), tuple(rows)


def claim_of(pod):
    return f"{pod.uid}-gpu"


def device_violations(pods, rows):
    claims = {0: ("*-gpu",)}
    tables = RunRows(pods, {0: {}}, (), (), (), claims=claims, devices=DEVICES, allocations=rows)
    return [each for each in check_run(tables) if each.rule == "devices"]


@given(device_histories())
def test_devices_that_are_in_one_claim_at_a_time_break_no_rule(history):
    assert device_violations(*history) == []


@given(device_histories(), st.data())
def test_a_missing_row_of_an_allocation_is_found(history, data):
    pods, rows = history
    # Without its device, a claim that is used to the end looks like one that requested none.
    needed = [
        each for each in rows if each.what != "allocated" or pods[each.pod].ended_us is not None
    ]
    assume(needed)
    missing = data.draw(st.sampled_from(needed))

    found = device_violations(pods, tuple(each for each in rows if each is not missing))

    assert any(claim_of(pods[missing.pod]) in each.subject + each.text for each in found), found


@FEW
@given(device_histories(), st.data())
def test_a_repeated_row_is_found_unless_it_reserves_again(history, data):
    pods, rows = history
    assume(rows)
    index = data.draw(st.integers(0, len(rows) - 1))

    found = device_violations(pods, (*rows[: index + 1], rows[index], *rows[index + 1 :]))

    assert bool(found) is (rows[index].what != "reserved"), found


@FEW
@given(device_histories(), st.data())
def test_a_device_of_another_claim_is_found(history, data):
    pods, rows = history
    taken = [each for each in rows if each.what == "allocated"]
    assume(len(taken) > 1)
    first, second = data.draw(st.sampled_from(list(pairwise(taken))))
    ended_us = pods[first.pod].ended_us
    assume(ended_us is None or ended_us > second.time_us)
    swapped = tuple(replace(each, device=first.device) if each is second else each for each in rows)

    found = device_violations(pods, swapped)

    assert any(each.text.startswith(f"is in claims {first.claim} and") for each in found), found


@given(st.integers(-(10**6), 10**6), st.sampled_from(("m", "", "k", "Ki", "M", "Mi", "Gi", "e3")))
def test_amounts_are_exact_in_every_unit(number, unit):
    factor = {"m": 1, "": 10**3, "k": 10**6, "Ki": 1024 * 10**3, "M": 10**9, "e3": 10**6}
    factor |= {"Mi": 1024**2 * 10**3, "Gi": 1024**3 * 10**3}

    assert amount_of(f"{number}{unit}") * 1000 == number * factor[unit]
    assert amount_of("0.1") * 10 == 1, "no float is between"


def test_at_one_time_pods_leave_then_their_node_changes_and_then_pods_arrive():
    first = PodRow(0, "default/p0", 0, 1, 3, 3, 5, "done", "n1")
    second = PodRow(1, "default/p1", 0, 1, 5, 5, None, None, "n1")
    came, gone = NodeRow(3, "n1", {"cpu": 100}, 1), NodeRow(5, "n1", None, 0)
    again = NodeRow(5, "n1", {"cpu": 100}, 1)

    def capacity(pods, *nodes):
        tables = RunRows(pods, {0: {"cpu": 100}}, nodes, (), ())
        return [each.text for each in check_run(tables) if each.rule == "capacity"]

    assert capacity((first,), came, gone) == []
    assert capacity((first, second), came) == []
    assert capacity((first, second), came, gone, again) == []
    assert capacity((first, second), came, gone) == [
        "default/p1 was bound to it at 5 us, when there was no such node"
    ]
