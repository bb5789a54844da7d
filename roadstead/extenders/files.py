"""Paths of the files that an extender's configuration names."""

from __future__ import annotations

import os
from dataclasses import replace

from roadstead.config.model import ExtenderConfig


def in_directory(config: ExtenderConfig, directory: str) -> ExtenderConfig:
    """Resolve relative file names of a configuration; a directory of "" leaves them as they are."""
    if config.tls is None:
        return config

    def full(file: str) -> str:
        return file and os.path.join(directory, file)

    tls = config.tls
    resolved = replace(
        tls, cert_file=full(tls.cert_file), key_file=full(tls.key_file), ca_file=full(tls.ca_file)
    )
    return replace(config, tls=resolved)
