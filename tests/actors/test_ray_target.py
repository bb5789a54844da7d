"""The choice of the Ray of a run, and the environment of a Ray of its own."""

import pytest

from roadstead.actors.runtime.ray_target import RayTarget, own_environment, target_of
from roadstead.config.ray import RayOptions
from roadstead.protocol.errors import InputError


@pytest.mark.parametrize(
    ("address", "is_initialized", "environ", "expected"),
    [
        (None, False, {}, "local"),
        (None, False, {"RAY_ADDRESS": ""}, "local"),
        (None, False, {"RAY_ADDRESS": "10.0.0.1:6379"}, "10.0.0.1:6379"),
        (None, False, {"RAY_ADDRESS": "auto"}, "auto"),
        (None, True, {"RAY_ADDRESS": "10.0.0.1:6379"}, ""),
        ("local", True, {"RAY_ADDRESS": "10.0.0.1:6379"}, "local"),
        ("h:1", True, {}, "h:1"),
    ],
)
def test_an_option_overrides_an_initialized_ray_which_overrides_the_environment(
    address, is_initialized, environ, expected
):
    options = RayOptions(address=address)

    target = target_of(options, is_initialized=is_initialized, environ=environ)

    assert target.address == expected
    assert target.is_local == (expected == "local")


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
        target_of(RayOptions(), is_initialized=False, environ={"RAY_ADDRESS": address})


def test_a_ray_of_the_runs_own_joins_no_job_and_leaves_no_token():
    environ = {"RAY_ADDRESS": "h:1", "RAY_JOB_CONFIG_JSON_ENV_VAR": "{}", "HOME": "/root"}
    before = dict(environ)

    with own_environment(environ):
        assert environ == {"HOME": "/root"}
        environ["RAY_AUTH_TOKEN"] = "secret"
        environ["RAY_AUTH_MODE"] = "token"

    assert environ == before


def test_a_target_names_the_source_of_its_address():
    target = target_of(RayOptions(), is_initialized=False, environ={"RAY_ADDRESS": "h:1"})

    assert target == RayTarget("h:1", "RAY_ADDRESS")
