"""Named configurations in the package, each a valid KubeSchedulerConfiguration.

The text of a preset is meant to be read and copied: `preset_text("binpack")`. The algorithm
providers of older schedulers are presets, too.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from roadstead.config.legacy.alpha import PROVIDERS, provider_text
from roadstead.config.load import LoadedConfig, load_config
from roadstead.protocol.errors import InputError, cut_short

_SUFFIX: Final = ".yaml"


def list_presets() -> tuple[str, ...]:
    """Return the names, sorted."""
    entries = (entry.name for entry in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in entries if name.endswith(_SUFFIX)))


def preset_text(name: str) -> str:
    """Return the YAML of a preset or an older provider; InputError for an unknown name."""
    if name in PROVIDERS:
        return provider_text(name)
    if name not in list_presets():
        known = ", ".join((*list_presets(), *PROVIDERS))
        raise InputError(
            f"is not a preset (there are: {known})", field="preset", value=cut_short(name)
        )
    return files(__package__).joinpath(name + _SUFFIX).read_text(encoding="utf-8")


def load_preset(name: str) -> LoadedConfig:
    """Load a preset; InputError for an unknown name."""
    return load_config(preset_text(name), source=f"preset {name}")
