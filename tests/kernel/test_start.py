"""How compiled code is loaded, and that it is what its source says."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings

from roadstead.cycle.batch import Accelerator
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel import compiled, start
from roadstead.kernel.coverage import Coverage
from roadstead.kernel.start import CompiledCode, load
from tests.kernel.test_equality import PROFILES, Sharded, play, worlds


@pytest.fixture(scope="module")
def interpreted():
    """The functions of `compiled` as Python runs them."""
    numba.config.DISABLE_JIT = True
    try:
        spec = importlib.util.spec_from_file_location("interpreted", compiled.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        numba.config.DISABLE_JIT = False
    return CompiledCode(module.run, module.build, module.renormalize)


@settings(deadline=None)
@given(worlds(), PROFILES)
def test_compiled_code_does_what_its_source_says(interpreted, world, config):
    def played(code):
        return play(Sharded(world, config, TieBreak(), Accelerator(code, Coverage())), world)

    with np.errstate(over="ignore"):
        from_source = played(interpreted)

    assert from_source == played(load())


@pytest.fixture
def anew(monkeypatch):
    """Loads as if nothing was loaded yet; what was told, and what was run apart."""
    told, ran = [], []
    monkeypatch.setattr(
        subprocess, "run", lambda command, **options: ran.append((command, options))
    )

    def load_anew():
        return load.__wrapped__(told.append), told, ran

    return load_anew


def test_where_machine_code_is_kept_nothing_is_compiled(anew):
    load()

    code, told, ran = anew()

    assert code.run is compiled.run
    assert (told, ran) == ([], [])


def test_where_none_is_kept_another_process_compiles(anew, monkeypatch, tmp_path):
    monkeypatch.setattr(start, "_is_kept", lambda module: False)

    _, told, ((command, options),) = anew()

    assert told == ["compiling the kernel, once for this machine; the reference decides meanwhile"]
    assert command == [sys.executable, "-m", "roadstead.kernel"]
    assert options["start_new_session"]


def test_machine_code_older_than_its_source_is_not_kept(tmp_path):
    newer = tmp_path / "compiled.py"
    newer.write_text("")
    os.utime(newer, (2**33, 2**33))

    assert not start._is_kept(newer)
    assert start._is_kept(Path(compiled.__file__))


def test_a_folder_of_this_process_is_the_cache_where_no_other_can_be_written(monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")

    start._cache_nowhere()
    used = numba.config.CACHE_DIR
    assert used == os.environ["NUMBA_CACHE_DIR"] != ""

    monkeypatch.undo()
    numba.core.config.reload_config()
    assert used != numba.config.CACHE_DIR
