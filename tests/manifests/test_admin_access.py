"""Admin access to devices: claims and templates are created only in namespaces with the label."""

import pytest

from roadstead.manifests.admin_access import LABEL, REASON
from tests.manifests.test_devices import FROM_TEMPLATE, GPU, a_claim, created, pod, request

ADMIN = request(exactly=GPU | {"adminAccess": True})
STORED = {"uid": "u"}
LABELLED = {LABEL: "true"}


def namespace(**labels):
    meta = {"name": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def asking(kind="ResourceClaim", *requests, **metadata):
    found = a_claim(*(requests or (ADMIN,)), kind=kind)
    return found | {"metadata": found["metadata"] | metadata}


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize("others", [(), (namespace(),), (namespace(**{LABEL: "false"}),)])
def test_they_are_not_created_without_the_label(kind, others):
    found = created(asking(kind), *others, pod("p", FROM_TEMPLATE))

    (refused,) = found.refused
    assert (type(refused.manifest).__name__, refused.manifest.metadata.name) == (kind, "x")
    assert refused.reason == REASON
    assert found.device_claims == ()


def test_they_are_created_with_the_label():
    found = created(
        asking(), asking("ResourceClaimTemplate"), namespace(**LABELLED), pod("p", FROM_TEMPLATE)
    )
    assert found.refused == ()
    assert len(found.device_claims) == 2


def test_stored_ones_exist_already():
    found = created(asking(**STORED), namespace())
    assert (found.refused, len(found.device_claims)) == ((), 1)
    allocated = asking() | {"status": {"allocation": {"devices": {"results": []}}}}
    assert created(allocated).refused == ()


@pytest.mark.parametrize(("others", "made"), [((), 1), ((namespace(),), 0)])
def test_claims_of_a_stored_template_are_made_unless_its_namespace_refuses(others, made):
    template = asking("ResourceClaimTemplate", **STORED)
    found = created(template, *others, pod("p", FROM_TEMPLATE))
    assert (found.refused, len(found.device_claims)) == ((), made)


def test_other_requests_need_no_label():
    assert created(asking("ResourceClaim", request()), namespace()).refused == ()
