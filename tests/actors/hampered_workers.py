"""Workers that do not do their part, for tests in which nothing may come of it."""

import asyncio

from roadstead.actors.worker.actor import WorkerActor

SEVERAL = (
    {"schedulers": 2, "staleness_s": 0.05},
    {"schedulers": 2, "mode": "partitioned"},
    {"schedulers": 2, "conflicts": "version"},
)
"""Settings with which more than one scheduler asks workers."""


async def never(self, message):
    """A handler that does not answer."""
    await asyncio.sleep(3600)


class SlowToFollow(WorkerActor):
    """A worker to which changes come late."""

    async def apply(self, batch):
        await asyncio.sleep(0.002)
        return await super().apply(batch)


def decided(outcome):
    """The pods that were placed or are pending, sorted."""
    return sorted(each.pod for each in (*outcome.placements, *outcome.pending))


def given(inputs):
    """The pods that a run was given, sorted."""
    return sorted(each.key for each, _ in inputs.pending)
