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
    """A plugin that answers as a test sets, and records the number of rows of each call."""

    reads = Reads.ROW

    def __init__(self, name, **answers):
        self.name = name
        self.answers = answers
        self.filtered, self.scored, self.pre_filtered, self.pre_scored = [], [], 0, 0
        self.reads = answers.get("reads", Reads.ROW)

    def pre_filter(self, state, pod, table):
        self.pre_filtered += 1
        if "found" in self.answers:
            state.write(self.name, self.answers["found"])
        return self.answers.get("pre_filter", PreFilterResult())

    def filter(self, state, pod, table):
        self.filtered.append(len(table))
        refuses = self.answers.get("refuses")
        if refuses is None:
            return ALL_PASS
        full = table.pod_count >= self.answers.get("limit", 0)
        return FilterResult(full.astype(np.int32), (refuses,))

    def pre_score(self, state, pod, table, feasible):
        self.pre_scored += 1
        if "weighed" in self.answers:
            state.write(self.name, self.answers["weighed"])
        return self.answers.get("pre_score", SUCCESS)

    def score(self, state, pod, table):
        self.scored.append(len(table))
        return table.pod_count


def profile_with(*spies):
    """Return a profile with each spy at every point, in the given order."""
    profile = profile_of({})
    profile.pre_filter = profile.filter = profile.preparing_score = spies
    profile.score = tuple(WeightedScore(spy, 1) for spy in spies)
    return profile


def spied(*spies, table=None):
    if table is None:
        table = table_of(node("n1"), node("n2"), node("n3"))
    return Evaluation(profile_with(*spies), table.classes.pod_class(pod()), table)


def by_row(evaluation):
    """Return per row None, "excluded", or the status."""
    names = {PASSED: None, EXCLUDED: "excluded"}
    return [
        names[code] if code <= 0 else evaluation.statuses[code - 1]
        for code in evaluation.codes.tolist()
    ]


def test_the_first_plugin_in_order_sets_the_status_with_any_declared_reads():
    for first, second in ((Reads.ROW, Reads.NODE), (Reads.NODE, Reads.ROW)):
        evaluation = spied(
            Spy("A", refuses=unschedulable("a"), reads=first),
            Spy("B", refuses=unschedulable("b"), reads=second),
        )
        advance(evaluation)

        assert by_row(evaluation) == [Status(Code.UNSCHEDULABLE, ("a",), "A")] * 3
        assert evaluation.positions.tolist() == [0, 0, 0]
        assert not evaluation.feasible.any()


def test_rows_that_pass_are_feasible_and_scored():
    table = table_of(node("n1"), node("n2"))
    put(table, "n2", pod())
    evaluation = spied(Spy("A", refuses=unschedulable("full"), limit=1), table=table)

    assert advance(evaluation) is SUCCESS
    assert evaluation.feasible.tolist() == [True, False]
    assert evaluation.raw[0].tolist() == [0, 1]


def test_equal_statuses_share_a_code_only_within_one_plugin():
    evaluation = spied(
        Spy("A", refuses=unschedulable("full"), limit=1), Spy("B", refuses=unschedulable("full"))
    )
    put(evaluation.table, "n1", pod())
    put(evaluation.table, "n3", pod())

    advance(evaluation)

    assert [status.plugin for status in by_row(evaluation)] == ["A", "B", "A"]
    assert evaluation.codes[0] == evaluation.codes[2] != evaluation.codes[1]
    assert evaluation.intern(by_row(evaluation)[0]) == evaluation.codes[0]
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
    assert evaluation.score_state.skipped == {"A"}
    assert skipping.scored == []


def test_a_failing_pre_score_ends_the_cycle_and_is_called_again():
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


def test_the_last_unschedulable_pre_filter_sets_the_status_after_all_ran():
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
    assert by_row(evaluation) == ["excluded", no, "excluded"]
    assert evaluation.pre_filter.node_names == {"n2", "unknown"}
    assert evaluation.pre_filter.restricted_by == ("A",)


def test_names_of_several_plugins_are_intersected():
    evaluation = spied(
        Spy("B", pre_filter=narrowing("n1", "n2")), Spy("A", pre_filter=narrowing("n2", "n3"))
    )

    advance(evaluation)

    assert by_row(evaluation) == ["excluded", None, "excluded"]
    assert evaluation.pre_filter.restricted_by == ("A", "B")


def test_names_without_a_common_node_reject_the_pod():
    evaluation = spied(
        Spy("B", pre_filter=narrowing("n1")), Spy("A", pre_filter=narrowing("n2")), Spy("C")
    )

    advance(evaluation)

    assert evaluation.pre_filter.status == unresolvable(
        "node(s) didn't satisfy plugin(s) [A B] simultaneously"
    )
    assert evaluation.pre_filter.unreached == ("C",)


def test_a_plugin_that_leaves_no_node_is_the_only_one_named():
    evaluation = spied(Spy("A", pre_filter=narrowing()))

    advance(evaluation)

    assert evaluation.pre_filter.status == unresolvable("node(s) didn't satisfy plugin A")


def test_only_rows_with_changed_pods_are_evaluated_again():
    of_node, of_row = Spy("A", reads=Reads.NODE), Spy("B")
    evaluation = spied(of_node, of_row)
    before = evaluation.run_pre_filter()
    assert evaluation.update(before) is None
    scored = evaluation.run_pre_score()
    assert evaluation.update_scores(scored) == (SUCCESS, None)

    put(evaluation.table, "n3", pod())
    redone = evaluation.update(before)
    _, rescored = evaluation.update_scores(scored)

    assert redone.tolist() == rescored.tolist() == [2]
    assert (of_node.filtered, of_row.filtered) == ([3], [3, 1])
    assert (of_node.scored, of_row.scored) == ([3], [3, 1])
    assert evaluation.raw[1].tolist() == [0, 0, 1]
    assert (of_row.pre_filtered, of_row.pre_scored) == (1, 1)


def test_an_update_without_changes_does_nothing():
    spy = Spy("A", found=(1, 2), weighed="three")
    evaluation = spied(spy)
    advance(evaluation)

    assert evaluation.update(evaluation.run_pre_filter()).tolist() == []
    assert evaluation.update_scores(evaluation.run_pre_score())[1].tolist() == []
    assert (spy.filtered, spy.scored) == ([3], [3])


def test_rows_changed_over_several_updates_are_scored_together():
    spy = Spy("A")
    evaluation = spied(spy)
    advance(evaluation)
    scored = evaluation.run_pre_score()

    for name in ("n3", "n1"):
        put(evaluation.table, name, pod())
        evaluation.update(evaluation.run_pre_filter())
    _, rescored = evaluation.update_scores(scored)

    assert rescored.tolist() == [0, 2]
    assert spy.scored == [3, 2]


@pytest.mark.parametrize("change", ["node", "count", "found"])
def test_other_nodes_or_another_pre_filter_result_restart_the_evaluation(change):
    spy = Spy("A", reads=Reads.CLUSTER)
    evaluation = spied(spy)
    advance(evaluation)

    if change == "node":
        evaluation.table.update_node(node("n1", cpu=1))
    if change == "count":
        evaluation.table.add_node(node("n4"))
    if change == "found":
        spy.answers["found"] = "more"
    rows = len(evaluation.table)

    assert evaluation.update(evaluation.run_pre_filter()) is None
    assert evaluation.update_scores(evaluation.run_pre_score()) == (SUCCESS, None)
    assert (spy.filtered, spy.scored) == ([3, rows], [3, rows])
    assert evaluation.state.has("A") is (change == "found")


def test_only_the_rows_of_changed_nodes_are_evaluated_again():
    spies = [Spy(str(reads), reads=reads) for reads in (Reads.NODE, Reads.ROW)]
    evaluation = spied(*spies)
    advance(evaluation)

    evaluation.table.update_node(node("n3", cpu=1))
    put(evaluation.table, "n1", pod())

    assert evaluation.update(evaluation.run_pre_filter()).tolist() == [0, 2]
    # All sums are computed again, from scores of which one was.
    assert evaluation.update_scores(evaluation.run_pre_score()) == (SUCCESS, None)
    assert [(spy.filtered, spy.scored) for spy in spies] == [([3, 1], [3, 1]), ([3, 2], [3, 2])]


def test_scores_that_read_other_nodes_are_computed_again_for_all_rows():
    filtering, scoring = Spy("A", reads=Reads.NODE), Spy("B", reads=Reads.CLUSTER)
    evaluation = spied(filtering, scoring)
    evaluation.profile.filter = (filtering,)
    advance(evaluation)

    evaluation.table.update_node(node("n3", cpu=1))
    advance(evaluation)

    assert filtering.filtered == [3, 1]
    assert (filtering.scored, scoring.scored) == ([3, 3], [3, 3])


def test_a_changed_node_that_pre_filter_does_not_name_remains_excluded():
    chosen = PreFilterResult(node_names=frozenset(("n1", "n2")))
    spy = Spy("A", pre_filter=chosen, reads=Reads.NODE, refuses=unschedulable("no"), limit=1)
    evaluation = spied(spy)
    advance(evaluation)

    for name in ("n2", "n3"):
        evaluation.table.update_node(node(name, cpu=1))
    advance(evaluation)

    assert by_row(evaluation) == [None, None, "excluded"]
    assert evaluation.static_results()[0].tolist() == [0, 0, EXCLUDED]


def test_a_rejected_pod_is_helped_by_nodes_as_they_are_after_their_change():
    rejected = PreFilterResult(unschedulable("not now"))
    evaluation = spied(Spy("A", pre_filter=rejected, reads=Reads.NODE))
    evaluation.update(evaluation.run_pre_filter())
    assert evaluation.helpful_rows().tolist() == [0, 1, 2]
    spy = evaluation.profile.filter[0]
    spy.answers |= {"refuses": unschedulable("no"), "limit": 0}

    evaluation.table.update_node(node("n2", cpu=1))
    evaluation.update(evaluation.run_pre_filter())

    assert evaluation.helpful_rows().tolist() == [0, 1, 2]
    assert (evaluation.static_results()[0] > 0).all()


class Fickle:
    """A value that cannot be compared with another one."""

    def __eq__(self, other):
        raise ValueError("ambiguous")

    __hash__ = None


@pytest.mark.parametrize("value", [Fickle(), object(), float("nan")])
def test_values_that_can_not_be_compared_count_as_changed(value):
    spy = Spy("A")
    evaluation = spied(spy)
    for number in range(2):
        spy.answers["found"] = type(value)() if number else value
        if isinstance(value, float):
            spy.answers["found"] = float("nan")
        assert evaluation.update(evaluation.run_pre_filter()) is None

    assert spy.filtered == [3, 3]


def test_the_pre_filter_result_is_passed_to_filter_and_score():
    class Reading(Spy):
        def filter(self, state, pod, table):
            assert state.read(self.name, int) == 1
            return super().filter(state, pod, table)

        def score(self, state, pod, table):
            assert (state.read(self.name, int), state.read("B", int)) == (2, 1)
            return super().score(state, pod, table)

    evaluation = spied(Reading("A", found=1, weighed=2), Spy("B", found=1))

    advance(evaluation)

    assert evaluation.state.read("A", int) == 1


def test_after_a_failure_pre_filter_is_called_again_at_the_next_update():
    spy = Spy("A", pre_filter=PreFilterResult(error("not now")))
    evaluation = spied(spy)
    failed = evaluation.run_pre_filter()
    evaluation.update(failed)
    assert (spy.pre_filtered, evaluation.feasible.any()) == (1, False)

    del spy.answers["pre_filter"]
    evaluation.update(failed)

    assert (spy.pre_filtered, evaluation.feasible.all()) == (2, True)


def test_after_a_failure_pre_score_is_called_again_at_the_next_update():
    spy = Spy("A", pre_score=error("not now"))
    evaluation = spied(spy)
    evaluation.update(evaluation.run_pre_filter())
    failed = evaluation.run_pre_score()
    assert evaluation.update_scores(failed)[0].code is Code.ERROR

    del spy.answers["pre_score"]

    assert evaluation.update_scores(failed) == (SUCCESS, None)
    assert spy.pre_scored == 2


def test_after_a_restart_rows_are_filtered_again_with_the_results_of_an_earlier_batch():
    spy = Spy("A", found=1)
    evaluation = spied(spy)
    earlier = evaluation.run_pre_filter()
    evaluation.update(earlier)
    spy.answers["found"] = 2
    evaluation.update(evaluation.run_pre_filter())

    # Stands for a kernel that keeps the class of an earlier batch.
    evaluation.restart(earlier)

    assert evaluation.update(earlier) is None
    assert spy.filtered == [3, 3, 3]


def test_a_restart_with_equal_inputs_keeps_the_results_of_rows():
    spy = Spy("A")
    evaluation = spied(spy)
    advance(evaluation)

    evaluation.restart(evaluation.run_pre_filter())

    assert evaluation.update(evaluation.run_pre_filter()).tolist() == []
    assert spy.filtered == [3]


def test_another_pre_score_result_scores_every_row_again():
    spy = Spy("A", reads=Reads.NODE)
    evaluation = spied(spy)
    advance(evaluation)
    spy.answers["weighed"] = 1

    evaluation.update(evaluation.run_pre_filter())
    assert evaluation.update_scores(evaluation.run_pre_score()) == (SUCCESS, None)

    assert (spy.filtered, spy.scored) == ([3], [3, 3])
    assert evaluation.score_state.read("A", int) == 1


def test_a_plugin_that_skipped_scores_once_it_does_not_skip():
    spy = Spy("A", pre_score=SKIP)
    evaluation = spied(spy)
    advance(evaluation)
    assert evaluation.raw == [None]

    spy.answers["pre_score"] = SUCCESS
    advance(evaluation)
    assert evaluation.raw[0].tolist() == [0, 0, 0]

    spy.answers["pre_score"] = SKIP
    advance(evaluation)
    assert evaluation.raw == [None]


def test_the_use_of_feasible_rows_by_pre_score_is_recorded():
    class Weighing(Spy):
        def pre_score(self, state, pod, table, feasible):
            state.write(self.name, int(feasible().sum()))
            return SUCCESS

    assert not spied(Spy("A")).run_pre_score().reads_feasible
    evaluation = spied(Spy("A"), Weighing("B"))
    evaluation.update(evaluation.run_pre_filter())
    found = evaluation.run_pre_score()
    assert found.reads_feasible
    assert found.state.read("B", int) == 3


def test_a_full_row_passes_once_it_is_free():
    table = table_of(node("n1"), node("n2"))
    put(table, "n1", pod())
    evaluation = spied(Spy("A", refuses=unschedulable("full"), limit=1), table=table)
    advance(evaluation)
    assert evaluation.feasible.tolist() == [False, True]
    assert evaluation.static_results()[0].tolist() == [0, 0]

    table.remove_pod("n1", table.classes.pod_class(pod()))
    advance(evaluation)

    assert evaluation.feasible.tolist() == [True, True]


def test_a_rejected_pod_stays_rejected_while_pods_are_added_and_removed():
    evaluation = spied(Spy("A", pre_filter=PreFilterResult(unresolvable("no"))))
    advance(evaluation)

    put(evaluation.table, "n1", pod())

    assert evaluation.update(evaluation.run_pre_filter()).tolist() == [0]
    assert not evaluation.feasible.any()


class NotThere(Spy):
    def pre_filter(self, state, pod, table):
        raise UnsupportedError("A", "", "spec.x")


def test_a_missing_plugin_is_reported_each_time():
    evaluation = spied(NotThere("A"))

    for _ in range(2):
        with pytest.raises(UnsupportedError):
            evaluation.run_pre_filter()


def test_scores_are_copies_of_the_columns():
    evaluation = spied(Spy("A"))
    advance(evaluation)

    evaluation.raw[0][:] = 99

    assert evaluation.table.pod_count.tolist() == [0, 0, 0]


def test_a_table_without_nodes_gives_empty_results():
    evaluation = spied(Spy("A", refuses=unschedulable("no")), table=table_of())

    assert advance(evaluation) is SUCCESS
    assert evaluation.codes.tolist() == evaluation.raw[0].tolist() == []


def test_a_score_without_its_own_pre_score_is_prepared_all_the_same():
    table = table_of(
        node("n1", images={"app:v1": 100 * MIB}),
        node("n2", images={"app:v1": 90 * MIB}),
        node("n3"),
    )
    profile = profile_of({"score": ["ImageLocality"]})
    evaluation = evaluated(profile, pod(images=("app:v1",), container_count=1), table)
    silent = evaluated(profile, pod(images=("other:v1",), container_count=1), table)

    found = evaluation.score_state.get("ImageLocality")
    assert found == ImageNodes((("app:v1", 2, 0, 100 * MIB),))
    assert not silent.score_state.has("ImageLocality")
    assert silent.raw[0].tolist() == [0, 0, 0]


def test_in_tree_plugins_refuse_in_upstreams_order():
    table = table_of(node("n1", unschedulable=True, cpu=0), node("n2", cpu=0), node("n3"))
    put(table, "n3", pod(cpu=3800, memory=GIB))
    filters = ["NodeUnschedulable", "NodeAffinity", "NodeResourcesFit"]
    profile = profile_of({"preFilter": ["NodeResourcesFit"], "filter": filters})

    evaluation = evaluated(profile, pod(cpu=500, required_node_terms=(named("n1", "n3"),)), table)

    assert by_row(evaluation) == [
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


def test_a_failed_plugin_is_called_again_for_each_pod_of_the_class():
    """A batch gives its class's outcome to every pod; a plugin that failed once fails no other."""
    spy = Spy("A", pre_filter=PreFilterResult(error("not now")), pre_score=error("nor now"))
    evaluation = spied(spy)
    pre_filter = evaluation.run_pre_filter()
    evaluation.update(pre_filter)
    assert not evaluation.feasible.any()

    del spy.answers["pre_filter"]
    for _ in range(2):
        evaluation.update(pre_filter)
        assert evaluation.feasible.all()
    pre_score = evaluation.run_pre_score()
    assert evaluation.update_scores(pre_score)[0].code is Code.ERROR
    del spy.answers["pre_score"]
    for _ in range(2):
        assert evaluation.update_scores(pre_score)[0] is SUCCESS


class Load(FilterPlugin):
    """A plugin that refuses every row, each time for another reason."""

    name = "Load"
    reads = Reads.ROW
    calls = 0

    def filter(self, state, pod, table):
        self.calls += 1
        refused = np.ones(len(table), dtype=np.bool_)
        return FilterResult.refuse(refused, unschedulable(f"the load is {self.calls}"))


def test_statuses_that_no_row_has_any_more_are_dropped(monkeypatch):
    monkeypatch.setattr("roadstead.framework.evaluation.MAX_FORMER_STATUSES", 4)
    table = table_of(node("n1"), node("n2"))
    profile = profile_of({"filter": ["Load"]}, plugins=[Load])
    placed = table.classes.pod_class(pod())
    evaluation = evaluated(profile, pod(cpu=100), table)

    lengths = []
    for _ in range(20):
        table.add_pod("n1", placed)
        advance(evaluation)
        lengths.append(len(evaluation.statuses))

    assert max(lengths) <= 2 + 4 + 1
    reasons = [evaluation.statuses[code - 1].reasons for code in evaluation.codes.tolist()]
    assert reasons[0] == (f"the load is {profile.filter[0].calls}",)
