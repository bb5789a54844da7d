"""`import roadstead` is cheap, and its names are typed."""

import subprocess
import sys
from pathlib import Path

import pytest

import roadstead

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("typed_script.py")
HEAVY = {"numpy", "arro3", "pydantic", "yaml", "click", "ray", "asyncio", "msgpack", "numba"}


def test_import_loads_nothing_but_names():
    code = "import sys, roadstead; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()

    assert not HEAVY & set(loaded)
    assert [name for name in loaded if name.startswith("roadstead")] == [
        "roadstead",
        "roadstead.version",
    ]


def test_the_package_has_every_public_name_and_no_other():
    assert all(getattr(roadstead, name) is not None for name in roadstead.__all__)
    assert set(roadstead.__all__) <= set(dir(roadstead))
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        _ = roadstead.lode


def test_a_script_of_a_user_passes_mypy_strict():
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"),
            *("--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'script'}", str(SCRIPT)),
        ],
        cwd=ROOT,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.returncode) == ("Success: no issues found in 1 source file\n", 0)
