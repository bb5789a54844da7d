"""A pod that fits on no node: whether preemption is tried, and who chooses the node."""

import pytest

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.preempting import dry_run_to_make, post_filter_result
from roadstead.cycle.scheduling_cycle import after_failure
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.plugin import PostFilterPlugin
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.tie_break import TieBreak, in_order
from roadstead.framework.victims import DryRun
from roadstead.local.drive import run_now
from roadstead.nodes.pod_class import PodClasses
from roadstead.protocol.status import SUCCESS, unschedulable
from tests.builders import pod, profile_of
from tests.devices.fleet import using

CLASSES = PodClasses()
NAMES = ["n1", "n2", "n3", "n4"]
TIES = [TieBreak("random", seed) for seed in range(8)]


class Picks(PostFilterPlugin):
    """A plugin that wants two candidates, and nominates a chosen one of four nodes."""

    name = "Picks"

    def dry_run_size(self, pod, failed):
        return 2

    def post_filter(self, pod, failed):
        return PostFilterResult(SUCCESS, failed.pick(NAMES))


PROFILE = profile_of({"postFilter": ["Picks"]}, plugins=[Picks], classes=CLASSES)
WITHOUT = profile_of({"bind": ["DefaultBinder"]}, classes=CLASSES)


def failed_pod(draw=1):
    return PodInCycle("u", "ns/p", CLASSES.pod_class(pod(cpu=100)), "class", 1, draw)


@pytest.mark.parametrize(("profile", "nodes"), [(PROFILE, 0), (WITHOUT, 3)])
def test_without_nodes_or_plugins_no_preemption_is_tried_and_the_nomination_ends(profile, nodes):
    asked = profile, failed_pod(), Diagnosis(nodes), TieBreak("first")

    assert dry_run_to_make(*asked) is None
    assert post_filter_result(*asked) == PostFilterResult(SUCCESS, "")


def test_the_first_of_equal_candidates_has_the_smallest_name():
    asked = PROFILE, failed_pod(), Diagnosis(3), TieBreak("first")

    assert dry_run_to_make(*asked) == DryRun(2, None)
    assert post_filter_result(*asked).nominated_node == "n1"


@pytest.mark.parametrize("draw", [1, 2])
def test_a_random_candidate_is_drawn_by_seed_pod_and_attempt(draw):
    found = []
    for tie_break in TIES:
        number = tie_break.pod_hash("ns/p", draw)
        asked = PROFILE, failed_pod(draw), Diagnosis(3), tie_break
        assert dry_run_to_make(*asked) == DryRun(2, number)
        found.append(post_filter_result(*asked).nominated_node)
        assert found[-1] == NAMES[in_order(NAMES, number)[0]]
    assert len(set(found)) > 1


class Frees(PostFilterPlugin):
    """A plugin that deallocates the pod's first claim, if it has any."""

    name = "Frees"

    def post_filter(self, pod, failed):
        claims = [each.claim_name for each in pod.device_claims]
        return PostFilterResult(unschedulable("freed"), deallocated=claims[0] if claims else "")


@pytest.mark.parametrize(
    ("facts", "frees"), [(pod(cpu=100), None), (using("p", ""), ""), (using("p", "c"), "c")]
)
def test_post_filter_runs_at_once_for_pods_with_claims_and_ends_the_batch_if_it_frees_one(
    facts, frees
):
    """Pods behind it in the batch may allocate the devices that PostFilter looks for."""
    profile = profile_of({"postFilter": ["Frees"]}, plugins=[Frees], classes=CLASSES)
    failed = PodInCycle("u", "ns/p", CLASSES.pod_class(facts), "class", 1, 1)
    decision = Decision(failed, None, diagnosis=Diagnosis(3))

    decision, ends_batch = run_now(after_failure(decision, profile, TieBreak("first"), None, None))

    found = decision.post_filter
    assert (found and found.deallocated, ends_batch) == (frees, bool(frees))
