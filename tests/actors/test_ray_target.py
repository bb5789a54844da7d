"""The choice of the Ray of a run, and the environment of a Ray of its own."""

import pytest

from roadstead.actors.runtime.ray_target import RayTarget, own_environment, target_of
from roadstead.config.ray import RayOptions
from roadstead.protocol.errors import InputError


@pytest.mark.parametrize(
    ("address", "initialized", "environ", "expected"),
    [
        (None, None, {}, "local"),
        (None, None, {"RAY_ADDRESS": ""}, "local"),
        (None, None, {"RAY_ADDRESS": "10.0.0.1:6379"}, "10.0.0.1:6379"),
        (None, None, {"RAY_ADDRESS": "auto"}, "auto"),
        ("h:1", None, {"RAY_ADDRESS": "10.0.0.1:6379"}, "h:1"),
        ("local", None, {"RAY_ADDRESS": "10.0.0.1:6379"}, "local"),
        (None, "h:1", {"RAY_ADDRESS": "10.0.0.1:6379"}, ""),
        ("auto", "h:1", {}, ""),
        ("h:1", "h:1", {}, ""),
    ],
)
def test_an_option_overrides_the_environment_and_an_initialized_ray_is_used(
    address, initialized, environ, expected
):
    options = RayOptions(address=address)

    target = target_of(options, initialized=initialized, environ=environ)

    assert target.address == expected
    assert target.is_local == (expected == "local")


@pytest.mark.parametrize("address", ["local", "h:2"])
def test_a_process_that_has_initialized_a_ray_can_use_no_other(address):
    with pytest.raises(InputError, match=r"ray.address.*initialized the Ray at h:1"):
        target_of(RayOptions(address=address), initialized="h:1", environ={})


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("ray://10.0.0.1:10001", "Ray Client, which a run cannot use"),
        ("http://127.0.0.1:8265", "Ray's dashboard, which takes jobs"),
        ("10.0.0.1", "must be local, auto, or the HOST:PORT"),
    ],
)
def test_an_address_in_the_environment_that_cannot_be_joined_is_refused(address, rule):
    with pytest.raises(InputError, match=rf"RAY_ADDRESS.*{rule}"):
        target_of(RayOptions(), initialized=None, environ={"RAY_ADDRESS": address})


def test_a_ray_of_the_runs_own_joins_no_job_and_leaves_no_token():
    environ = {"RAY_ADDRESS": "h:1", "RAY_JOB_CONFIG_JSON_ENV_VAR": "{}", "HOME": "/root"}
    before = dict(environ)

    with own_environment(environ):
        assert environ == {"HOME": "/root"}
        environ["RAY_AUTH_TOKEN"] = "secret"
        environ["RAY_AUTH_MODE"] = "token"

    assert environ == before


def test_a_target_names_the_source_of_its_address():
    target = target_of(RayOptions(), initialized=None, environ={"RAY_ADDRESS": "h:1"})

    assert target == RayTarget("h:1", "RAY_ADDRESS")
