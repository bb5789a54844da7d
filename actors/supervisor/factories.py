"""ActorFactories: the processes of a run, and the factories of their actors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import Factory
from roadstead.actors.journal_copy.actor import JournalCopyActor
from roadstead.actors.names import (
    BINDER,
    CACHE,
    CONTROL,
    JOURNAL_COPY,
    QUEUE,
    SCHEDULER,
    follower_names,
)
from roadstead.actors.queue.actor import QueueActor
from roadstead.actors.runtime.reconnecting import IncarnationFactory
from roadstead.actors.scheduler.actor import SchedulerActor
from roadstead.actors.supervisor.journal_copies import JournalCopies
from roadstead.actors.supervisor.plugin_processes import WatchedFactory
from roadstead.actors.worker.actor import WorkerActor
from roadstead.extenders.caller import CallerOf
from roadstead.run import RunPlan

BuildBinder = Callable[..., BinderActor]
"""`BinderActor`, or a function with the same parameters."""


@dataclass(frozen=True, slots=True)
class ActorFactories:
    """The processes of a run and how their actors are built.

    copies: where the journal of the next binder is. caller_of: makes the callers of extenders; None
    for callers over HTTP.
    """

    plan: RunPlan
    copies: JournalCopies
    build_binder: BuildBinder
    caller_of: CallerOf | None

    def groups(self, epochs: Mapping[str, int]) -> dict[str, dict[str, Factory]]:
        """Return the actors of each process, with their factories.

        epochs: actor → epoch of the incarnation to build; the plan's first one if it has no entry.
        """
        settings = self.plan.settings
        control = [QUEUE, CACHE, BINDER]
        if settings.control == "together":
            groups = {CONTROL: control}
        else:
            groups = {name: [name] for name in control}
        if self.copies.has_copy:
            groups[JOURNAL_COPY] = [JOURNAL_COPY]
        groups |= {name: [name] for name in follower_names(settings)}
        first = self.plan.first_epoch
        return {
            host: {name: self._factory_of(name, epochs.get(name, first)) for name in names}
            for host, names in groups.items()
        }

    def _factory_of(self, name: str, epoch: int) -> Factory:
        plan, is_new = self.plan, epoch > self.plan.first_epoch
        build: Factory
        if name == QUEUE:
            build = partial(QueueActor, plan, is_new=is_new)
        elif name == CACHE:
            build = partial(CacheActor, plan, is_new=is_new)
        elif name == BINDER:
            lsn = self.copies.least_lsn
            build = partial(self.build_binder, self.copies.plan, epoch=epoch, least_lsn=lsn)
        elif name == JOURNAL_COPY:
            build = partial(JournalCopyActor, plan, epoch=epoch)
        elif name.startswith(SCHEDULER):
            caller_of = self.caller_of
            build = partial(
                SchedulerActor, name, plan, epoch=epoch, is_new=is_new, caller_of=caller_of
            )
        else:
            build = partial(WorkerActor, name, plan, is_new=is_new, epoch=epoch)
        if plan.plugins:
            # Its process ends if a call of a user's plugin does not return.
            build = WatchedFactory(build, name, plan)
        return IncarnationFactory(build, name, epoch)
