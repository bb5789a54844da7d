from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from roadstead.config.load import LoadedConfig, load_config

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def load() -> Callable[..., LoadedConfig]:
    def load_with_head(body: str, **options: Any) -> LoadedConfig:
        return load_config(HEAD + body, source="scheduler.yaml", **options)

    return load_with_head


@pytest.fixture
def load_profile(load: Callable[..., LoadedConfig]) -> Callable[..., LoadedConfig]:
    def load_one_profile(profile: dict[str, Any], **options: Any) -> LoadedConfig:
        return load(yaml.safe_dump({"profiles": [profile]}), **options)

    return load_one_profile
