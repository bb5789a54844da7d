"""A world for controllers in which tests decide what happens to pods."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.simulator.component import (
    Command,
    Commands,
    CreatePods,
    DropNode,
    EndPod,
    NewPod,
    Note,
    PutNode,
    WakeAt,
)
from roadstead.simulator.controllers import Controllers
from roadstead.simulator.scenario import (
    ControllerChange,
    ControllerKind,
    ControllerPlan,
    PodLifecycle,
    PodTemplatePlan,
)
from roadstead.simulator.simulated_pods import (
    ON_NODE,
    Ending,
    LifeEvent,
    LifeState,
    SimulatedPod,
    SimulatedPods,
)
from roadstead.simulator.times import NEVER_US

SECOND_US = 1_000_000
GRACE_US = 30 * SECOND_US
LIFE = PodLifecycle(grace_us=GRACE_US)


def template(base: str = "web-a", ordinals: int = 0) -> PodTemplatePlan:
    """A template whose pods are labelled with its base, and those with ordinals with them, too."""
    facts = PodFacts(labels=(("base", base),))
    numbered = tuple(
        replace(facts, labels=(("base", base), ("ordinal", str(each)))) for each in range(ordinals)
    )
    return PodTemplatePlan(base, facts, LIFE, numbered)


def controller(kind: ControllerKind, replicas: int = 0, **more) -> ControllerPlan:
    """A controller named web, by default with one template."""
    base = "web" if kind == "StatefulSet" else "web-a"
    more.setdefault("templates", (template(base, 64 if kind == "StatefulSet" else 0),))
    return ControllerPlan(more.pop("index", 0), kind, "default", "web", replicas=replicas, **more)


def scaled(at_s: int, replicas: int) -> ControllerChange:
    return ControllerChange(at_s * SECOND_US, replicas=replicas)


def rolled_out(at_s: int, index: int) -> ControllerChange:
    return ControllerChange(at_s * SECOND_US, template=index)


class FakeFleet:
    """A fleet of nodes and pods.

    starts: whether every pod is bound and started when it is created, on the nodes in turn; else by
    `start`. notes: (second, what, detail). created: every pod, in order.
    """

    def __init__(self, *plans: ControllerPlan, nodes=("n0", "n1"), starts=True, seed=0):
        self.now_us = 0
        self.starts = starts
        self.nodes: dict[str, NodeFacts] = {
            each.name: each for each in (NodeFacts(n) if isinstance(n, str) else n for n in nodes)
        }
        self.simulated_pods = SimulatedPods()
        self.notes: list[tuple[int, str, str]] = []
        self.created: list[SimulatedPod] = []
        self._heap: list[tuple[int, int, object]] = []
        self._order = count()
        self._commands: deque[Command] = deque()
        self._names: dict[str, int] = {}
        self.controllers = Controllers(plans, seed)
        self.controllers.attach(self)
        self._commands.extend(self.controllers.begin())
        self.run_to(0)

    # As a controller reads it.

    @property
    def pods(self) -> Mapping[str, SimulatedPod]:
        return self.simulated_pods.by_uid

    def pods_on(self, node: str) -> list[SimulatedPod]:
        return [life for life in self.pods.values() if life.node == node]

    # As a test reads it.

    def names(self, *states: LifeState) -> list[str]:
        """Names of the pods in these states, by default of those that do not terminate."""
        wanted = states or (LifeState.PENDING, LifeState.BOUND, LifeState.RUNNING)
        return [life.identity.name for life in self.pods.values() if life.state in wanted]

    def active(self) -> list[SimulatedPod]:
        return [each for each in self.pods.values() if each.state is not LifeState.TERMINATING]

    def available(self) -> list[SimulatedPod]:
        return [each for each in self.pods.values() if each.state is LifeState.RUNNING]

    def of(self, base: str) -> list[SimulatedPod]:
        """The active pods of a template."""
        return [life for life in self.active() if ("base", base) in life.facts.labels]

    def pod(self, name: str) -> SimulatedPod:
        (life,) = (each for each in self.pods.values() if each.identity.name == name)
        return life

    # What happens.

    def run_to(self, second: float) -> None:
        """Let time pass."""
        end_us = round(second * SECOND_US)
        self._run_commands()
        while self._heap and self._heap[0][0] <= end_us:
            at_us, _, what = heapq.heappop(self._heap)
            self.now_us = max(self.now_us, at_us)
            if isinstance(what, SimulatedPod):
                if what.state is not LifeState.ENDED:
                    self._ended(what, LifeEvent.FINISH, what.ends_as)
            else:
                self._react(self.controllers.wake(what))
            self._run_commands()
        self.now_us = end_us
        self.simulated_pods.validate()
        self.controllers.validate()

    def start(self, *lives: SimulatedPod) -> None:
        for life in lives:
            self._start(life)
        self.run_to(self.now_us / SECOND_US)

    def end(self, *lives: SimulatedPod, ending: Ending = Ending.LOST) -> None:
        """End pods at once."""
        for life in lives:
            self._ended(life, LifeEvent.VANISH, ending)
        self.run_to(self.now_us / SECOND_US)

    def evict(self, *lives: SimulatedPod) -> None:
        """End pods gracefully."""
        for life in lives:
            self._commands.append(EndPod(life.uid, Ending.EVICTED))
        self.run_to(self.now_us / SECOND_US)

    def put(self, facts: NodeFacts) -> None:
        self._commands.append(PutNode(facts))
        self.run_to(self.now_us / SECOND_US)

    def drop(self, name: str) -> None:
        self._commands.append(DropNode(name))
        self.run_to(self.now_us / SECOND_US)

    def _run_commands(self) -> None:
        while self._commands:
            match self._commands.popleft():
                case CreatePods() as creation:
                    lives = [self._create(pod, creation.controller) for pod in creation.pods]
                    for life in lives if self.starts else ():
                        self._start(life)
                case EndPod() as end:
                    self._end(end)
                case WakeAt(at_us, key):
                    self._push(at_us, key)
                case PutNode(facts):
                    is_new = facts.name not in self.nodes
                    self.nodes[facts.name] = facts
                    self._react(self.controllers.node_put(facts, is_new=is_new))
                case DropNode(name):
                    for life in self.pods_on(name):
                        self._ended(life, LifeEvent.VANISH, Ending.LOST)
                    del self.nodes[name]
                    self._react(self.controllers.node_dropped(name))
                case Note() as note:
                    self.notes.append((self.now_us // SECOND_US, note.what, note.detail))

    def _push(self, at_us: int, what: object) -> None:
        heapq.heappush(self._heap, (max(at_us, self.now_us), next(self._order), what))

    def _react(self, commands: Commands) -> None:
        self._commands.extend(commands)

    def _create(self, new: NewPod, index: int) -> SimulatedPod:
        uid = f"{new.namespace}/{new.name}"
        used = self._names.get(uid, 0)
        assert new.reuses_name or not used, f"{uid} is used again"
        self._names[uid] = used + 1
        life = SimulatedPod(
            self.simulated_pods.created,
            PodIdentity(f"{uid}#{used}" if used else uid, new.namespace, new.name),
            new.facts,
            self.now_us,
            -1,
            index,
            new.duration_us,
            new.grace_us,
            new.ordinal,
            ends_as=new.ends_as,
        )
        self.simulated_pods.create(life)
        self.created.append(life)
        self._react(self.controllers.pod_created(life))
        return life

    def _start(self, life: SimulatedPod) -> None:
        terms = life.facts.required_node_terms
        nodes = [
            name
            for name, node in self.nodes.items()
            if terms is None or any(each.matches(dict(node.labels), name) for each in terms)
        ]
        life.node = nodes[life.number % len(nodes)]
        life.bound_us = life.started_us = self.now_us
        self.simulated_pods.apply(life, LifeEvent.BIND)
        self.simulated_pods.apply(life, LifeEvent.START)
        if life.duration_us != NEVER_US:
            self._push(self.now_us + life.duration_us, life)
        self._react(self.controllers.pod_started(life))

    def _end(self, command: EndPod) -> None:
        life = self.pods.get(command.uid)
        if life is None or life.state is LifeState.TERMINATING:
            return
        if life.state in ON_NODE and life.grace_us:
            life.ends_as = command.ending
            self.simulated_pods.apply(life, LifeEvent.TERMINATE)
            self._push(self.now_us + life.grace_us, life)
            self._react(self.controllers.pod_terminating(life))
        else:
            self._ended(life, LifeEvent.VANISH, command.ending)

    def _ended(self, life: SimulatedPod, event: LifeEvent, ending: Ending) -> None:
        life.ends_as, life.ended_us = ending, self.now_us
        self.simulated_pods.apply(life, event)
        self._react(self.controllers.pod_ended(life))
