"""Engine: plays a scenario in virtual time.

    arrivals ────┐
    ends, starts ┼─► next in time ─► VirtualCluster ─► bound, pending, preempted ─► Recorder
    components ──┘                        ▲
         ▲                                └─ the queue's own timers
         └── events ◄── every step

A step handles one event, carries out the commands with which components react, and decides pods
until nothing is left to do. Events of one time are ordered: RELEASES, ARRIVALS, TIMERS, SAMPLES.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodIdentity
from roadstead.garbage_collection import gc_tuned
from roadstead.protocol.errors import RoadsteadError
from roadstead.scheduler.needs import ReportPods
from roadstead.simulator.component import (
    Command,
    Commands,
    Component,
    CreatePods,
    DropNode,
    EndPod,
    NewPod,
    Note,
    PutNode,
    ResumeNode,
    SetBudgets,
    StopNode,
    WakeAt,
)
from roadstead.simulator.delay import Delay
from roadstead.simulator.event_heap import ARRIVALS, RELEASES, SAMPLES, TIMERS, EventHeap
from roadstead.simulator.failed_attempts import FailedAttempts
from roadstead.simulator.limits import LimitExceededError
from roadstead.simulator.pod_creations import arriving_pods, initial_pod
from roadstead.simulator.recording import Recorder
from roadstead.simulator.scenario import Arrival, CompiledScenario, merge_arrivals
from roadstead.simulator.simulated_pods import (
    ON_NODE,
    Ending,
    LifeEvent,
    LifeState,
    SimulatedPod,
    SimulatedPods,
)
from roadstead.simulator.stopped_nodes import StoppedNodes
from roadstead.simulator.times import NEVER_US, SECOND_US
from roadstead.simulator.virtual_cluster import VirtualCluster

NO_WAKE_US: Final = 1 << 62
"""Later than any event: the queue has no planned timer."""

WORK_PER_PROGRESS: Final = 1024
"""Events, new pods and attempts between two calls of `on_progress`, which may read the size of the
process. One step may create or decide any number of pods, so steps alone do not bound it."""


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions to apply. bound: pods and their nodes. evicted: UIDs, and keys of preemptors."""

    bound: tuple[tuple[SimulatedPod, str], ...]
    evicted: tuple[tuple[str, str], ...] = ()


class QueueFullError(RoadsteadError):
    """More pods wait than the queue may hold."""


class Engine:
    """One run of a scenario.

    components: in the order in which they react. now_us: virtual time. nodes: by name.
    """

    def __init__(
        self,
        scenario: CompiledScenario,
        recorder: Recorder,
        components: Sequence[Component] = (),
        *,
        seed: int = 0,
    ) -> None:
        self.scenario = scenario
        self.now_us = 0
        self.simulated_pods = SimulatedPods()
        self.nodes: dict[str, NodeFacts] = {}
        self._stopped = StoppedNodes()
        self._recorder = recorder
        self._components = tuple(components)
        # Most pods have no controller. Only these components are called for them.
        self._components_for_all_pods = tuple(each for each in components if each.sees_all_pods)
        self._events = EventHeap()
        self._arrivals: Iterator[Arrival] = merge_arrivals(scenario, seed)
        # Not carried out yet, each with the component that returned it.
        self._commands: deque[tuple[Component, Command]] = deque()
        # When the next planned timer of the queue is over.
        self._queue_wakes_us = NO_WAKE_US
        # With a delay: a timer of the queue is over; the next batch that begins handles it.
        self._is_queue_due = False
        # Attempts that bound nothing, until they are recorded.
        self._failed = FailedAttempts(self.simulated_pods.by_uid, recorder)
        # By namespace/name, for pods whose names are reused: how many pods have had the name. From
        # the second one on, their UIDs end with a number.
        self._names_used: Counter[str] = Counter()
        devices = scenario.cluster.devices
        self._has_claims = bool(devices.slices or devices.claims)
        self._on_progress: Callable[[Engine], None] | None = None
        # Since the last call of `_on_progress`.
        self._work = 0

    def attach(self, cluster: VirtualCluster, delay: Delay | None = None) -> None:
        """Store the cluster, once, before `run`.

        cluster: empty, made with this engine's `report` as `on_report`. delay: if decisions take
        time; a batch is under way (`is_busy`) until `free_us`, and only then may the next begin.
        """
        self.cluster = cluster
        self._delay = delay

    @property
    def pods(self) -> Mapping[str, SimulatedPod]:
        return self.simulated_pods.by_uid

    def pods_on(self, node: str) -> list[SimulatedPod]:
        """Return the pods that are bound to a node, in the order of their placement."""
        by_uid = self.simulated_pods.by_uid
        residents = (by_uid.get(each.uid) for each in self.cluster.table.residents.on(node))
        # The table has a pod from its decision on, which may be before it is bound here.
        return [pod for pod in residents if pod is not None and pod.node == node]

    # The loop.

    def run(
        self,
        on_progress: Callable[[Engine], None] | None = None,
        *,
        until_us: int | None = None,
    ) -> None:
        """Play the scenario to its horizon, once.

        on_progress: called at the start and then once per WORK_PER_PROGRESS, also within a step,
        for progress and limits. until_us: stop there, after all events of that time, and without
        the sample that is made at the horizon.
        """
        self._on_progress = on_progress
        with gc_tuned():
            self._run(until_us)

    def _run(self, until_us: int | None) -> None:
        self._show_progress()
        self._begin()
        heap, horizon_us = self._events.entries, self.scenario.horizon_us
        if until_us is not None:
            horizon_us = min(horizon_us, until_us + 1)
        arrival = next(self._arrivals, None)
        while True:
            # Arrivals are read one ahead from their sources and are not in the heap: a workload of
            # millions of pods needs no memory before they arrive. Events of one time are in the
            # order of their phases.
            if (
                arrival is not None
                and arrival.at_us < horizon_us
                and (not heap or (arrival.at_us, ARRIVALS) <= heap[0][:2])
            ):
                self.now_us = arrival.at_us
                self._create_pods(arriving_pods(arrival))
                arrival = next(self._arrivals, None)
            elif heap and heap[0][0] < horizon_us:
                at_us, _, _, handle, subject = heapq.heappop(heap)
                self.now_us = at_us
                handle(subject)
            else:
                break
            # The next event may be of the same time: it must find the effects of this one.
            if self._commands or self.simulated_pods.counts[LifeState.PENDING]:
                self._run_until_idle()
            if self._has_claims:
                self._record_claims()
            self._work += 1
            if self._work >= WORK_PER_PROGRESS:
                self._show_progress()
        if until_us is not None:
            return
        self.now_us = horizon_us
        self._recorder.sample(self)

    def _show_progress(self) -> None:
        self._work = 0
        if self._on_progress is not None:
            self._on_progress(self)

    def _begin(self) -> None:
        """Create what exists at time 0: nodes, then running pods, then pending ones."""
        scenario = self.scenario
        for component in self._components:
            component.attach(self)
        self.nodes.update((facts.name, facts) for facts in scenario.nodes)
        self.cluster.add_nodes(scenario.nodes)
        for facts in scenario.nodes:
            self._recorder.node(0, facts.name, facts, is_new=True)
        running = [each for each in scenario.pods if each.node]
        created = [self._create(initial_pod(each)) for each in running]
        pods = [(pod.identity, pod.facts) for pod in created]
        self.cluster.add_running(pods, [each.node for each in running])
        for pod, initial in zip(created, running, strict=True):
            self._bind(pod, initial.node)
        if self._has_claims:
            self._recorder.claims(self, scenario.cluster.devices.claims, ())
        pending = [initial_pod(each) for each in scenario.pods if not each.node]
        self._create_pods(CreatePods(tuple(pending)))
        for component in self._components:
            self._add_commands(component, component.begin())
        self._run_until_idle()
        self._events.push(0, SAMPLES, self._sample, None)

    def _sample(self, _: object) -> None:
        self._recorder.sample(self)
        if self.scenario.sample_us > 0:
            self._events.push(self.now_us + self.scenario.sample_us, SAMPLES, self._sample, None)

    # Pods are created.

    def _create_pods(self, command: CreatePods) -> None:
        created = [self._create(each, command.source, command.controller) for each in command.pods]
        if len(created) == 1 and self._place(created[0]):
            return
        pods = [(each.identity, each.facts) for each in created]
        refused = self.cluster.submit(pods, self._now_s)
        if refused:
            raise QueueFullError(
                f"at {self._now_s:.0f} s {self.cluster.waiting_count:,} pods wait, and the queue "
                "has no room for more; raise bounds.queue_max_pods, or let fewer pods arrive"
            )

    def _create(self, new: NewPod, source: int = -1, controller: int = -1) -> SimulatedPod:
        uid = new.uid or f"{new.namespace}/{new.name}"
        # As in a cluster, a pod of a StatefulSet has the name of its predecessor and another UID.
        if new.reuses_name:
            used = self._names_used[uid]
            self._names_used[uid] += 1
            uid = f"{uid}#{used}" if used else uid
        pod = SimulatedPod(
            self.simulated_pods.created,
            PodIdentity(uid, new.namespace, new.name),
            new.facts,
            self.now_us,
            source,
            controller,
            new.duration_us,
            new.grace_us,
            new.ordinal,
            ends_as=new.ends_as,
            no_execute=new.no_execute,
        )
        self.simulated_pods.create(pod)
        if len(self.simulated_pods.by_uid) > self.scenario.limits.pods:
            raise LimitExceededError(
                f"more than {self.scenario.limits.pods:,} pods exist (limits.pods); "
                "let fewer arrive, let them end, or raise the limit"
            )
        for component in self._components if controller >= 0 else self._components_for_all_pods:
            self._add_commands(component, component.pod_created(pod))
        self._work += 1
        if self._work >= WORK_PER_PROGRESS:
            self._show_progress()
        return pod

    def _place(self, pod: SimulatedPod) -> bool:
        """Decide a new pod immediately, if nothing waits before it; return whether it is placed."""
        delay = self._delay
        if delay is not None:
            if delay.is_busy:
                return False
            delay.begin(self.now_us)
        node = self.cluster.place((pod.identity, pod.facts), self._now_s)
        if node is None:
            return False
        if delay is None:
            self._bind(pod, node)
        else:
            delay.decided(1)
            self._push_batch_end(delay, Decided(((pod, node),)))
        return True

    def _push_batch_end(self, delay: Delay, decided: Decided) -> None:
        self._events.push(delay.free_us, RELEASES, self._end_batch, decided)

    @property
    def _now_s(self) -> float:
        return self.now_us / SECOND_US

    # Scheduling.

    def _run_until_idle(self) -> None:
        """Carry out commands and decide pods until nothing is left to do at this time."""
        while True:
            while self._commands:
                component, command = self._commands.popleft()
                self._apply_command(component, command)
            delay = self._delay
            if delay is None:
                if self.cluster.can_lease:
                    self.cluster.run(self._now_s)
            elif not delay.is_busy and (self._is_queue_due or self.cluster.can_lease):
                self._is_queue_due = False
                delay.begin(self.now_us)
                delay.decided(self.cluster.step(self._now_s))
                self._push_batch_end(delay, self._apply_evictions(self._pop_decided()))
                continue
            decided = self._pop_decided()
            if decided.bound or decided.evicted:
                self._apply_decided(decided)
            elif not self._commands:
                break
        self._plan_queue_wake()

    def _pop_decided(self) -> Decided:
        """Return the binds and evictions since the last call, with the attempts recorded."""
        if self._has_claims:
            # Before evictions end pods: one may be bound and evicted at one time, and a claim is
            # recorded with the number of its pod.
            self._record_claims()
        bound, evicted = self.cluster.pop_bound(), self.cluster.pop_evicted()
        if self._failed.attempts:
            self._failed.record(self.now_us, dict(bound), evicted)
        by_uid = self.simulated_pods.by_uid
        return Decided(tuple([(by_uid[uid], node) for uid, node in bound]), tuple(evicted))

    def _apply_decided(self, decided: Decided) -> None:
        """Apply binds and evictions to the pods."""
        remaining = self._apply_evictions(decided)
        for pod, node in remaining.bound:
            self._bind(pod, node)
        self._end_preempted(remaining.evicted)

    def _apply_evictions(self, decided: Decided) -> Decided:
        """End the victims that are bound already; return the binds, and the other victims.

        A victim makes room for its preemptor, so it ends before the preemptor is bound. A victim
        that was itself bound at this time is bound first.
        """
        bound_uids = {pod.uid for pod, _ in decided.bound}
        self._end_preempted(pair for pair in decided.evicted if pair[0] not in bound_uids)
        later = tuple([pair for pair in decided.evicted if pair[0] in bound_uids])
        return Decided(decided.bound, later)

    def _end_preempted(self, evicted: Iterable[tuple[str, str]]) -> None:
        """End victims. evicted: UID, and key of the preemptor."""
        for uid, preemptor in evicted:
            pod = self.simulated_pods.by_uid[uid]
            pod.preemptor = preemptor
            self._end_now(pod, LifeEvent.VANISH, Ending.PREEMPTED)

    def _end_batch(self, subject: object) -> None:
        """Bind the pods of a batch whose time is over; only then may the next one begin."""
        decided = cast("Decided", subject)
        assert self._delay is not None, "only a batch with a delay ends later"
        self._delay.end()
        preempted = {uid for uid, _ in decided.evicted}
        for pod, node in decided.bound:
            if pod.state is not LifeState.PENDING:
                continue
            # The cluster has removed a preempted pod already; it is bound here, then ended below.
            is_placed = pod.uid in preempted or self.cluster.node_of(pod.uid) == node
            if node in self.nodes and is_placed:
                self._bind(pod, node)
            else:
                # Its node was removed between the decision and the end of the delay.
                self._end_now(pod, LifeEvent.VANISH, Ending.LOST)
        by_uid = self.simulated_pods.by_uid
        self._end_preempted(pair for pair in decided.evicted if pair[0] in by_uid)

    def _plan_queue_wake(self) -> None:
        """Plan a step at the time when the queue tries a pod again without an event."""
        wakeup_s = self.cluster.next_wakeup_s()
        # A time that is over already is handled when the batch under way ends.
        if wakeup_s is None or self._is_queue_due:
            return
        at_us = max(math.ceil(wakeup_s * SECOND_US), self.now_us + 1)
        if at_us < self._queue_wakes_us:
            self._queue_wakes_us = at_us
            self._events.push(at_us, TIMERS, self._wake_queue, at_us)

    def _wake_queue(self, at_us: object) -> None:
        # Not equal if a timer for an earlier time was planned after this one, and has run.
        if at_us == self._queue_wakes_us:
            self._queue_wakes_us = NO_WAKE_US
        if self._delay is None:
            self.cluster.run(self._now_s)
        else:
            self._is_queue_due = True

    def report(self, report: ReportPods) -> None:
        """Store the attempts of a scheduler's report that bound nothing."""
        self._failed.add(report, self.now_us)
        self._work += len(report.bound) + len(report.pending_reasons)
        if self._work >= WORK_PER_PROGRESS:
            self._show_progress()

    def _record_claims(self) -> None:
        for change in self.cluster.pop_claim_changes():
            self._recorder.claims(self, change.device_claims, change.removed_claims)

    # Pods on nodes, and the ends of pods.

    def _bind(self, pod: SimulatedPod, node: str) -> None:
        now_us = self.now_us
        pod.node, pod.bound_us = node, now_us
        pod.attempts += 1
        if pod.first_tried_us == NEVER_US:
            pod.first_tried_us = now_us
        self.simulated_pods.apply(pod, LifeEvent.BIND)
        self._recorder.bound(now_us, pod)
        pod.starts_us = now_us + self.scenario.start_delay_us
        if self.scenario.start_delay_us:
            self._events.push(pod.starts_us, RELEASES, self._start, pod)
        else:
            self._start(pod)

    def _start(self, subject: object) -> None:
        pod = cast("SimulatedPod", subject)
        # `starts_us` is another time if the node stopped meanwhile: then this event is outdated.
        is_due = pod.state is LifeState.BOUND and pod.starts_us == self.now_us
        if not is_due or pod.node in self._stopped:
            return
        pod.started_us = self.now_us
        self.simulated_pods.apply(pod, LifeEvent.START)
        if pod.duration_us != NEVER_US:
            self._finish_at(pod, self.now_us + pod.duration_us)
        for component in self._components if pod.controller >= 0 else self._components_for_all_pods:
            self._add_commands(component, component.pod_started(pod))

    def _finish_at(self, pod: SimulatedPod, at_us: int) -> None:
        pod.due_us = at_us
        self._events.push(at_us, RELEASES, self._finish, pod)

    def _finish(self, subject: object) -> None:
        """End a pod whose duration or grace period is over."""
        pod = cast("SimulatedPod", subject)
        # Outdated if `due_us` was changed: the node stopped, or the pod was deleted earlier.
        if pod.state is not LifeState.ENDED and pod.due_us == self.now_us:
            self._end_now(pod, LifeEvent.FINISH, pod.ends_as)

    def _end(self, command: EndPod) -> None:
        """Begin a graceful deletion, or end a pod immediately."""
        pod = self.simulated_pods.by_uid.get(command.uid)
        if pod is None or (pod.state is LifeState.TERMINATING and command.is_graceful):
            return
        if pod.state in ON_NODE and command.is_graceful and pod.grace_us:
            pod.ends_as = command.ending
            self.simulated_pods.apply(pod, LifeEvent.TERMINATE)
            grace_over_us = self.now_us + pod.grace_us
            # If its duration is over before its grace period, the planned end is kept.
            if pod.node not in self._stopped and not 0 <= pod.due_us <= grace_over_us:
                self._finish_at(pod, grace_over_us)
            for component in (
                self._components if pod.controller >= 0 else self._components_for_all_pods
            ):
                self._add_commands(component, component.pod_terminating(pod))
        else:
            self._end_now(pod, LifeEvent.VANISH, command.ending)

    def _end_now(self, pod: SimulatedPod, event: LifeEvent, ending: Ending) -> None:
        """End a pod. event: FINISH when its time is over, VANISH before."""
        pod.ends_as, pod.ended_us = ending, self.now_us
        self.simulated_pods.apply(pod, event)
        # The scheduler has removed a preempted pod already.
        if ending is not Ending.PREEMPTED:
            self.cluster.remove([(pod.identity, pod.facts)], self._now_s)
        self._recorder.pod_ended(pod)
        for component in self._components if pod.controller >= 0 else self._components_for_all_pods:
            self._add_commands(component, component.pod_ended(pod))

    # Commands of components.

    def _add_commands(self, component: Component, commands: Commands) -> None:
        self._commands.extend((component, command) for command in commands)

    def _apply_command(self, component: Component, command: Command) -> None:
        match command:
            case CreatePods():
                self._create_pods(command)
            case EndPod():
                self._end(command)
            case PutNode(facts):
                self._put_node(facts)
            case DropNode(name):
                self._drop_node(name)
            case StopNode(name):
                self._stopped.stop(name, self.pods_on(name), self.now_us)
            case ResumeNode(name):
                self._resume_node(name)
            case SetBudgets(budgets):
                self.cluster.set_budgets(budgets)
            case WakeAt(at_us, key):
                self._events.push(max(at_us, self.now_us), RELEASES, self._wake, (component, key))
            case Note():
                self._recorder.note(self.now_us, command)

    def _wake(self, subject: object) -> None:
        component, key = cast("tuple[Component, tuple[str | int, ...]]", subject)
        self._add_commands(component, component.wake(key))

    def _put_node(self, facts: NodeFacts) -> None:
        is_new = facts.name not in self.nodes
        self.nodes[facts.name] = facts
        self.cluster.add_nodes([facts])
        self._recorder.node(self.now_us, facts.name, facts, is_new=is_new)
        for each in self._components:
            self._add_commands(each, each.node_put(facts, is_new=is_new))

    def _resume_node(self, name: str) -> None:
        for pod, remaining_us in self._stopped.resume(name, self.pods_on(name)):
            if pod.state is LifeState.BOUND:
                pod.starts_us = self.now_us + self.scenario.start_delay_us
                self._events.push(pod.starts_us, RELEASES, self._start, pod)
            else:
                self._finish_at(pod, self.now_us + remaining_us)

    def _drop_node(self, name: str) -> None:
        if name not in self.nodes:
            return
        for pod in self.pods_on(name):
            self._end_now(pod, LifeEvent.VANISH, Ending.LOST)
        self._stopped.drop(name)
        del self.nodes[name]
        self.cluster.remove_nodes([name])
        self._recorder.node(self.now_us, name, None, is_new=False)
        for each in self._components:
            self._add_commands(each, each.node_dropped(name))

    def validate(self) -> None:
        """Check the invariants of the run (O(pods)): pods and cluster agree."""
        self.simulated_pods.validate()
        for pod in self.simulated_pods.by_uid.values():
            if pod.state in ON_NODE:
                assert self.cluster.node_of(pod.uid) == pod.node, f"{pod.uid} is on two nodes"
                assert pod.node in self.nodes, f"{pod.uid} is on {pod.node}, which is gone"
