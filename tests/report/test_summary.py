"""The figures of a run, as a document and on the terminal."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from roadstead.actors.runs.outcomes import encode_outcome, read_outcome
from roadstead.journal.headers import OUTCOME
from roadstead.report.ray_nodes import RayNodeUse
from roadstead.report.result import PendingPod
from roadstead.report.summary import summarize, summary_document
from roadstead.report.terminal import print_summary
from roadstead.run import RunOutcome


def shown(result, width=100):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_summary(console, summarize(result))
    return console.file.getvalue()


def pending_for(*reasons):
    return tuple(
        PendingPod(f"default/p-{index}", f"u-{index}", "", ((reason, 1),))
        for index, reason in enumerate(reasons)
    )


def test_counts_and_rate_are_those_of_the_run(result):
    summary = summarize(result)
    assert (summary.placed, summary.pending, summary.nodes) == (3, 2, 3)
    assert summary.pods_per_s == 10


def test_utilization_sums_over_the_fleet_and_over_each_zone(result):
    summary = summarize(result)
    cpu = summary.utilization[0]
    assert (cpu.resource, cpu.allocatable, cpu.before, cpu.after) == ("cpu", 12_000, 500, 3500)
    assert list(summary.zones) == ["", "zone-a", "zone-b"]
    assert [uses[0].after for uses in summary.zones.values()] == [0, 2000, 1500]


def test_the_sum_of_the_zones_is_that_of_the_fleet(result):
    summary = summarize(result)
    for index, use in enumerate(summary.utilization):
        zones = [uses[index] for uses in summary.zones.values()]
        assert sum(zone.allocatable for zone in zones) == use.allocatable
        assert sum(zone.after for zone in zones) == use.after


def test_a_zone_without_a_resource_has_no_fraction_of_it(result):
    gpu = summarize(result).zones["zone-b"][2]
    assert (gpu.before_fraction, gpu.after_fraction) == (None, None)


def test_reasons_count_pods_and_nodes_with_the_most_frequent_first(result):
    reasons = summarize(result).reasons
    assert [(entry.reason, entry.pods, entry.nodes) for entry in reasons] == [
        ("Insufficient cpu", 2, 4),
        ("node(s) had [odd] taint", 1, 2),
    ]


def test_an_attempt_that_failed_completely_is_counted_by_its_message(result):
    failed = tuple(
        PendingPod(f"default/p-{index}", f"u-{index}", message)
        for index, message in enumerate(["it failed", "it failed", "x" * 1000])
    )
    summary = summarize(replace(result, pending=failed))

    counted = [(entry.reason, entry.pods, entry.nodes) for entry in summary.reasons]
    assert counted == [("it failed", 2, 0), ("x" * 300 + "…", 1, 0)]
    assert "it failed" in shown(replace(result, pending=failed))


def test_a_reason_names_its_first_pod(result):
    reasons = summarize(replace(result, pending=pending_for("b", "a", "b"))).reasons
    assert [entry.first for entry in reasons] == ["default/p-0", "default/p-1"]
    assert "default/p-1" in shown(replace(result, pending=pending_for("b", "a", "b")))


def test_a_reason_of_a_whole_attempt_has_no_count_of_nodes(result):
    text = 'persistentvolumeclaim "data" not found'
    failed = (PendingPod("default/p", "u", f"0/30 nodes are available: {text}"),)
    assert summarize(replace(result, pending=failed)).reasons[0].reason == text


def test_reasons_that_differ_only_in_names_of_claims_are_counted_together(result):
    text = "0/2 nodes are available: resource claim default/{0}, request r: has capacity requests."
    other = 'pod "default/{0}": ResourceClaim not created yet'
    failed = tuple(
        PendingPod(f"default/{name}", name, reason.format(name))
        for reason, names in ((text, "abc"), (other, "de"), ('claim "{0}" is lost', "f"))
        for name in names
    )

    reasons = summarize(replace(result, pending=failed)).reasons

    assert [(entry.reason, entry.pods, entry.first) for entry in reasons] == [
        ("resource claim *, request r: has capacity requests.", 3, "default/a"),
        ("pod *: ResourceClaim not created yet", 2, "default/d"),
        ('claim "f" is lost', 1, "default/f"),
    ]


def test_pending_reasons_are_printed_before_utilization(result):
    text = shown(result)
    assert text.index("Why pods are pending") < text.index("Utilization")


def test_a_resource_of_no_node_is_not_shown(result):
    use = result.node_use
    nothing = use.allocatable * 0
    text = shown(replace(result, node_use=replace(use, allocatable=nothing, before=nothing)))
    assert "memory" in text
    gone = replace(use, allocatable=nothing, before=nothing, after=nothing)
    assert "memory" not in shown(replace(result, node_use=gone))


@pytest.mark.parametrize("width", [80, 120])
def test_zones_keep_every_figure_on_a_narrow_terminal(result, width):
    names = tuple(f"example.com/accelerator-{n}" for n in range(len(result.node_use.resources)))
    use = replace(result.node_use, resources=names)
    lines = shown(replace(result, node_use=use), width=width).splitlines()

    assert max(map(len, lines)) <= width
    assert all("…" not in line for line in lines)
    assert sum("→" in line for line in lines) >= 3


def test_equally_frequent_reasons_are_sorted_by_name(result):
    reasons = summarize(replace(result, pending=pending_for("b", "a", "c", "c"))).reasons
    assert [entry.reason for entry in reasons] == ["c", "a", "b"]


def test_a_plugin_counts_once_for_each_pod(result):
    assert summarize(result).plugins == {"Fit": 2, "Taints": 1}


def test_the_document_is_json_with_the_figures_by_name(result):
    document = json.loads(json.dumps(summary_document(summarize(result))))
    assert (document["placed"], document["pending"], document["pods_per_s"]) == (3, 2, 10.0)
    assert document["timings_s"] == {"start": 1.2, "schedule": 0.5}
    first = {"reason": "Insufficient cpu", "pods": 2, "nodes": 4, "first": "default/p-4"}
    assert document["pending_reasons"][0] == first
    cpu = document["zones"]["zone-a"][0]
    assert (cpu["resource"], cpu["before_fraction"], cpu["after_fraction"]) == ("cpu", 0.0, 0.5)


def test_an_empty_run_has_a_document_too(empty_result):
    document = summary_document(summarize(empty_result))
    assert (document["placed"], document["pods_per_s"], document["zones"]) == (0, 0.0, {})


def test_the_terminal_shows_the_whole_summary(result):
    text = shown(result)
    assert "3 placed, 2 pending of 5 pods on 3 nodes (test)" in text
    assert "10 pods/s over 500 ms of scheduling; 2.0 s in all" in text
    assert "12 cores" in text
    assert "29.2%" in text
    assert "zone-a" in text
    assert "(none)" in text
    assert "Insufficient cpu" in text
    assert "schedule" in text


def test_brackets_in_a_reason_are_text_and_not_markup(result):
    assert "node(s) had [odd] taint" in shown(result)


def test_resources_and_zones_keep_their_names_on_a_narrow_terminal(result):
    text = shown(result, width=60)
    assert "cpu" in text
    assert "memory" in text
    assert "zone-a" in text


def test_a_fuller_bar_means_a_fuller_fleet(result):
    def bar_chars(summary_text):
        (line,) = [line for line in summary_text.splitlines() if line.startswith("cpu ")]
        return line.count("█")

    use = result.node_use
    full = replace(result, node_use=replace(use, after=use.allocatable))
    over = replace(result, node_use=replace(use, after=use.allocatable * 3))
    assert bar_chars(shown(result)) < bar_chars(shown(full)) == bar_chars(shown(over))


def test_an_empty_run_prints_no_tables_without_rows(empty_result):
    text = shown(empty_result)
    assert "0 placed, 0 pending of 0 pods on 0 nodes\n" in text
    assert "Why pods are pending" not in text
    assert "per zone" not in text
    assert "Where the time went" not in text


def test_phases_of_a_run_of_no_duration_have_empty_bars(result):
    assert "start" in shown(replace(result, elapsed_s=0.0))


def test_long_lists_are_cut_with_a_note(result):
    use = result.node_use
    many = replace(
        use,
        nodes=tuple(f"n-{index}" for index in range(30)),
        zones=tuple(f"zone-{index:02}" for index in range(30)),
        allocatable=use.allocatable.repeat(10, axis=0),
        before=use.before.repeat(10, axis=0),
        after=use.after.repeat(10, axis=0),
    )
    reasons = pending_for(*(f"reason {index:02}" for index in range(15)))
    text = shown(replace(result, node_use=many, pending=reasons))
    assert "… and 14 more zones" in text
    assert "… and 5 more reasons" in text
    assert "reason 12" not in text


RAY_NODES = (
    RayNodeUse("h1", "10.0.0.1", 4.0, 3.0, 2.26, ("control", "worker-0")),
    RayNodeUse("h2", "10.0.0.2", 2.0, 2.0, None, ("scheduler-0",)),
)


def test_processes_on_a_ray_cluster_are_listed_by_node(result):
    text = shown(replace(result, ray_nodes=RAY_NODES))
    rows = [line.split() for line in text.partition("Nodes of the Ray cluster")[2].splitlines()]

    assert ["h1", "10.0.0.1", "3", "of", "4", "2.3", "control,", "worker-0"] in rows
    assert ["h2", "10.0.0.2", "2", "of", "2", "-", "scheduler-0"] in rows
    assert "Nodes of the Ray cluster" not in shown(result)


def test_nodes_of_a_ray_cluster_are_in_the_document_of_runs_that_joined_one(result):
    document = summary_document(summarize(replace(result, ray_nodes=RAY_NODES)))

    assert json.loads(json.dumps(document))["ray_nodes"][0] == {
        "name": "h1",
        "address": "10.0.0.1",
        "cpus": 4.0,
        "free_cpus": 3.0,
        "load": 2.26,
        "processes": ["control", "worker-0"],
    }
    assert "ray_nodes" not in summary_document(summarize(result))


def test_nodes_of_a_ray_cluster_are_stored_with_the_outcome(tmp_path):
    data, digest = encode_outcome(RunOutcome((), (), 1.0, {}, ray_nodes=RAY_NODES))
    (tmp_path / OUTCOME).write_bytes(data)

    assert read_outcome(tmp_path, digest, ()).ray_nodes == RAY_NODES
