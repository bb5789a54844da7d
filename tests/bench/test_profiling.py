import sys
import threading

import pytest

from roadstead.actors.messages.process import ProfileRequest
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime import sampling
from roadstead.actors.runtime.sampling import Sampler, handle_profile_request
from roadstead.bench.roadstead_workloads import million
from roadstead.bench.speedscope import Samples
from roadstead.config.settings import Settings
from roadstead.run import RunPlan
from tests.actors.world import GENEROUS_S


def names(samples):
    return [[samples.frames[place].name for place in stack] for stack, _ in samples.stacks]


def test_a_look_notes_the_stack_outermost_first():
    sampler = Sampler(threading.get_ident())

    def inner():
        sampler.count_stack(sys._getframe())

    inner()

    found = sampler.end()
    (stack,) = names(found)
    assert stack[-2].endswith("test_a_look_notes_the_stack_outermost_first")
    assert stack[-1].endswith("inner")


def test_stacks_are_bounded_in_number_and_depth(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_STACKS", 1)
    monkeypatch.setattr(sampling, "MAX_DEPTH", 2)
    sampler = Sampler(threading.get_ident())

    def other():
        sampler.count_stack(sys._getframe())

    sampler.count_stack(sys._getframe())
    other()

    found = sampler.end()
    assert len(found.stacks) == 1
    assert len(found.stacks[0][0]) == 2


def test_an_ended_thread_is_not_sampled():
    # The system may reuse the number of an ended thread, even for the sampler's own.
    number_of_none = -1
    sampler = Sampler(number_of_none, 1e-4)

    sampler.begin()

    assert sampler.end().stacks == ()


def test_sampling_sees_what_a_thread_does():
    found = Samples((), (), 0.0)
    while not found.stacks:
        assert handle_profile_request(ProfileRequest(begins=True, interval_s=1e-4)).stacks == ()
        sum(range(100_000))
        found = handle_profile_request(ProfileRequest(begins=False))

    assert any("test_sampling_sees" in name for stack in names(found) for name in stack)
    assert handle_profile_request(ProfileRequest(begins=False)).stacks == ()


def test_a_second_begin_discards_the_samples():
    def samplers():
        return sum(thread.name == "profile" for thread in threading.enumerate())

    handle_profile_request(ProfileRequest(begins=True))
    handle_profile_request(ProfileRequest(begins=True))

    assert samplers() == 1
    handle_profile_request(ProfileRequest(begins=False))
    assert samplers() == 0


@pytest.mark.ray
def test_on_ray_every_process_is_measured_and_profiled():
    script = million("small", 20, 300, 0)
    plan = RunPlan(Settings(runtime="ray", workers=2), cluster=script.cluster)

    benched = ActorLauncher().bench(
        script, plan, lambda progress: None, timeout_s=GENEROUS_S, profiles=True
    )

    (found,) = benched.measured
    assert len(found.bound_s) == 300
    assert (found.bound_s >= found.submitted_s).all()
    assert found.processes > 4
    hosts = {"control", "worker-0", "worker-1", "scheduler-0"}
    assert set(benched.samples) == hosts | {"client"}
    assert set(found.process_s) == hosts | {"driver", "Ray"}
    assert sum(found.process_s.values()) == pytest.approx(found.processor_s)


def test_the_sum_of_the_weights_is_the_sampled_time(monkeypatch):
    times_s = iter([10.0, 12.0])
    monkeypatch.setattr(sampling.time, "monotonic", lambda: next(times_s))
    sampler = Sampler(threading.get_ident(), _began_s=sampling.time.monotonic())

    for _ in range(4):
        sampler.count_stack(sys._getframe())

    found = sampler.end()
    assert found.interval_s == 0.5
    assert sum(count for _, count in found.stacks) == 4
