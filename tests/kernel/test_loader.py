"""The kernel is loaded concurrently with a scheduler's work, and only if this is worthwhile."""

import threading

import pytest

from roadstead.actors.runtime import kernel_loader
from roadstead.actors.runtime.kernel_loader import LOAD_AFTER_PODS, KernelLoader
from roadstead.kernel import compiled_code


@pytest.fixture
def _not_here(monkeypatch):
    """Pretend that the kernel is not loaded in this process."""
    monkeypatch.setattr(kernel_loader, "loaded", lambda: None)


def loaded(loader):
    loader.compiled_kernel(LOAD_AFTER_PODS)
    for thread in loading():
        thread.join()
    return loader.compiled_kernel(1)


def loading():
    """Return the threads that load the kernel."""
    return [each for each in threading.enumerate() if each.name == "kernel"]


def test_a_kernel_loaded_in_this_process_is_available_immediately():
    known = compiled_code.load()
    loader = KernelLoader("scheduler-0", enabled=True)

    assert loader.compiled_kernel(1).code is known
    assert loading() == []


@pytest.mark.usefixtures("_not_here")
def test_many_small_batches_start_the_loading_too(monkeypatch):
    may_end = threading.Event()
    monkeypatch.setattr(
        kernel_loader, "load", lambda report: may_end.wait() and compiled_code.load()
    )
    loader = KernelLoader("scheduler-0", enabled=True)
    for _ in range(LOAD_AFTER_PODS - 1):
        assert loader.compiled_kernel(1).code is None
    assert loading() == []

    loader.compiled_kernel(1)

    (thread,) = loading()
    may_end.set()
    thread.join()


@pytest.mark.usefixtures("_not_here")
def test_a_large_batch_starts_the_loading():
    loader = KernelLoader("scheduler-0", enabled=True)

    assert loader.compiled_kernel(LOAD_AFTER_PODS - 1).code is None
    assert loaded(loader).code is compiled_code.load()


def test_a_disabled_kernel_is_not_loaded():
    loader = KernelLoader("scheduler-0", enabled=False)

    assert loader.compiled_kernel(LOAD_AFTER_PODS) is None
    assert loader.decision_counts.counts() == ()


@pytest.mark.usefixtures("_not_here")
def test_the_reference_continues_if_the_kernel_can_not_be_loaded(monkeypatch, caplog):
    def fails(report):
        raise ImportError("no numba")

    monkeypatch.setattr(kernel_loader, "load", fails)

    assert loaded(KernelLoader("scheduler-0", enabled=True)).code is None
    assert "cannot be loaded" in caplog.text
