"""Flags of several concurrent schedulers, and the resulting settings."""

import pytest


@pytest.fixture
def settings(run, launcher, cluster, pods):
    """Return the settings of a run with these flags."""

    def call(*flags):
        result = run("schedule", "--cluster", cluster, "--pods", pods, *flags)
        assert result.exit_code == 0, result.output
        return launcher.plan.settings

    return call


@pytest.fixture
def refused(run, cluster, pods):
    """Return the error for wrong flags."""

    def call(*flags):
        result = run("schedule", "--cluster", cluster, "--pods", pods, *flags)
        assert result.exit_code == 2
        return " ".join(result.stderr.split())

    return call


def test_without_flags_there_is_one_exact_scheduler(settings):
    found = settings()

    assert (found.schedulers, found.concurrency) == (1, "exact")
    assert not found.decision_time.is_positive


def test_flags_name_mode_conflicts_transaction_and_staleness(settings):
    found = settings(
        *("--schedulers", "4", "--mode", "shared", "--conflicts", "version"),
        *("--transaction", "all-or-nothing", "--staleness", "0.5"),
    )

    assert (found.schedulers, found.concurrency, found.conflicts) == (4, "shared", "version")
    assert (found.transaction, found.staleness_s) == ("all-or-nothing", 0.5)


def test_flags_set_the_partition_policy_and_there_is_one_partition_per_scheduler(settings):
    found = settings(
        *("--schedulers", "3", "--mode", "partitioned"),
        *("--partition-policy", "adaptive", "--partition-refresh", "2"),
    )

    assert (found.partition_policy, found.partition_refresh_s) == ("adaptive", 2.0)
    assert found.partitions == 3


def test_workers_and_partitions_can_also_be_set_by_the_old_flag(settings):
    partitioned = ("--schedulers", "2", "--mode", "partitioned")

    assert settings("--workers", "3").workers == settings("--shards", "3").workers == 3
    assert settings(*partitioned, "--partitions", "5").partitions == 5
    assert settings(*partitioned, "--shards", "5").partitions == 5


def test_decision_time_can_be_set_for_each_kind_of_job(settings):
    found = settings("--decision-time", "service=10,0.5", "--decision-time", "batch=0.1,0.005")

    assert found.decision_time.of("service").of(2) == 11.0
    assert found.decision_time.of("batch").of(20) == pytest.approx(0.2)


def test_schedulers_can_be_set_for_each_profile(settings):
    found = settings("--schedulers", "default-scheduler=2")

    assert found.scheduler_profiles == ("default-scheduler",) * 2


def test_a_profile_without_a_scheduler_is_refused_before_the_run(run, cluster, pods, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: web}, {schedulerName: batch}]\n"
    )
    flags = ("--config", config, "--schedulers", "web=2")

    result = run("schedule", "--cluster", cluster, "--pods", pods, *flags)

    assert result.exit_code == 2
    assert 'Profile "batch": schedulers: names no scheduler for it' in result.stderr


def test_a_scheduler_for_an_unknown_profile_is_refused(refused):
    message = refused("--schedulers", "default-scheduler=1,web=1")

    assert 'Profile "web": schedulers: there is no such profile (there is default-sch' in message


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--schedulers", "four"), "'four' is neither a number nor PROFILE=N"),
        (("--schedulers", "web=1,web=2"), "'web=2' is not PROFILE=N, each profile once"),
        (("--schedulers", "=2"), "'=2' is not PROFILE=N"),
        (("--schedulers", "web=x"), "'x' is neither a number"),
        (("--decision-time", "batch=1"), "'batch=1' is not KIND=JOB_S,TASK_S"),
        (("--decision-time", "other=1,2"), "'other' is neither batch nor service"),
        (("--schedulers", "2", "--mode", "exact"), 'mode: "exact": is one logical scheduler'),
    ],
)
def test_invalid_flags_are_refused_with_an_explanation(refused, flags, message):
    assert message in refused(*flags)


def test_the_use_of_an_old_flag_is_reported_with_its_current_name(run, cluster, pods):
    stderr = run("schedule", "--cluster", cluster, "--pods", pods, "--shards", "3").stderr

    assert "--shards is the former name of --workers: use --workers 3" in stderr


def test_workers_without_work_are_reported(run, cluster, pods):
    how = ("schedule", "--cluster", cluster, "--pods", pods)

    assert "The workers (2) can only list the best nodes" in run(*how, "--workers", "2").stderr
    assert "workers:" not in run(*how).stderr
