"""One call of the command line: what was typed, when it began, and who carries out runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roadstead.api.launcher import quiet_logs
from roadstead.api.stopwatch import Stopwatch

if TYPE_CHECKING:
    from roadstead.run import Launcher

    OpenLauncher = Callable[[], Launcher]


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
            quiet_logs()
            self._opened.append(self.open_launcher())
        return self._opened[0]
