"""Scripts are files, not a package: tests load them by path, in one folder as when they run."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def scripts(monkeypatch):
    """Return a function that imports a script by its name, without the module cache."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))

    def load(name):
        for known in ("environment", "check", "lock"):
            monkeypatch.delitem(sys.modules, known, raising=False)
        return importlib.import_module(name)

    return load
