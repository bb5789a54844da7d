"""Paths in an extender's configuration are relative to the folder of the command."""

from roadstead.config.model import ExtenderConfig, ExtenderTLS
from roadstead.extenders.files import in_directory


def test_relative_paths_are_resolved_and_others_kept():
    tls = ExtenderTLS(cert_file="own/tls.crt", key_file="/etc/tls.key")
    config = ExtenderConfig("https://example.org", tls=tls)

    found = in_directory(config, "/home/user")

    assert found.tls == ExtenderTLS(cert_file="/home/user/own/tls.crt", key_file="/etc/tls.key")
    assert in_directory(config, "") == config
    assert in_directory(ExtenderConfig("http://example.org"), "/x").tls is None
