"""One call of the command line: its arguments, its start time, and the launcher of its runs."""

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
    """One call of the command line.

    open_launcher: returns the object that executes runs; called only when there is a run, because
    actors take long to import. args: the command line without the program. watch: measures its
    phases. _opened: the launcher once it is opened, in a list because the class is frozen.
    """

    open_launcher: OpenLauncher
    args: tuple[str, ...]
    watch: Stopwatch = field(default_factory=Stopwatch)
    _opened: list[Launcher] = field(default_factory=list)

    def launcher(self) -> Launcher:
        """Return the launcher, which is opened on the first call.

        Log records only go to `--log`; failures are reported as errors.
        """
        if not self._opened:
            quiet_logs()
            self._opened.append(self.open_launcher())
        return self._opened[0]
