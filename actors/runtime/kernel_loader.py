"""KernelLoader: loads the compiled kernel of a scheduler or worker in the background.

Until it is loaded the plugins decide, with the same result.
"""

from __future__ import annotations

import logging
import threading

from roadstead.actors.logs import ROOT, log
from roadstead.cycle.batch import CompiledKernel
from roadstead.kernel.compiled_code import load, loaded
from roadstead.kernel.decision_counts import DecisionCounts

LOAD_AFTER_PODS = 256
"""Number of pods, in one batch or in several, from which loading the kernel pays."""


class KernelLoader:
    """Load the kernel once, in its own thread, after `LOAD_AFTER_PODS` pods."""

    def __init__(self, owner: str, *, enabled: bool) -> None:
        self._owner = owner
        self._enabled = enabled
        self._compiled_kernel = CompiledKernel(None, DecisionCounts())
        self._thread: threading.Thread | None = None
        self._pods = 0

    @property
    def decision_counts(self) -> DecisionCounts:
        """Numbers of pods that the kernel decided, and that the plugins decided."""
        return self._compiled_kernel.decision_counts

    def compiled_kernel(self, pods: int) -> CompiledKernel | None:
        """Return the kernel, which may not be loaded yet, for a batch of so many pods.

        None if the kernel is off. Loading starts once `LOAD_AFTER_PODS` pods were counted.
        """
        if not self._enabled:
            return None
        self._pods += pods
        if self._compiled_kernel.code is None and self._thread is None:
            # Another actor of this process may have loaded it.
            self._compiled_kernel.code = loaded()
            if self._compiled_kernel.code is None and self._pods >= LOAD_AFTER_PODS:
                self._thread = threading.Thread(target=self._load, name="kernel", daemon=True)
                self._thread.start()
        return self._compiled_kernel

    def _load(self) -> None:
        try:
            code = load(self._log)
        except Exception:
            logging.getLogger(f"{ROOT}.{self._owner}").warning(
                "the kernel cannot be loaded; decisions run without it", exc_info=True
            )
            return
        self._compiled_kernel.code = code
        log(self._owner, "kernel loaded", seconds=round(code.started_s, 3))

    def _log(self, message: str) -> None:
        log(self._owner, message)
