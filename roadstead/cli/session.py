"""One call of the command line: what was typed, when it began, and who carries out runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roadstead.run import Launcher

    OpenLauncher = Callable[[], Launcher]

LOGGER = "roadstead"


class Stopwatch:
    """Seconds since it was made, and those of each phase."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.timings_s: dict[str, float] = {}

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.timings_s[name] = self.timings_s.get(name, 0.0) + spent


@dataclass(frozen=True, slots=True)
class Session:
    """open_launcher: called when there is a run to carry out, and not before: actors are heavy.

    args: the command line as typed, without the program.
    """

    open_launcher: OpenLauncher
    args: tuple[str, ...]
    watch: Stopwatch = field(default_factory=Stopwatch)
    _opened: list[Launcher] = field(default_factory=list)

    def launcher(self) -> Launcher:
        """The launcher. What goes wrong reaches a person as an error; logs go where --log says."""
        if not self._opened:
            logging.getLogger(LOGGER).addHandler(logging.NullHandler())
            self._opened.append(self.open_launcher())
        return self._opened[0]
