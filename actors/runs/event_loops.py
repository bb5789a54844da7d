"""Event loops and threads: run coroutines and blocking work from synchronous code.

run_on_new_loop(work) ─┬─ no loop runs in this thread ──► new loop in this thread
                       └─ one does (a notebook)       ──► run_in_thread: new loop, new thread
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

import uvloop

from roadstead.garbage_collection import gc_tuned

T = TypeVar("T")
"""Result of the work."""


def run_on_new_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run the work on an event loop of its own and return the result."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_in_this_thread(work)
    # In a notebook this thread runs a loop already, and a second one cannot run in it.
    return run_in_thread(work)


def run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run the work in a thread and return the result; an interrupt of the wait cancels it."""
    cancels: list[Callable[[], None]] = []
    is_interrupted = threading.Event()

    async def cancellable() -> T:
        with contextlib.closing(work):
            cancels.append(canceller())
            if is_interrupted.is_set():
                raise asyncio.CancelledError
            return await work

    future: Future[T] = Future()
    try:
        # Inside the `try`: the interrupt may be raised as soon as the thread runs.
        return in_thread(lambda: _run_in_this_thread(cancellable()), "run", future).result()
    except KeyboardInterrupt:
        is_interrupted.set()
        for cancel in cancels:
            # If the work has ended meanwhile, its loop is closed.
            with contextlib.suppress(RuntimeError):
                cancel()
        wait([future])
        raise


def _run_in_this_thread(work: Coroutine[Any, Any, T]) -> T:
    loops = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    # Close the work: if no loop can be made it never starts, and Python would warn of that.
    with gc_tuned(), contextlib.closing(work), loops as runner:
        return runner.run(work)


def in_thread(work: Callable[[], T], name: str, future: Future[T] | None = None) -> Future[T]:
    """Start blocking work in a thread; return the future of its result.

    name: of the thread. future: receives the result, in place of a new one. The process waits for
    the thread before it ends.
    """
    result: Future[T] = Future() if future is None else future

    def set_result_of_work() -> None:
        try:
            result.set_result(work())
        except BaseException as failure:
            result.set_exception(failure)

    threading.Thread(target=set_result_of_work, name=name).start()
    return result


def canceller() -> Callable[[], None]:
    """Return a function that cancels the present task, from a signal handler or another thread."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "work of a task"

    def cancel() -> None:
        loop.call_soon_threadsafe(task.cancel)

    return cancel
