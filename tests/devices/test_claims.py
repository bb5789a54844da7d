"""The claims of a pod, or upstream's text for the first that cannot be used."""

from dataclasses import replace

import pytest

from roadstead.devices.claims import PodClaimError, claims_of, consumer_of
from roadstead.facts.pod import PodClaim, PodReference
from tests.builders import pod
from tests.devices.fleet import claim, owned, using, with_template

CLAIMS = {
    each.key: each
    for each in (
        claim("a"),
        claim("b"),
        claim("ending", is_terminating=True),
        owned("made", "p"),
        owned("other", "q"),
    )
}


def test_claims_are_in_the_order_of_the_pod_and_repeated_as_often_as_named():
    assert [e.name for e in claims_of(CLAIMS, using("p", "b", "a", "b"))] == ["b", "a", "b"]


def test_a_claim_made_for_the_pod_is_found_by_its_status():
    assert [e.name for e in claims_of(CLAIMS, with_template("p", "made"))] == ["made"]


def test_a_status_without_a_name_means_that_no_claim_is_needed():
    assert claims_of(CLAIMS, with_template("p", "")) == ()


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (using("p", "no"), 'could not find ResourceClaim "default/no"'),
        (using("p", "ending"), 'resourceclaim "ending" is being deleted'),
        (with_template("p", None), 'pod "default/p": ResourceClaim not created yet'),
        (
            with_template("p", "other"),
            "ResourceClaim default/other was not created for pod default/p (pod is not owner)",
        ),
        (
            pod(device_claims=(PodClaim("c"),), claims_as=PodReference("p", "p")),
            'pod "default/p", spec.resourceClaim "c": none of the supported fields are set',
        ),
    ],
)
def test_unusable_claims_have_upstreams_text(facts, text):
    with pytest.raises(PodClaimError) as caught:
        claims_of(CLAIMS, facts)
    assert str(caught.value) == text


def test_the_first_unusable_claim_is_named():
    with pytest.raises(PodClaimError, match="no-1"):
        claims_of(CLAIMS, using("p", "a", "no-1", "no-2"))


def test_a_pod_consumes_by_its_uid():
    facts = replace(using("p", "a"), claims_as=PodReference("uid", "name"))
    assert (consumer_of(facts).uid, consumer_of(facts).name) == ("uid", "name")
