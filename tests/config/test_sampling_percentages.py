"""The profiles that sample nodes: those whose document sets a percentage."""

import pytest

from roadstead.config.load import load_config
from roadstead.config.model import default_config

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def shares(text: str) -> dict[str, int]:
    return load_config(HEAD + text, source="x").config.sampling_percentages()


def test_the_default_configuration_samples_nothing() -> None:
    assert default_config().sampling_percentages() == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("percentageOfNodesToScore: null", {}),
        ("percentageOfNodesToScore: 100", {}),
        ("percentageOfNodesToScore: 0", {"default-scheduler": 0}),
        ("percentageOfNodesToScore: 99", {"default-scheduler": 99}),
    ],
)
def test_only_a_written_percentage_is_used(text: str, found: dict[str, int]) -> None:
    assert shares(text) == found


def test_the_percentage_of_a_profile_overrides_that_of_the_document() -> None:
    profiles = """
profiles:
- {schedulerName: a, percentageOfNodesToScore: 30}
- {schedulerName: b, percentageOfNodesToScore: 100}
- {schedulerName: c}
"""

    assert shares(profiles) == {"a": 30}
    assert shares("percentageOfNodesToScore: 0" + profiles) == {"a": 30, "c": 0}
