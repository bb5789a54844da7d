"""Bounds of limit ranges: the objects that are not created, with upstream's messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.manifests.created import claim, container, created, limit_range, pod, reason, refusals


@pytest.mark.parametrize(
    ("bounds", "of", "text"),
    [
        (
            {"max": {"cpu": "2"}},
            container(limits={"cpu": "4"}),
            "maximum cpu usage per Container is 2, but limit is 4",
        ),
        (
            {"min": {"cpu": "100m"}},
            container(cpu="50m"),
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            {"min": {"memory": "1Gi"}, "default": {"memory": "512Mi"}},
            container(memory="1Gi"),
            "minimum memory usage per Container is 1Gi, but limit is 512Mi",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            container(limits={"cpu": "3"}, cpu="1"),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "1500m"}},
            container(limits={"cpu": "1500m"}, cpu="1"),
            "",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            container(cpu="1"),
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit "
            "is 0",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            container(),
            "cpu max limit to request ratio per Container is 2, but no request is specified or "
            "request is 0",
        ),
        (
            {"max": {"cpu": "2", "memory": "1Gi"}},
            container(limits={"cpu": "4", "memory": "2Gi"}),
            "[maximum cpu usage per Container is 2, but limit is 4, "
            "maximum memory usage per Container is 1Gi, but limit is 2Gi]",
        ),
        ({"max": {"cpu": "2"}, "min": {"cpu": "1"}}, container(limits={"cpu": "2"}), ""),
    ],
)
def test_containers_must_be_within_the_bounds_of_their_namespace(
    bounds: Any, of: Any, text: str
) -> None:
    assert reason(limit_range(**bounds), pod("p", of)) == text


def test_init_containers_must_be_within_the_bounds_and_equal_errors_are_merged() -> None:
    large = container(limits={"cpu": "4"})

    text = reason(limit_range(max={"cpu": "2"}), pod("p", large, initContainers=[large]))

    assert text == "maximum cpu usage per Container is 2, but limit is 4"


@pytest.mark.parametrize(
    ("spec", "total"),
    [
        ({}, "4"),
        ({"initContainers": [container("i", cpu="5")]}, "5"),
        ({"initContainers": [container("s", cpu="2") | {"restartPolicy": "Always"}]}, "6"),
        ({"overhead": {"cpu": "9"}}, "4"),
        ({"resources": {"requests": {"cpu": "7"}}}, "7"),
    ],
)
def test_the_sum_of_a_pods_containers_must_be_within_the_bounds(spec: Any, total: str) -> None:
    found = reason(
        limit_range("Pod", min={"cpu": "100"}),
        pod("p", container("a", cpu="1"), container("b", cpu="3"), **spec),
    )

    assert found == f"minimum cpu usage per Pod is 100, but request is {total}"


def test_a_pod_without_a_limit_for_a_bounded_resource_is_refused() -> None:
    text = reason(limit_range("Pod", max={"memory": "1Gi"}), pod("p", container(memory="1Mi")))
    assert text == "maximum memory usage per Pod is 1Gi.  No limit is specified"


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        (
            {"max": {"storage": "500Mi"}},
            "maximum storage usage per PersistentVolumeClaim is 500Mi, but request is 1Gi",
        ),
        (
            {"min": {"storage": "2Gi"}},
            "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi",
        ),
        ({"min": {"storage": "1Gi"}, "max": {"storage": "1Gi"}}, ""),
    ],
)
def test_claims_must_be_within_the_bounds_of_storage(bounds: Any, text: str) -> None:
    assert reason(limit_range("PersistentVolumeClaim", **bounds), claim()) == text


def test_stored_objects_are_not_checked() -> None:
    large = container(limits={"cpu": "4"})
    ranges = limit_range(max={"cpu": "2"}), limit_range("PersistentVolumeClaim", "m", max={})

    assert not refusals(*ranges, pod("a", large, uid="u"), pod("b", large, nodeName="n"), claim())


def test_a_refused_pod_is_reported_apart_from_the_pods() -> None:
    found = created(
        limit_range(max={"cpu": "2"}),
        pod("good", container(limits={"cpu": "1"})),
        pod("bad", container(limits={"cpu": "4"})),
    )

    assert [each.metadata.name for each in found.pods] == ["good"]
    assert [each.manifest.metadata.name for each in found.refused] == ["bad"]
