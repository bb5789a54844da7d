"""Every preset loads and does what its name promises."""

from __future__ import annotations

import pytest

from roadstead.config.model import SchedulerConfig, default_config
from roadstead.config.plugin_args import NodeResourcesFitArgs
from roadstead.config.presets import list_presets, load_preset, preset_text
from roadstead.protocol.errors import InputError


def fit_of(config: SchedulerConfig) -> NodeResourcesFitArgs:
    args = config.profiles[0].args["NodeResourcesFit"]
    assert isinstance(args, NodeResourcesFitArgs)
    return args


def weight_of(config: SchedulerConfig, plugin: str) -> int:
    return next(ref.weight for ref in config.profiles[0].at("score") if ref.name == plugin)


def test_presets_are_listed_by_name() -> None:
    assert list_presets() == ("binpack", "default", "gpu-binpack", "spread")


@pytest.mark.parametrize("name", list_presets())
def test_a_preset_describes_itself_and_keeps_every_default_filter(name: str) -> None:
    config = load_preset(name).config

    assert preset_text(name).startswith("# ")
    assert config.profiles[0].at("filter") == default_config().profiles[0].at("filter")


def test_default_preset_is_the_default_configuration() -> None:
    assert load_preset("default").config == default_config()


def test_binpack_prefers_full_nodes_above_all() -> None:
    config = load_preset("binpack").config

    assert fit_of(config).scoring_strategy.type == "MostAllocated"
    assert weight_of(config, "NodeResourcesFit") == 5


def test_spread_prefers_empty_nodes_more_than_the_default() -> None:
    config = load_preset("spread").config

    assert fit_of(config).scoring_strategy.type == "LeastAllocated"
    assert weight_of(config, "NodeResourcesFit") > weight_of(default_config(), "NodeResourcesFit")


def test_gpu_binpack_scores_rise_with_the_use_of_an_extended_resource() -> None:
    strategy = fit_of(load_preset("gpu-binpack").config).scoring_strategy

    assert strategy.requested_to_capacity_ratio is not None
    scores = [point.score for point in strategy.requested_to_capacity_ratio.shape]
    assert scores == sorted(scores)
    assert strategy.resources[0].name == "nvidia.com/gpu"


@pytest.mark.parametrize("name", ["", "../default", "nope", "x" * 10_000])
def test_an_unknown_preset_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InputError, match="there are: binpack") as refused:
        load_preset(name)

    assert len(str(refused.value)) < 300
