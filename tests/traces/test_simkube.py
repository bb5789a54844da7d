"""SimKube's traces: small ones in the published schema, packed as msgpack like the original."""

import msgpack
import pytest

from roadstead.fleet.trace import NEVER_S
from roadstead.traces import simkube
from roadstead.traces.simkube import SimKubeReader

T0 = 1_710_892_138
DEPLOYMENT = ("apps/v1.Deployment", "shop/web")


def container(cpu="500m"):
    return {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}


def deployment(replicas=2, name="web", cpu="500m"):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container(cpu)]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def bare_pod(name="solo", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [container()]} | spec,
    }


CRON = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "nightly", "namespace": "shop"},
    "spec": {
        "schedule": "* * * * *",
        "jobTemplate": {
            "spec": {"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}}
        },
    },
}


def event(time_s, applied=(), deleted=()):
    return {"ts": T0 + time_s, "applied_objs": list(applied), "deleted_objs": list(deleted)}


@pytest.fixture
def read(imported, tmp_path):
    def call(*events, lifetimes=None, refused=False, packed=None, options=None, **changes):
        # A key is a pair, which Python's msgpack packs as an array as well.
        trace = {
            "version": 2,
            "config": {"trackedObjects": {}},
            "events": list(events),
            "index": {},
            "pod_lifecycles": lifetimes or {},
        } | changes
        path = tmp_path / "t.sktrace"
        path.write_bytes(msgpack.packb(trace) if packed is None else packed)
        return (imported.refusal if refused else imported)(SimKubeReader, path, **(options or {}))

    return call


def test_a_deployment_is_its_replicas_from_when_it_was_applied(read, imported):
    read(event(0), event(10, [bare_pod()]), event(30, [deployment()]))
    assert [pod[1:] for pod in imported.pods] == [
        ({"cpu": 500}, 0, NEVER_S),
        ({"cpu": 500}, 20, NEVER_S),
        ({"cpu": 500}, 20, NEVER_S),
    ]
    assert imported.trace.namespaces[0][0] == "shop"
    assert len({name for name, *_ in imported.pods}) == 3


def test_pods_of_a_deleted_workload_end_then(read, imported):
    read(event(0, [deployment()]), event(50, [], [deployment()]))
    assert imported.trace.deletion_s.tolist() == [50, 50]
    assert imported.trace.duration_s.tolist() == [50, 50]


def test_more_replicas_are_more_pods_and_fewer_end_some(read, imported):
    read(event(0, [deployment(1)]), event(10, [deployment(3)]), event(20, [deployment(2)]))
    assert imported.trace.creation_s.tolist() == [0, 10, 10]
    assert sorted(imported.trace.deletion_s.tolist()) == [NEVER_S, NEVER_S, 20]


def test_another_template_replaces_the_pods(read, imported):
    read(event(0, [deployment(1)]), event(10, [deployment(1, cpu="2")]))
    assert [pod[1:] for pod in imported.pods] == [
        ({"cpu": 500}, 0, 10),
        ({"cpu": 2000}, 10, NEVER_S),
    ]


def test_a_workload_that_returns_has_pods_of_other_names(read, imported):
    read(event(0, [deployment(1)]), event(10, [], [deployment(1)]), event(20, [deployment(1)]))
    (first, _, _, _), (second, _, _, _) = imported.pods
    assert second == f"{first}-r1"


def test_pods_of_one_name_in_two_namespaces_have_different_names(read, imported):
    others = [bare_pod(), bare_pod("solo-r1")]
    for other in others:
        other["metadata"] |= {"namespace": "other"}
    read(event(0, [bare_pod(), *others]))
    assert [name for name, *_ in imported.pods] == ["solo", "solo-r1", "solo-r1-r1"]


def test_recorded_lifetimes_are_those_of_the_pods_in_turn(read, imported):
    times = [{"Finished": [T0, T0 + 7]}, "Empty", {"Running": T0}, {"Finished": [T0 + 1, T0 + 4]}]
    lifetimes = {DEPLOYMENT: {123456789: times}}
    read(event(0, [deployment(4)]), lifetimes=lifetimes)
    assert imported.trace.duration_s.tolist() == [7, NEVER_S, 3, 7]


def test_pods_have_recorded_lifetimes_in_the_order_of_their_controller(read, imported):
    times = [{"Finished": [T0, T0 + number]} for number in range(1, 21)]
    stateful = deployment(20) | {"kind": "StatefulSet"}
    read(event(0, [stateful]), lifetimes={("apps/v1.StatefulSet", "shop/web"): {1: times}})
    assert [(name, run_s) for name, _, _, run_s in imported.pods] == [
        (f"web-{number}", number + 1) for number in range(20)
    ]


def test_a_cron_job_is_a_pod_for_each_recorded_run(read, imported):
    runs = [{"Finished": [T0 + 60 * run, T0 + 60 * run + 30]} for run in range(3)]
    read(event(0, [CRON]), lifetimes={("batch/v1.CronJob", "shop/nightly"): {1: runs}})
    assert [pod[2:] for pod in imported.pods] == [(0, 30), (60, 30), (120, 30)]


def test_jobs_without_pods_are_counted_by_reason(read, imported):
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    read(event(0, [other, CRON, bare_pod()]))
    assert imported.left_out == {
        'object of kind "Service"': 1,
        "cron job without recorded lifetimes": 1,
    }


def test_nodes_and_volumes_of_a_pod_are_left_out(read, imported):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
    read(event(0, [bare_pod(nodeName="n-1", volumes=[claim])]))
    (facts,) = imported.trace.pod_classes
    assert (facts.node_name, facts.volumes) == ("", ())


NO_NAME = bare_pod() | {"metadata": {}}
WRONG_CPU = bare_pod(containers=[container(cpu="many")])


@pytest.mark.parametrize(
    ("events", "changes", "text"),
    [
        ([], {"version": 1}, "version: 1 is not the version that is read (2)"),
        ([], {"events": 5}, "events: 5 is not a list"),
        ([5], {}, "events[0]: 5 is not a map"),
        ([event(0) | {"ts": "now"}], {}, 'events[0].ts: "now" is not a time in seconds'),
        ([event(0) | {"ts": 1 << 62}], {}, "events[0].ts: 4611686018427387904 is not a time"),
        ([event(9), event(5)], {}, "is earlier than the previous event"),
        ([event(0, [5])], {}, "events[0].applied_objs: 5 is not an object"),
        ([event(0) | {"deleted_objs": 7}], {}, "events[0].deleted_objs: 7 is not a list"),
        ([event(0, [NO_NAME])], {}, "Pod.metadata: dict of 0 has no name"),
        ([event(0, [WRONG_CPU])], {}, '"many"'),
        ([event(0, [deployment(10**9)])], {}, "spec.replicas: 1000000000 must be no more"),
        ([], {"pod_lifecycles": 1}, "pod_lifecycles: 1 is not a map"),
        ([], {"pod_lifecycles": {"a": {}}}, "is not [kind, name] and a map"),
        (
            [],
            {"pod_lifecycles": {DEPLOYMENT: {1: [{"Paused": 3}]}}},
            "is none of Empty, Running, Finished",
        ),
        ([], {"pod_lifecycles": {DEPLOYMENT: {1: 7}}}, "7 is not a list"),
        ([], {"pod_lifecycles": {DEPLOYMENT: {1: [{"Running": -3}]}}}, "-3 is not a time"),
    ],
)
def test_wrong_values_are_refused_by_place(read, events, changes, text):
    message = read(*events, refused=True, **changes)
    assert text in message
    assert "t.sktrace" in message


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (b"", "is not msgpack"),
        (b"\xc1", "is not msgpack"),
        (b"\x93\x01", "is not msgpack"),
        (b"\x91" * 100_000, "is not msgpack"),
        (b"\xdd\xff\xff\xff\xff", "is not msgpack"),
        (b"\x05", "is no trace of SimKube"),
        (b"\x81\x81\x01\x01\x01", "is not msgpack"),
    ],
)
def test_anything_but_a_msgpack_map_is_refused(read, packed, text):
    assert text in read(packed=packed, refused=True)


def test_objects_that_are_nested_without_end_are_refused(read):
    deep = []
    for _ in range(200):
        deep = [deep]
    message = read(event(0, [bare_pod() | {"x": deep}]), refused=True)
    assert "is nested deeper than 64" in message


def test_a_file_beyond_the_bound_is_refused(read, monkeypatch):
    monkeypatch.setattr(simkube, "FILE_MAX_BYTES", 100)
    assert "is larger than 100 bytes" in read(event(0, [deployment()]), refused=True)


def test_a_sample_has_all_pods_of_a_workload_or_none(read, imported):
    events = [event(0, [deployment(2, name=f"web-{number}") for number in range(50)])]
    read(*events, options={"sample": 0.5})
    assert 10 < len(imported.pods) < 90
    assert len(imported.pods) % 2 == 0
