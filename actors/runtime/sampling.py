"""Sampling profiler of a process: stacks of the thread of its event loop.

A thread reads the stack of the loop's thread every few milliseconds. This slows the run by a few
per cent and shows nothing below functions, but needs no change of the sampled code and works in
every process of a run, on either runtime.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import CodeType, FrameType

from roadstead.actors.messages.process import INTERVAL_S, ProfileRequest
from roadstead.bench.speedscope import Samples, StackFrame

MAX_STACKS = 50_000
"""Number of different stacks that are counted; samples of further ones are dropped."""

MAX_DEPTH = 200
"""Number of frames of one stack, from the innermost call outwards."""


@dataclass(slots=True)
class Sampler:
    """Samples one thread until `end`. _stacks: number of samples of each stack."""

    thread_id: int
    interval_s: float = INTERVAL_S
    _stacks: Counter[tuple[CodeType, ...]] = field(default_factory=Counter)
    _began_s: float = field(default_factory=time.monotonic)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self) -> None:
        self._thread = threading.Thread(target=self._run, name="profile", daemon=True)
        self._thread.start()

    def end(self) -> Samples:
        """Stop and return the sampled stacks with their counts."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        return self._samples()

    def _run(self) -> None:
        while not self._ended.wait(self.interval_s):
            frame = sys._current_frames().get(self.thread_id)
            if frame is not None:
                self.count_stack(frame)

    def count_stack(self, frame: FrameType | None) -> None:
        """Count one stack, the outermost call first."""
        stack: list[CodeType] = []
        while frame is not None and len(stack) < MAX_DEPTH:
            stack.append(frame.f_code)
            frame = frame.f_back
        key = tuple(reversed(stack))
        if key in self._stacks or len(self._stacks) < MAX_STACKS:
            self._stacks[key] += 1

    def _samples(self) -> Samples:
        indices: dict[CodeType, int] = {}
        stacks = tuple(
            (tuple(indices.setdefault(code, len(indices)) for code in stack), count)
            for stack, count in self._stacks.items()
        )
        frames = tuple(
            StackFrame(code.co_qualname, code.co_filename, code.co_firstlineno) for code in indices
        )
        return Samples(frames, stacks, self._mean_interval_s())

    def _mean_interval_s(self) -> float:
        """Return the real interval between samples: on a busy machine, more than requested."""
        samples = sum(self._stacks.values())
        return (time.monotonic() - self._began_s) / samples if samples else self.interval_s


_running: list[Sampler] = []
"""The sampler of this process; at most one."""


def handle_profile_request(request: ProfileRequest) -> Samples:
    """Begin or end sampling this process; call it in the thread to be sampled."""
    before = _running.pop() if _running else None
    samples = before.end() if before is not None else Samples((), (), request.interval_s)
    if request.begins:
        sampler = Sampler(threading.get_ident(), request.interval_s)
        sampler.begin()
        _running.append(sampler)
        return Samples((), (), request.interval_s)
    return samples
