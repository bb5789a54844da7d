"""Settings of Ray: addresses, labels and reserved CPUs."""

import pytest

from roadstead.config.errors import ConfigError
from roadstead.config.settings import load_settings


def test_defaults_leave_the_choice_of_ray_to_the_run():
    ray = load_settings("").ray

    assert (ray.address, ray.cpus_per_process, ray.labels, ray.runtime_env) == (None, 1.0, {}, None)


def test_a_flag_replaces_the_address_of_the_file():
    text = "ray: {address: auto, cpus_per_process: 0.5, labels: {worker: {zone: a}}}"

    ray = load_settings(text, overrides={"ray.address": "10.0.0.1:6379"}).ray

    assert (ray.address, ray.cpus_per_process) == ("10.0.0.1:6379", 0.5)
    assert ray.labels == {"worker": {"zone": "a"}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('ray: {address: "ray://h:1"}', "ray.address.*Ray Client"),
        ('ray: {address: "https://h"}', "ray.address.*dashboard"),
        ("ray: {address: head}", "ray.address.*must be local, auto, or the HOST:PORT"),
        ("ray: {address: 'h h:1'}", "ray.address.*must be local"),
        ("ray: {address: '127.0.0.1:0'}", "ray.address.*port from 1 to 65535"),
        ("ray: {address: '127.0.0.1:99999'}", "ray.address.*port from 1 to 65535"),
        ("ray: {cpus_per_process: -1}", "ray.cpus_per_process"),
        ("ray: {metrics_interval_s: -1}", "ray.metrics_interval_s"),
        ("ray: {metrics_interval_s: 9999}", "ray.metrics_interval_s"),
        ("ray: {labels: {master: {}}}", "ray.labels.master"),
        ("ray: {namespace: ''}", "ray.namespace"),
        ("ray: {namespace: 'a b'}", "ray.namespace"),
        ('ray: {namespace: "a\\n"}', "ray.namespace"),
        (f"ray: {{namespace: {'n' * 64}}}", "ray.namespace"),
    ],
)
def test_a_wrong_value_is_named_with_its_rule(text, problem):
    with pytest.raises(ConfigError, match=problem):
        load_settings(text)


def test_a_namespace_is_taken_as_given():
    assert load_settings("ray: {namespace: team-a.runs_1}").ray.namespace == "team-a.runs_1"
    assert load_settings("").ray.namespace is None
