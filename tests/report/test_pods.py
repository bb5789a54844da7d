"""The placements of pods, pod by pod and by workload, and in formats for other programs."""

import csv
import io
from dataclasses import replace

import pytest
import yaml
from rich.console import Console

from roadstead.cli.result_forms import print_in_form
from roadstead.config.yaml_text import yaml_text
from roadstead.facts.pod import Owner, PodFacts, identity_of
from roadstead.report import pods as pods_module
from roadstead.report.pod_forms import write_csv, write_names
from roadstead.report.pods import (
    PodLine,
    bindings,
    pod_lines,
    pods_document,
    workload_of,
    workloads,
)
from roadstead.report.result import PendingPod, PreemptedPod
from roadstead.report.summary import summarize
from roadstead.report.tables import table_rows
from roadstead.report.terminal import print_pods, print_summary


def owned(kind="", name="", **labels):
    owner = Owner(kind, name, f"uid-{name}") if kind else None
    named = tuple((key.replace("_", "-"), value) for key, value in labels.items())
    return PodFacts(owner=owner, labels=named)


def of_result(*facts):
    """Return pods p-0, p-1, … as the fixture's run has them: 0 to 2 placed, 3 and 4 pending."""
    return [(identity_of(f"u-{n}", f"default/p-{n}"), each) for n, each in enumerate(facts)]


WEB, DB = owned("StatefulSet", "web"), owned("Job", "db")


@pytest.mark.parametrize(
    ("facts", "workload"),
    [
        (owned(), ""),
        (owned("StatefulSet", "db"), "StatefulSet default/db"),
        (owned("ReplicaSet", "web-5d8f", pod_template_hash="5d8f"), "Deployment default/web"),
        (owned("ReplicaSet", "web-5d8f"), "ReplicaSet default/web-5d8f"),
        (owned("ReplicaSet", "web5d8f", pod_template_hash="5d8f"), "ReplicaSet default/web5d8f"),
        (owned("Job", "web-5d8f", pod_template_hash="5d8f"), "Job default/web-5d8f"),
        (replace(owned("Job", "x"), namespace="b"), "Job b/x"),
    ],
)
def test_the_owner_of_a_pod_is_its_workload(facts, workload):
    assert workload_of(facts) == workload


def test_each_pod_has_its_node_or_its_pending_reason(result):
    result = replace(
        result,
        pending=(PendingPod("default/p-3", "u-3", "no room"),),
        preempted=(PreemptedPod("default/p-4", "u-4", "n-1", "default/p-0"),),
    )

    lines = list(pod_lines(of_result(WEB, WEB, owned(), DB, DB), result))

    assert lines == [
        PodLine("default/p-0", "StatefulSet default/web", "n-0", ""),
        PodLine("default/p-1", "StatefulSet default/web", "n-1", ""),
        PodLine("default/p-2", "", "n-0", ""),
        PodLine("default/p-3", "Job default/db", "", "no room"),
        PodLine("default/p-4", "Job default/db", "", "preempted by default/p-0"),
    ]


def test_workloads_count_their_pods_by_node(result):
    gone = (PreemptedPod("default/p-4", "u-4", "n-1", "default/p-0"),)

    web, bare, db = workloads(of_result(WEB, WEB, owned(), DB, DB), replace(result, preempted=gone))

    assert web.document() == {
        "workload": "StatefulSet default/web",
        "placed": 2,
        "pending": 0,
        "preempted": 0,
        "not_created": 0,
        "nodes": {"n-0": 1, "n-1": 1},
    }
    assert (bare.name, bare.placed, bare.pending) == ("Pod default/p-2", 1, 0)
    assert (db.name, db.placed, db.pending, db.preempted) == ("Job default/db", 0, 1, 1)


def test_many_pods_without_an_owner_are_one_workload(result, monkeypatch):
    monkeypatch.setattr(pods_module, "BARE_PODS_MAX", 2)

    (bare, web) = workloads(of_result(owned(), owned(), owned(), WEB), result)

    assert (bare.name, bare.placed, web.pending) == ("Pods without a controller", 3, 1)


def shown(result, pods, width=80):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_summary(console, summarize(result), workloads(pods, result))
    print_pods(console, pod_lines(pods, result))
    return console.file.getvalue()


def test_the_terminal_shows_the_nodes_of_workloads_and_pods(result):
    text = shown(result, of_result(WEB, WEB, WEB, DB, DB))

    words = [" ".join(line.split()) for line in text.splitlines()]
    assert "StatefulSet default/web 3 0 n-0 (2), n-1" in words
    assert "Job default/db 0 2" in words
    assert "default/p-1 n-1 StatefulSet default/web" in words
    assert any(line.startswith("default/p-4 0/3 nodes") for line in words)


def test_the_terminal_counts_preempted_pods_if_there_are_any(result):
    gone = (PreemptedPod("default/p-4", "u-4", "n-1", "default/p-0"),)
    pods = of_result(WEB, WEB, WEB, DB, DB)

    text = shown(replace(result, preempted=gone), pods, 200)

    words = [" ".join(line.split()) for line in text.splitlines()]
    assert "workload placed pending preempted nodes" in words
    assert "Job default/db 0 1 1" in words
    assert "workload placed pending nodes" in [
        " ".join(line.split()) for line in shown(result, pods, 200).splitlines()
    ]


def test_the_first_of_many_workloads_and_nodes_are_shown(result):
    pods = of_result(*(owned("Job", f"j{n}") for n in range(30)))
    assert "… and 10 more workloads; -o wide shows every pod" in " ".join(
        shown(result, pods).split()
    )

    placed = [replace(result.placements[0], uid=f"u-{n}", node=f"m-{n % 10}") for n in range(11)]
    text = shown(replace(result, placements=tuple(placed)), of_result(*[WEB] * 11), 200)
    assert "10 nodes, at most 2 on one" in text


def test_the_terminal_shows_scores_of_pods_with_a_score(result):
    first, *rest = result.placements
    scored = replace(result, placements=(replace(first, score=1250), *rest))

    text = shown(scored, of_result(WEB, WEB, WEB, DB, DB), 200)

    words = [" ".join(line.split()) for line in text.splitlines()]
    assert "default/p-1 n-1 1,250 StatefulSet default/web" in words
    assert "default/p-0 n-0 StatefulSet default/web" in words


def test_scores_are_not_in_the_file_of_placements(result):
    """The file is equal for a seed, whichever schedulers are left at the end of the run."""
    scored = [replace(each, score=7) for each in result.placements]

    rows = table_rows(replace(result, placements=tuple(scored)), "placements")

    assert rows == table_rows(result, "placements")


def test_names_of_pods_are_never_cut_or_split(result):
    name = "default/" + "a" * 60
    pods = [(identity_of("u-3", name), DB)]
    assert name in shown(result, pods)


LINES = [PodLine("default/a", "", "n-1", "", 1250), PodLine("b/c", 'Job "x"', "", "no, room")]


def written(write, what):
    out = io.StringIO()
    write(what, out)
    return out.getvalue()


def test_csv_has_a_header_and_every_pod():
    rows = list(csv.reader(io.StringIO(written(write_csv, LINES))))
    assert rows == [
        ["pod", "workload", "node", "reason", "score"],
        ["default/a", "", "n-1", "", "1250"],
        ["b/c", 'Job "x"', "", "no, room", ""],
    ]


def test_names_are_printed_with_the_node_of_each_pod():
    assert written(write_names, LINES) == "default/a n-1\nb/c\n"


def test_yaml_has_the_document_in_its_order(result):
    pods = of_result(WEB, DB)
    document = pods_document(pod_lines(pods, result), workloads(pods, result))
    text = yaml_text(document, sort_keys=False)

    assert yaml.safe_load(text) == document
    assert text.startswith("workloads:\n- workload: StatefulSet default/web\n  placed: 1\n")


def test_names_that_go_would_read_as_numbers_are_printed_in_quotes(result, capsys):
    pods = [(identity_of("u-0", "y/1e3"), owned())]

    print_in_form("bindings", result, pods)

    assert '  metadata:\n    name: "1e3"\n    namespace: "y"\n' in capsys.readouterr().out


def test_bindings_are_printed_for_existing_pods_and_pods_with_their_own_names(result):
    stored, alone = (identity_of("u-0", "default/web-1"), WEB), (identity_of("u-2", "b/p"), owned())
    made = identity_of("default/web-2", "default/web-2"), WEB
    placements = (*result.placements, replace(result.placements[0], uid="default/web-2"))

    document, left_out = bindings(
        [stored, alone, made, (identity_of("u-3", "default/p-3"), DB)],
        replace(result, placements=placements),
    )

    assert left_out == 1
    assert document["kind"] == "List"
    assert document["items"] == [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n-0"},
        }
        for namespace, name in (("default", "web-1"), ("b", "p"))
    ]
