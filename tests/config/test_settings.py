"""Roadstead's own settings: defaults, the file, flags that override it, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadstead.config.errors import ConfigError
from roadstead.config.files import MAX_TEXT_BYTES
from roadstead.config.settings import Settings, load_settings, load_settings_file
from roadstead.devices.gates import gates_of
from roadstead.protocol.errors import InputError


def test_the_defaults_apply_without_a_file_and_flags() -> None:
    settings = load_settings()

    assert settings == Settings()
    assert (settings.runtime, settings.schedulers, settings.batch) == ("ray", 1, 2048)
    assert (settings.seed, settings.tie_break, settings.journal) == (0, "random", None)


def test_flags_override_the_file_and_the_file_overrides_defaults() -> None:
    text = "runtime: inline\nworkers: 4\nseed: 7\ndeadlines: {call_s: 5, lease_s: 2.5}\n"
    flags = {"workers": 3, "seed": None, "deadlines.call_s": 9, "journal": "j"}

    settings = load_settings(text, overrides=flags)

    assert (settings.runtime, settings.workers, settings.seed) == ("inline", 3, 7)
    assert (settings.deadlines.call_s, settings.deadlines.lease_s) == (9.0, 2.5)
    assert settings.journal == Path("j")


def test_every_gate_of_claims_may_be_named_as_in_kube_scheduler() -> None:
    text = (
        "featureGates: {DRADeviceTaints: true, DynamicResourceAllocation: true, "
        "DRAResourceClaimDeviceStatus: true, DRASchedulerFilterTimeout: false}"
    )
    settings = load_settings(text)

    gates = gates_of(settings.feature_gates.items())
    assert (gates.taints, gates.filter_timeout) == (True, False)
    assert settings.model_dump(mode="json")["featureGates"]["DRADeviceTaints"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker: 2", "roadstead.yaml: worker: 2: unknown field"),
        ("workers: -1", "roadstead.yaml: workers: -1: must be at least 0"),
        ("workers: 2000", "roadstead.yaml: workers: 2000: must be at most 1024"),
        ("workers: two", 'roadstead.yaml: workers: "two": must be an integer'),
        ("shards: 2000", "roadstead.yaml: workers: 2000: must be at most 1024"),
        ("partitions: 0", "roadstead.yaml: partitions: 0: must be at least 1"),
        ("nodes_at: home", 'roadstead.yaml: nodes_at: "home": unknown field'),
        ("runtime: dask", "roadstead.yaml: runtime: \"dask\": must be 'ray' or 'inline'"),
        ("journal: ''", 'roadstead.yaml: journal: "": must be a path'),
        ("journal: 7", "roadstead.yaml: journal: 7: must be"),
        ("deadlines: {call_s: 0}", "roadstead.yaml: deadlines.call_s: 0: must be above 0"),
        ("deadlines: {call_s: .inf}", 'roadstead.yaml: line 1, column 21: ".inf" is not a'),
        ("deadlines: 5", "roadstead.yaml: deadlines: 5: must be a mapping"),
        ("bounds: {queue_max_pods: 1e12}", "roadstead.yaml: bounds.queue_max_pods: 10000"),
        ("seed: -1", "roadstead.yaml: seed: -1: must be at least 0"),
        ("seed: 9223372036854775808", "roadstead.yaml: seed: 9223372036854775808: does not fit"),
        (
            "feature_gates: {DRADeviceTaints: true}",
            "roadstead.yaml: feature_gates: dict of 1: is called featureGates, as in kube-schedule",
        ),
        ("featureGates: {DRA: true}", 'roadstead.yaml: featureGates.DRA.[key]: "DRA": must be '),
        ("featureGates: {DRADeviceTaints: maybe}", "roadstead.yaml: featureGates.DRADeviceTaints"),
        (
            "featureGates: {DynamicResourceAllocation: false}",
            "roadstead.yaml: featureGates.DynamicResourceAllocation: False: must be true: to ignor",
        ),
        (
            "featureGates: {DRAResourceClaimDeviceStatus: false}",
            "roadstead.yaml: featureGates.DRAResourceClaimDeviceStatus: False: must be true: witho",
        ),
        ("- a", "roadstead.yaml: list of 1: must be a mapping"),
        ("seed: 1\nseed: 2", 'roadstead.yaml: line 2, column 1: key "seed" is twice'),
    ],
)
def test_a_setting_out_of_range_is_refused_with_its_field(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(text)

    assert str(refused.value).startswith(message)


def test_a_flag_out_of_range_is_reported_as_a_flag() -> None:
    with pytest.raises(ConfigError, match="flags: batch: 0: must be at least 1"):
        load_settings("seed: 1", overrides={"batch": 0})


def test_settings_are_frozen_and_every_field_has_a_description() -> None:
    parts = [Settings, *(type(part) for part in (Settings().deadlines, Settings().bounds))]

    assert all(pod_class.description for part in parts for pod_class in part.model_fields.values())
    with pytest.raises(ValueError, match="frozen"):
        Settings().seed = 1  # type: ignore[misc]


def test_settings_file_is_read_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "roadstead.yaml"
    path.write_text("batch: 64")

    assert load_settings_file(path, overrides={"seed": 3}) == Settings(batch=64, seed=3)
    with pytest.raises(InputError, match="cannot be read"):
        load_settings_file(tmp_path / "none.yaml")


def test_a_settings_file_beyond_the_limit_is_not_read_completely(tmp_path: Path) -> None:
    path = tmp_path / "roadstead.yaml"
    path.write_text("#" * (MAX_TEXT_BYTES + 2))

    with pytest.raises(InputError, match=f"is larger than {MAX_TEXT_BYTES} bytes"):
        load_settings_file(path)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("", "exact"),
        ("schedulers: 2", "shared"),
        ("schedulers: {a: 1, b: 1}", "shared"),
        ("mode: shared", "shared"),
        ("mode: partitioned", "partitioned"),
    ],
)
def test_one_scheduler_is_exact_and_several_share_by_default(text: str, mode: str) -> None:
    assert load_settings(text).concurrency == mode


def test_schedulers_are_set_for_all_profiles_or_for_each() -> None:
    assert load_settings("schedulers: 3").scheduler_profiles == ("", "", "")

    settings = load_settings("schedulers: {web: 2, batch: 1}")

    assert settings.scheduler_profiles == ("web", "web", "batch")
    assert settings.scheduler_count == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schedulers: 0", "schedulers: 0: must be at least 1"),
        ("schedulers: many", 'schedulers: "many": must be an integer, or a mapping of profiles'),
        ("schedulers: true", "schedulers: True: must be an integer, or a mapping"),
        ("schedulers: {}", "schedulers: dict of 0: must name at least one profile"),
        ("schedulers: {'': 1}", "schedulers: dict of 1: must name at least one profile"),
        ("schedulers: {web: 0}", "schedulers: dict of 1: must be at least 1"),
        ("schedulers: {web: 200, batch: 57}", "schedulers: dict of 2: must be at most 256"),
        ("mode: partitioned\nschedulers: 0", "schedulers: 0: must be at least 1"),
        (
            "mode: exact\nschedulers: 4",
            'mode: "exact": is one logical scheduler, and there are 4: side by side they do not',
        ),
        ("staleness_s: 1", "staleness_s: 1.0: needs mode"),
        ("staleness_s: -1", "staleness_s: -1: must be at least 0"),
        (
            "mode: partitioned\nschedulers: 4\npartitions: 3",
            "partitions: 3: must be at least 4: 4 schedulers each own partitions",
        ),
        ("partition_policy: adaptive", 'partition_policy: "adaptive": needs mode "partitioned"'),
        ("partition_refresh_s: 2", 'partition_refresh_s: 2.0: needs mode "partitioned"'),
        ("decision_time: {batch: {job_s: -1}}", "decision_time.batch.job_s: -1: must be at least"),
        ("decision_time: {web: {}}", "decision_time.web: dict of 0: unknown field"),
        ("conflicts: coarse", "conflicts: \"coarse\": must be 'fit' or 'version'"),
    ],
)
def test_invalid_numbers_of_schedulers_are_refused_with_the_field(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(text)

    assert str(refused.value).startswith(f"roadstead.yaml: {message}")


def test_all_contradictions_are_reported_together() -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings("mode: exact\nschedulers: 2\nstaleness_s: 1\npartition_refresh_s: 2")

    assert [each.field for each in refused.value.problems] == [
        "mode",
        "staleness_s",
        "partition_refresh_s",
    ]


def test_a_partitioned_run_has_a_partition_for_each_scheduler_by_default() -> None:
    many = "mode: partitioned\nschedulers: {web: 3, batch: 5}"

    assert load_settings(many).partitions == 5
    assert load_settings(f"{many}\npartitions: 8").partitions == 8
    assert load_settings("mode: partitioned").partitions == 2
    assert load_settings("mode: partitioned", overrides={"schedulers": 4}).partitions == 4
    assert [load_settings(text).partition_count for text in (many, "partitions: 3")] == [5, 1]


@pytest.mark.parametrize(
    ("text", "flags", "workers", "partitions"),
    [
        ("shards: 3", {}, 3, 2),
        ("shards: 3\nnodes_at: workers", {}, 3, 2),
        ("shards: 3\nnodes_at: scheduler", {}, 0, 2),
        ("nodes_at: workers", {}, 0, 2),
        ("shards: 3\nmode: partitioned", {}, 0, 3),
        ("shards: 3\nnodes_at: scheduler\nmode: partitioned", {}, 0, 3),
        ("shards: 3", {"mode": "partitioned"}, 0, 3),
        ("shards: 3", {"workers": 4}, 4, 2),
        ("workers: 3", {"shards": 4}, 4, 2),
        ("mode: partitioned\nworkers: 1\npartitions: 3", {"shards": 4}, 1, 4),
    ],
)
def test_old_names_of_settings_are_accepted(
    text: str, flags: dict[str, object], workers: int, partitions: int
) -> None:
    settings = load_settings(text, overrides=flags)

    assert (settings.workers, settings.partitions) == (workers, partitions)


def test_decision_time_is_the_sum_for_the_job_and_each_of_its_pods() -> None:
    text = "decision_time: {service: {job_s: 10, task_s: 0.5}, profiles: {web: service}}"
    time = load_settings(text).decision_time

    assert time.of("service").of(4) == 12.0
    assert time.of("batch").of(4) == 0.0
    assert (time.is_positive, Settings().decision_time.is_positive) == (True, False)
