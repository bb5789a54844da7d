"""A Ray cluster that requires a token: joined with it, refused without it and with another."""

import os

import pytest

from tests.cluster.hosts import BIN, NO_HOSTS, hosts, may_have_hosts

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(not may_have_hosts(), reason=NO_HOSTS),
    pytest.mark.skipif(
        os.environ.get("ROADSTEAD_TESTS") != "all",
        reason="takes some 15 s, and tests/actors/test_ray_session.py has the texts: "
        "ROADSTEAD_TESTS=all",
    ),
]

RIGHT, WRONG = "a" * 64, "b" * 64


@pytest.fixture
def head(tmp_path):
    """One host, whose Ray reads its token from a file."""
    file = tmp_path / "token"
    file.write_text(RIGHT)

    def before_ray(made):
        made[0].environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(file)}

    with hosts(1, cpus=2, before_ray=before_ray) as (made,):
        yield made


def test_a_cluster_with_tokens_is_joined_with_its_token_alone(head, tmp_path):
    (tmp_path / "wrong").write_text(WRONG)
    check = (str(BIN / "roadstead"), "cluster", "check", "--ray-address", "auto")
    variables = {
        "right": f"RAY_AUTH_TOKEN_PATH={tmp_path / 'token'}",
        "wrong": f"RAY_AUTH_TOKEN_PATH={tmp_path / 'wrong'}",
        "none": "RAY_AUTH_TOKEN=",
    }

    running = {
        name: head.begin("env", f"HOME={tmp_path}", variable, *check)
        for name, variable in variables.items()
    }
    texts = {name: "".join(each.communicate()) for name, each in running.items()}

    assert {name: each.returncode for name, each in running.items()} == {
        "right": 0,
        "wrong": 1,
        "none": 1,
    }, texts
    assert "1 of 1 nodes can run Roadstead" in texts["right"]
    last = {name: text.splitlines()[-1] for name, text in texts.items()}
    assert "cannot be joined: its head refused the token of this process: set" in last["wrong"]
    assert "this process has none: set RAY_AUTH_TOKEN_PATH to a file" in last["none"]
    assert not any(token in text for token in (RIGHT, WRONG) for text in texts.values())
