"""Scripts are files, not a package: they are loaded by path, side by side as when they run."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def scripts(monkeypatch):
    """Imports a script by its name, afresh."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))

    def load(name):
        for known in ("environment", "check", "lock"):
            monkeypatch.delitem(sys.modules, known, raising=False)
        return importlib.import_module(name)

    return load
