"""A run gives the same tables byte for byte, also if it is killed anywhere and played again."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.api.run_check import check_folder
from roadstead.api.run_folder import write_summary
from roadstead.api.run_query import RunQuery
from roadstead.cycle.batch import CompiledKernel
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import ClaimSpec, DeviceRequest, DevicesFacts
from roadstead.facts.pod import PodClaim
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.simulator import engine, tables
from roadstead.simulator.limits import LimitExceededError, PartDiffersError
from roadstead.simulator.play import Variant, play
from roadstead.simulator.replay import explain_at, explain_bind
from roadstead.simulator.scenario import Limits
from tests.builders import node, pod
from tests.devices.fleet import CLASS, claim, slice_of
from tests.simulator.plays import plan_of

BIG = pod(cpu=3000)


class Killed(BaseException):
    """Ends a run where SIGKILL would."""


def ignore(engine):
    pass


def killer(steps):
    """Return a callback that ends the run after some steps."""
    left = iter(range(steps))

    def step(engine):
        if next(left, None) is None:
            raise Killed

    return step


def play_into(folder, plan, on_progress=ignore, memory_bytes=0):
    """Play a plan with parts of seven rows and a callback after every step, new pod and attempt."""
    compiled_kernel = CompiledKernel(load(), DecisionCounts())
    with patch.object(tables, "PART_ROWS", 7), patch.object(engine, "WORK_PER_PROGRESS", 1):
        return play(
            *(plan, Variant(), folder, compiled_kernel, on_progress),
            read_processor_s=lambda: 0.0,
            read_memory_bytes=lambda: memory_bytes,
        )


def content(folder):
    files = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in files}


PODS = st.lists(
    st.tuples(
        st.integers(0, 90),
        st.sampled_from([100, 1500, 3000, 9000]),
        st.sampled_from([0, 10]),
        st.sampled_from([1.0, 30.0, None]),
    ),
    max_size=30,
)


@st.composite
def plans(draw):
    arrivals = [
        (float(at_s), f"p{number}", pod(cpu=cpu, priority=priority), duration_s)
        for number, (at_s, cpu, priority, duration_s) in enumerate(
            sorted(draw(PODS), key=lambda each: each[0])
        )
    ]
    nodes = [node(f"n{number}") for number in range(draw(st.integers(1, 3)))]
    return plan_of(nodes, arrivals, sample_us=20_000_000)


@settings(max_examples=40, deadline=None)
@given(plans(), st.lists(st.integers(0, 80), max_size=3))
def test_a_killed_run_that_is_played_again_gives_the_same_bytes(plan, kills):
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        summary = play_into(Path(one), plan)
        for steps in kills:
            with suppress(Killed):
                play_into(Path(other), plan, killer(steps))

        assert play_into(Path(other), plan) == summary
        assert content(Path(one)) == content(Path(other))


CLAIMS = (
    PodClaim("gpu", template_name="one"),
    PodClaim("pair", template_name="two"),
    PodClaim("own", claim_name="shared"),
)
TEMPLATES = tuple(
    (f"default/{name}", ClaimSpec((DeviceRequest("r", "gpu", count=count),)))
    for name, count in (("one", 1), ("two", 2))
)
PODS_WITH_CLAIMS = st.lists(
    st.tuples(
        st.integers(0, 90),
        st.lists(st.sampled_from(CLAIMS), max_size=2, unique=True),
        st.sampled_from([(100, 0), (3000, 0), (3000, 10)]),
        st.sampled_from([1.0, 30.0, None]),
    ),
    max_size=25,
)


@st.composite
def plans_with_claims(draw):
    """Plans in which pods wait for devices, share a claim, and preempt pods that have devices."""
    arrivals = [
        (
            float(at_s),
            f"p{number}",
            pod(cpu=cpu, priority=priority, device_claims=tuple(claims)),
            duration_s,
        )
        for number, (at_s, claims, (cpu, priority), duration_s) in enumerate(
            sorted(draw(PODS_WITH_CLAIMS), key=lambda each: each[0])
        )
    ]
    names = [f"n{number}" for number in range(draw(st.integers(1, 3)))]
    slices = tuple(slice_of(name, "d0", "d1", "d2") for name in names)
    devices = DevicesFacts(slices, (CLASS,), (claim("shared"),), templates=TEMPLATES)
    return plan_of(
        [node(name) for name in names],
        arrivals,
        cluster=ClusterFacts(devices=devices),
        sample_us=20_000_000,
        grace_s=draw(st.sampled_from([0.0, 5.0])),
    )


@settings(max_examples=40, deadline=None)
@given(plans_with_claims(), st.lists(st.integers(0, 80), max_size=3))
def test_a_killed_run_with_claims_of_devices_gives_the_same_bytes(plan, kills):
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        summary = play_into(Path(one), plan)
        for steps in kills:
            with suppress(Killed):
                play_into(Path(other), plan, killer(steps))

        assert play_into(Path(other), plan) == summary
        assert content(Path(one)) == content(Path(other))
        assert check_folder(Path(one)).violations == ()


PREEMPTED = """SELECT ended_us, preemptor, uid FROM pods WHERE ending = 'preempted' ORDER BY ALL"""
VICTIMS = """SELECT time_us, namespace || '/' || name, unnest(string_split(victims, ','))
FROM attempts JOIN pods ON pod = number WHERE victims IS NOT NULL ORDER BY ALL"""


@settings(max_examples=40, deadline=None)
@given(plans())
def test_each_preempted_pod_is_a_victim_of_one_attempt(plan):
    with TemporaryDirectory() as folder:
        write_summary(Path(folder), play_into(Path(folder), plan))
        query = RunQuery(Path(folder))

        assert list(query.execute(VICTIMS).rows) == list(query.execute(PREEMPTED).rows)


def arrivals(count=40):
    return [(float(at_s), f"p{at_s}", BIG, 5.0) for at_s in range(count)]


def test_parts_of_a_finished_run_are_not_written_again(tmp_path):
    plan = plan_of([node("n1")], arrivals())
    play_into(tmp_path, plan)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}

    play_into(tmp_path, plan)

    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")} == before


def test_a_part_that_differs_is_an_error(tmp_path):
    plan = plan_of([node("n1")], arrivals())
    play_into(tmp_path, plan)
    part = tmp_path / "attempts" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:-1])

    with pytest.raises(PartDiffersError, match=r"attempts/part-00001.parquet differs"):
        play_into(tmp_path, plan)


def test_a_part_too_many_is_an_error(tmp_path):
    plan = plan_of([node("n1")], arrivals())
    play_into(tmp_path, plan)
    (tmp_path / "events" / "part-00001.parquet").write_bytes(b"")

    with pytest.raises(PartDiffersError, match="has no such part"):
        play_into(tmp_path, plan)


@pytest.mark.parametrize(
    ("limits", "memory_bytes", "message"),
    [
        (Limits(3, 10**6, 1 << 30), 0, r"^at 15s: more than 3 pods exist \(limits.pods\)"),
        (Limits(99, 20, 1 << 30), 0, r"^at 10s: table samples has more than 20 rows"),
        (Limits(99, 10**6, 1 << 30), 2 << 30, r"^at 0s: the process uses 2,048 MiB, and may use"),
    ],
)
def test_a_limit_ends_the_run_at_a_time_with_a_reason(tmp_path, limits, memory_bytes, message):
    small = pod(cpu=100)
    pods = [(float(5 * number), f"p{number}", small, None) for number in range(9)]
    plan = plan_of([node("n1")], pods, limits=limits)

    with pytest.raises(LimitExceededError, match=message):
        play_into(tmp_path, plan, memory_bytes=memory_bytes)


def explained(plan, number, at_s=None):
    given = plan, Variant(), number
    compiled_kernel = CompiledKernel(load(), DecisionCounts())
    if at_s is None:
        return explain_bind(*given, compiled_kernel, ignore)
    return explain_at(*given, int(at_s * 1_000_000), compiled_kernel, ignore)


def test_a_bind_is_explained_by_the_state_of_its_decision():
    nodes = [node("n1"), node("n2")]
    pods = [(1.0, "a", BIG, None), (2.0, "b", pod(cpu=500), None), (3.0, "c", BIG, None)]

    moment = explained(plan_of(nodes, pods), 2)

    assert moment.time_us == 3_000_000
    assert moment.explanation.best == [moment.node], "one node has room at that time"


def test_pods_of_one_batch_that_are_decided_later_are_not_counted():
    moment = explained(plan_of([node("n1"), node("n2")], [(1.0, "a,b", BIG, None)]), 0)

    assert moment.explanation.best == ["n1", "n2"]


def test_a_pod_is_explained_at_a_time_after_all_events_of_that_time():
    pods = [(1.0, "a", BIG, 5.0), (2.0, "b", BIG, 5.0)]
    plan = plan_of([node("n1")], pods)

    waits, runs = explained(plan, 1, 5.9), explained(plan, 1, 6.0)

    assert waits.explanation.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (str(waits.state), waits.node) == ("pending", "")
    assert (str(runs.state), runs.node, runs.explanation.best) == ("running", "n1", ["n1"])


@pytest.mark.parametrize("at_s", [0.5, 6.0])
def test_a_pod_is_explained_only_while_it_exists(at_s):
    with pytest.raises(Exception, match="is no time at which the pod exists"):
        explained(plan_of([node("n1")], [(1.0, "a", BIG, 5.0)]), 0, at_s)
