"""Samples of all processes of a run (`actors/runtime/sampling.py`) during measurements."""

from __future__ import annotations

from roadstead.actors.messages.process import PROFILE, ProfileRequest
from roadstead.actors.runs.session import RunSession
from roadstead.actors.runtime.sampling import handle_profile_request
from roadstead.bench.speedscope import Samples


class Profiler:
    """Profiler of all processes of a run. samples: by process, one for each measurement."""

    def __init__(self) -> None:
        self.samples: dict[str, list[Samples]] = {}

    async def begin(self, session: RunSession) -> None:
        """Begin to sample every process."""
        for name in _first_actors(session).values():
            await session.call(name, PROFILE, ProfileRequest(begins=True))
        if _has_own_processes(session):
            handle_profile_request(ProfileRequest(begins=True))

    async def end(self, session: RunSession) -> None:
        """End sampling in every process, and collect the samples."""
        for process, name in _first_actors(session).items():
            samples = await session.call(name, PROFILE, ProfileRequest(begins=False))
            self.samples.setdefault(process, []).append(samples)
        if _has_own_processes(session):
            self.samples.setdefault("client", []).append(
                handle_profile_request(ProfileRequest(begins=False))
            )


def _has_own_processes(session: RunSession) -> bool:
    """Whether the actors run in other processes than this one."""
    return session.plan.settings.runtime == "ray"


def _first_actors(session: RunSession) -> dict[str, str]:
    """Return one actor of each process, by process."""
    if not _has_own_processes(session):
        return {"all actors": next(iter(session.supervisor.refs))}
    return {process: next(iter(names)) for process, names in session.supervisor.groups().items()}
