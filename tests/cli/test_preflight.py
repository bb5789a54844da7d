"""Paths and addresses are checked before a run: status 2, with the option at fault."""

import os

import pytest

from roadstead.protocol.errors import cut_short

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def refused(run, cluster, pods, launcher, tmp_path, monkeypatch):
    """Return the error with which `schedule` refuses these options before any run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")

    def call(*options):
        done = run("schedule", "--cluster", cluster, "--pods", pods, *options)
        assert done.exit_code == 2, done.output
        assert not hasattr(launcher, "plan")
        return done.stderr.strip()

    return call


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "file"], "file: is not a directory"),
        (["--output", "file/out"], "file/out: cannot be made: {here}/file is not a directory"),
        (["--output", "x" * 300], "x" * 300 + ": cannot be used: File name too long"),
        (["--journal", "file"], 'settings: journal: "file" is not a directory'),
        (
            ["--journal", "file/a/b"],
            'settings: journal: "file/a/b" cannot be made: {here}/file is not a directory',
        ),
        (["--log", "file"], '--log: "file" is not a directory'),
        (["--trace", "."], None),
        (["--settings", "."], ".: cannot be read: Is a directory"),
        (["--config", "missing"], "missing: cannot be read: No such file or directory"),
    ],
)
def test_an_unusable_path_is_refused_by_its_option(refused, options, message, tmp_path):
    refusal = refused(*options)

    assert message is None or refusal == message.format(here=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "new/out"], "new/out: cannot be made: no permission to write in {here}"),
        (["--output", "out"], "out: cannot be written: no permission"),
        (["--journal", "out"], 'settings: journal: "out" cannot be written: no permission'),
    ],
)
def test_a_folder_without_permission_is_refused(refused, options, message, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    # Root may do everything.
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)

    assert refused(*options) == message.format(here=tmp_path)


@pytest.mark.parametrize(
    ("extender", "message"),
    [
        ("{urlPrefix: 'ftp://x'}", 'extenders[1].urlPrefix: "ftp://x" is not a URL'),
        ("{urlPrefix: 'http://x:99999'}", 'extenders[1].urlPrefix: "http://x:99999" is not a URL'),
        (
            "{urlPrefix: 'https://x', tlsConfig: {caFile: gone.pem}}",
            "extenders[1].tlsConfig.caFile: {here} cannot be read: No such file",
        ),
        (
            "{urlPrefix: 'https://x', tlsConfig: {caFile: file}}",
            None,
        ),
    ],
)
def test_an_extender_with_an_unusable_address_is_refused(refused, extender, message, tmp_path):
    verbs = "filterVerb: f"
    extender = extender.replace("{urlPrefix", f"{{{verbs}, urlPrefix", 1)
    first = f"{{urlPrefix: 'http://ok.example', {verbs}}}"
    (tmp_path / "config.yaml").write_text(f"{HEAD}extenders:\n- {first}\n- {extender}\n")
    (tmp_path / "file").write_text("no certificate")

    refusal = refused("--config", "config.yaml")

    assert refusal.startswith("config.yaml: extenders[1].")
    assert message is None or message.format(here=cut_short(f"{tmp_path}/gone.pem")) in refusal


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".", ".: is a directory"),
        ("no/profile.json", "no/profile.json: cannot be written: there is no such directory"),
    ],
)
def test_a_profile_that_can_not_be_written_is_refused_before_the_benchmark(
    run, tmp_path, monkeypatch, path, message
):
    monkeypatch.chdir(tmp_path)

    done = run("bench", "SchedulingBasic", "--runtime", "inline", "--profile", path)

    assert (done.exit_code, done.stderr.strip()) == (2, message)
