"""The examples of the documentation run, and pass the checks of `roadstead plugin test`."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from roadstead.api.plugin_choice import choose_plugins, load_with
from roadstead.framework.plugin import Handle
from roadstead.nodes.pod_class import PodClasses
from roadstead.testing import ask, check_plugin, node, pod

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
GPU = "alibabacloud.com/gpu-milli"
HANDLE = Handle(PodClasses())
ARGS = {"typical": [[4000, 1000, 3], [4000, 500, 1]]}


@pytest.fixture(autouse=True)
def _found(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(EXAMPLES)])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def gpu_node(name, gpu, cpu_milli=16_000):
    return node(name, cpu_milli=cpu_milli, resources={GPU: gpu})


def gpu_pod(gpu, cpu_milli=4000):
    return pod(cpu_milli=cpu_milli, resources={GPU: gpu})


def test_fgd_uses_resources_that_others_can_not_use():
    fleet = {gpu_node("whole", 1000): [], gpu_node("half", 1000): [gpu_pod(500)]}

    result = ask("fgd:FGD", gpu_pod(500), fleet, ARGS)

    assert result.raw == (-3 * 500, 3 * 500)
    assert result.scores == (0, 100)


def test_fgd_counts_gpus_without_enough_cpu_as_fragments():
    fleet = {gpu_node("poor", 2000, cpu_milli=4000): [], gpu_node("rich", 2000): []}

    result = ask("fgd:FGD", pod(cpu_milli=1000), fleet, ARGS)

    assert result.raw == (-4 * 2000, 0)
    assert result.scores == (0, 100)


def test_fgd_has_no_preference_among_equal_nodes():
    fleet = {gpu_node("one", 1000): [], gpu_node("two", 1000): []}

    assert ask("fgd:FGD", gpu_pod(1000), fleet, ARGS).scores == (0, 0)


def test_fgd_passes_every_check():
    check_plugin("fgd:FGD", ARGS)


def test_the_configuration_of_fgd_is_valid():
    text = (EXAMPLES / "fgd.yaml").read_text()

    loaded = load_with(choose_plugins(["fgd:FGD"], text), text, "fgd.yaml")

    assert [ref.name for ref in loaded.config.profiles[0].at("score")] == ["FGD"]
    typical = yaml.safe_load(text)["profiles"][0]["pluginConfig"][0]["args"]["typical"]
    assert sum(how_many for _, _, how_many in typical) <= 10_000


def test_the_six_typical_pods_are_the_most_frequent():
    six, whole = (
        yaml.safe_load((EXAMPLES / name).read_text()) for name in ("fgd-six.yaml", "fgd.yaml")
    )
    typical = whole["profiles"][0]["pluginConfig"][0]["args"]

    assert typical["typical"] == sorted(typical["typical"], key=lambda pod: -pod[2])
    typical["typical"] = typical["typical"][:6]
    assert six == whole


def test_the_gang_of_the_documentation_has_a_valid_configuration():
    text = (EXAMPLES / "gangs.yaml").read_text()

    config = load_with(choose_plugins([], text), text, "gangs.yaml").config

    for point in ("queueSort", "permit", "reserve", "preFilter", "postFilter"):
        assert "Coscheduling" in [ref.name for ref in config.profiles[0].at(point)]


def test_fgd_of_gpus_counts_the_free_share_of_single_gpus():
    fgd_gpus = importlib.import_module("fgd_gpus")
    plugin = fgd_gpus.FGDofGPUs(
        fgd_gpus.Arguments(typical=((4000, 1000, 3), (4000, 500, 1))), HANDLE
    )
    # GPUs by node: one whole and one half; two halves; a whole one without CPUs for it.
    gpus, cpu = np.array([[1000, 500, 1000], [500, 500, 0]]), np.array([16_000, 16_000, 2000])

    after = fgd_gpus.less(gpus, 500)

    assert after.tolist() == [[500, 0, 500], [500, 500, 0]]
    assert plugin.fragments(cpu, gpus).tolist() == [3 * 500, 3 * 1000, 4 * 1000]
    assert plugin.fragments(cpu, after).tolist() == [3 * 1000, 3 * 500, 4 * 500]


def test_fgd_of_gpus_serves_wholes_by_whole_gpus():
    fgd_gpus = importlib.import_module("fgd_gpus")
    gpus = np.array([[300], [1000], [1000]])

    assert fgd_gpus.less(gpus, 1500).tolist() == [[300], [0], [500]]


def test_the_configurations_of_both_fgds_have_the_same_typical_pods():
    ours, theirs = (
        yaml.safe_load((EXAMPLES / name).read_text())["profiles"][0]["pluginConfig"][0]["args"]
        for name in ("fgd_gpus.yaml", "fgd.yaml")
    )

    assert ours == theirs


LARGEST = {"largest": {"cpu": 16_000, GPU: 2000}}


def test_dotprod_prefers_the_node_with_less_of_the_requested_resources():
    fleet = {gpu_node("full", 2000): [gpu_pod(1000)], gpu_node("empty", 2000): []}

    result = ask("dotprod:DotProd", gpu_pod(1000), fleet, LARGEST)

    # 12 of 16 CPUs are free times 4 of 16, and half of the GPUs times half; or all of both.
    assert result.scores == (100 - (18.75 + 25) // 2, 100 - (25 + 50) // 2)


def test_dotprod_ignores_resources_that_the_pod_does_not_request():
    fleet = {gpu_node("none", 0): [], gpu_node("two", 2000): []}

    first, second = ask("dotprod:DotProd", pod(cpu_milli=4000), fleet, LARGEST).scores

    assert first == second


def test_bestfit_prefers_the_node_with_less_left():
    fleet = {gpu_node("large", 2000): [gpu_pod(1000)], gpu_node("small", 1000): []}

    result = ask("bestfit:BestFit", gpu_pod(1000), fleet, LARGEST)

    # Both have no GPU left; 8 and 12 of 16 CPUs.
    assert result.scores == (75, 63)


def test_dotprod_passes_every_check():
    check_plugin("dotprod:DotProd", LARGEST)


def test_the_configuration_of_dotprod_is_valid():
    text = (EXAMPLES / "dotprod.yaml").read_text()

    loaded = load_with(choose_plugins(["dotprod:DotProd"], text), text, "dotprod.yaml")

    assert [ref.name for ref in loaded.config.profiles[0].at("score")] == ["DotProd"]


def test_the_configuration_of_bestfit_is_that_of_dotprod():
    text = (EXAMPLES / "bestfit.yaml").read_text()

    loaded = load_with(choose_plugins(["bestfit:BestFit"], text), text, "bestfit.yaml")

    assert [ref.name for ref in loaded.config.profiles[0].at("score")] == ["BestFit"]
    assert text == (EXAMPLES / "dotprod.yaml").read_text().replace("DotProd", "BestFit")
