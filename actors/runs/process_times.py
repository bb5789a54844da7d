"""Readings of what the processes of a run have used, on whichever node they are."""

from __future__ import annotations

import asyncio

from roadstead.actors.interface import NOTHING, ActorLostError, DeadlineError
from roadstead.actors.messages.process import USAGE
from roadstead.actors.runs.session import RunSession
from roadstead.bench.machine import own_usage, process_usages
from roadstead.bench.process_usage import ProcessUsage, Usages

DRIVER, ALL_ACTORS, RAY = "driver", "all actors", "Ray"
"""Names of the process of the command, of the same with all actors in it, and of Ray's servers."""


def has_own_processes(session: RunSession) -> bool:
    """Whether the actors run in other processes than this one."""
    return session.plan.settings.runtime == "ray"


def first_actors(session: RunSession) -> dict[str, str]:
    """Return one actor of each process, by process."""
    if not has_own_processes(session):
        return {ALL_ACTORS: next(iter(session.supervisor.refs))}
    return {process: next(iter(names)) for process, names in session.supervisor.groups().items()}


async def read_usages(session: RunSession) -> Usages:
    """Read what each process has used: each answers for itself, on whichever node it is.

    On one machine the servers of the run's own Ray are included. On a joined cluster they also
    serve others, and are left out; so is a process that does not answer, as while it is replaced.
    """
    if not has_own_processes(session):
        return {(ALL_ACTORS, each.pid): each for each in process_usages()}
    own = own_usage()
    usages = {(DRIVER, own.pid): own, **await _answers(session)}
    if session.supervisor.ray_nodes():
        return usages
    pids = {each.pid for each in usages.values()}
    return usages | {(RAY, each.pid): each for each in process_usages() if each.pid not in pids}


async def _answers(session: RunSession) -> dict[tuple[str, int], ProcessUsage]:
    """Return what each process answers about itself."""
    actors = first_actors(session)
    calls = (session.call(name, USAGE, NOTHING) for name in actors.values())
    usages: dict[tuple[str, int], ProcessUsage] = {}
    for process, answer in zip(
        actors, await asyncio.gather(*calls, return_exceptions=True), strict=True
    ):
        if isinstance(answer, ProcessUsage):
            usages[process, answer.pid] = answer
        elif not isinstance(answer, (ActorLostError, DeadlineError)):
            raise answer
    return usages
