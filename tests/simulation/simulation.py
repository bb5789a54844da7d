"""One simulated run: a scenario and faults from a seed, run to its end, then checked."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial

from roadstead.actors.interface import NOTHING, ActorLostError, DeadlineError
from roadstead.actors.messages import (
    ADD_NODES,
    ADD_PENDING,
    QUEUE_STATE,
    RUN,
    SUBMIT,
    RunningPods,
    node_batch,
    pod_list,
)
from roadstead.actors.messages.changes import (
    DELETE_PODS,
    OBSERVE,
    REMOVE_DELETED,
    REMOVE_NODES,
    UPDATE_PODS,
    UPDATE_RUNNING,
    ClusterChanges,
    NodeNames,
)
from roadstead.actors.messages.recovery import REMOVE_PODS, PodRemoval
from roadstead.actors.names import BINDER, CACHE, QUEUE, scheduler_name
from roadstead.actors.runtime.simulated import OUTSIDE
from roadstead.actors.runtime.simulated_network import Faults, Network
from roadstead.actors.runtime.virtual_time import StalledError, run_virtual
from roadstead.kernel.compiled_code import load
from roadstead.protocol.errors import RoadsteadError
from roadstead.queue.reports import NodeChange, PodChange
from tests.journal.simulated_disk import SimulatedDisk
from tests.simulation.disk_faults import fault_of
from tests.simulation.endings import checked, ended, rambled, rotting
from tests.simulation.histories import Histories
from tests.simulation.limits import undocumented
from tests.simulation.modes import VARIANTS
from tests.simulation.processes import Process, going_on, inputs_of, run_by_client
from tests.simulation.reached import counting
from tests.simulation.scenarios import make
from tests.simulation.watch import Watch

FAULTS = ("lost", "duplicated", "slow", "partition", "pause", "crash", "late")
KINDS = (*FAULTS, "changes", "disk")
"""The kinds of faults; whether nodes change and are removed, and pods are deleted, during the run;
and whether a disk may fail.
"""

LOOK_S = 0.25
RECOVERY_S = 30.0
"""Time after the last fault within which every feasible pod must be bound (I12)."""

OUTSIDE_S = 0.25
"""Additional time for each pod, where an extender may answer late."""

CLIENT_CUT = 0.2
"""How often the partitioned caller of an actor is the client."""

AGAIN_S = 0.1
"""Time until a client repeats a call to an actor that was down."""

ALL_S = 60.0
DELIVERY_S = 0.5
ARRIVAL_S = 5.0
"""Time for messages in transit to arrive after the queue is empty."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run. problems: empty if there are none. trace: the same for the same seed."""

    seed: int
    trace: str
    virtual_s: float
    happened: Counter
    bound: int = 0
    pods: int = 0
    evicted: int = 0
    problems: list = field(default_factory=list)
    reached: Counter = field(default_factory=Counter)


def faults_of(seed, kinds):
    """The faults of a seed, of the enabled kinds; some seeds have none of a kind."""
    draw = random.Random(f"faults {seed}")
    chosen = {
        "lost": {"lost": draw.choice((0.0, 0.01, 0.05, 0.15))},
        "duplicated": {"duplicated": draw.choice((0.0, 0.02, 0.1, 0.3))},
        "slow": {"slow": draw.choice((0.0, 0.02, 0.1)), "slow_max_s": draw.choice((0.1, 0.5, 3.0))},
        "partition": {"partition_every_s": draw.choice((0.0, 2.0, 5.0))},
        "pause": {
            "pause_every_s": draw.choice((0.0, 2.0, 5.0)),
            # A longer pause is treated as a crash, and the actor is replaced.
            "pause_max_s": draw.choice((0.9, 0.9, 3.0)) if "crash" in kinds else 0.9,
        },
        "crash": {"crash_every_s": draw.choice((0.0, 3.0, 6.0))},
    }
    until_s = draw.choice((4.0, 10.0))
    chosen["late"] = {
        "late": draw.choice((0.0, 0.05, 0.3)),
        "late_max_s": draw.choice((0.05, 0.5, 2.0)),
    }
    wanted = sorted(set(kinds) & chosen.keys())
    rates = {name: rate for kind in wanted for name, rate in chosen[kind].items()}
    seldom = random.Random(f"seldom {seed}").choice((0.0, 0.1, 0.4))
    return Faults(**rates, seldom=seldom, until_s=until_s)


def simulate_counted(seed, kinds=(), among="plain"):
    """Like `simulate`, and count what is reached."""
    counts = Counter()
    with counting(counts):
        outcome = simulate(seed, kinds, among=among)
    return replace(outcome, reached=counts)


def simulate(seed, kinds=(), room_bytes=None, among="plain", *, rambles=True):
    """Run a seed to its end on a loop of its own. room_bytes: size of a small disk.

    among: the variant of the scenarios, see `modes`. rambles: whether cores are called at random
    after the run, or the one core that is; all take two thirds of the time and change nothing but
    `problems`.

    A full disk is no problem if the run reports it and ends.
    """
    found = []
    try:
        run_virtual(lambda: _run(seed, kinds, found, room_bytes, among, rambles))
    except StalledError as stalled:
        found[0].problems.append(f"hangs: {stalled}")
    return found[0]


async def _run(seed, kinds, found, room_bytes, among, rambles):
    scenario = VARIANTS[among](make(seed, changes="changes" in kinds), seed)
    others = list(undocumented())
    asyncio.get_running_loop().set_exception_handler(partial(_note_unheard, others))
    with scenario.limits.applied():
        await _carry_out(scenario, seed, kinds, found, room_bytes, rambles)
    found[0].problems.extend(others)


def _note_unheard(problems, loop, context):
    """Record the failure of a task or callback without a waiter: production only logs it."""
    failure = context.get("exception")
    if failure is not None:
        problems.append(f"nobody hears that {type(failure).__name__}: {failure}")


async def _carry_out(scenario, seed, kinds, found, room_bytes, rambles):
    network = Network(seed, faults_of(seed, () if scenario.is_quiet else kinds))
    disk = SimulatedDisk(seed, room_bytes)
    disk.fault = fault_of(seed, () if scenario.is_quiet else kinds)
    run = _Run(scenario, network, disk, load() if scenario.has_kernel else None)
    problems, came_to_its_end = [], False
    chaos = asyncio.create_task(_chaos(run, network))
    rots = asyncio.create_task(rotting(run, seed))
    try:
        problems += await (run.killed(chaos) if scenario.kills_s else run.driven())
    except RoadsteadError as failure:
        problems += ended(run, room_bytes, failure)
    else:
        problems += await checked(run, seed)
        came_to_its_end = True
    finally:
        chaos.cancel()
        rots.cancel()
    problems += run.histories.problems()
    found.append(_outcome(seed, scenario, run, problems))
    queue, drawn = run.process.actors.get(QUEUE), network.trace
    await run.process.runtime.stop()
    if came_to_its_end and rambles:
        core = rambles if isinstance(rambles, str) else None
        problems += await rambled(run, queue, drawn, core)


class _Run:
    """The processes of a run, one at a time.

    heard: uid → node of the binds that the binder acknowledged. histories: the calls of the
    binder's and the queue's callers. kept: uid → pod that the full queue refused, and that is sent
    again.
    """

    def __init__(self, scenario, network, disk, code):
        self.scenario, self.network, self.disk, self._code = scenario, network, disk, code
        self.heard, self.kept = {}, {}
        lease_s = scenario.plan.settings.deadlines.lease_s
        self.histories = Histories(lease_s, lambda: network.spent_s)
        self.watch = Watch(scenario.plan) if scenario.is_quiet else None
        self._shadows = []
        self.process = None
        self.process = self._begin(scenario.plan)

    def shadow_problems(self):
        """Differences between some life of a core and its shadow."""
        found = []
        for shadow in (*self._shadows, *self.process.runtime.shadows):
            shadow.look()
            found += shadow.problems
        return found

    def _begin(self, plan):
        how = self._code, self.watch, self.scenario.limits, self.scenario.outside
        how = *how, self.process and self.process.journal
        return Process(plan, self.network, self.disk, self.heard, self.histories, *how)

    async def driven(self):
        """Run one process with the events of the scenario."""
        scenario, watch, kept = self.scenario, self.watch, self.kept
        return await self.process.work(lambda process: _drive(scenario, process, watch, kept))

    async def killed(self, chaos):
        """Run processes that are killed, one after another, and the last one to its end."""
        network, inputs = self.network, inputs_of(self.scenario)
        until_s = network.faults.until_s + _recovery_s(self.scenario)

        async def drive(process):
            problems = await run_by_client(process, inputs, until_s)
            chaos.cancel()
            # An actor that seemed crashed at the end may yet be replaced, and waiting calls
            # repeated.
            await asyncio.sleep(ARRIVAL_S)
            return problems + await _at_rest(self.scenario, process)

        for at_s in self.scenario.kills_s:
            working = asyncio.create_task(self.process.work(drive))
            await asyncio.wait({working}, timeout=max(0.0, at_s - network.spent_s))
            if working.done() and not self._may_go_on(working):
                return await working
            await self.process.kill()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            self.histories.resumed()
            self._shadows += self.process.runtime.shadows
            self.process = self._begin(going_on(self.process.plan, self.disk))
        return await self.process.work(drive)

    def _may_go_on(self, ended):
        """Whether a process ended because its disk failed, which is then repaired."""
        failure, disk = ended.exception(), self.disk
        if not disk.met or disk.lied or "nothing more is acknowledged" not in str(failure):
            return False
        disk.fault, disk.met = None, False
        self.network.record_fault("failed disk")
        return True


def _outcome(seed, scenario, run, problems):
    network, runtime = run.network, run.process.runtime
    binder = runtime.incarnations[BINDER].actor.core if BINDER in runtime.incarnations else None
    loaders = (getattr(life.actor, "_kernel", None) for life in runtime.incarnations.values())
    if run.watch and run.watch.judge:
        network.happened["judged"] += run.watch.judge.judged
    network.happened["by kernel"] += sum(each.decision_counts.by_kernel for each in loaders if each)
    network.happened += Counter()
    return Outcome(
        seed,
        network.trace,
        network.spent_s,
        network.happened,
        bound=len(binder.placements) if binder else 0,
        pods=len(scenario.pods),
        evicted=sum(
            binder is not None and binder.pod_status(who.uid)[0].value == "deleted"
            for who, _ in scenario.pods
        ),
        problems=problems,
    )


async def _chaos(run, network):
    """Cause partitions, pauses and crashes, as long as there are faults."""
    faults, draw = network.faults, network.random
    aside = random.Random(f"cut off {run.scenario.plan.settings.seed}")
    rates = {
        "partition": faults.partition_every_s,
        "pause": faults.pause_every_s,
        "crash": faults.crash_every_s,
    }
    rates = {kind: 1 / every_s for kind, every_s in rates.items() if every_s}
    while rates:
        await asyncio.sleep(draw.expovariate(sum(rates.values())))
        if not network.is_faulty:
            return
        runtime = run.process.runtime
        names = sorted(name for name, life in runtime.incarnations.items() if life.is_alive)
        if len(names) < 2:
            continue
        (kind,) = draw.choices(list(rates), list(rates.values()))
        if kind == "partition":
            parties = draw.sample(names, 2)
            if aside.random() < CLIENT_CUT:
                parties[0] = OUTSIDE
            network.cut(*parties, draw.uniform(0.1, faults.partition_max_s))
        elif kind == "pause":
            network.pause(draw.choice(names), draw.uniform(0.1, faults.pause_max_s))
        else:
            await runtime.crash(draw.choice(names))


class _World:
    """Events of the cluster, sent to all actors concerned; removals and changes are counted.

    watch: gets each event first, and lets no actor use it before all have it. kept: uid → pod that
    the queue refused. facts_sent: uid → the facts that were sent last.
    """

    def __init__(self, call, process, watch, kept):
        self.call, self._process, self._watch = call, process, watch
        self.revision, self._kept, self._facts_sent = 0, kept, {}

    def _show(self, what, things):
        for each in things if self._watch else ():
            self._watch.world(what, each)

    async def _wait_for_actors(self):
        # Actors that hold nodes have the change before the queue wakes a pod.
        if self._watch:
            await asyncio.sleep(DELIVERY_S)

    async def take(self, wave):
        if wave.nodes:
            # A node that changed while it was away is added unchanged: that is a change, too.
            self.revision += 1
            await self.appear(wave.nodes)
        if wave.pods:
            await self.submit(wave.pods)
        self.revision += 1
        if wave.removed:
            await self.remove(wave.removed)
        if wave.changed:
            await self.appear([new for _, new in wave.changed], wave.changed)
        if wave.gone:
            await self.delete(wave.gone)
        if wave.opened:
            await self.update(wave.opened)

    async def submit(self, pods):
        """Send pods; keep those that the queue refuses."""
        batch = pod_list(pods, self.revision)
        await self.call(BINDER, ADD_PENDING, batch)
        self._facts_sent |= {who.uid: facts for who, facts in pods}
        answer = await self.call(QUEUE, SUBMIT, batch)
        before = {who.uid for who, _ in pods if self._kept.pop(who.uid, None)}
        for who, facts in pods:
            if who.uid in answer.refused:
                self._kept[who.uid] = who, facts
        if self._kept.keys() - before:
            self._process.network.record_fault("full queue")

    async def update(self, pods):
        """Change pods, wherever they are; removed pods stay removed."""
        batch = pod_list(pods, self.revision)
        here = await self.call(BINDER, UPDATE_PODS, batch)
        at = dict(zip(here.pods.uids, here.nodes, strict=True))
        waiting = [pod for pod in pods if at.get(pod[0].uid) == ""]
        bound = [(who, facts) for who, facts in pods if at.get(who.uid)]
        if bound:
            self._process.network.record_fault("update of bound pods")
            for who, facts in bound if self._watch else ():
                self._watch.world("pod_changes", who.uid, facts)
            running = pod_list(bound, self.revision), tuple(at[who.uid] for who, _ in bound)
            await self.call(CACHE, UPDATE_RUNNING, RunningPods(*running))
            await self._wait_for_actors()
        changes = tuple(PodChange(self._facts_sent[who.uid], facts) for who, facts in bound)
        # Before other pods wake them with their old facts.
        if waiting:
            self._process.network.record_fault("update")
            await self.submit(waiting)
        if changes:
            await self.call(QUEUE, OBSERVE, ClusterChanges(pods=changes))
        self._facts_sent |= {who.uid: facts for who, facts in pods}

    async def submit_again(self):
        """Send the refused pods again, in their order."""
        if self._kept:
            await self.submit([*self._kept.values()])

    async def appear(self, nodes, changed=()):
        self._show("node_comes", nodes)
        # The binder first: a new cache would never get changes that the binder does not have.
        batch = node_batch(tuple(nodes), self.revision)
        await self.call(BINDER, ADD_NODES, batch)
        await self.call(CACHE, ADD_NODES, batch)
        await self._wait_for_actors()
        changes = [NodeChange(*each) for each in changed or ((None, node) for node in nodes)]
        await self.call(QUEUE, OBSERVE, ClusterChanges(tuple(changes)))

    async def remove(self, nodes):
        gone = NodeNames(tuple(node.name for node in nodes), self.revision)
        self._show("node_removed", gone.names)
        await self.call(BINDER, REMOVE_NODES, gone)
        await self.call(CACHE, REMOVE_NODES, gone)
        await self._wait_for_actors()
        changes = tuple(NodeChange(node, None) for node in nodes)
        await self.call(QUEUE, OBSERVE, ClusterChanges(changes))

    async def delete(self, uids):
        # A pod that is deleted before it is submitted keeps its claims: nobody knows it.
        self._show("pod_goes", [uid for uid in uids if uid in self._facts_sent])
        for uid in uids:
            self._kept.pop(uid, None)
        gone = await self.call(BINDER, DELETE_PODS, PodRemoval(uids, self.revision))
        await self.call(CACHE, REMOVE_PODS, PodRemoval(gone.uids, gone.revision))
        await self._wait_for_actors()
        await self.call(QUEUE, REMOVE_DELETED, gone)


def _caller(scenario, process):
    """A caller that repeats a call until the actor answers."""
    call_s = scenario.plan.settings.deadlines.call_s

    async def call(name, method, message):
        while True:
            try:
                ref = process.runtime.find_from(name, OUTSIDE)
                return await ref.call(method, message, timeout_s=call_s)
            except (ActorLostError, DeadlineError):
                await asyncio.sleep(AGAIN_S)

    return call


def _recovery_s(scenario):
    return RECOVERY_S + OUTSIDE_S * len(scenario.pods) * (scenario.outside is not None)


async def _at_rest(scenario, process, world=None):
    """Wait until nothing moves; return the problems of that. world: sends refused pods again."""
    network, call = process.runtime.network, _caller(scenario, process)
    recovery_s = _recovery_s(scenario)
    deadline_s = network.spent_s + recovery_s
    has_rested = False
    while True:
        if world is not None:
            await world.submit_again()
        state = await call(QUEUE, QUEUE_STATE, NOTHING)
        if not (state.active or state.backoff or state.in_flight):
            if has_rested:
                return []
            await asyncio.sleep(ARRIVAL_S)
            has_rested = True
            continue
        has_rested = False
        if network.spent_s > deadline_s:
            return [f"I12: {recovery_s:g} s after the last fault, {state} moves on"]
        await asyncio.sleep(LOOK_S)


async def _drive(scenario, process, watch, kept):
    """Submit waves and wait until nothing moves; return the problems of that."""
    supervisor, network = process.supervisor, process.runtime.network
    world = _World(_caller(scenario, process), process, watch, kept)
    await world.appear(scenario.nodes)
    for index in range(scenario.plan.settings.scheduler_count):
        # Through the supervisor, which starts the actors that replace these.
        await supervisor.refs[scheduler_name(index)].call(RUN, NOTHING, timeout_s=ALL_S)
    for wave in scenario.waves:
        await asyncio.sleep(max(0.0, wave.at_s - network.spent_s))
        if scenario.is_quiet and (problems := await _at_rest(scenario, process, world)):
            return problems
        await world.take(wave)
    await asyncio.sleep(max(0.0, network.faults.until_s - network.spent_s))
    problems = await _at_rest(scenario, process, world)
    if problems or not network.faults.crash_every_s:
        return problems
    # A new actor must reach the present state, instead of receiving every change.
    last = network.random.choice((CACHE, CACHE, BINDER, *sorted(process.runtime.incarnations)))
    await process.runtime.crash(last)
    return await _at_rest(scenario, process, world)
