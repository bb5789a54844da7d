"""Single actors among fakes whose answers a test sets; and whole runs."""

import asyncio
import threading
from inspect import isawaitable

from roadstead.actors.interface import NOTHING, ActorLostError
from roadstead.actors.messages import PackedChanges, pod_list
from roadstead.actors.runs.client import Client
from roadstead.actors.runs.launch import first_of, open_runtime
from roadstead.actors.runtime.simulated import SimulatedRuntime
from roadstead.actors.runtime.simulated_network import Network
from roadstead.actors.runtime.virtual_time import run_virtual
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.attempts.attempt_results import no_node
from roadstead.binder.answers import BindAnswers
from roadstead.config.settings import Settings
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import DeviceClassFacts, DevicesFacts
from roadstead.facts.pod import PodIdentity
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.table import NodeTable
from roadstead.run import RunInputs, RunPlan, build_profiles
from tests.builders import GPU, pod
from tests.inside import nodes_of
from tests.waiting import run_until

GENEROUS_S = 60.0
"""A timeout that no test reaches, unless something hangs."""


class Fake:
    """A Ref that logs its messages and returns the answer that the test set for the method.

    An answer is a reply, an exception to raise, or a function of the message (perhaps async).
    """

    def __init__(self, name, **answers):
        self.name = name
        self.answers = answers
        self.calls = []

    async def call(self, method, message, *, timeout_s):
        self.calls.append((method.name, message))
        assert method.name in self.answers, (
            f"{self.name} has no answer for {method.name}: pass {method.name}=… to the fake"
        )
        found = self.answers[method.name]
        if callable(found):
            found = found(message)
        if isawaitable(found):
            found = await found
        if isinstance(found, Exception):
            raise found
        return found

    def received(self, method):
        """Return the messages of one method, in order; cluster changes are unpacked."""
        found = [message for name, message in self.calls if name == method]
        return [m.unpacked() if isinstance(m, PackedChanges) else m for m in found]


class Fakes:
    """A Directory of fakes."""

    def __init__(self, *refs):
        self.refs = {ref.name: ref for ref in refs}

    def find(self, name):
        if name not in self.refs:
            raise ActorLostError(f"there is no actor {name}")
        return self.refs[name]


NOBODY = Fakes()


SERVED = ClusterFacts(
    devices=DevicesFacts(classes=(DeviceClassFacts("gpu", extended_resource=GPU),))
)
"""A cluster whose devices serve an extended resource: it takes more than sums of requests."""


def plan_of(*, config="", cluster=None, **settings):
    """Return a plan on the inline runtime."""
    cluster = cluster or ClusterFacts()
    return RunPlan(Settings(runtime="inline", **settings), config, "scheduler.yaml", cluster)


def identity(name):
    return PodIdentity(f"uid-{name}", "default", name)


def pods_of(*names, facts=None):
    """Return a batch of pods of one class by name."""
    facts = facts or pod(cpu=100)
    return tuple((identity(name), facts) for name in names)


def batch_of(*names, facts=None):
    return pod_list(pods_of(*names, facts=facts))


def inputs_of(nodes, pending, running=()):
    return RunInputs(tuple(nodes), tuple(running), tuple(pending))


def placed(outcome):
    """Return pod → node."""
    return {each.pod: each.node for each in outcome.placements}


def lines(table):
    """Return node → the full contents of a table."""
    return {name: table.row_facts(name) for name in table.node_names()}


async def until(holds):
    """Run other tasks until a condition holds; TimeoutError if it never does."""
    await run_until(holds, GENEROUS_S)


async def turns(count=20):
    """Run other tasks for a few turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def record_actors(runtime):
    """Return a dictionary, name → the actor itself, of the actors that an inline runtime starts."""
    actors, start = {}, runtime.start

    def recording(name, build):
        def build_and_record(runtime):
            actors[name] = build(runtime)
            return actors[name]

        return build_and_record

    async def start_and_record(groups, **how):
        recorded = {
            host: {name: recording(name, build) for name, build in builds.items()}
            for host, builds in groups.items()
        }
        return await start(recorded, **how)

    runtime.start = start_and_record
    return actors


def ray_left():
    """Wait until the runtimes that began to leave Ray have left it."""
    for thread in threading.enumerate():
        if thread.name == "ray-session":
            thread.join(GENEROUS_S)
            assert not thread.is_alive()


def schedulers_of(actors):
    return [actor for name, actor in actors.items() if name.startswith("scheduler")]


def tables_of(actors):
    """Return the tables of all schedulers, each of which holds all nodes."""
    return [nodes_of(each).table for each in schedulers_of(actors)]


def counts_of(actor):
    """Return name → count of an actor's status."""
    return dict(asyncio.run(actor.status(NOTHING)).counts)


def run_inline(inputs, plan, prepare=lambda runtime, actors: None):
    """Run inline; return the outcome and the actors at its end by name.

    prepare: gets the runtime and this dictionary of actors, before they are started.
    """

    async def work():
        runtime = open_runtime(plan)
        actors = record_actors(runtime)
        prepare(runtime, actors)
        supervisor = Supervisor(runtime, plan)
        await supervisor.start()
        try:
            outcome = await Client(supervisor, plan, lambda progress: None).run(inputs)
            for each in schedulers_of(actors):
                # If a stale state is allowed, changes wait for a batch that is never decided.
                await nodes_of(each).resume()
            return outcome, actors
        finally:
            await supervisor.stop()

    return asyncio.run(asyncio.wait_for(work(), GENEROUS_S))


def plainly(inputs, plan):
    """Return PlainCycle's decisions in the queue's order: (pod → node, pod → pending reason)."""
    table = NodeTable()
    for facts in inputs.nodes:
        table.add_node(facts)
    for _, facts, node_name in inputs.running:
        table.add_pod(node_name, table.classes.pod_class(facts))
    profiles = build_profiles(plan, table.classes)
    settings = plan.settings
    cycle = PlainCycle(table, profiles, TieBreak(settings.tie_break, settings.seed))
    nodes, reasons = {}, {}
    for who, facts in sorted(inputs.pending, key=lambda each: -each[1].priority):
        profile = profiles.get(facts.scheduler_name)
        if profile is None or not profile.run_pre_enqueue(facts).is_success:
            reasons[who.key] = None
            continue
        asked = in_cycle(who, facts, table.classes, profile)
        decision = cycle.decide(asked)
        if decision.node_name is None:
            reasons[who.key] = no_node(profile, asked, decision.diagnosis).message
        else:
            nodes[who.key] = decision.node_name
    return nodes, reasons


def in_cycle(who, facts, classes, profile):
    pod_class = classes.pod_class(facts)
    return PodInCycle(who.uid, who.key, pod_class, profile.signature_of(pod_class, who.uid))


def bind_answers(answers):
    """Return answers of the binder as they are sent."""
    return BindAnswers(
        tuple(each.token for each in answers),
        tuple(each.uid for each in answers),
        tuple(each.node_name for each in answers),
        tuple(each.lsn for each in answers),
        tuple(each.version for each in answers),
        tuple(
            (place, each.cause, each.reasons, each.row_version)
            for place, each in enumerate(answers)
            if each.cause
        ),
    )


def run_virtually(inputs, plan, caller_of=None):
    """Run on virtual time, without delays or losses of messages; return the outcome.

    caller_of: calls extenders.
    """

    async def work():
        runtime = SimulatedRuntime(Network(plan.settings.seed), plan.limits)
        supervisor = Supervisor(runtime, plan, caller_of=caller_of)
        await supervisor.start()
        try:
            return await first_of(
                Client(supervisor, plan, lambda progress: None).run(inputs), supervisor.watch()
            )
        finally:
            await supervisor.stop()

    return run_virtual(work)
