"""Results of runs: their rate, the versions that made them, and digests of their inputs."""

import hashlib
from importlib import metadata

import pytest

import roadstead
from roadstead.protocol.errors import InputError
from roadstead.report.result import digest_of_file, installed_versions


def test_the_rate_counts_every_decided_pod(result):
    assert result.pods_per_s == 5 / 0.5


def test_a_run_of_no_duration_has_no_rate(empty_result):
    assert empty_result.pods_per_s == 0.0


def test_versions_include_everything_on_which_the_result_may_depend():
    versions = installed_versions()
    assert versions["roadstead"] == roadstead.__version__
    assert versions["numpy"] == metadata.version("numpy")
    assert {"python", "platform", "ray"} <= versions.keys()


def test_a_missing_package_is_left_out(monkeypatch):
    def not_found(package):
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", not_found)
    assert installed_versions().keys() == {"roadstead", "python", "platform"}


def test_an_input_is_identified_by_the_digest_of_its_bytes(tmp_path):
    path = tmp_path / "pods.yaml"
    path.write_bytes(b"kind: Pod\n")
    digest = digest_of_file(path)
    assert digest.name == str(path)
    assert digest.sha256 == hashlib.sha256(b"kind: Pod\n").hexdigest()


def test_an_unreadable_input_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"gone\.yaml: cannot be read: No such file"):
        digest_of_file(tmp_path / "gone.yaml")
