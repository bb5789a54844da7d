import numpy as np
import pytest

from roadstead.framework.evaluation import EXCLUDED, PASSED, Evaluation
from roadstead.framework.plugin import (
    ALL_PASS,
    FilterPlugin,
    FilterResult,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from roadstead.framework.profile import WeightedScore
from roadstead.plugins.image_locality import ImageNodes
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from tests.builders import GIB, MIB, advance, evaluated, named, node, pod, profile_of, put, table_of


class Spy(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Answers as told, and remembers how many rows it was asked about."""

    reads = Reads.ROW

    def __init__(self, name, **says):
        self.name = name
        self.says = says
        self.filtered, self.scored, self.pre_scored = [], [], 0
        self.reads = says.get("reads", Reads.ROW)

    def pre_filter(self, state, pod):
        return self.says.get("pre_filter", PreFilterResult())

    def filter(self, state, pod, table):
        self.filtered.append(len(table))
        refuses = self.says.get("refuses")
        if refuses is None:
            return ALL_PASS
        full = table.pod_count >= self.says.get("limit", 0)
        return FilterResult(full.astype(np.int32), (refuses,))

    def pre_score(self, state, pod):
        self.pre_scored += 1
        return self.says.get("pre_score", SUCCESS)

    def score(self, state, pod, table):
        self.scored.append(len(table))
        return table.pod_count


def profile_with(*spies):
    """A profile in which each spy stands at every point, in the order given."""
    profile = profile_of({})
    profile.pre_filter = profile.filter = profile.pre_score = spies
    profile.score = tuple(WeightedScore(spy, 1) for spy in spies)
    return profile


def spied(*spies, table=None):
    if table is None:
        table = table_of(node("n1"), node("n2"), node("n3"))
    return Evaluation(profile_with(*spies), table.classes.info(pod()), table)


def told(evaluation):
    """Per row None, "excluded", or the status."""
    names = {PASSED: None, EXCLUDED: "excluded"}
    return [
        names[code] if code <= 0 else evaluation.statuses[code - 1]
        for code in evaluation.codes.tolist()
    ]


def test_the_first_plugin_in_order_speaks_whatever_it_reads():
    for first, second in ((Reads.ROW, Reads.NODE), (Reads.NODE, Reads.ROW)):
        evaluation = spied(
            Spy("A", refuses=unschedulable("a"), reads=first),
            Spy("B", refuses=unschedulable("b"), reads=second),
        )
        advance(evaluation)

        assert told(evaluation) == [Status(Code.UNSCHEDULABLE, ("a",), "A")] * 3
        assert evaluation.positions.tolist() == [0, 0, 0]
        assert not evaluation.feasible.any()


def test_rows_that_pass_are_feasible_and_scored():
    table = table_of(node("n1"), node("n2"))
    put(table, "n2", pod())
    evaluation = spied(Spy("A", refuses=unschedulable("full"), limit=1), table=table)

    assert advance(evaluation) is SUCCESS
    assert evaluation.feasible.tolist() == [True, False]
    assert evaluation.raw[0].tolist() == [0, 1]


def test_equal_statuses_of_one_plugin_share_a_code_and_of_two_do_not():
    evaluation = spied(
        Spy("A", refuses=unschedulable("full"), limit=1), Spy("B", refuses=unschedulable("full"))
    )
    put(evaluation.table, "n1", pod())
    put(evaluation.table, "n3", pod())

    advance(evaluation)

    assert [status.plugin for status in told(evaluation)] == ["A", "B", "A"]
    assert evaluation.codes[0] == evaluation.codes[2] != evaluation.codes[1]
    assert evaluation.intern(told(evaluation)[0]) == evaluation.codes[0]
    assert len(evaluation.statuses) == 2


def test_a_plugin_whose_pre_filter_skips_does_not_filter():
    skipping = Spy("A", pre_filter=PreFilterResult(SKIP), refuses=unschedulable("no"))
    evaluation = spied(skipping)

    advance(evaluation)

    assert evaluation.pre_filter.skipped == ("A",)
    assert evaluation.feasible.all()
    assert skipping.filtered == []


def test_a_plugin_whose_pre_score_skips_does_not_score():
    skipping, other = Spy("A", pre_score=SKIP), Spy("B")
    evaluation = spied(skipping, other)

    advance(evaluation)

    assert evaluation.raw[0] is None
    assert evaluation.raw[1].tolist() == [0, 0, 0]
    assert evaluation.state.skip_score == {"A"}
    assert skipping.scored == []


def test_a_failing_pre_score_ends_the_cycle_and_is_asked_again():
    failing = Spy("A", pre_score=error("bad term"))
    evaluation = spied(failing)
    message = 'running PreScore plugin "A": bad term'

    assert advance(evaluation) == Status(Code.ERROR, (message,), "A")
    put(evaluation.table, "n1", pod())
    assert advance(evaluation).code is Code.ERROR
    assert failing.scored == []
    assert evaluation.raw == []


def test_an_unresolvable_pre_filter_stops_the_phase():
    refusal = PreFilterResult(unresolvable("hopeless"))
    late = Spy("C")
    evaluation = spied(Spy("A"), Spy("B", pre_filter=refusal), late)

    assert advance(evaluation) is None
    outcome = evaluation.pre_filter
    assert outcome.status == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("hopeless",), "B")
    assert outcome.unreached == ("C",)
    assert evaluation.feasible.tolist() == [False] * 3
    assert late.filtered == []


def test_the_last_unschedulable_pre_filter_speaks_after_all_ran():
    def refuse(text):
        return PreFilterResult(unschedulable(text))

    evaluation = spied(
        Spy("A", pre_filter=refuse("one")), Spy("B", pre_filter=refuse("two")), Spy("C")
    )

    advance(evaluation)

    assert evaluation.pre_filter.status == Status(Code.UNSCHEDULABLE, ("two",), "B")
    assert evaluation.pre_filter.unreached == ()


def test_an_error_of_pre_filter_stops_the_phase():
    for status in (error("broken"), Status(Code.WAIT, ("broken",))):
        evaluation = spied(Spy("A", pre_filter=PreFilterResult(status)), Spy("B"))

        advance(evaluation)

        message = 'running PreFilter plugin "A": broken'
        assert evaluation.pre_filter.status == Status(Code.ERROR, (message,), "A")
        assert evaluation.pre_filter.unreached == ("B",)


def narrowing(*names):
    return PreFilterResult(node_names=frozenset(names))


def test_nodes_outside_the_names_are_excluded_and_never_filtered_by_code():
    refusing = Spy("B", refuses=unschedulable("no"))
    evaluation = spied(Spy("A", pre_filter=narrowing("n2", "unknown")), refusing)

    advance(evaluation)

    no = Status(Code.UNSCHEDULABLE, ("no",), "B")
    assert told(evaluation) == ["excluded", no, "excluded"]
    assert evaluation.pre_filter.node_names == {"n2", "unknown"}
    assert evaluation.pre_filter.narrowed_by == ("A",)


def test_names_of_several_plugins_are_intersected():
    evaluation = spied(
        Spy("B", pre_filter=narrowing("n1", "n2")), Spy("A", pre_filter=narrowing("n2", "n3"))
    )

    advance(evaluation)

    assert told(evaluation) == ["excluded", None, "excluded"]
    assert evaluation.pre_filter.narrowed_by == ("A", "B")


def test_names_without_a_common_node_reject_the_pod():
    evaluation = spied(
        Spy("B", pre_filter=narrowing("n1")), Spy("A", pre_filter=narrowing("n2")), Spy("C")
    )

    advance(evaluation)

    assert evaluation.pre_filter.status == unresolvable(
        "node(s) didn't satisfy plugin(s) [A B] simultaneously"
    )
    assert evaluation.pre_filter.unreached == ("C",)


def test_a_plugin_that_leaves_no_node_is_named_alone():
    evaluation = spied(Spy("A", pre_filter=narrowing()))

    advance(evaluation)

    assert evaluation.pre_filter.status == unresolvable("node(s) didn't satisfy plugin A")


def test_only_rows_that_pods_touched_are_asked_about_again():
    of_node, of_row = Spy("A", reads=Reads.NODE), Spy("B")
    evaluation = spied(of_node, of_row)
    assert evaluation.update(3, {}) is None
    assert evaluation.update_scores({}) == (SUCCESS, None)

    put(evaluation.table, "n3", pod())
    redone = evaluation.update(3, {})
    _, rescored = evaluation.update_scores({})

    assert redone.tolist() == rescored.tolist() == [2]
    assert (of_node.filtered, of_row.filtered) == ([3], [3, 1])
    assert (of_node.scored, of_row.scored) == ([3], [3, 1])
    assert evaluation.raw[1].tolist() == [0, 0, 1]
    assert of_row.pre_scored == 1


def test_nothing_changed_is_nothing_done():
    spy = Spy("A")
    evaluation = spied(spy)
    advance(evaluation)

    assert evaluation.update(3, {}).tolist() == []
    assert evaluation.update_scores({})[1].tolist() == []
    assert (spy.filtered, spy.scored) == ([3], [3])


def test_rows_changed_over_several_updates_are_scored_together():
    spy = Spy("A")
    evaluation = spied(spy)
    advance(evaluation)

    for name in ("n3", "n1"):
        put(evaluation.table, name, pod())
        evaluation.update(3, {})
    _, rescored = evaluation.update_scores({})

    assert rescored.tolist() == [0, 2]
    assert spy.scored == [3, 2]


@pytest.mark.parametrize("change", ["node", "count", "summary"])
def test_other_nodes_counts_or_summaries_start_over(change):
    spy = Spy("A", reads=Reads.NODE)
    evaluation = spied(spy)
    advance(evaluation)

    if change == "node":
        evaluation.table.update_node(node("n1", cpu=1))
    count = 4 if change == "count" else 3
    summaries = {"A": ImageNodes(())} if change == "summary" else {}

    assert evaluation.update(count, summaries) is None
    assert evaluation.update_scores({}) == (SUCCESS, None)
    assert (spy.filtered, spy.scored, spy.pre_scored) == ([3, 3], [3, 3], 2)
    assert evaluation.state.filter_summaries == summaries


def test_rows_are_filtered_again_after_a_restart_with_summaries_of_an_earlier_batch():
    spy = Spy("A")
    evaluation = spied(spy)
    earlier = {"A": ImageNodes(())}
    evaluation.update(3, earlier)
    evaluation.update(3, {})

    # A kernel that keeps the class of an earlier batch.
    evaluation.restart(3, earlier)

    assert evaluation.update(3, earlier) is None
    assert spy.filtered == [3, 3, 3]


def test_a_restart_with_the_same_inputs_leaves_the_answers_of_rows():
    spy = Spy("A")
    evaluation = spied(spy)
    advance(evaluation)

    evaluation.restart(3, {})

    assert evaluation.update(3, {}).tolist() == []
    assert spy.filtered == [3]


def test_other_score_summaries_score_every_row_again():
    spy = Spy("A", reads=Reads.NODE)
    evaluation = spied(spy)
    advance(evaluation)
    summaries = {"A": ImageNodes(())}

    evaluation.update(3, {})
    assert evaluation.update_scores(summaries) == (SUCCESS, None)

    assert (spy.filtered, spy.scored) == ([3], [3, 3])
    assert evaluation.state.score_summaries == summaries


class SkipsAtFirst(Spy):
    def pre_score(self, state, pod):
        return SUCCESS if state.score_summaries else SKIP


def test_a_plugin_that_skipped_scores_once_other_summaries_make_it():
    evaluation = spied(SkipsAtFirst("A"))
    advance(evaluation)
    assert evaluation.raw == [None]

    evaluation.update_scores({"A": ImageNodes(())})
    assert evaluation.raw[0].tolist() == [0, 0, 0]

    evaluation.update_scores({})
    assert evaluation.raw == [None]


def test_a_row_that_was_full_at_first_passes_when_it_is_free():
    table = table_of(node("n1"), node("n2"))
    put(table, "n1", pod())
    evaluation = spied(Spy("A", refuses=unschedulable("full"), limit=1), table=table)
    advance(evaluation)
    assert evaluation.feasible.tolist() == [False, True]
    assert evaluation.fixed()[0].tolist() == [0, 0]

    table.remove_pod("n1", table.classes.info(pod()))
    advance(evaluation)

    assert evaluation.feasible.tolist() == [True, True]


def test_a_rejected_pod_stays_rejected_while_pods_come_and_go():
    evaluation = spied(Spy("A", pre_filter=PreFilterResult(unresolvable("no"))))
    advance(evaluation)

    put(evaluation.table, "n1", pod())

    assert evaluation.update(3, {}).tolist() == [0]
    assert not evaluation.feasible.any()


class NotThere(Spy):
    def pre_filter(self, state, pod):
        raise UnsupportedError("A", "", "spec.x")


def test_after_a_missing_plugin_the_next_update_starts_over():
    evaluation = spied(NotThere("A"))

    for _ in range(2):
        with pytest.raises(UnsupportedError):
            evaluation.update(3, {})


def test_scores_are_a_copy_of_the_columns_they_were_read_from():
    evaluation = spied(Spy("A"))
    advance(evaluation)

    evaluation.raw[0][:] = 99

    assert evaluation.table.pod_count.tolist() == [0, 0, 0]


def test_a_table_without_nodes_has_nothing_to_say():
    evaluation = spied(Spy("A", refuses=unschedulable("no")), table=table_of())

    assert advance(evaluation) is SUCCESS
    assert evaluation.codes.tolist() == evaluation.raw[0].tolist() == []


def test_summaries_of_one_table_are_its_own_part_of_the_map():
    table = table_of(
        node("n1", images={"app:v1": 100 * MIB}),
        node("n2", images={"app:v1": 90 * MIB}),
        node("n3"),
    )
    profile = profile_of({"score": ["ImageLocality"]})
    evaluation = evaluated(profile, pod(images=("app:v1",), container_count=1), table)
    silent = evaluated(profile, pod(images=("other:v1",), container_count=1), table)

    assert evaluation.own_score_summaries() == {
        "ImageLocality": ImageNodes((("app:v1", 2, 0, 100 * MIB),))
    }
    assert silent.own_score_summaries() == silent.own_filter_summaries() == {}
    assert silent.raw[0].tolist() == [0, 0, 0]


def test_in_tree_plugins_refuse_in_upstreams_order():
    table = table_of(node("n1", unschedulable=True, cpu=0), node("n2", cpu=0), node("n3"))
    put(table, "n3", pod(cpu=3800, memory=GIB))
    filters = ["NodeUnschedulable", "NodeAffinity", "NodeResourcesFit"]
    profile = profile_of({"preFilter": ["NodeResourcesFit"], "filter": filters})

    evaluation = evaluated(profile, pod(cpu=500, required_node_terms=(named("n1", "n3"),)), table)

    assert told(evaluation) == [
        Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            ("node(s) were unschedulable",),
            "NodeUnschedulable",
        ),
        Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            ("node(s) didn't match Pod's node affinity/selector",),
            "NodeAffinity",
        ),
        Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit"),
    ]
