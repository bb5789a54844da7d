"""Workers that answer late or never, for tests that they change no outcome."""

import asyncio

from roadstead.actors.worker.actor import WorkerActor

SEVERAL = (
    {"schedulers": 2, "staleness_s": 0.05},
    {"schedulers": 2, "mode": "partitioned"},
    {"schedulers": 2, "conflicts": "version"},
)
"""Settings with which several schedulers send requests to workers."""


async def never(self, message):
    """Handle a message without ever answering it."""
    await asyncio.sleep(3600)


class SlowToFollow(WorkerActor):
    """A worker that applies changes late."""

    async def apply(self, batch):
        await asyncio.sleep(0.002)
        return await super().apply(batch)


def decided(outcome):
    """Return the keys of the placed and pending pods, sorted."""
    return sorted(each.pod for each in (*outcome.placements, *outcome.pending))


def given(inputs):
    """Return the keys of the pods that a run was given, sorted."""
    return sorted(each.key for each, _ in inputs.pending)
