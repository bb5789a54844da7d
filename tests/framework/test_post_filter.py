import pytest

from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.plugin import PostFilterPlugin
from roadstead.framework.post_filter import run_post_filter
from roadstead.framework.post_filter_answers import PostFilterResult, PostFilterView
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from tests.builders import pod, profile_of


def saying(result, name):
    """Return a plugin class with a constant answer that records its calls."""

    class Answering(PostFilterPlugin):
        def post_filter(self, pod, failed):
            self.seen.append((pod, failed))
            return result

    Answering.name, Answering.seen = name, []
    return Answering


def run(*results, diagnosis=None):
    kinds = [saying(result, f"P{index}") for index, result in enumerate(results, 1)]
    profile = profile_of({"postFilter": [kind.name for kind in kinds]}, plugins=kinds)
    outcome = run_post_filter(profile, pod(cpu=5), diagnosis or Diagnosis(3))
    return outcome, kinds


def test_refusals_are_joined_under_the_name_of_the_first():
    outcome, _ = run(
        PostFilterResult(unschedulable("one", "two")), PostFilterResult(unschedulable("three"))
    )

    assert outcome == PostFilterResult(Status(Code.UNSCHEDULABLE, ("one, two, three",), "P1"))
    assert outcome.status.message == "one, two, three"


def test_only_the_last_of_several_refusals_ends_with_a_full_stop():
    outcome, _ = run(
        PostFilterResult(unschedulable("none fits.")), PostFilterResult(unschedulable("all wait."))
    )
    assert outcome.status.message == "none fits, all wait."


def test_the_first_success_ends_the_phase():
    outcome, kinds = run(
        PostFilterResult(unschedulable("one")),
        PostFilterResult(SUCCESS, "n1"),
        PostFilterResult(unschedulable("three")),
    )

    assert outcome == PostFilterResult(Status(plugin="P2"), "n1")
    assert kinds[2].seen == []


def test_an_unresolvable_refusal_ends_the_phase_with_its_own_message():
    outcome, kinds = run(
        PostFilterResult(unschedulable("one")),
        PostFilterResult(unresolvable("hopeless"), ""),
        PostFilterResult(SUCCESS),
    )

    assert outcome.status == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("hopeless",), "P2")
    assert outcome.nominated_node == ""
    assert kinds[2].seen == []


@pytest.mark.parametrize("code", [Code.ERROR, Code.WAIT, Code.SKIP])
def test_any_other_status_is_an_error_of_its_plugin(code):
    outcome, kinds = run(
        PostFilterResult(unschedulable("one")),
        PostFilterResult(Status(code, ("broken",)), "n1"),
        PostFilterResult(SUCCESS),
    )

    assert outcome == PostFilterResult(Status(Code.ERROR, ("broken",), "P2"))
    assert kinds[2].seen == []


def test_without_plugins_there_is_no_message():
    outcome, _ = run()

    assert outcome == PostFilterResult(Status(Code.UNSCHEDULABLE))
    assert outcome.status.message == ""


def test_the_last_nomination_counts():
    refusal = unschedulable("no")

    cleared, _ = run(PostFilterResult(refusal, "n1"), PostFilterResult(refusal, ""))
    kept, _ = run(PostFilterResult(refusal, "n1"), PostFilterResult(refusal))

    assert (cleared.nominated_node, kept.nominated_node) == ("", "n1")


def test_a_plugin_gets_the_failed_attempt():
    diagnosis = Diagnosis(9, pre_filter=unresolvable("early"), unreached=("DynamicResources",))
    diagnosis.add(unschedulable("a"), 4)
    diagnosis.add(error("b"), 5)
    diagnosis.record_priority(7)

    _, kinds = run(PostFilterResult(SUCCESS), diagnosis=diagnosis)

    view = PostFilterView(9, 4, unresolvable("early"), ("DynamicResources",), 7)
    assert kinds[0].seen == [(pod(cpu=5), view)]


def test_a_missing_dry_run_is_requested_by_name():
    profile = profile_of({"postFilter": ["DefaultPreemption"]})
    diagnosis = Diagnosis(3)
    diagnosis.add(unschedulable("a"), 3)
    diagnosis.record_priority(0)

    with pytest.raises(UnsupportedError, match="DefaultPreemption"):
        run_post_filter(profile, pod(priority=5), diagnosis)
