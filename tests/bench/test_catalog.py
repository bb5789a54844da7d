import pytest

from roadstead.bench.catalog import built_in, choose, of_file
from roadstead.bench.script import SteadyPods, SubmitPods
from roadstead.protocol.errors import InputError
from tests.bench.cases import NODES, PODS, case, measured_pods, node_count, write_cases

ENTRIES = built_in()

SIZES = {
    # Name → numbers of nodes and of measured pods, as in scheduler_perf 1.34.
    "SchedulingBasic/5000Nodes_10000Pods": (5_000, 10_000),
    "SchedulingBasic/5000Nodes_50000Pods": (5_000, 50_000),
    "SchedulingPodAntiAffinity/5000Nodes_2000Pods": (5_000, 2_000),
    "SchedulingPodMatchingAntiAffinity/5000Nodes_5000Pods": (5_000, 5_000),
    "SchedulingPodAffinity/5000Nodes_5000Pods": (5_000, 5_000),
    "SchedulingPreferredPodAffinity/5000Nodes_5000Pods": (5_000, 5_000),
    "SchedulingPreferredPodAntiAffinity/5000Nodes_5000Pods": (5_000, 5_000),
    "SchedulingNodeAffinity/5000Nodes_10000Pods": (5_000, 10_000),
    "TopologySpreading/5000Nodes_5000Pods": (5_000, 5_000),
    "PreferredTopologySpreading/5000Nodes_5000Pods": (5_000, 5_000),
    "SchedulingWithNodeInclusionPolicy/5000Nodes": (5_000, 4_000),
    "DefaultTopologySpreading/5000Nodes_50000Pods": (5_000, 50_000),
    "MixedSchedulingBasePod/5000Nodes_5000Pods": (5_000, 5_000),
    "SchedulingRequiredPodAntiAffinityWithNSSelector/5000Nodes_2000Pods": (6_000, 2_000),
    "SchedulingPreferredAntiAffinityWithNSSelector/5000Nodes_2000Pods": (5_000, 2_000),
    "SchedulingRequiredPodAffinityWithNSSelector/5000Nodes_2000Pods": (5_000, 2_000),
    "SchedulingPreferredAffinityWithNSSelector/5000Nodes_5000Pods": (5_000, 5_000),
    "PreemptionBasic/1000Nodes": (1_000, 1_000),
    "PreemptionAsync/5000Nodes": (5_000, 5_000),
    "Unschedulable/5kNodes/100Init/10kPods": (5_000, 10_000),
    "SchedulingWithMixedChurn/5000Nodes_10000Pods": (5_000, 10_000),
    "SchedulingDaemonset/15000Nodes": (15_001, 30_000),
    "SchedulingWithExtendedResource/5000pods_5000nodes": (5_000, 5_000),
    "SchedulingSecrets/5000Nodes_10000Pods": (5_000, 10_000),
    "SchedulingInTreePVs/5000Nodes_2000Pods": (5_000, 2_000),
    "SchedulingCSIPVs/5000Nodes_5000Pods": (5_000, 5_000),
    "SchedulingWhileGated/1Node_10000GatedPods": (1, 20_000),
    "TenClasses/1000000Nodes_1000000Pods": (1_000_000, 1_000_000),
    "AllDistinct/50000Nodes_10000Pods": (50_000, 10_000),
    "Million/1000000Nodes_1000000Pods": (1_000_000, 1_000_000),
}


def names(*wanted):
    return [each.name for each in choose(ENTRIES, wanted)]


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_workloads_have_upstreams_names_and_sizes(name, size):
    (entry,) = choose(ENTRIES, [name])

    script = entry.make()

    assert entry.is_measured
    assert script.name == name
    assert (node_count(script), measured_pods(script)) == size


def test_the_name_of_a_case_selects_its_first_measured_workload():
    assert names("SchedulingBasic") == ["SchedulingBasic/5000Nodes_10000Pods"]
    assert names("TenClasses", "openb") == ["TenClasses/5000Nodes_50000Pods", "openb"]


def test_case_hyphens_and_a_leading_scheduling_do_not_matter():
    assert names("ten-classes") == names("TenClasses")
    assert names("CSIPVs", "ExtendedResource") == [
        "SchedulingCSIPVs/5000Nodes_5000Pods",
        "SchedulingWithExtendedResource/5000pods_5000nodes",
    ]
    assert names("podaffinity/500Nodes") == ["SchedulingPodAffinity/500Nodes"]


def test_a_pattern_selects_several_workloads_and_each_runs_once():
    assert len(names("Preemption*")) == 2
    assert names("SchedulingBasic/*Pods", "SchedulingBasic") == [
        "SchedulingBasic/5000Nodes_10000Pods",
        "SchedulingBasic/5000Nodes_50000Pods",
    ]


def test_an_unknown_name_is_reported_with_similar_names():
    with pytest.raises(InputError, match=r"did you mean SchedulingBasic"):
        names("SchedulngBasic")
    with pytest.raises(InputError, match=r"did you mean 5000Nodes"):
        names("SchedulingBasic/5000Node")
    with pytest.raises(InputError, match=r"--list shows them all"):
        names("zzz")


def test_every_small_workload_can_be_built():
    small = [
        each for each in ENTRIES if each.workload.startswith(("5N", "10N", "fast", "1Node_10G"))
    ]

    scripts = [each.make() for each in small]

    assert len(scripts) >= 26
    assert all(any(map(_is_measured, made.steps)) for made in scripts)


def test_openb_needs_its_trace():
    (entry,) = choose(ENTRIES, ["openb"])

    with pytest.raises(InputError, match="flags: --openb: is required for openb"):
        entry.make()


def test_openb_is_read_from_its_path(tmp_path):
    (entry,) = choose(built_in(openb_path=tmp_path / "none.trace"), ["openb"])

    with pytest.raises(InputError, match=r"none.trace"):
        entry.make()


def test_workloads_of_a_users_file_can_be_selected(tmp_path):
    measured = case(NODES, PODS, name="B")
    measured["workloads"].append(
        {**measured["workloads"][0], "name": "x", "labels": ["performance"]}
    )

    entries = of_file(write_cases(tmp_path, case(NODES, PODS, name="A"), measured))

    assert [each.name for each in entries] == ["A/small", "B/small", "B/x"]
    assert [each.is_default for each in entries] == [True, False, True]
    assert [each.is_measured for each in entries] == [False, False, True]


def _is_measured(step):
    return isinstance(step, SteadyPods) or (isinstance(step, SubmitPods) and step.measured)
