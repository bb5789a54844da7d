"""A simulated run whose journal has a copy, on nodes that are lost with their disks or cut off.

A node is lost for good: its power is cut, or it is cut off from the others and its processes go on
(they are then "ghosts"). The supervisor replaces control and the copy on other nodes.
"""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from roadstead.actors.interface import UNFENCED, NoNodeError, decode_reply
from roadstead.actors.messages import BIND, BindBatch, pod_list
from roadstead.actors.names import BINDER, CACHE, JOURNAL_COPY, QUEUE
from roadstead.actors.runs.client import Client
from roadstead.actors.runs.launch import first_of
from roadstead.actors.runtime.reconnecting import IncarnationFactory
from roadstead.actors.runtime.simulated import SimulatedRuntime
from roadstead.actors.runtime.simulated_network import Faults, Network
from roadstead.actors.runtime.virtual_time import run_virtual
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.binder import BinderState
from roadstead.config.settings import ActorDeadlines
from roadstead.facts.pod import identity_of
from roadstead.fleet.generate import generate_fleet
from roadstead.invariants.checker import check
from roadstead.journal.segments import Reader
from roadstead.journal_copy.receiver import ReceiverState
from roadstead.protocol.errors import RoadsteadError
from tests.actors.world import inputs_of, plan_of
from tests.journal.simulated_disk import SimulatedDisk

CONTROL = (QUEUE, CACHE, BINDER)
LOSSES = ("power", "cut off", "copy's power", "process", "copy's process")
LOOK_S = 0.05
RUN_S, GHOST_S = 600.0, 30.0


class NodesRuntime(SimulatedRuntime):
    """home, copy_node: the nodes of control and of the copy. gone: lost nodes.

    ghosts: lives on nodes that were cut off. disks: (node, what) → disk.
    """

    def __init__(self, network, limits, nodes):
        super().__init__(network, limits)
        self.nodes, self.gone, self.ghosts, self.disks = list(nodes), set(), [], {}
        self.home = self.copy_node = ""
        self.acknowledged, self.problems = {}, []
        self.on_reply = self._listen

    def disk(self, node, what):
        """The journal's disk of a node; the disk of a process that ended is unlocked."""
        if (node, what) not in self.disks:
            self.disks[node, what] = SimulatedDisk(len(self.disks), short_writes=0.02)
        return self.disks[node, what]

    async def start(self, groups, *, timeout_s):
        free = [each for each in self.nodes if each not in self.gone]
        names = {name for builds in groups.values() for name in builds}
        if BINDER in names and not self.home:
            self.home, self.folder = free[0], "journal"
        if JOURNAL_COPY in names:
            others = [each for each in free if each != self.home]
            if not others:
                raise NoNodeError("the copy of the journal needs another node")
            kept = [each for each in others if each == self.copy_node]
            self.copy_node = (kept or others)[0]
        chosen = {
            host: {name: self._on_its_node(name, build) for name, build in builds.items()}
            for host, builds in groups.items()
        }
        return await super().start(chosen, timeout_s=timeout_s)

    def _on_its_node(self, name, build):
        if name == BINDER:
            disk = self.disk(self.home, self.folder)
            disk.unlock()
            return IncarnationFactory(partial(build.build, disk=disk), name, build.epoch)
        if name == JOURNAL_COPY:
            node = self.copy_node
            self.disk(node, "copy").unlock()
            opened = partial(build.build, open_disk=partial(self._copy_disk, node))
            return IncarnationFactory(opened, name, build.epoch)
        return build

    def _copy_disk(self, node, is_aside):
        if is_aside:
            self.disks[node, f"aside {len(self.disks)}"] = self.disks.pop((node, "copy"))
        return self.disk(node, "copy")

    def journal_lost(self):
        return f"node {self.home} is gone" if self.home in self.gone else ""

    def journal_node(self):
        return self.home

    def move_journal(self):
        self.home, self.folder, self.copy_node = self.copy_node, "copy", ""

    async def retire(self, name):
        """End an actor whose process is kept, and so stays on its node."""
        if name == JOURNAL_COPY and not self.copy_node:
            self.problems.append("the process of a copy that became the journal is kept")
        await super().retire(name)

    async def kill(self, name):
        if name in self.incarnations:
            await super().kill(name)

    async def lose(self, what):
        """Lose a node or a process."""
        self.network.record_fault(what)
        if what == "process":
            await self.crash(BINDER)
        elif what == "copy's process":
            await self.crash(JOURNAL_COPY)
        elif what == "both":
            self.gone |= {self.home, self.copy_node}
            for name in (BINDER, JOURNAL_COPY):
                await self.crash(name)
        elif what == "copy's power":
            self.gone.add(self.copy_node)
            await self.crash(JOURNAL_COPY)
        else:
            self.gone.add(self.home)
            if what == "power":
                await self.crash(BINDER)
            else:
                # As on Ray, whose callers wait no longer for an actor of a lost node.
                for name in CONTROL:
                    self.incarnations[name].cut_off()
                    self.ghosts.append(self.incarnations.pop(name))

    def is_copied(self):
        """Whether the copy is complete, so that the loss of the other node loses nothing."""
        lives = [self.incarnations.get(name) for name in (BINDER, JOURNAL_COPY)]
        if self.home in self.gone or not all(life is not None and life.is_alive for life in lives):
            return False
        return lives[1].actor.receiver.state is ReceiverState.COMPLETE

    def _listen(self, kind, reply):
        if kind != BIND.name:
            return
        try:
            answers = decode_reply(BINDER, BIND, reply, self.limits)
        except RoadsteadError:
            return
        bound = [each for each in answers.answers if not each.cause]
        for each in bound:
            before = self.acknowledged.setdefault(each.uid, each.node_name)
            if before != each.node_name:
                self.problems.append(f"{each.uid} acknowledged on {before} and {each.node_name}")
        if self.is_copied() and bound:
            copied = self.incarnations[JOURNAL_COPY].actor.receiver.lsn
            if max(each.lsn for each in bound) > copied:
                self.problems.append(f"acknowledged beyond record {copied} of the copy")


@dataclass
class Outcome:
    trace: str = ""
    happened: dict = field(default_factory=dict)
    problems: list = field(default_factory=list)
    failure: str = ""
    placed: int = 0
    ghosts: int = 0


def faults_of(draw):
    return Faults(
        lost=draw.choice((0.0, 0.02, 0.1)),
        duplicated=draw.choice((0.0, 0.05, 0.2)),
        slow=draw.choice((0.0, 0.05)),
        slow_max_s=draw.choice((0.5, 3.0)),
        late=draw.choice((0.0, 0.1)),
        seldom=draw.choice((0.0, 0.3)),
        until_s=20.0,
    )


def simulate(seed, nodes="wxyz", losses=None):
    """Run a seed to its end. losses: what is lost, in order; by default as drawn."""
    found = Outcome()
    run_virtual(lambda: _run(seed, nodes, losses, found))
    return found


async def _run(seed, nodes, losses, found):
    draw = random.Random(f"copies {seed}")
    deadlines = ActorDeadlines(call_s=10.0)
    plan = plan_of(
        journal="unused", journal_copy="copy", batch=4, schedulers=2, seed=seed, deadlines=deadlines
    )
    trace = generate_fleet(8, 80, seed)
    inputs = inputs_of(trace.nodes(), trace.pods())
    plan = replace(plan, digest=f"digest {seed}")
    network = Network(seed, faults_of(draw))
    runtime = NodesRuntime(network, plan.limits, nodes)
    supervisor = Supervisor(runtime, plan)
    # Faults are more frequent here than in a run that an operator should inspect.
    supervisor._budget.TIMES = 1000
    await supervisor.start()
    client = Client(supervisor, plan, lambda progress: None)
    chaos = asyncio.create_task(_chaos(runtime, draw, losses))
    try:
        async with asyncio.timeout(RUN_S):
            outcome = await first_of(client.run(inputs), supervisor.watch())
            await first_of(client.end(outcome), supervisor.watch())
            found.placed = len(outcome.placements)
            found.problems += [each async for each in _haunted(runtime)]
            await supervisor.stop()
            found.problems += _of_outcome(outcome, runtime)
    except RoadsteadError as failure:
        found.failure = str(failure)
    except TimeoutError:
        found.problems.append(f"the run has not ended after {RUN_S:g} s")
    finally:
        chaos.cancel()
        await asyncio.gather(chaos, return_exceptions=True)
    found.problems += [*runtime.problems, *_of_journals(runtime, failed=bool(found.failure))]
    found.trace, found.happened = network.trace, dict(network.happened)
    found.ghosts = len(runtime.ghosts)


async def _chaos(runtime, draw, losses):
    """Lose nodes and processes, each once the copy is complete again."""
    chosen = losses if losses is not None else [draw.choice(LOSSES) for _ in range(4)]
    for what in chosen:
        await asyncio.sleep(draw.uniform(0.0, 0.4))
        while not runtime.is_copied():
            await asyncio.sleep(LOOK_S)
        takes_a_node = what in ("power", "cut off", "copy's power")
        if takes_a_node and len(runtime.nodes) - len(runtime.gone) <= 2 and losses is None:
            continue
        await runtime.lose(what)


async def _haunted(runtime):
    """Let binders that were cut off handle a bind each; yield what they acknowledge."""
    for life in runtime.ghosts:
        if life.name != BINDER:
            continue
        core, replies = life.actor.core, []
        pods = (pod for pod in core.pods.present.values() if pod.state is BinderState.PENDING)
        for pod in islice(pods, 3):
            for node in core.placements.nodes:
                pods_of_it = pod_list([(identity_of(pod.uid, pod.key), pod.facts)])
                token = f"ghost/{pod.uid}/{node}"
                batch = BindBatch("scheduler-0", 99, pods_of_it, (node,), (token,))
                life.handle(UNFENCED.envelope(BIND.name, batch), replies.append)
        await asyncio.sleep(GHOST_S)
        for reply in replies:
            with suppress(RoadsteadError):
                answers = decode_reply(BINDER, BIND, reply, runtime.limits)
                bound = [each.uid for each in answers.answers if not each.cause]
                if bound:
                    yield f"a binder without a copy acknowledged {bound}"


def _of_outcome(outcome, runtime):
    """Problems of a run that ended: the outcome and both disks have what was acknowledged."""
    placed = {each.uid: each.node for each in outcome.placements}
    lost = {uid for uid, node in runtime.acknowledged.items() if placed.get(uid) != node}
    if lost:
        yield f"acknowledged and not in the outcome: {sorted(lost)}"
    disk, copy = runtime.disk(runtime.home, runtime.folder), runtime.disk(runtime.copy_node, "copy")
    names = [name for name in disk.names() if name.endswith((".segment", "outcome"))]
    if runtime.is_copied() and any(disk.contents[n] != copy.contents.get(n) for n in names):
        yield "journal and copy differ after the run"


def _of_journals(runtime, *, failed):
    """Problems of the journal that the next process would read."""
    disk = runtime.disk(runtime.home, runtime.folder)
    records = list(Reader(disk).records())
    bound = {each.uid: each.node_name for each in records if each.kind == "bind"}
    lost = {uid for uid, node in runtime.acknowledged.items() if bound.get(uid) != node}
    if lost and not (failed and runtime.home in runtime.gone):
        yield f"acknowledged and not in the journal: {sorted(lost)}"
    yield from map(str, check(records).violations)
