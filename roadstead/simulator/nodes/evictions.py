"""Evictions: commands that evict pods for taints and drains, within the budgets that apply.

An eviction for a taint ignores budgets; a drain evicts only the pods that budgets allow. Both
delete gracefully.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from roadstead.facts.taints import Taint
from roadstead.simulator.component import ClusterView, Command, EndPod, Note, SetBudgets, WakeAt
from roadstead.simulator.nodes.budgets import Budgets
from roadstead.simulator.nodes.drains import Drain, Drains, drain_evicts
from roadstead.simulator.nodes.marks import Cause
from roadstead.simulator.nodes.taint_evictions import TaintEvictions
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.simulated_pods import Ending, LifeState, SimulatedPod


class Evictions:
    """The pods to evict, and the budgets.

    world: set before any method is called. stopped: nodes whose machine has stopped. is_ready:
    whether a node is ready in the API.
    """

    world: ClusterView

    def __init__(
        self, scenario: CompiledScenario, stopped: Container[str], is_ready: Callable[[str], bool]
    ) -> None:
        self._stopped, self._is_ready = stopped, is_ready
        self._taint_evictions = TaintEvictions()
        self._drains = Drains()
        self._budgets = Budgets(scenario.budgets, scenario.controllers, scenario.pods)
        # `Budgets.version` at the last recount.
        self._version = 0

    def begin(self) -> Iterator[Command]:
        """Set the budgets that preemption reads; plan recounts at changes of replicas."""
        for at_us in self._budgets.change_times_us():
            yield WakeAt(at_us, ("budgets",))
        yield from self.recount_replicas()

    # Pods.

    def count(self, pod: SimulatedPod) -> None:
        """Count a pod in its budgets by its present state."""
        self._budgets.count(pod, is_node_ready=self._is_ready(pod.node))

    def pod_ended(self, pod: SimulatedPod) -> list[Drain]:
        """Remove a pod; return the drains that end with it."""
        self.count(pod)
        self._taint_evictions.forget(pod.uid)
        return self._drains.pod_ended(pod.uid)

    def _evict(self, pod: SimulatedPod, why: str) -> Iterator[Command]:
        self._budgets.count_evicted(pod)
        yield Note("pod evicted", pod.uid, why)
        yield EndPod(pod.uid, Ending.LOST if pod.node in self._stopped else Ending.EVICTED)

    # Taints.

    def evict_from(
        self, pods: Iterable[SimulatedPod], taints: tuple[Taint, ...]
    ) -> Iterator[Command]:
        """Evict the pods of a node that do not tolerate its NoExecute taints.

        The eviction of a pod that tolerates them for a time is planned; that of a pod that
        tolerates them for ever is cancelled, if it was planned.
        """
        now_us = self.world.now_us
        remaining = [each for each in pods if each.state is not LifeState.TERMINATING]
        # All plans are made before the first eviction changes the pods.
        for plan in list(self._taint_evictions.plan_evictions(remaining, taints, now_us)):
            if plan.at_us > now_us:
                yield WakeAt(plan.at_us, ("evict", plan.uid))
            else:
                yield from self.evict_due(plan.uid)
        yield from self.recount()

    def evict_due(self, uid: str) -> Iterator[Command]:
        """Evict a pod if its eviction is planned, and not for later."""
        plan, pod = self._taint_evictions.pop_due(uid, self.world.now_us), self.world.pods.get(uid)
        if plan is not None and pod is not None:
            yield from self._evict(pod, f"from {pod.node}, for the taint {plan.taints}")

    # Drains.

    def begin_drain(self, name: str, cause: Cause, *, removes_node: bool) -> Drain:
        """Begin to drain a node; `try_drain` evicts the pods."""
        uids = [each.uid for each in self.world.pods_on(name) if drain_evicts(each)]
        return self._drains.begin(name, cause, uids, self.world.now_us, removes_node=removes_node)

    def try_drain(self, name: str, cause: Cause) -> Iterator[Command]:
        """Evict the pods that budgets allow, if the drain is under way."""
        drain = self._drains.get(name, cause)
        if drain is None:
            return
        tried = self._drains.try_evictions(drain, self._count_or_refuse, self.world.now_us)
        for uid in tried.evicted:
            yield from self._evict(self.world.pods[uid], f"from {name}, for its drain")
        for uid, reason in tried.refused:
            yield Note("eviction refused", uid, reason)

    def _count_or_refuse(self, uid: str) -> str | None:
        """Count a pod as evicted, or return why that is refused; see `Drains.try_evictions`."""
        pod = self.world.pods[uid]
        if pod.state is LifeState.TERMINATING:
            return None
        refusal = self._budgets.refusal(pod, self.world.now_us)
        if not refusal:
            # Before the next pod is tried, which the same budget may select.
            self._budgets.count_evicted(pod)
        return refusal

    def end_drain(self, name: str, cause: Cause) -> Drain | None:
        """End a drain, whether all pods are evicted or not, and return it; None if it is over."""
        drain = self._drains.get(name, cause)
        if drain is not None:
            self._drains.end(drain)
        return drain

    def drop_node(self, name: str) -> None:
        """End the drains of a node that was removed."""
        self._drains.drop_node(name)

    # Budgets.

    def recount(self) -> Iterable[Command]:
        """Recount the budgets if the healthy pods of one have changed."""
        # Not a generator, which would cost time for every pod of a scenario without budgets.
        return () if self._budgets.version == self._version else self._recount()

    def recount_replicas(self) -> Iterator[Command]:
        """Recount the budgets, as numbers of replicas may have changed."""
        return self._recount(with_replicas=True)

    def _recount(self, *, with_replicas: bool = False) -> Iterator[Command]:
        """Recount the budgets; refused evictions are tried again at their next time."""
        now_us, self._version = self.world.now_us, self._budgets.version
        if (budgets := self._budgets.recount(now_us, with_replicas=with_replicas)) is not None:
            yield SetBudgets(budgets)
        for drain in self._drains.refused_drains():
            at_us = drain.next_try_us(now_us)
            if at_us != drain.planned_us:
                drain.planned_us = at_us
                yield WakeAt(at_us, ("drain", drain.node, *drain.cause))
