"""The default storage class of a cluster."""

from __future__ import annotations

import pytest

from roadstead.manifests.claims import BETA_IS_DEFAULT, IS_DEFAULT, default_class
from roadstead.protocol.objects import ObjectMeta, StorageClass


def storage_class(
    name: str, key: str = IS_DEFAULT, value: str = "true", at: str = ""
) -> StorageClass:
    meta = ObjectMeta(name=name, annotations={key: value}, creation_timestamp=at or None)
    return StorageClass(metadata=meta)


@pytest.mark.parametrize(
    ("classes", "name"),
    [
        ([], None),
        ([storage_class("a", value="false")], None),
        ([storage_class("a", "other")], None),
        ([storage_class("b"), storage_class("a")], "a"),
        ([storage_class("a"), storage_class("b", at="2026-01-01T00:00:00Z")], "b"),
        (
            [
                storage_class("a", at="2026-01-01T00:00:00Z"),
                storage_class("b", BETA_IS_DEFAULT, at="2026-02-01T00:00:00Z"),
            ],
            "b",
        ),
    ],
)
def test_the_newest_default_class_is_the_default(
    classes: list[StorageClass], name: str | None
) -> None:
    assert default_class(classes) == name
