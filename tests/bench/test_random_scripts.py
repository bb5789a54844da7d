"""Scripts of random steps: the actors always agree and every invariant holds."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.actors.runs import bench_run
from roadstead.bench.script import (
    AddNodes,
    AwaitPods,
    ChurnObjects,
    RemovePods,
    SubmitPods,
    WaitMode,
)
from roadstead.bench.series import ENDLESS, NodeSeries, PodSeries
from roadstead.facts.node import HOSTNAME_LABEL, NAME_PLACEHOLDER, ZONE_LABEL, NodeFacts
from roadstead.invariants.checker import check
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from tests.actors.world import plan_of
from tests.bench.sessions import bench
from tests.builders import MIB, pod

NAMESPACES = ("a", "b")


def _node(zone):
    return NodeFacts(
        "",
        labels=((HOSTNAME_LABEL, NAME_PLACEHOLDER), (ZONE_LABEL, zone)),
        allocatable=(("cpu", 2000), ("memory", 1 << 30)),
        allocatable_pods=20,
    )


def _pods(number, count, namespace, cpu, wait):
    facts = pod(cpu=cpu, memory=MIB, namespace=namespace, labels={"app": f"x{cpu}"})
    return SubmitPods(PodSeries(count, namespace, (facts,), f"p{number}-"), wait)


def _churn(interval_s, number, recreates):
    series = (
        NodeSeries((_node("z"),), ENDLESS, "extra-"),
        PodSeries(ENDLESS, "c", (pod(cpu=100, memory=MIB, namespace="c"),), "c-"),
    )
    return ChurnObjects(series, interval_s, number, recreates)


removals = st.builds(
    RemovePods,
    st.sampled_from(NAMESPACES),
    st.sampled_from([(), (("app", "x300"),)]),
    per_s=st.sampled_from([0, 2000]),
    waits=st.booleans(),
)
submits = st.tuples(
    st.integers(1, 12),
    st.sampled_from(NAMESPACES),
    st.sampled_from([100, 300, 1500]),
    st.sampled_from([WaitMode.IDLE, WaitMode.NOTHING]),
)
churns = st.builds(_churn, st.sampled_from([0.001, 0.003]), st.integers(1, 3), st.booleans())
chosen = st.lists(st.one_of(submits, submits, removals, churns), min_size=1, max_size=6)


@pytest.fixture(autouse=True, scope="module")
def _quick_looks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_run, "BENCH_POLL_S", 0.002)
        patch.setattr(bench_run, "DELETE_EVERY_S", 0.001)
        yield


def _steps(parts):
    """Return the steps, without waits that churn may keep from ending."""
    churned = False
    for number, part in enumerate(parts):
        churned = churned or isinstance(part, ChurnObjects)
        if isinstance(part, tuple):
            count, namespace, cpu, wait = part
            yield _pods(number, count, namespace, cpu, WaitMode.NOTHING if churned else wait)
        else:
            yield part


@settings(max_examples=25)
@given(chosen, st.integers(0, 2), st.integers(1, 16))
def test_after_any_random_steps_the_actors_agree_and_no_rule_is_broken(parts, workers, batch):
    nodes = AddNodes(NodeSeries((_node("x"), _node("y")), 4, "n-"))
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_of(workers=workers, batch=batch, journal=Path(folder) / "journal")

        _, actors = bench(nodes, *_steps(parts), AwaitPods(attempted=True), plan=plan)

        result = check(list(Reader(RealDisk(Path(folder) / "journal")).records()))
    assert result.violations == []
    for name in ("queue", "cache", "binder"):
        actors[name].core.validate()


@settings(max_examples=25)
@given(st.lists(submits, min_size=1, max_size=5))
def test_every_pod_of_a_script_is_bound_or_waits_with_a_reason(parts):
    nodes = AddNodes(NodeSeries((_node("x"), _node("y")), 3, "n-"))
    steps = [_pods(number, *part[:3], WaitMode.IDLE) for number, part in enumerate(parts)]

    _, actors = bench(nodes, *steps)

    counts = actors["queue"].core.counts()
    submitted = sum(part[0] for part in parts)
    assert len(actors["binder"].binder.outcomes.bound) + counts.unschedulable == submitted
    assert (counts.active, counts.in_flight, counts.backoff) == (0, 0, 0)
