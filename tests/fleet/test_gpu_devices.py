"""GPUs of traces as devices: pools of nodes, claims of pods, and decisions that amounts miss."""

from pathlib import Path

import pytest

import roadstead
from roadstead.facts.devices import Placement
from roadstead.fleet.gpu_devices import CLAIM_GPUS_MAX, with_gpu_devices
from roadstead.fleet.openb import GPU_RESOURCE, MODEL_LABEL
from roadstead.fleet.trace import NEVER_S, TraceBuilder
from roadstead.fleet.trace_file import write_trace
from roadstead.protocol.errors import InputError
from tests.builders import node, pod
from tests.scenario.files import compiled, scenario
from tests.simulator.plays import played

GATE = {"featureGates": {"DRAConsumableCapacity": True}}
HOUR_S = 3_600


def gpu_node(name, milli, **facts):
    return node(name, cpu=8_000, memory=1 << 30, pods=10, others=amounts(milli), **facts)


def amounts(milli):
    return {GPU_RESOURCE: milli} if milli else {}


def trace_of(nodes, pods):
    """A trace of nodes with so many milli of GPUs, and of pods that ask for so many."""
    builder = TraceBuilder("test", {"default": ()})
    for name, milli in nodes.items():
        builder.add_node(gpu_node(name, milli, labels={MODEL_LABEL: "T4"}))
    for name, milli in pods.items():
        facts = pod(cpu=100, others=amounts(milli))
        builder.add_pod(name, f"uid-{name}", facts, 0, NEVER_S, NEVER_S)
    return builder.build()


def placed(tmp_path, trace, **options):
    write_trace(tmp_path / "t.trace", trace)
    return roadstead.load(trace=tmp_path / "t.trace", **options).schedule(settings=GATE)


def test_each_gpu_of_a_node_is_a_device_of_its_pool():
    trace, devices = with_gpu_devices(trace_of({"a": 2_000, "b": 0, "c": 300}, {"p": 0}))

    assert [GPU_RESOURCE in dict(each.allocatable) for each in trace.nodes()] == [False] * 3
    assert [(each.pool, each.placement) for each in devices.slices] == [
        ("a", Placement(node_name="a")),
        ("a", Placement(node_name="a")),
        ("c", Placement(node_name="c")),
    ]
    found = [device for each in devices.slices for device in each.devices]
    assert [each.name for each in found] == ["gpu-0", "gpu-1", "gpu-0"]
    assert {each.attributes[0].value for each in found} == {"T4"}
    amounts_of_a_and_c = ["1000", "1000", "300"]
    assert [each.capacity[0].amount for each in found] == amounts_of_a_and_c, "c has a rest"


@pytest.mark.parametrize(
    ("milli", "requests"),
    [
        (250, ["250"]),
        (1_000, ["1000"]),
        (3_000, ["1000", "1000", "1000"]),
        (2_500, ["1000", "1000", "500"]),
    ],
)
def test_a_pod_claims_whole_gpus_and_a_part_of_one_more(milli, requests):
    trace, devices = with_gpu_devices(trace_of({"a": 8_000}, {"p": milli, "q": 0}))

    with_gpus, without = (facts for _, facts in trace.pods())
    assert GPU_RESOURCE not in dict(with_gpus.requests)
    assert not without.device_claims
    ((name, spec),) = devices.templates
    assert name == f"default/{with_gpus.device_claims[0].template_name}"
    assert [each.capacity for each in spec.requests] == [(("milli", each),) for each in requests]
    assert len({each.name for each in spec.requests}) == len(requests)


def test_parts_of_two_gpus_are_no_whole_one(tmp_path):
    trace = trace_of({"a": 2_000}, {"p": 600, "q": 600, "r": 800})

    assert not placed(tmp_path, trace).pending, "as one amount, all fits"
    result = placed(tmp_path, trace, trace_gpus="devices")

    assert [each.pod for each in result.pending] == ["default/r"]
    assert "cannot allocate all claims" in str(result.pending[0].reasons)


def test_a_run_without_the_feature_gate_names_the_missing_gate(tmp_path):
    write_trace(tmp_path / "t.trace", trace_of({"a": 2_000}, {"p": 600, "q": 0}))

    result = roadstead.load(trace=tmp_path / "t.trace", trace_gpus="devices").schedule()

    assert [each.pod for each in result.pending] == ["default/p"]
    assert any("capacity: 1. Without DRAConsumableCapacity" in each for each in result.notes)


def test_several_pods_use_one_gpu_and_all_gpus_of_a_node(tmp_path):
    """Also those behind the first, which kube-scheduler would not reach in one slice."""
    trace = trace_of({"a": 3_000}, {"p": 700, "q": 1_000, "r": 300, "s": 900})

    assert not placed(tmp_path, trace, trace_gpus="devices").pending


def test_pods_that_a_claim_cannot_hold_are_refused():
    most = CLAIM_GPUS_MAX * 1_000
    with_gpu_devices(trace_of({"a": 8_000}, {"p": most}))

    with pytest.raises(
        InputError, match=rf"Pod default/p: .*gpu-milli: {most + 1} is more than 32 GPUs"
    ):
        with_gpu_devices(trace_of({"a": 8_000}, {"p": most + 1}))


def test_pods_that_run_already_are_refused_with_file_and_name(tmp_path):
    builder = TraceBuilder("test", {"default": ()})
    builder.add_node(gpu_node("a", 2_000))
    facts = pod(node_name="a", others=amounts(500))
    builder.add_pod("p", "u", facts, 0, NEVER_S, NEVER_S)
    write_trace(tmp_path / "t.trace", builder.build())

    with pytest.raises(InputError, match=r"t\.trace: Pod default/p: runs already"):
        roadstead.load(trace=tmp_path / "t.trace", trace_gpus="devices")


def test_an_unknown_form_of_gpus_is_refused(tmp_path):
    with pytest.raises(InputError, match='trace_gpus: "shares" must be amount or devices'):
        roadstead.load(trace=tmp_path / "t.trace", trace_gpus="shares")


SCENARIO = """trace_gpus: devices
workload: [{trace: t.trace}]
scheduler: {settings: {featureGates: {DRAConsumableCapacity: %s}}}
"""
FLEET = "fleet: [{trace: t.trace}]\n"


def test_pods_of_a_scenario_get_devices_and_free_them(tmp_path: Path):
    builder = TraceBuilder("test", {"default": ()})
    builder.add_node(gpu_node("a", 2_000))
    for name in "pqr":
        builder.add_pod(name, f"u-{name}", pod(cpu=100, others=amounts(600)), 0, HOUR_S, HOUR_S)
    write_trace(tmp_path / "t.trace", builder.build())

    plan = compiled(scenario(SCENARIO % "true", FLEET), tmp_path)
    history, engine, *_ = played(plan)

    bound = [at_s for at_s, *_ in history.of("bound")]
    assert bound == [0, 0, HOUR_S], "the third pod waits for a GPU"
    assert not engine.cluster.facts().devices.claims, "claims end with their pods"


def test_a_scenario_with_devices_needs_their_feature_gate(tmp_path: Path):
    write_trace(tmp_path / "t.trace", trace_of({"a": 2_000}, {"p": 600}))

    with pytest.raises(InputError, match=r"trace_gpus: .*DRAConsumableCapacity"):
        compiled(scenario(SCENARIO % "false", FLEET), tmp_path)
