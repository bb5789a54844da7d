"""No pod is pending without a reason: every recorded cluster, scheduled to the end."""

import json
from pathlib import Path

import pytest

from roadstead.config.settings import Settings
from roadstead.local.run import LocalRun
from roadstead.report.node_use import node_use
from roadstead.report.pods import pod_lines, workloads
from roadstead.report.result import PendingPod, PlacedPod, RunResult
from roadstead.report.summary import summarize
from roadstead.run import RunPlan
from scripts.recordings.cases import compile_case, find_files, read_document

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = find_files([GOLDEN / suite for suite in ("static", "profiles", "preemption")])


def result_of(case, run):
    """Return the result of a run in the form for reports."""
    keys = {who.uid: who.key for who, _ in case.pending}
    placed = tuple(
        PlacedPod(keys[uid], uid, node) for uid, node in run.placements().items() if uid in keys
    )
    pending = tuple(
        PendingPod(each.key, each.uid, each.message, each.reasons, each.plugins)
        for each in run.pending()
    )
    times = {"scheduling_s": 1.0, "elapsed_s": 1.0, "timings_s": {}}
    return RunResult("recorded", placed, pending, node_use([], [], []), seed=0, **times)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_every_pending_pod_of_a_recorded_cluster_has_its_reason(file):
    case = compile_case(file, read_document(file))
    config = case.document.get("config")
    text = json.dumps(config) if config else ""
    run = LocalRun(RunPlan(Settings(), text, file.name, case.cluster))
    run.add_nodes(case.nodes)
    run.add_running([each for _, each in case.bound], [node_name for node_name, _ in case.bound])
    pods = [(who, facts) for who, facts in case.pending if not facts.is_terminating]
    run.submit(pods)
    run.run(0.0)

    result = result_of(case, run)
    evicted = {each.uid for each in run.binder.outcomes.removed}
    asked = [each for each in pods if each[0].uid not in evicted]
    lines = list(pod_lines(asked, result))
    assert [each.pod for each in lines if not (each.node or each.reason)] == []
    assert sum(each.placed for each in workloads(asked, result)) == len(result.placements)
    reasons = summarize(result).reasons
    assert bool(reasons) == bool(result.pending)
    for each in result.pending:
        one = RunResult("", (), (each,), result.node_use, 1.0, 1.0, {}, 0)
        assert [reason for reason in summarize(one).reasons if not reason.reason] == []
        assert summarize(one).reasons
