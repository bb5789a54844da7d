"""Our own settings: defaults, the file, flags over it, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadstead.config.errors import ConfigError
from roadstead.config.settings import Settings, load_settings, load_settings_file
from roadstead.protocol.errors import InputError


def test_nothing_given_means_the_defaults() -> None:
    settings = load_settings()

    assert settings == Settings()
    assert (settings.runtime, settings.schedulers, settings.batch) == ("ray", 1, 2048)
    assert (settings.seed, settings.tie_break, settings.journal) == (0, "random", None)


def test_flags_win_over_the_file_and_the_file_over_defaults() -> None:
    text = "runtime: inline\nshards: 4\nseed: 7\ndeadlines: {call_s: 5, lease_s: 2.5}\n"
    flags = {"shards": 3, "seed": None, "deadlines.call_s": 9, "journal": "j"}

    settings = load_settings(text, overrides=flags)

    assert (settings.runtime, settings.shards, settings.seed) == ("inline", 3, 7)
    assert (settings.deadlines.call_s, settings.deadlines.lease_s) == (9.0, 2.5)
    assert settings.journal == Path("j")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shard: 2", "roadstead.yaml: shard: 2: unknown field"),
        ("shards: 0", "roadstead.yaml: shards: 0: must be at least 1"),
        ("shards: 2000", "roadstead.yaml: shards: 2000: must be at most 1024"),
        ("shards: two", 'roadstead.yaml: shards: "two": must be an integer'),
        ("runtime: dask", "roadstead.yaml: runtime: \"dask\": must be 'ray' or 'inline'"),
        ("journal: ''", 'roadstead.yaml: journal: "": must be a path'),
        ("journal: 7", "roadstead.yaml: journal: 7: must be"),
        ("deadlines: {call_s: 0}", "roadstead.yaml: deadlines.call_s: 0: must be above 0"),
        ("deadlines: {call_s: .inf}", 'roadstead.yaml: line 1, column 21: ".inf" is not a'),
        ("deadlines: 5", "roadstead.yaml: deadlines: 5: must be a mapping"),
        ("bounds: {queue_max_pods: 1e12}", "roadstead.yaml: bounds.queue_max_pods: 10000"),
        ("seed: -1", "roadstead.yaml: seed: -1: must be at least 0"),
        ("seed: 9223372036854775808", "roadstead.yaml: seed: 9223372036854775808: does not fit"),
        ("- a", "roadstead.yaml: list of 1: must be a mapping"),
        ("seed: 1\nseed: 2", 'roadstead.yaml: line 2, column 1: key "seed" stands twice'),
    ],
)
def test_setting_out_of_range_is_refused_with_its_field(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(text)

    assert str(refused.value).startswith(message)


def test_flag_out_of_range_is_told_as_a_flag() -> None:
    with pytest.raises(ConfigError, match="flags: batch: 0: must be at least 1"):
        load_settings("seed: 1", overrides={"batch": 0})


def test_settings_are_frozen_and_every_field_says_what_it_does() -> None:
    parts = [Settings, *(type(part) for part in (Settings().deadlines, Settings().bounds))]

    assert all(info.description for part in parts for info in part.model_fields.values())
    with pytest.raises(ValueError, match="frozen"):
        Settings().seed = 1  # type: ignore[misc]


def test_settings_file_is_read_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "roadstead.yaml"
    path.write_text("batch: 64")

    assert load_settings_file(path, overrides={"seed": 3}) == Settings(batch=64, seed=3)
    with pytest.raises(InputError, match="cannot be read"):
        load_settings_file(tmp_path / "none.yaml")
