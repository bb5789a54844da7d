"""A process with all actors of a run: its start, the acknowledgements it receives, and its end."""

import asyncio
import threading
from dataclasses import replace

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.interface import decode_reply
from roadstead.actors.messages import BIND
from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.actors.runs.client import Client
from roadstead.actors.runs.launch import first_of
from roadstead.actors.runtime.simulated import SimulatedRuntime
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.journal.contents import read_journal
from roadstead.protocol.errors import RoadsteadError
from roadstead.run import RunInputs
from tests.simulation.limits import USUAL
from tests.simulation.shadow_batch import ShadowBatches
from tests.simulation.shadow_cache import ShadowCache
from tests.simulation.shadow_claims import ShadowClaims
from tests.simulation.shadow_cycle import ShadowCycle
from tests.simulation.shadow_journal import ShadowJournal, WatchedJournal
from tests.simulation.shadow_life import ShadowLife
from tests.simulation.shadow_performer import ShadowPerformer
from tests.simulation.shadow_queue import shadow_of
from tests.simulation.shadow_refill import ShadowRefill
from tests.simulation.shadow_reports import ShadowReports
from tests.simulation.shadow_verifier import ShadowVerifier

MANY = 1000


class _Runtime(SimulatedRuntime):
    """code: of the kernel, which schedulers have from the start; no thread loads it.

    watch: receives every life of an actor. histories: of all calls, and of lives of the queue.
    shadows: of the cores that have one, one per life. shrunk: settings of the cores.
    """

    def __init__(self, network, plan, instead, histories, code=None, watch=None, shrunk=USUAL):
        super().__init__(network, plan.limits, instead)
        self._plan, self._histories, self._shrunk = plan, histories, shrunk
        self.on_call = histories.listen
        self._code, self._watch = code, watch
        self._watched = {}
        self.shadows = []

    async def start(self, groups, *, timeout_s):
        started = await super().start(groups, timeout_s=timeout_s)
        if any(QUEUE in group for group in groups.values()):
            self._histories.restarted()
        for name, life in self.incarnations.items():
            if self._watched.get(name) is life:
                continue
            self._watched[name] = life
            if name == CACHE:
                shadow = ShadowCache(life.actor.core)
                faults = self.network.faults
                ShadowRefill(life.actor, shadow, faults.late and faults.late_max_s)
                ShadowClaims(life.actor, shadow)
                shadow.expect_settings(self._plan, self._shrunk.cache)
                self.shadows.append(shadow)
            if name == QUEUE:
                self.shadows.append(shadow_of(life.actor, self._shrunk.queue))
                self.shadows.append(ShadowReports(life.actor.queue))
            elif name.startswith("scheduler"):
                self.shadows.append(ShadowCycle(life.actor.core))
                self.shadows.append(ShadowPerformer(life.actor, breaks_off=not self._watch))
                if not self._watch:
                    scopes = life.actor._scheduler.cycle.scopes
                    self.shadows += [ShadowBatches(scope.builder) for scope in scopes]
            elif name == BINDER:
                self.shadows.append(ShadowVerifier(life.actor.binder.verifier))
            if self._watch:
                self._watch.show(name, life.actor)
        for life in self.incarnations.values():
            if loader := getattr(life.actor, "_kernel", None):
                # Mark it as loading: a kernel from an earlier run of this process is not used.
                loader._thread = threading.current_thread()
                loader._compiled_kernel.code = self._code
        return started


class Process:
    """heard: uid → node of every acknowledged bind that leaves the binder.

    histories: of the calls of all processes of a run. outside: faults of extenders. journal: the
    shadow of the journal, shared by all processes.
    """

    def __init__(
        self,
        plan,
        network,
        disk,
        heard,
        histories,
        code=None,
        watch=None,
        limits=USUAL,
        outside=None,
        journal=None,
    ):
        self.plan, self.network = plan, network
        self.journal = journal or ShadowJournal(disk, limits, histories.snapshots)
        binder = _binder(plan, disk, limits.segment_bytes, self.journal)
        of_run = histories, code, watch, limits
        self.runtime = _Runtime(network, plan, {BINDER: binder}, *of_run)
        self.runtime.on_reply = _listen(plan, heard)
        caller_of = None if outside is None else outside.caller_of
        self.supervisor = Supervisor(self.runtime, plan, has_journal=True, caller_of=caller_of)
        # Faults are more frequent here than in a run that an operator should inspect.
        self.supervisor._budget.TIMES = MANY

    async def work(self, drive):
        """Return the result of the drive, or the error that ends the run."""
        await self.supervisor.start()
        return await first_of(drive(self), self.supervisor.watch())

    async def kill(self):
        """End the process at once, with all its state."""
        self.network.record_fault("kill")
        for name in sorted(self.runtime.incarnations):
            await self.runtime.kill(name)

    @property
    def actors(self):
        return {name: life.actor for name, life in self.runtime.incarnations.items()}


def _binder(plan, disk, segment_bytes, shadow):
    lives = []

    def build(directory):
        # Its process was killed, or the machine stopped.
        if lives and disk.random.random() < 0.5:
            _stop_machine(disk)
        disk.lose_writes()
        disk.unlock()
        lives.append(directory)
        journal = WatchedJournal(disk, shadow, segment_bytes=segment_bytes)
        actor = BinderActor(plan, directory, journal)
        ShadowLife(actor, plan, shadow, shadow.problems)
        return actor

    return build


def _stop_machine(disk):
    room_bytes = disk.room_bytes
    disk.crash()
    disk.room_bytes = room_bytes


def _listen(plan, heard):
    def listen(kind, reply):
        if kind == BIND.name:
            try:
                answers = decode_reply(BINDER, BIND, reply, plan.limits).answers
            except RoadsteadError:
                return
            heard.update((each.uid, each.node_name) for each in answers if not each.cause)

    return listen


def going_on(plan, disk):
    """The plan of the process after a killed one, as `--resume` makes it."""
    if disk.random.random() < 0.5:
        _stop_machine(disk)
    disk.lose_writes()
    disk.unlock()
    last_epoch = read_journal(disk).last_epoch
    return replace(plan, resume=bool(disk.names()), first_epoch=last_epoch + 1)


def inputs_of(scenario):
    """All inputs at once, as the command line has them, each node once in its final form."""
    late = (node for wave in scenario.waves for node in wave.nodes)
    nodes = {node.name: node for node in (*scenario.nodes, *late)}
    return RunInputs(tuple(nodes.values()), scenario.running, tuple(scenario.pods))


async def run_by_client(process, inputs, until_s):
    """A run as the command line makes it, and the violations in its results."""
    try:
        async with asyncio.timeout(max(0.0, until_s - process.network.spent_s)):
            client = Client(process.supervisor, process.plan, lambda progress: None)
            outcome = await client.run(inputs)
    except TimeoutError:
        return [f"I12: the run has not ended after {until_s:g} s"]
    binder = process.actors[BINDER].core
    placed = {each.uid: each.node for each in outcome.placements}
    waiting = {each.uid for each in outcome.pending}
    problems = []
    for identity, _ in inputs.pending:
        node_name = binder.placements.node_of(identity.uid)
        if placed.get(identity.uid) != node_name:
            problems.append(
                f"{identity.uid} is reported on {placed.get(identity.uid)}, not {node_name}"
            )
        state, _ = binder.pod_status(identity.uid)
        if (state.value == "pending") != (identity.uid in waiting):
            problems.append(f"{identity.uid} is {state.value}; reported as waiting: {waiting}")
    return problems
