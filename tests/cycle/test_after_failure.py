"""A pod that fits on no node: whether preemption is tried, and who chooses the node."""

import pytest

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.preempting import dry_run_to_make, post_filter_result
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.plugin import PostFilterPlugin
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.tie_break import TieBreak, in_order
from roadstead.framework.victims import DryRun
from roadstead.nodes.pod_class import PodClasses
from roadstead.protocol.status import SUCCESS
from tests.builders import pod, profile_of

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
