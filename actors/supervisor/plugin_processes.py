"""Watch over users' plugins in the processes of a run; find the call that ended a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from roadstead.actors.interface import Directory, Factory
from roadstead.actors.logs import log
from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.framework.plugin_calls import RUNNING_CALLS, PluginCall
from roadstead.plugin_watch import (
    POD_KEY_FINDERS,
    STUCK,
    Mark,
    PluginWatch,
    call_at_exit,
    call_text,
    watched,
)
from roadstead.run import RunPlan


@contextmanager
def plugins_watched(plan: RunPlan) -> Iterator[RunPlan]:
    """Watch the plugins of this process inside the block.

    Yields the plan for the run's actors. On Ray it has a folder for marks: files, one per process,
    with the plugin call that the process is making.
    """
    if not plan.plugins:
        yield plan
        return
    journal = plan.settings.journal
    # For the message if a call ends this process.
    journal_text = (
        f"What the binder acknowledged is in {journal}, and --resume continues the run."
        if journal is not None
        else "There is no journal of what was bound."
    )
    RUNNING_CALLS.forget()
    with watched(plan.settings.deadlines.plugin_s, journal_text):
        if plan.settings.runtime == "inline":
            try:
                yield plan
            finally:
                # Otherwise they would keep the actors of the run, in a notebook for long.
                POD_KEY_FINDERS.clear()
            return
        with TemporaryDirectory(prefix="roadstead-plugins-") as folder:
            yield replace(plan, marks=folder)


def last_call_of(name: str, plan: RunPlan) -> str:
    """Return a sentence on the plugin call during which an actor's process ended; "" for none."""
    if not plan.marks:
        return ""
    # A process has one mark, with the name of the first actor that was built in it: in the control
    # process, the queue.
    are_together = plan.settings.control == "together" and name in (QUEUE, CACHE, BINDER)
    for process in (name, QUEUE) if are_together else (name,):
        if call := call_at_exit(Path(plan.marks) / process):
            return f' It was calling plugin "{call[0]}" at {call[1]}.'
    return ""


@dataclass(frozen=True, slots=True)
class WatchedFactory:
    """A Factory of an actor with users' plugins; the first one in a process starts its watch."""

    build: Factory
    name: str
    plan: RunPlan

    def __call__(self, directory: Directory) -> object:
        # The limit is 0 until the watch of this process has started.
        if self.plan.marks and not RUNNING_CALLS.limit_s:
            folder = Path(self.plan.marks)
            # On another machine than the driver's there is no such folder: calls are watched, but
            # an actor that ends leaves no record of its last call.
            if folder.is_dir():
                Mark(folder / self.name).begin(RUNNING_CALLS, self.name)
            deadline_s = self.plan.settings.deadlines.plugin_s
            PluginWatch(deadline_s, self._end).start()
        actor = self.build(directory)
        # Messages name the pod of a call by namespace and name, if an actor here knows them.
        if find := getattr(actor, "key_of", None):
            POD_KEY_FINDERS[self.name] = find
        return actor

    def _end(self, call: PluginCall) -> None:
        """End the process, with the exit status of a plugin's call that did not return."""
        log(self.name, f"{call_text(call)}; the process ends")
        os._exit(STUCK)
