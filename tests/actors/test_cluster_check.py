"""`roadstead cluster check`: the folder of the journal must exist before."""

import pytest

from roadstead.actors.runs import cluster_check
from roadstead.config.settings import load_settings
from roadstead.protocol.errors import InputError


@pytest.mark.parametrize("is_file", [False, True])
async def test_a_folder_that_does_not_exist_is_refused_and_not_made(tmp_path, monkeypatch, is_file):
    folder = tmp_path / "typo" / "journal"
    if is_file:
        folder.parent.mkdir()
        folder.touch()
    monkeypatch.setattr(cluster_check, "open_session", None)
    overrides = {"ray.address": "10.0.0.1:6379", "journal": str(folder)}

    with pytest.raises(InputError, match=r"--journal.*must be an existing folder"):
        await cluster_check.check_cluster(load_settings(overrides=overrides))

    assert not folder.is_dir()
