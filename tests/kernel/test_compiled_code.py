"""Loading compiled code, and the equality of the code and its source."""

import ast
import importlib
import os
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings

from roadstead.config.model import default_config
from roadstead.cycle.batch import CompiledKernel
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel import compiled, compiled_code
from roadstead.kernel.compiled_code import CompiledCode, load
from roadstead.kernel.decision_counts import DecisionCounts
from tests.actors import fleets
from tests.cycle.test_batch_builder import Cycle
from tests.kernel.test_equality import PROFILES, Batches, fleet_world, play, worlds

_HOME = Path(compiled.__file__).parent
_COMPILED = ["jit", *(path.stem for path in _HOME.glob("compiled*.py"))]
_LOWERED = [f"lowering.{path.stem}" for path in _HOME.glob("lowering/compiled*.py")]


@pytest.fixture(scope="module")
def interpreted():
    """Return the compiled functions as Python functions."""
    names = [f"roadstead.kernel.{name}" for name in (*_COMPILED, *_LOWERED)]
    kept = {name: sys.modules.pop(name) for name in names}
    numba.config.DISABLE_JIT = True
    try:
        module = importlib.import_module(compiled.__name__)
    finally:
        numba.config.DISABLE_JIT = False
        sys.modules.update(kept)
        for name in names:
            package, _, last = name.rpartition(".")
            setattr(sys.modules[package], last, kept[name])
    return CompiledCode(module.decide_pods, module.build, module.renormalize, module.list_best)


@settings(deadline=None)
@given(worlds(), PROFILES)
def test_compiled_code_equals_its_source(interpreted, world, config):
    def played(code):
        return play(
            Batches(world, config, TieBreak(), CompiledKernel(code, DecisionCounts())), world
        )

    with np.errstate(over="ignore"):
        from_source = played(interpreted)

    assert from_source == played(load())


@settings(deadline=None)
@given(fleets.inputs())
def test_compiled_code_across_nodes_equals_its_source(interpreted, inputs):
    world, config = fleet_world(inputs), default_config().profiles[0]

    def played(code):
        return play(Cycle(world, config, TieBreak(), CompiledKernel(code, DecisionCounts())), world)

    with np.errstate(over="ignore"):
        from_source = played(interpreted)

    assert from_source == played(load())


@pytest.fixture
def anew(monkeypatch):
    """Load as if nothing were loaded yet; return the code, the messages, and the children."""
    phases, ran = [], []
    monkeypatch.setattr(compiled_code, "compile_in_child", lambda: ran.append("apart"))

    def load_anew():
        monkeypatch.setattr(compiled_code, "loaded", lambda: None)
        return load(phases.append), phases, ran

    return load_anew


def test_with_cached_machine_code_nothing_is_compiled(anew):
    load()

    code, phases, ran = anew()

    assert code.decide_pods is compiled.decide_pods
    assert (phases, ran) == ([], [])


def test_without_cached_machine_code_another_process_compiles(anew, monkeypatch, tmp_path):
    monkeypatch.setattr(compiled_code, "is_compiled", lambda: False)

    _, phases, ran = anew()

    assert phases == ["compiling the kernel, once for this machine"]
    assert ran == ["apart"]


def test_one_half_is_compiled_in_a_separate_process(monkeypatch):
    code, begun = load(), []
    monkeypatch.setattr(compiled_code, "compiled_of", lambda: code)

    class Other:
        def __init__(self, part):
            begun.append(part)

        def wait(self):
            begun.append("waited for")

    monkeypatch.setattr(compiled_code, "start_compiling", Other)

    compiled_code.compile_in_process()
    compiled_code.compile_in_process(compiled_code.TOTALS)

    assert begun == ["totals", "waited for"]


def test_numba_is_not_imported_if_the_working_directory_would_configure_it(monkeypatch, tmp_path):
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: .\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compiled_code, "loaded", lambda: None)

    with pytest.raises(ImportError, match=r"\.numba_config\.yaml in the working directory"):
        load()


def test_machine_code_older_than_its_sources_is_removed(monkeypatch, tmp_path):
    constants = tmp_path / "framework" / "tie_break.py"
    constants.parent.mkdir()
    constants.write_text("")
    tmp_path = tmp_path / "kernel"
    tmp_path.mkdir()
    (tmp_path / "compiled_of_the_test.py").write_text(
        "from roadstead.kernel.jit import compiled\n@compiled\ndef decide_pods(n): return n\n"
    )
    called = tmp_path / "arrays.py"
    for each in (called, tmp_path / "jit.py", tmp_path / "counter_arrays.py"):
        each.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("compiled_of_the_test")
    monkeypatch.setattr(compiled_code, "compiled_of", lambda: module)
    module.decide_pods(1)

    assert compiled_code.is_compiled()
    os.utime(called, (2**33, 2**33))
    assert not compiled_code.is_compiled()
    os.utime(called, (0, 0))
    assert not compiled_code.is_compiled()


def test_one_folder_has_all_machine_code_and_all_its_sources_are_known():
    load()
    sources, kept = compiled_code.sources(_HOME), compiled.decide_pods.stats.cache_path
    functions = [
        each
        for name in (*_COMPILED, *_LOWERED)
        for each in vars(sys.modules[f"roadstead.kernel.{name}"]).values()
        if isinstance(each, numba.core.dispatcher.Dispatcher)
    ]

    assert {each.stats.cache_path for each in functions} == {kept, None}
    assert {Path(each.py_func.__code__.co_filename) for each in functions} <= set(sources)
    constants = {
        path
        for each in functions
        for name in each.py_func.__code__.co_names
        if isinstance(each.py_func.__globals__.get(name), (int, float, np.number))
        for path in origins(sys.modules[each.py_func.__module__], name)
    }
    assert constants <= set(sources)


def origins(module, name):
    """Yield the files whose text determines a constant of a module."""
    yield Path(module.__file__)
    for line in ast.parse(Path(module.__file__).read_text()).body:
        match line:
            case ast.ImportFrom(module=other, names=names) if name in {each.name for each in names}:
                yield from origins(importlib.import_module(other), name)
            case ast.Assign(targets=[target], value=value):
                if name in names_of(target):
                    for each in names_of(value) - {name}:
                        yield from origins(module, each)


def names_of(expression):
    return {each.id for each in ast.walk(expression) if isinstance(each, ast.Name)}


def test_a_temporary_folder_is_the_cache_if_no_other_can_be_written(monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")

    compiled_code.cache_temporarily()
    used = numba.config.CACHE_DIR
    assert used == os.environ["NUMBA_CACHE_DIR"] != ""

    monkeypatch.undo()
    numba.core.config.reload_config()
    assert used != numba.config.CACHE_DIR
