"""PluginWatch: a thread that interrupts calls of users' plugins which take too long.

    call ──deadline──► interrupted (an exception in its thread) ──GRACE_S──► stuck

Python code is interrupted between two bytecode instructions. A call that blocks in native code
cannot be interrupted: it is stuck, and its process ends. The process of an actor is replaced; a run
in one process ends with an error that names plugin and pod.

A `Mark` writes the current call to a file that outlives the process, so that the next process
of the same actor knows which plugin call ended the one before. The next process counts a *strike*
for the plugin: a failure of this kind. A plugin with too many strikes is no longer called
(`framework.plugin_calls`).
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from roadstead.facts.pod import PodFacts
from roadstead.framework.plugin_calls import RUNNING_CALLS, PluginCall, PluginCalls, PluginInterrupt

GRACE_S = 2.0
"""Time after its interruption from which a call counts as stuck."""

STUCK = 70
"""Exit status of an actor's process that ended itself because of a stuck call."""

_CHECKS_PER_DEADLINE, _INTERVAL_MAX_S = 8, 0.25
"""The running call is checked this often until its deadline, and at least at this interval."""

_MARK_BYTES = 4096
"""Size of the file of a mark, one page; a call is a few names."""

_CALL, _ENDED = ".call", ".ended"
"""Suffixes of the two files of a mark, see `Mark`."""

OnStuck = Callable[[PluginCall], None]
"""Called in the thread of the watch with a call that is stuck; ends the process."""


class PluginWatch:
    """Watch the plugin calls of this process from its own thread."""

    def __init__(self, deadline_s: float, on_stuck: OnStuck, grace_s: float = GRACE_S) -> None:
        self._deadline_s, self._grace_s, self._on_stuck = deadline_s, grace_s, on_stuck
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._check_calls, name="plugin-watch", daemon=True)

    def start(self) -> None:
        RUNNING_CALLS.limit_s = self._deadline_s
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _check_calls(self) -> None:
        """Check the running call until `stop`; interrupt it at its deadline."""
        wait_s = min(_INTERVAL_MAX_S, self._deadline_s / _CHECKS_PER_DEADLINE)
        watched_call: PluginCall | None = None
        first_seen_s = 0.0
        while not self._is_stopped.wait(wait_s):
            call, now_s = RUNNING_CALLS.current, time.monotonic()
            if call is not watched_call:
                # A new call. It has no start time: its time is measured from this check.
                watched_call, first_seen_s = call, now_s
            elif call is not None and now_s - first_seen_s >= self._deadline_s:
                if not call.is_interrupted:
                    RUNNING_CALLS.interrupt(call, _raise_in)
                elif now_s - first_seen_s >= self._deadline_s + self._grace_s:
                    self._on_stuck(call)
                    return


def _raise_in(thread: int) -> None:
    """Make a thread raise PluginInterrupt at its next bytecode instruction."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(PluginInterrupt)
    )


@contextmanager
def watched(deadline_s: float, kept: str = "") -> Iterator[None]:
    """Watch the plugins of a single-process run inside the block; a stuck call ends the process.

    kept: a sentence for the error message on what the run has saved; "" for none.
    """
    watch = PluginWatch(deadline_s, lambda call: end_process(call, kept))
    watch.start()
    try:
        yield
    finally:
        watch.stop()


def end_process(call: PluginCall, kept: str) -> None:
    """End the process with status 1, and a message with the names of plugin and pod."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    text = f"The run failed: {call_text(call)}, and cannot be interrupted. {kept}".rstrip()
    os.write(2, f"{text}\n".encode())
    os._exit(1)


def call_text(call: PluginCall) -> str:
    """Return a sentence on the plugin and the extension point that did not return."""
    pod = "" if call.facts is None else f" for {describe_pod(call.facts)}"
    return f'plugin "{call.plugin}" did not return from {call.point}{pod} in time'


POD_KEY_FINDERS: dict[str, Callable[[PodFacts], str | None]] = {}
"""Name of an actor of this process → function: facts of a pod → its key, None if not known."""


def describe_pod(facts: PodFacts) -> str:
    """Return a pod's key if an actor of this process knows it, else its namespace and requests."""
    for find in POD_KEY_FINDERS.values():
        if key := find(facts):
            return f'pod "{key}"'
    requests = ", ".join(f"{name}={amount}" for name, amount in facts.requests) or "nothing"
    return f'a pod of namespace "{facts.namespace}" that asks for {requests}'


def call_at_exit(path: Path) -> tuple[str, str, str] | None:
    """Return the call during which the process that wrote a mark ended, or None.

    The call is (plugin, extension point, digest of the pod's facts).
    """
    file = path.with_suffix(_CALL)
    text = file.read_bytes().rstrip(b"\0") if file.exists() else b""
    if not text or text[:1] == b"\0":
        return None
    plugin, point, facts_digest = json.loads(text)
    return plugin, point, facts_digest


class Mark:
    """The running plugin call of this process, in a file that its successor reads.

    path: without a suffix; `.call` has the running call, `.ended` a line for each call that ended a
    process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        file = os.open(path.with_suffix(_CALL), os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(file, _MARK_BYTES)
        self._map = mmap.mmap(file, _MARK_BYTES)
        os.close(file)

    def begin(self, calls: PluginCalls, process: str) -> None:
        """Count a strike for each call that ended an earlier process.

        From then on, mark the calls of this process. process: its name, for the reason of a strike.
        """
        ended = self._path.with_suffix(_ENDED)
        if call := call_at_exit(self._path):
            with ended.open("a") as file:
                file.write(f"{json.dumps(call)}\n")
            self._write(None)
        for line in ended.read_text().splitlines() if ended.exists() else ():
            plugin, point, facts_digest = json.loads(line)
            calls.strike(plugin, facts_digest, f"ended the process {process} at {point}")
        calls.mark = self._write

    def _write(self, call: PluginCall | None) -> None:
        if call is None:
            # A first byte of 0 means that no call is marked.
            self._map[0:1] = b"\0"
            return
        text = json.dumps((call.plugin, call.point, call.facts_digest)).encode()
        # Write the first byte last, so that no incomplete mark is read.
        self._map[1:] = text[1:].ljust(_MARK_BYTES - 1, b"\0")
        self._map[0:1] = text[:1]
