"""KernelLoader: the compiled kernel for one scheduler, brought in beside its work.

Until it is there the reference decides, to the same result: nobody waits for it.
"""

from __future__ import annotations

import logging
import threading

from roadstead.actors.logs import ROOT, log
from roadstead.cycle.batch import Accelerator
from roadstead.kernel.coverage import Coverage
from roadstead.kernel.start import CompiledCode, load

WORTHWHILE_PODS = 256
"""Pods in a batch from which on loading pays."""

SLOW_S = 3.0
"""Loading from a cache is faster than this; compiling is not."""


class KernelLoader:
    """Loads once, in a thread of its own, when a batch is worth it."""

    def __init__(self, scheduler: str, *, enabled: bool) -> None:
        self._scheduler = scheduler
        self._enabled = enabled
        self._code: CompiledCode | None = None
        self._thread: threading.Thread | None = None
        self.coverage = Coverage()

    def accelerator(self, pods: int) -> Accelerator | None:
        """The kernel for a batch of so many pods, if it is there; a large one sends for it."""
        if not self._enabled:
            return None
        if self._code is not None:
            return Accelerator(self._code, self.coverage)
        if self._thread is None and pods >= WORTHWHILE_PODS:
            self._thread = threading.Thread(target=self._load, name="kernel", daemon=True)
            self._thread.start()
        return None

    def _load(self) -> None:
        try:
            code = load()
        except Exception:
            logging.getLogger(f"{ROOT}.{self._scheduler}").warning(
                "the kernel cannot be loaded; the reference decides", exc_info=True
            )
            return
        event = (
            "kernel compiled, for all later runs" if code.started_s > SLOW_S else "kernel loaded"
        )
        log(self._scheduler, event, seconds=round(code.started_s, 3))
        self._code = code
