"""Samples of all processes of a run (`actors/runtime/sampling.py`) during measurements."""

from __future__ import annotations

from roadstead.actors.messages.process import PROFILE, ProfileRequest
from roadstead.actors.runs.process_times import first_actors, has_own_processes
from roadstead.actors.runs.session import RunSession
from roadstead.actors.runtime.sampling import handle_profile_request
from roadstead.bench.speedscope import Samples


class Profiler:
    """Profiler of all processes of a run. samples: by process, one for each measurement."""

    def __init__(self) -> None:
        self.samples: dict[str, list[Samples]] = {}

    async def begin(self, session: RunSession) -> None:
        """Begin to sample every process."""
        for name in first_actors(session).values():
            await session.call(name, PROFILE, ProfileRequest(begins=True))
        if has_own_processes(session):
            handle_profile_request(ProfileRequest(begins=True))

    async def end(self, session: RunSession) -> None:
        """End sampling in every process, and collect the samples."""
        for process, name in first_actors(session).items():
            samples = await session.call(name, PROFILE, ProfileRequest(begins=False))
            self.samples.setdefault(process, []).append(samples)
        if has_own_processes(session):
            self.samples.setdefault("client", []).append(
                handle_profile_request(ProfileRequest(begins=False))
            )
