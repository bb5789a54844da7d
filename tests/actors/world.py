"""Actors by themselves, among fakes that answer what a test says; and whole runs."""

import asyncio
from inspect import isawaitable

from roadstead.actors.messages import pod_batch
from roadstead.actors.seam import ActorLostError
from roadstead.config.settings import Settings
from roadstead.facts.pod import PodIdentity
from roadstead.run import RunInputs, RunPlan
from tests.builders import pod

GENEROUS_S = 60.0
"""No test waits so long, unless something hangs."""


class Fake:
    """A Ref that logs what it is told and answers what the test says under the method's name.

    An answer is a reply, an exception to raise, or a function of the message (perhaps async).
    """

    def __init__(self, name, **answers):
        self.name = name
        self.answers = answers
        self.calls = []

    async def call(self, method, message, *, timeout_s):
        self.calls.append((method.name, message))
        found = self.answers[method.name]
        if callable(found):
            found = found(message)
        if isawaitable(found):
            found = await found
        if isinstance(found, Exception):
            raise found
        return found

    def told(self, method):
        """The messages of one method, in order."""
        return [message for name, message in self.calls if name == method]


class Fakes:
    """A Directory of fakes."""

    def __init__(self, *refs):
        self.refs = {ref.name: ref for ref in refs}

    def find(self, name):
        if name not in self.refs:
            raise ActorLostError(f"there is no actor {name}")
        return self.refs[name]


NOBODY = Fakes()


def plan_of(*, config="", **settings):
    """A plan on the inline runtime, small shards."""
    return RunPlan(Settings(runtime="inline", **settings), config, "scheduler.yaml")


def identity(name):
    return PodIdentity(f"uid-{name}", "default", name)


def pods_of(*names, facts=None):
    """Pods of one class by name."""
    facts = facts or pod(cpu=100)
    return tuple((identity(name), facts) for name in names)


def batch_of(*names, facts=None):
    return pod_batch(pods_of(*names, facts=facts))


def inputs_of(nodes, pending, running=()):
    return RunInputs(tuple(nodes), tuple(running), tuple(pending))


def placed(outcome):
    """Pod → node."""
    return {each.pod: each.node for each in outcome.placements}


def lines(*tables):
    """Node → all that a table says of it, over the tables of all shards."""
    return {name: table.row_facts(name) for table in tables for name in table.node_names()}


async def until(holds):
    """Lets others run until a condition holds; TimeoutError if it never does."""
    async with asyncio.timeout(GENEROUS_S):
        while not holds():
            await asyncio.sleep(0.001)


async def turns(count=20):
    """Lets others run for a few turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)
