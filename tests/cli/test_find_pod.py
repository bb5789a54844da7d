"""Finding a pod by a name: its own, its workload's, or the beginning of either."""

from __future__ import annotations

import pytest

from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import Owner, PodFacts, PodIdentity
from roadstead.inputs.find_pod import find_pod
from roadstead.protocol.errors import InputError
from roadstead.run import RunInputs


def identity(key: str) -> PodIdentity:
    namespace, _, name = key.partition("/")
    return PodIdentity(f"uid-{key}", namespace, name)


def facts(key: str, kind: str = "", owner: str = "", template: str = "") -> PodFacts:
    return PodFacts(
        namespace=key.partition("/")[0],
        owner=Owner(kind, owner, f"uid-{owner}") if kind else None,
        labels=(("pod-template-hash", template),) if template else (),
    )


PENDING = {
    "shop/web-5d8f-b": facts("shop/", "ReplicaSet", "web-5d8f", "5d8f"),
    "shop/web-5d8f-c": facts("shop/", "ReplicaSet", "web-5d8f", "5d8f"),
    "shop/db-1": facts("shop/", "StatefulSet", "db"),
    "test/db-1": facts("test/", "StatefulSet", "db"),
    "shop/alone": facts("shop/"),
}
RUNNING = {
    "shop/web-5d8f-a": facts("shop/", "ReplicaSet", "web-5d8f", "5d8f"),
    "shop/log-x": facts("shop/", "DaemonSet", "log"),
    "shop/log-y": facts("shop/", "DaemonSet", "log"),
}
INPUTS = RunInputs(
    NodeList(),
    tuple((identity(key), of, "n-1") for key, of in RUNNING.items()),
    tuple((identity(key), of) for key, of in PENDING.items()),
)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("alone", "shop/alone"),
        ("shop/alone", "shop/alone"),
        ("pod/alone", "shop/alone"),
        ("po/shop/alone", "shop/alone"),
        ("al", "shop/alone"),
        ("shop/db-1", "shop/db-1"),
        ("web", "shop/web-5d8f-b"),
        ("shop/web", "shop/web-5d8f-b"),
        ("deploy/web", "shop/web-5d8f-b"),
        ("Deployment shop/web", "shop/web-5d8f-b"),
        ("we", "shop/web-5d8f-b"),
        ("sts/shop/db", "shop/db-1"),
        ("log", "shop/log-x"),
    ],
)
def test_a_name_selects_its_own_pod_or_the_first_pod_of_a_workload(name: str, key: str) -> None:
    assert find_pod(INPUTS, name).pod.identity.key == key


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("alone", ""),
        (
            "web",
            "Deployment shop/web: 3 pods, 2 of them pending; the first of them is explained, "
            "shop/web-5d8f-b.",
        ),
        ("log-y", "shop/log-y runs on n-1; it is explained as if it were pending."),
    ],
)
def test_the_chosen_pod_is_reported(name: str, note: str) -> None:
    assert find_pod(INPUTS, name).note == note


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("db-1", "matches 2 pods: use one of shop/db-1, test/db-1"),
        ("db", "matches 2 workloads: use one of StatefulSet shop/db, StatefulSet test/db"),
        ("sts/web", "is no pod or workload of the inputs (did you mean web"),
        ("pod/web-9", "is no pod or workload of the inputs (did you mean web"),
        ("alnoe", "(did you mean alone?)"),
        ("app/web.yaml", "(--pods reads a file; name a pod or workload in it)"),
        ("zzz", "(they have web-5d8f-b, web-5d8f-c, db-1, alone, web-5d8f-a, …)"),
    ],
)
def test_an_ambiguous_or_unknown_name_is_refused_with_candidates(name: str, text: str) -> None:
    with pytest.raises(InputError) as refused:
        find_pod(INPUTS, name)
    assert text in str(refused.value)


def test_inputs_without_pods_are_reported() -> None:
    with pytest.raises(InputError, match="they have none"):
        find_pod(RunInputs(NodeList(), (), ()), "web")


@pytest.mark.parametrize(
    "name", ["cronjob/report", "cj/report", "cronjobs/shop/report", "cronjob.batch/report"]
)
def test_the_name_of_a_cron_job_selects_the_pods_of_its_jobs(name: str) -> None:
    job = facts("shop/", "Job", "report-x7k2p")
    inputs = RunInputs(NodeList(), (), ((identity("shop/report-x7k2p-a"), job),))

    found = find_pod(inputs, name)

    assert found.pod.identity.key == "shop/report-x7k2p-a"
    assert found.note.startswith("Job shop/report-x7k2p: 1 pod, 1 of them pending")


@pytest.mark.parametrize("name", ["deployment.apps/web", "deployments.apps/shop/web"])
def test_a_kind_may_have_its_group_as_kubectl_prints_it(name: str) -> None:
    assert find_pod(INPUTS, name).pod.workload == "Deployment shop/web"
