"""Engine: plays a scenario in virtual time.

    arrivals ────┐
    ends, starts ┼─► next in time ─► VirtualCluster ─► bound, pending, preempted ─► Recorder
    components ──┘                        ▲
         ▲                                └─ the queue's own timers
         └── events ◄── every step

Events of one time are handled in the order of their phase: first those that free resources, then
arrivals, then timers, then samples; within a phase in the order in which they were made. So one
scenario and one seed give one history.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple, cast

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodIdentity
from roadstead.protocol.errors import RoadsteadError
from roadstead.queue.reports import PendingReason
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
from roadstead.simulator.limits import LimitExceededError
from roadstead.simulator.recording import Recorder
from roadstead.simulator.scenario import Arrival, CompiledScenario, InitialPod, merge_arrivals
from roadstead.simulator.simulated_pods import (
    NEVER_US,
    ON_NODE,
    Ending,
    LifeEvent,
    LifeState,
    SimulatedPod,
    SimulatedPods,
)
from roadstead.simulator.stopped_nodes import StoppedNodes
from roadstead.simulator.virtual_cluster import VirtualCluster

RELEASES, ARRIVALS, TIMERS, SAMPLES = range(4)
"""Phases of the events of one time."""

SECOND_US: Final = 1_000_000
FOREVER_US: Final = 1 << 62

STEPS_PER_PROGRESS: Final = 1024

Handler = Callable[[object], None]


class QueueFullError(RoadsteadError):
    """More pods wait than the queue may hold."""


class _FailedAttempt(NamedTuple):
    """An attempt that bound nothing, until it is recorded."""

    life: SimulatedPod
    note: PendingReason
    nominated: str


class Engine:
    """One run of a scenario.

    cluster: empty, and made with this engine's `report` as `on_report`. components: in the order in
    which they react. now_us: virtual time. lives: the pods, from creation to end.
    """

    def __init__(
        self,
        plan: CompiledScenario,
        recorder: Recorder,
        components: Sequence[Component] = (),
        *,
        seed: int = 0,
    ) -> None:
        self.plan = plan
        self.now_us = 0
        self.lives = SimulatedPods()
        self.nodes: dict[str, NodeFacts] = {}
        self._stopped = StoppedNodes()
        self._recorder = recorder
        self._components = tuple(components)
        self._for_all_pods = tuple(each for each in components if each.sees_all_pods)
        self._heap: list[tuple[int, int, int, Handler, object]] = []
        self._order = count()
        self._arrivals: Iterator[Arrival] = merge_arrivals(plan, seed)
        self._commands: deque[tuple[Component | None, Command]] = deque()
        self._queue_wakes_us = FOREVER_US
        self._failed: list[_FailedAttempt] = []
        self._names_used: Counter[str] = Counter()
        devices = plan.cluster.devices
        self._has_claims = bool(devices.slices or devices.claims)

    def attach(self, cluster: VirtualCluster, delay: Delay | None = None) -> None:
        """Store the cluster, once, before `run`. delay: of decisions, if they take time."""
        self.cluster = cluster
        self._delay = delay

    @property
    def pods(self) -> Mapping[str, SimulatedPod]:
        return self.lives.by_uid

    def pods_on(self, node: str) -> list[SimulatedPod]:
        """Return the pods on a node, in the order of their placement."""
        here = (self.lives.by_uid.get(each.uid) for each in self.cluster.table.residents.on(node))
        return [pod for pod in here if pod is not None and pod.node == node]

    # The loop.

    def run(
        self,
        on_progress: Callable[[Engine], None] | None = None,
        *,
        until_us: int | None = None,
    ) -> None:
        """Play the scenario to its horizon, once.

        on_progress: called now and then, for progress and limits. until_us: stop there, after all
        events of that time, without the last sample.
        """
        self._begin()
        heap, horizon_us, steps = self._heap, self.plan.horizon_us, 0
        if until_us is not None:
            horizon_us = min(horizon_us, until_us + 1)
        arrival = next(self._arrivals, None)
        while True:
            if (
                arrival is not None
                and arrival.at_us < horizon_us
                and (not heap or (arrival.at_us, ARRIVALS) <= heap[0][:2])
            ):
                self.now_us = arrival.at_us
                self._arrive(arrival)
                arrival = next(self._arrivals, None)
            elif heap and heap[0][0] < horizon_us:
                at_us, _, _, handle, subject = heapq.heappop(heap)
                self.now_us = at_us
                handle(subject)
            else:
                break
            if self._commands or self.lives.counts[LifeState.PENDING]:
                self._settle()
            if self._has_claims:
                self._record_claims()
            steps += 1
            if on_progress is not None and not steps % STEPS_PER_PROGRESS:
                on_progress(self)
        if until_us is not None:
            return
        self.now_us = horizon_us
        self._recorder.sample(self)

    def _push(self, at_us: int, phase: int, handle: Handler, subject: object) -> None:
        at_us = max(at_us, self.now_us)
        heapq.heappush(self._heap, (at_us, phase, next(self._order), handle, subject))

    def _begin(self) -> None:
        plan = self.plan
        for each in self._components:
            each.attach(self)
        self.nodes.update((facts.name, facts) for facts in plan.nodes)
        self.cluster.add_nodes(plan.nodes)
        for facts in plan.nodes:
            self._recorder.node(0, facts.name, facts, is_new=True)
        running = [each for each in plan.pods if each.node]
        lives = [self._create(self._initial(pod)) for pod in running]
        pods = [(life.identity, life.facts) for life in lives]
        self.cluster.add_running(pods, [pod.node for pod in running])
        for life, pod in zip(lives, running, strict=True):
            self._bind(life, pod.node)
        if self._has_claims:
            self._recorder.claims(self, plan.cluster.devices.claims, ())
        pending = [self._initial(each) for each in plan.pods if not each.node]
        self._create_pods(CreatePods(tuple(pending)))
        for component in self._components:
            self._command(component, component.begin())
        self._settle()
        self._push(0, SAMPLES, self._sample, None)

    def _initial(self, pod: InitialPod) -> NewPod:
        identity, lifecycle = pod.identity, pod.lifecycle
        return NewPod(
            identity.namespace,
            identity.name,
            pod.facts,
            grace_us=lifecycle.grace_us,
            no_execute=lifecycle.no_execute,
            uid=identity.uid,
        )

    def _sample(self, _: object) -> None:
        self._recorder.sample(self)
        if self.plan.sample_us > 0:
            self._push(self.now_us + self.plan.sample_us, SAMPLES, self._sample, None)

    # Pods are created.

    def _arrive(self, arrival: Arrival) -> None:
        grace_us, no_execute = arrival.lifecycle.grace_us, arrival.lifecycle.no_execute
        pods = tuple(
            NewPod(
                facts.namespace, name, facts, arrival.duration_us, grace_us, no_execute=no_execute
            )
            for name, facts in arrival.pods
        )
        self._create_pods(CreatePods(pods, arrival.source))

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
        if new.reuses_name:
            used = self._names_used[uid]
            self._names_used[uid] += 1
            uid = f"{uid}#{used}" if used else uid
        pod = SimulatedPod(
            self.lives.created,
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
        self.lives.create(pod)
        if len(self.lives.by_uid) > self.plan.limits.pods:
            raise LimitExceededError(
                f"more than {self.plan.limits.pods:,} pods exist (limits.pods); "
                "let fewer arrive, let them end, or raise the limit"
            )
        for component in self._components if controller >= 0 else self._for_all_pods:
            self._command(component, component.pod_created(pod))
        return pod

    def _place(self, pod: SimulatedPod) -> bool:
        """Bind a new pod at once, if nothing waits before it and it fits."""
        if self._delay is not None:
            return False
        node = self.cluster.place((pod.identity, pod.facts), self._now_s)
        if node is not None:
            self._bind(pod, node)
        return node is not None

    @property
    def _now_s(self) -> float:
        return self.now_us / SECOND_US

    # Scheduling.

    def _settle(self) -> None:
        """Carry out commands and decide pods until nothing is left to do at this time."""
        while True:
            while self._commands:
                component, command = self._commands.popleft()
                self._apply_command(component, command)
            if self._delay is None:
                if self.cluster.can_lease:
                    self.cluster.run(self._now_s)
            elif not self._delay.is_busy(self.now_us) and self.cluster.can_lease:
                self._delay.begin(self.now_us)
                self._delay.end(self.cluster.step(self._now_s))
                self._push(self._delay.free_us, RELEASES, self._ignore, None)
            if not self._apply_decisions() and not self._commands:
                break
        self._plan_queue_wake()

    def _ignore(self, _: object) -> None:
        """Do nothing: the step after each event is enough."""

    def _apply_decisions(self) -> bool:
        """Apply binds and evictions to the lives; return whether there were any."""
        if self._has_claims:
            # Now, as a pod may be bound and evicted at one time: then it is on no node any more.
            self._record_claims()
        bound, evicted = self.cluster.take_bound(), self.cluster.take_evicted()
        if self._failed:
            self._record_failed(dict(bound), evicted)
        new = {uid for uid, _ in bound}
        # A victim makes room for its preemptor, so it ends before that is bound.
        self._preempted(pair for pair in evicted if pair[0] not in new)
        for uid, node in bound:
            pod = self.lives.by_uid[uid]
            if self._delay is None:
                self._bind(pod, node)
            else:
                self._push(self._delay.free_us, RELEASES, self._bind_late, (pod, node))
        self._preempted(pair for pair in evicted if pair[0] in new)
        return bool(bound or evicted)

    def _preempted(self, pairs: Iterable[tuple[str, str]]) -> None:
        for uid, preemptor in pairs:
            pod = self.lives.by_uid[uid]
            pod.preemptor = preemptor
            self._ended(pod, LifeEvent.VANISH, Ending.PREEMPTED)

    def _bind_late(self, subject: object) -> None:
        pod, node = cast("tuple[SimulatedPod, str]", subject)
        if pod.state is not LifeState.PENDING:
            return
        if node in self.nodes:
            self._bind(pod, node)
        else:
            # Its node was removed while the decision took its time.
            self._ended(pod, LifeEvent.VANISH, Ending.LOST)

    def _plan_queue_wake(self) -> None:
        """Plan a step at the time when the queue tries a pod again without an event."""
        wakeup_s = self.cluster.next_wakeup_s()
        if wakeup_s is None:
            return
        at_us = max(math.ceil(wakeup_s * SECOND_US), self.now_us + 1)
        if at_us < self._queue_wakes_us:
            self._queue_wakes_us = at_us
            self._push(at_us, TIMERS, self._queue_woke, at_us)

    def _queue_woke(self, at_us: object) -> None:
        if at_us == self._queue_wakes_us:
            self._queue_wakes_us = FOREVER_US
        self.cluster.run(self._now_s)

    def report(self, report: ReportPods) -> None:
        """Record a scheduler's report on pods that it tried."""
        back = {each.uid: each.nominated_node or "" for each in report.returned}
        for note in report.pending_reasons:
            pod = self.lives.by_uid.get(note.uid)
            if pod is None:
                continue
            pod.attempts += 1
            if pod.first_tried_us == NEVER_US:
                pod.first_tried_us = self.now_us
            self._failed.append(_FailedAttempt(pod, note, back.get(note.uid, "")))

    def _record_failed(self, bound: Mapping[str, str], evicted: Iterable[tuple[str, str]]) -> None:
        """Record the attempts that were reported, each with the pods that it preempted.

        bound: nodes of pods that are about to be bound. evicted: pods with keys of preemptors.
        """
        victims: dict[tuple[str, str], list[str]] = {}
        for uid, preemptor in evicted:
            node = bound.get(uid) or self.lives.by_uid[uid].node
            victims.setdefault((preemptor, node), []).append(uid)
        for each in self._failed:
            # A pod may preempt on one node and then on another, all at one time.
            found = victims.pop((each.note.key, each.nominated), ())
            self._recorder.not_bound(self.now_us, each.life, each.note, each.nominated, found)
        self._failed.clear()

    def _record_claims(self) -> None:
        for change in self.cluster.take_claim_changes():
            self._recorder.claims(self, change.device_claims, change.removed_claims)

    # Lives.

    def _bind(self, pod: SimulatedPod, node: str) -> None:
        now_us = self.now_us
        pod.node, pod.bound_us = node, now_us
        pod.attempts += 1
        if pod.first_tried_us == NEVER_US:
            pod.first_tried_us = now_us
        self.lives.apply(pod, LifeEvent.BIND)
        self._recorder.bound(now_us, pod)
        if self.plan.start_delay_us:
            self._push(now_us + self.plan.start_delay_us, RELEASES, self._start, pod)
        else:
            self._start(pod)

    def _start(self, subject: object) -> None:
        pod = cast("SimulatedPod", subject)
        if pod.state is not LifeState.BOUND or pod.node in self._stopped:
            return
        pod.started_us = self.now_us
        self.lives.apply(pod, LifeEvent.START)
        if pod.duration_us != NEVER_US:
            self._finish_at(pod, self.now_us + pod.duration_us)
        for component in self._components if pod.controller >= 0 else self._for_all_pods:
            self._command(component, component.pod_started(pod))

    def _finish_at(self, pod: SimulatedPod, at_us: int) -> None:
        pod.due_us = at_us
        self._push(at_us, RELEASES, self._finish, pod)

    def _finish(self, subject: object) -> None:
        """End a pod whose duration or grace period is over."""
        pod = cast("SimulatedPod", subject)
        # Another time is due if its node stopped, or if it is deleted before its duration is over.
        if pod.state is not LifeState.ENDED and pod.due_us == self.now_us:
            self._ended(pod, LifeEvent.FINISH, pod.ends_as)

    def _end(self, command: EndPod) -> None:
        pod = self.lives.by_uid.get(command.uid)
        if pod is None or (pod.state is LifeState.TERMINATING and command.is_graceful):
            return
        if pod.state in ON_NODE and command.is_graceful and pod.grace_us:
            pod.ends_as = command.ending
            self.lives.apply(pod, LifeEvent.TERMINATE)
            grace_over_us = self.now_us + pod.grace_us
            if pod.node not in self._stopped and not 0 <= pod.due_us <= grace_over_us:
                self._finish_at(pod, grace_over_us)
            for component in self._components if pod.controller >= 0 else self._for_all_pods:
                self._command(component, component.pod_terminating(pod))
        else:
            self._ended(pod, LifeEvent.VANISH, command.ending)

    def _ended(self, pod: SimulatedPod, event: LifeEvent, ending: Ending) -> None:
        pod.ends_as, pod.ended_us = ending, self.now_us
        self.lives.apply(pod, event)
        if ending is not Ending.PREEMPTED:
            self.cluster.remove([(pod.identity, pod.facts)], self._now_s)
        self._recorder.pod_ended(pod)
        for component in self._components if pod.controller >= 0 else self._for_all_pods:
            self._command(component, component.pod_ended(pod))

    # Commands of components.

    def _command(self, component: Component, commands: Commands) -> None:
        self._commands.extend((component, command) for command in commands)

    def _apply_command(self, component: Component | None, command: Command) -> None:
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
                self._push(at_us, RELEASES, self._wake, (component, key))
            case Note():
                self._recorder.note(self.now_us, command)

    def _wake(self, subject: object) -> None:
        component, key = cast("tuple[Component, tuple[str | int, ...]]", subject)
        self._command(component, component.wake(key))

    def _put_node(self, facts: NodeFacts) -> None:
        is_new = facts.name not in self.nodes
        self.nodes[facts.name] = facts
        self.cluster.add_nodes([facts])
        self._recorder.node(self.now_us, facts.name, facts, is_new=is_new)
        for each in self._components:
            self._command(each, each.node_put(facts, is_new=is_new))

    def _resume_node(self, name: str) -> None:
        for pod, in_us in self._stopped.resume(name, self.pods_on(name)):
            if pod.state is LifeState.BOUND:
                self._push(self.now_us + self.plan.start_delay_us, RELEASES, self._start, pod)
            else:
                self._finish_at(pod, self.now_us + in_us)

    def _drop_node(self, name: str) -> None:
        if name not in self.nodes:
            return
        for pod in self.pods_on(name):
            self._ended(pod, LifeEvent.VANISH, Ending.LOST)
        self._stopped.drop(name)
        del self.nodes[name]
        self.cluster.remove_nodes([name])
        self._recorder.node(self.now_us, name, None, is_new=False)
        for each in self._components:
            self._command(each, each.node_dropped(name))

    def validate(self) -> None:
        """Check the invariants of the run (O(pods)): lives, table and cluster agree."""
        self.lives.validate()
        for pod in self.lives.by_uid.values():
            if pod.state in ON_NODE:
                assert self.cluster.node_of(pod.uid) == pod.node, f"{pod.uid} is on two nodes"
                assert pod.node in self.nodes, f"{pod.uid} is on {pod.node}, which is gone"
