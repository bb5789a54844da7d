"""Sample, scale, shift and cut: what they keep, for traces of any content."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import GroupMembership, PodFacts
from roadstead.fleet.trace import NEVER_MS, NEVER_S, TraceBuilder
from roadstead.fleet.trace_file import read_trace, trace_digest, write_trace
from roadstead.protocol.errors import InputError
from roadstead.traces.transforms import cut, sample, scale, shift


def silent(phase, done, total):
    pass


# (class, arrival, duration) in whole seconds; None does not end.
PODS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 50), st.none() | st.integers(0, 60)), max_size=40
)


def trace_of(pods, nodes=3, in_order=True):
    builder = TraceBuilder("test", {"default": ()})
    for index in range(nodes):
        cpu = 1000 * (1 + index % 2)
        builder.add_node(NodeFacts(name=f"n-{index}", allocatable=(("cpu", cpu),)))
    ordered = sorted(pods, key=lambda pod: pod[1]) if in_order else pods
    for index, (kind, at, lasts) in enumerate(ordered):
        end = NEVER_S if lasts is None else at + lasts
        facts = PodFacts(requests=(("cpu", 100 * kind),))
        builder.add_pod(f"p-{index}", f"default/p-{index}", facts, at, end)
    return builder.build()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


def changed(files, trace, tool, *arguments, **options):
    write_trace(files / "in.trace", trace)
    done = tool(files / "in.trace", files / "out.trace", *arguments, silent, **options)
    out = read_trace(files / "out.trace")
    assert done.digest == trace_digest(out)
    assert (done.nodes, done.pods) == (len(out.node_names), len(out.pod_names))
    return out


def kinds(trace):
    return Counter(dict(facts.requests)["cpu"] for _, facts in trace.pods())


def shapes(trace):
    return Counter(dict(node.allocatable)["cpu"] for node in trace.nodes())


def joint(trace):
    """Count each pair of class and duration."""
    cpus = [dict(facts.requests)["cpu"] for _, facts in trace.pods()]
    return Counter(zip(cpus, trace.duration_ms.tolist(), strict=True))


@given(PODS, st.integers(0, 5))
def test_a_scale_by_two_doubles_every_class_with_its_durations(files, pods, seed):
    before = trace_of(pods)
    after = changed(files, before, scale, 2.0, 2.0, seed)
    assert joint(after) == Counter({key: 2 * count for key, count in joint(before).items()})
    assert len(after.node_names) == 2 * len(before.node_names)
    shapes = [
        Counter(dict(node.allocatable)["cpu"] for node in each.nodes()) for each in (before, after)
    ]
    assert shapes[1] == Counter({cpu: 2 * count for cpu, count in shapes[0].items()})


@given(PODS, st.floats(0.0, 3.0), st.integers(0, 5))
def test_a_scale_by_any_factor_keeps_the_shares_of_classes(files, pods, factor, seed):
    before = trace_of(pods)
    after = changed(files, before, scale, 1.0, factor, seed)
    for kind, count in kinds(before).items():
        assert abs(kinds(after)[kind] - factor * count) < 1 + 1e-6


@given(PODS, st.integers(0, 5))
def test_copies_arrive_in_order_and_within_the_time_of_the_trace(files, pods, seed):
    before = trace_of(pods)
    after = changed(files, before, scale, 1.0, 3.0, seed)
    assert (np.diff(after.creation_ms) >= 0).all()
    if pods:
        assert after.creation_ms.max() == before.creation_ms.max()
    at = dict(zip(after.pod_names, after.creation_ms.tolist(), strict=True))
    assert all(
        at[name] == time
        for name, time in zip(before.pod_names, before.creation_ms.tolist(), strict=True)
    ), "the originals stay where they are"


def test_a_scaled_trace_can_be_scaled_again(files):
    once = changed(files, trace_of([(1, 5, 9)] * 7), scale, 2.0, 2.0, 0)
    twice = changed(files, once, scale, 2.0, 2.0, 0)
    assert (len(twice.pod_names), len(twice.node_names)) == (28, 12)


def test_a_copy_with_the_name_of_another_pod_is_refused(files):
    builder = TraceBuilder("test", {"default": ()})
    for index in range(70_000):
        builder.add_pod(f"p-{index}", f"default/p-{index}", PodFacts())
    builder.add_pod("p-3-x2", "default/p-3-x2", PodFacts())
    write_trace(files / "clash.trace", builder.build())
    with pytest.raises(InputError, match='"p-3-x2" is the name of a copy and of another pod'):
        scale(files / "clash.trace", files / "none.trace", 1.0, 2.0, 0, silent)
    assert not (files / "none.trace").exists()


@given(PODS, st.floats(0.01, 1.0), st.integers(0, 5))
def test_a_sample_keeps_its_share_of_every_class_in_order(files, pods, share, seed):
    before = trace_of(pods, in_order=False)
    after = changed(files, before, sample, share, seed)
    for kind, count in kinds(before).items():
        assert abs(kinds(after)[kind] - share * count) < 1 + 1e-6
    places = {name: place for place, name in enumerate(before.pod_names)}
    order = [places[name] for name in after.pod_names]
    assert order == sorted(order)
    assert after.nodes() == before.nodes()
    for row, place in enumerate(order):
        assert after.creation_ms[row] == before.creation_ms[place]
        assert after.duration_ms[row] == before.duration_ms[place]


def test_a_sample_depends_on_the_seed_alone(files):
    trace = trace_of([(1, at, 5) for at in range(50)])
    first = changed(files, trace, sample, 0.5, 1)
    assert trace_digest(changed(files, trace, sample, 0.5, 1)) == trace_digest(first)
    assert changed(files, trace, sample, 0.5, 2).pod_names != first.pod_names


@pytest.mark.parametrize(("tool", "arguments"), [(sample, (0.5,)), (scale, (1.0, 2.0))])
def test_gangs_are_neither_sampled_nor_copied(files, tool, arguments):
    builder = TraceBuilder("test")
    for index in range(4):
        facts = PodFacts(pod_group=GroupMembership("ring", 4))
        builder.add_pod(f"p-{index}", f"default/p-{index}", facts)
    write_trace(files / "gang.trace", builder.build())
    with pytest.raises(InputError, match='"ring" is a gang, whose pods cannot be chosen'):
        tool(files / "gang.trace", files / "no.trace", *arguments, 0, silent)
    shift(files / "gang.trace", files / "later.trace", 1000, silent)
    assert len(read_trace(files / "later.trace").pod_names) == 4


def test_classes_that_no_pod_has_are_not_written(files):
    trace = trace_of([(kind, 5, 5) for kind in range(4)])
    after = changed(files, trace, cut, 60_000, None, running=False)
    assert (len(after.pod_names), len(after.pod_classes)) == (0, 0)


@given(PODS, st.integers(0, 100_000))
def test_a_shift_and_back_is_the_trace_itself(files, pods, by_ms):
    before = trace_of(pods)
    later = changed(files, before, shift, by_ms)
    assert (later.creation_ms == before.creation_ms + by_ms).all()
    assert (later.duration_ms == before.duration_ms).all()
    again = changed(files, later, shift, -by_ms)
    assert (again.creation_ms == before.creation_ms).all()
    assert (again.deletion_ms == before.deletion_ms).all()


def test_a_shift_before_the_start_is_refused_by_pod(files):
    with pytest.raises(InputError, match='pod "p-0": would arrive before the start of the trace'):
        changed(files, trace_of([(1, 5, 5)]), shift, -6_000)


def test_a_shift_past_292_years_is_refused(files):
    with pytest.raises(InputError, match="is a time of more than 292 years"):
        changed(files, trace_of([(1, 5, 5)]), shift, 9_223_372_036_000)


@given(PODS, st.integers(0, 60_000), st.integers(0, 60_000))
def test_cuts_at_any_times_divide_the_pods(files, pods, one, other):
    before = trace_of(pods)
    first, last = sorted((one, other))
    parts = [
        changed(files, before, cut, start, end, running=False)
        for start, end in ((0, first), (first, last), (last, None))
        if start != end
    ]
    names = [name for part in parts for name in part.pod_names]
    assert Counter(names) == Counter(before.pod_names)
    assert all((part.creation_ms >= 0).all() for part in parts)


@given(PODS, st.integers(0, 60_000))
def test_a_cut_that_keeps_running_pods_has_those_that_run_then_for_their_rest(files, pods, from_ms):
    before = trace_of(pods)
    after = changed(files, before, cut, from_ms, None, running=True)
    rest = dict(zip(after.pod_names, after.duration_ms.tolist(), strict=True))
    rows = zip(
        before.pod_names, before.creation_ms.tolist(), before.duration_ms.tolist(), strict=True
    )
    for name, created, lasts in rows:
        if created >= from_ms:
            assert rest[name] == lasts
        elif lasts == NEVER_MS:
            assert rest[name] == NEVER_MS
        elif created + lasts > from_ms:
            assert rest[name] == created + lasts - from_ms
        else:
            assert name not in rest


def test_a_damaged_trace_is_refused_and_nothing_is_written(files):
    write_trace(files / "bad.trace", trace_of([(1, 5, 5)]))
    content = bytearray((files / "bad.trace").read_bytes())
    content[-5] ^= 1
    (files / "bad.trace").write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.trace: is damaged"):
        sample(files / "bad.trace", files / "never.trace", 0.5, 0, silent)
    assert not (files / "never.trace").exists()
