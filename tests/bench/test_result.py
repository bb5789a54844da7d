import json
from dataclasses import replace

import pytest

from roadstead.bench.machine import Machine
from roadstead.bench.metrics import BenchMetrics, KernelShare, WorkloadResult
from roadstead.bench.result import compare, headline, read_result, result_document
from roadstead.protocol.errors import InputError

FIGURES = BenchMetrics(
    "Case/small", 3, 10, 10, 0.5, 20.0, 0.2, 0.4, 0.1, 0.05, 1 << 20, 2, 1.0, 0.7, 40.0,
    {"control": 40.0, "driver": 2.5}, {"binder: bind": 0.5}, KernelShare(8, {"NodePorts": 2}),
)  # fmt: skip
MACHINE = Machine("CPU", 2, 1 << 30, "Linux", "3.11")


def document(*outcomes, machine=MACHINE, settings=None):
    outcomes = outcomes or (WorkloadResult(FIGURES, (20.0,)),)
    return result_document(
        outcomes,
        machine=machine,
        commit="abc",
        version="1.0",
        command=("roadstead", "bench"),
        settings=settings or {"workers": 2},
    )


def rated(rate, name="Case/small", rates=None):
    return WorkloadResult(replace(FIGURES, name=name, pods_per_s=rate), rates or (rate,))


def changed(before, after):
    found = compare(document(before), document(after))
    return {each.metric: each for each in found.changes}["pods_per_s"]


def test_the_document_has_all_figures_with_machine_commit_command_and_settings():
    found = json.loads(json.dumps(document()))

    (result,) = found["results"]
    assert found["pods_per_s"] == result["pods_per_s"] == 20.0
    assert result["kernel"] == {"pods": 8, "share": 0.8, "reference": {"NodePorts": 2}}
    assert result["shares"] == {"binder: bind": 0.5}
    assert (found["commit"], found["machine"]["cores"]) == ("abc", 2)
    assert found["command"] == ["roadstead", "bench"]
    assert found["settings"] == {"workers": 2}
    assert result["latency_p99_s"] == 0.4
    assert result["peak_bytes"] == 1 << 20
    assert result["critical_us_per_pod"] == 40.0
    assert result["process_us_per_pod"] == {"control": 40.0, "driver": 2.5}


def test_several_workloads_have_no_common_rate():
    found = document(rated(1.0), rated(2.0, "Case/other"))

    assert "pods_per_s" not in found
    assert [each["pods_per_s"] for each in found["results"]] == [1.0, 2.0]


def test_a_written_result_can_be_read_again(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document()))

    assert read_result(path)["results"][0]["name"] == "Case/small"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not what roadstead bench --json writes"),
        ('{"bench_version": 2}', "is not what roadstead bench --json writes"),
        ('{"bench_version": 1}', "must hold results"),
        ('{"bench_version": 1, "results": [3]}', "must hold results"),
        ('{"bench_version": 1, "results": [{"name": "x"}]}', "must hold results"),
        ('{"bench_version": 1, "results": [{"name": "x", "pods_per_s": true}]}', "must hold"),
        (json.dumps(document()).replace("20.0", "NaN"), "must hold results"),
        (json.dumps(document()).replace("20.0", "1" + 400 * "0"), "must hold results"),
    ],
)
def test_other_files_are_refused(tmp_path, text, rule):
    path = tmp_path / "old.json"
    path.write_text(text)

    with pytest.raises(InputError, match=rule):
        read_result(path)


def test_a_higher_rate_is_better_and_more_memory_is_worse():
    more = WorkloadResult(replace(FIGURES, pods_per_s=40.0, peak_bytes=2 << 20), (40.0,))

    found = {each.metric: each for each in compare(document(), document(more)).changes}

    assert found["pods_per_s"].better is True
    assert found["pods_per_s"].factor == 2.0
    assert found["peak_bytes"].better is False
    assert found["latency_p50_s"].better is None


def test_a_difference_within_the_spread_of_the_runs_counts_as_equal():
    assert changed(rated(100.0), rated(101.0)).better is None
    assert changed(rated(100.0), rated(90.0)).better is False
    assert changed(rated(100.0, rates=(90.0, 110.0)), rated(90.0)).better is None


def test_a_value_of_zero_has_no_factor():
    assert changed(rated(0.0), rated(5.0)).factor == 0.0


def test_missing_workloads_and_another_machine_are_reported():
    other = replace(MACHINE, cores=64)

    found = compare(document(machine=other), document(rated(1.0), rated(2.0, "Case/other")))

    assert found.missing == ("Case/other",)
    assert not found.same_machine
    assert compare(document(), document()).same_machine


def test_settings_that_differ_are_reported():
    old, new = {"workers": 2, "batch": 8, "gone": 1}, {"workers": 3, "batch": 8, "added": 1}

    found = compare(document(settings=old), document(settings=new))

    assert found.settings == ("workers",)
    assert compare(document() | {"settings": None}, document()).settings == ()


def test_the_headline_has_bound_pods_all_pods_and_duration():
    assert headline(FIGURES) == "Case/small: 20 pods/s (10 of 10 pods in 0.50 s)"
