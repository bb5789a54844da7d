"""The paths that a decision can take, behind one interface.

plain: pod by pod. batches: in batches, as a scheduler decides, with results of classes cached from
batch to batch. A number W: the same, with W workers that score new classes. Without a suffix, a
path is the reference path: the plugins decide. With the kernel it is pod by pod (`+kernel`) or in
runs of pods (`+runs`). Tests compare the paths, also with recorded decisions of kube-scheduler
(`scripts/parity.py`).

As upstream, the rows that changed are snapshotted before each pod (`roadstead.nodes.snapshots`):
only then is a row's data about other nodes renewed, that is, how many of them have its images. The
time of a snapshot is `NodeTable.arrived`, the number of nodes that were added until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from roadstead.cycle.batch import Batch, CompiledKernel, Decision, PodInCycle, pod_in_cycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.continuing_batch import ContinuingBatch
from roadstead.cycle.explain import Explanation
from roadstead.cycle.node_search import NodeSearch, PendingSearch
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.cycle.preempting import post_filter_result
from roadstead.cycle.scheduling_cycle import after_failure
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import NO_IDENTITY, PodFacts, PodIdentity
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.local.drive import run_now
from roadstead.local.local_workers import LocalWorkers
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.snapshots import (
    count_as_changed,
    count_as_unchanged,
    is_behind,
    take_snapshot,
)
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import UnsupportedError

FIRST = TieBreak("first")
"""The tie-break of the recorded decisions."""

Profiles = Callable[[PodClasses], Mapping[str, Profile]]
"""Pod classes of one path → its profiles, by scheduler name."""

PLAIN = "plain"
BATCHES = "batches"
"""Names of paths without workers."""

WITH_KERNEL = "+kernel"
IN_RUNS = "+runs"
"""Suffixes of a path's name: the kernel decides the pods that it covers. With `+kernel` it decides
them one by one, and decisions name all best nodes; with `+runs` as many at once as it can, and
decisions name only the chosen node."""


@dataclass(frozen=True, slots=True)
class PathOptions:
    """Options of a path.

    compiled_kernel: None for the reference path. node_search: samples the nodes of pods, or calls
    extenders for them. names_best: whether decisions name all best nodes.
    """

    compiled_kernel: CompiledKernel | None = None
    node_search: NodeSearch | None = None
    names_best: bool = True
    tie_break: TieBreak = FIRST


DEFAULT_OPTIONS = PathOptions()


class DecisionPath(Protocol):
    """A fleet on which pods are explained and decided."""

    names_best: bool
    """Whether decisions name all best nodes."""

    def add_nodes(self, nodes: Iterable[NodeFacts]) -> None: ...

    def node(self, name: str) -> NodeFacts: ...

    def update_node(self, facts: NodeFacts) -> None: ...

    def remove_node(self, name: str) -> None: ...

    def add_pod(
        self, node_name: str, facts: PodFacts, identity: PodIdentity = NO_IDENTITY
    ) -> None: ...

    def remove_pod(
        self, node_name: str, facts: PodFacts, identity: PodIdentity = NO_IDENTITY
    ) -> None: ...

    def forget(self, pod: PodInCycle, node_name: str) -> None:
        """Undo a placement of `decide`, volumes included."""

    def confirm(self, pod: PodInCycle) -> None:
        """Commit a placement of `decide`: the pod's claims are bound for good."""

    def nominate(self, node_name: str, facts: PodFacts) -> None: ...

    def withdraw(self, node_name: str, facts: PodFacts) -> None:
        """End one nomination, if there is one."""

    def prepare(self, identity: PodIdentity, facts: PodFacts) -> PodInCycle:
        """Return the pod with its class, at its first attempt, to be explained or decided."""

    def explain(self, pod: PodInCycle) -> Explanation: ...

    def decide(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """Decide and place the first pods, at least one of them; call again for the others.

        Raises UnsupportedError, and changes nothing, if the first one cannot be decided.
        """

    def profile(self, scheduler_name: str) -> Profile: ...


class PlainPath:
    """Decisions pod by pod on one table, without messages."""

    def __init__(self, profiles_of: Profiles, options: PathOptions = DEFAULT_OPTIONS) -> None:
        self.names_best = options.names_best
        self.classes = PodClasses()
        self.profiles = profiles_of(self.classes)
        self.table = NodeTable(self.classes)
        self._tie_break = options.tie_break
        self._cycle = PlainCycle(
            *(self.table, self.profiles, options.tie_break),
            name_best=options.names_best,
            node_search=options.node_search,
            compiled_kernel=options.compiled_kernel,
        )

    def add_nodes(self, nodes: Iterable[NodeFacts]) -> None:
        for facts in nodes:
            self.table.add_node(facts)

    def remove_node(self, name: str) -> None:
        self.table.remove_node(name)

    def update_node(self, facts: NodeFacts) -> None:
        self.table.update_node(facts)

    def node(self, name: str) -> NodeFacts:
        return self.table.facts(self.table.row_of(name))

    def add_pod(self, node_name: str, facts: PodFacts, identity: PodIdentity = NO_IDENTITY) -> None:
        pod_class = self.classes.pod_class(facts)
        self.table.add_pod(
            node_name, pod_class, uid=identity.uid, key=identity.key, started_s=identity.started_s
        )

    def remove_pod(
        self, node_name: str, facts: PodFacts, identity: PodIdentity = NO_IDENTITY
    ) -> None:
        self.table.remove_pod(node_name, self.classes.pod_class(facts), uid=identity.uid)

    def forget(self, pod: PodInCycle, node_name: str) -> None:
        self._cycle.forget(pod, node_name)

    def confirm(self, pod: PodInCycle) -> None:
        self._cycle.confirm(pod)

    def nominate(self, node_name: str, facts: PodFacts) -> None:
        self.table.nominate(node_name, self.classes.pod_class(facts))

    def withdraw(self, node_name: str, facts: PodFacts) -> None:
        self.table.withdraw(node_name, self.classes.pod_class(facts))

    def prepare(self, identity: PodIdentity, facts: PodFacts) -> PodInCycle:
        return _prepare(identity, facts, self.classes, self.profiles)

    def explain(self, pod: PodInCycle) -> Explanation:
        return self._cycle.explain(pod)

    def decide(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """Decide one pod at a time; stop before a pod that raises UnsupportedError."""
        decisions: list[Decision] = []
        for pod in pods:
            try:
                decisions.append(self._cycle.decide(pod))
            except UnsupportedError:
                if not decisions:
                    raise
                break
        return decisions

    def profile(self, scheduler_name: str) -> Profile:
        return self.profiles[scheduler_name]


class BatchPath(PlainPath):
    """Decisions in batches on one table; `PlainCycle` explains pods."""

    def __init__(self, profiles_of: Profiles, options: PathOptions = DEFAULT_OPTIONS) -> None:
        super().__init__(profiles_of, options)
        self._batch_builder = BatchBuilder(
            *(self.table, self.profiles, options.tie_break),
            name_best=options.names_best,
            node_search=options.node_search,
            compiled_kernel=options.compiled_kernel,
        )

    def decide(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """Decide one batch, up to a pod that ends it, such as one without a feasible node."""
        table = self.table
        # This renews only rows that changed since the last snapshot.
        take_snapshot(table, table.arrived)
        pods = self._batch_builder.next_batch(pods)
        batch = self._batch_builder.begin(pods)
        if isinstance(batch, PendingSearch):
            # Extenders are called here, before Score.
            batch = self._batch_builder.searched(batch.run())
        elif isinstance(batch, ContinuingBatch):
            # Such a batch decides over all nodes, without sampling or extenders. Other batches do
            # not use lists of the best rows.
            self._use_lists(batch, pods)
        decisions: list[Decision] = []
        # Decisions of the kernel that are not returned yet, in reverse order.
        run: list[Decision] = []
        for pod in pods:
            take_snapshot(table, table.arrived)
            if not run:
                run = batch.decide_by_kernel(pods[len(decisions) :])[::-1]
                # The kernel places pods on its own arrays; `flush` adds them to the table.
                batch.flush()
                # The table has all pods of the run already. The next snapshot must not renew their
                # rows yet: each row counts as changed when the decision of its pod is returned.
                count_as_unchanged(table, _nodes_of(run))
            decision = run.pop() if run else batch.decide(pod)
            if decision is None:
                break
            decisions.append(self._with_post_filter(batch, decision))
            batch.flush()
            if decision.node_name is not None:
                count_as_changed(table, decision.node_name)
            if decision.node_name is None or is_behind(table, decision.node_name, table.arrived):
                # The next snapshot will renew this row, which changes scores of images. The kernel
                # has made the later decisions of its run with the old scores: undo them.
                self._undo(run, decision.node_name)
                break
        # The next batch is shorter if this one ended early.
        self._batch_builder.record_length(len(pods), len(decisions))
        assert decisions, "a fresh batch decides at least one pod"
        for each in decisions:
            if each.node_name is not None:
                self._cycle.bind_claims(each.pod, each.node_name)
        return decisions

    def _use_lists(self, batch: ContinuingBatch, pods: Sequence[PodInCycle]) -> None:
        """Do nothing: there are no workers to list the best rows of new classes."""

    def _with_post_filter(self, batch: Batch, decision: Decision) -> Decision:
        """Run PostFilter for a pod without a feasible node; return the decision with its result."""
        profile = self.profiles[decision.pod.pod_class.facts.scheduler_name]
        extenders = self._batch_builder.extenders
        steps = after_failure(decision, profile, self._tie_break, batch, extenders)
        decision, _ = run_now(steps)
        if decision.post_filter is not None or decision.diagnosis is None:
            return decision
        result = post_filter_result(profile, decision.pod, decision.diagnosis, self._tie_break)
        return decision._replace(post_filter=result)

    def _undo(self, decisions: Sequence[Decision], previous: str | None) -> None:
        """Remove placed pods.

        previous: the node of the pod decided before them, whose row the next snapshot must renew.
        """
        for each in decisions:
            assert each.node_name is not None, "the kernel decides only pods that fit"
            self.table.remove_pod(each.node_name, each.pod.pod_class, uid=each.pod.uid)
        count_as_unchanged(self.table, _nodes_of(decisions) - {previous})


def _nodes_of(decisions: Iterable[Decision]) -> set[str]:
    return {each.node_name for each in decisions if each.node_name is not None}


class WorkersPath(BatchPath):
    """`BatchPath` with workers that score new classes."""

    def __init__(
        self, workers: int, profiles_of: Profiles, options: PathOptions = DEFAULT_OPTIONS
    ) -> None:
        super().__init__(profiles_of, options)
        self._workers = LocalWorkers(self.table, workers, profiles_of)

    def add_nodes(self, nodes: Iterable[NodeFacts]) -> None:
        for facts in nodes:
            arrival = self.table.arrived
            super().add_nodes([facts])
            self._workers.add_node(facts, arrival)

    def remove_node(self, name: str) -> None:
        super().remove_node(name)
        self._workers.remove_node(name)

    def update_node(self, facts: NodeFacts) -> None:
        super().update_node(facts)
        self._workers.update_node(facts)

    def add_pod(self, node_name: str, facts: PodFacts, identity: PodIdentity = NO_IDENTITY) -> None:
        super().add_pod(node_name, facts, identity)
        self._workers.add_pod(node_name, facts, identity.uid, identity.key, identity.started_s)

    def remove_pod(
        self, node_name: str, facts: PodFacts, identity: PodIdentity = NO_IDENTITY
    ) -> None:
        super().remove_pod(node_name, facts, identity)
        self._workers.remove_pod(node_name, facts, identity.uid)

    def forget(self, pod: PodInCycle, node_name: str) -> None:
        super().forget(pod, node_name)
        self._workers.remove_pod(node_name, pod.pod_class.facts, pod.uid)

    def decide(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """Have workers score new classes, then decide as without workers."""
        pods_in_batch = self._batch_builder.next_batch(pods)
        if unscored := self._batch_builder.missing_classes(pods_in_batch):
            # Without a usable answer of the workers there are no results: the scheduler scores.
            for pod, results in zip(unscored, self._workers.score(unscored), strict=False):
                self._batch_builder.store_worker_results(pod.signature, results)
        decisions = super().decide(pods)
        for each in decisions:
            if each.node_name is not None:
                facts = each.pod.pod_class.facts
                self._workers.add_pod(each.node_name, facts, each.pod.uid, each.pod.key)
        return decisions

    def _use_lists(self, batch: ContinuingBatch, pods: Sequence[PodInCycle]) -> None:
        """Have workers list their best rows of new classes."""
        unlisted, compiled_kernel = batch.unlisted(pods), self._batch_builder.compiled_kernel
        if not unlisted or compiled_kernel is None:
            return
        best = self._workers.list_best(unlisted, batch.tie_break_hashes(unlisted), compiled_kernel)
        if best is not None:
            batch.use_lists(best, len(pods))


def _prepare(
    identity: PodIdentity,
    facts: PodFacts,
    classes: PodClasses,
    profiles: Mapping[str, Profile],
) -> PodInCycle:
    pod_class = classes.pod_class(facts)
    return pod_in_cycle(identity, pod_class, profiles[facts.scheduler_name], classes)


def open_path(
    name: str, profiles_of: Profiles, node_search: NodeSearch | None = None
) -> DecisionPath:
    """Return a path by name: `plain`, `batches`, or a number of workers, with the kernel or not.

    node_search: samples the nodes of every pod; None for a search over all of them.
    """
    plain_name = without_kernel(name)
    compiled_kernel = CompiledKernel(load(), DecisionCounts()) if plain_name != name else None
    options = PathOptions(compiled_kernel, node_search, names_best=not name.endswith(IN_RUNS))
    if plain_name == PLAIN:
        return PlainPath(profiles_of, options)
    if plain_name == BATCHES:
        return BatchPath(profiles_of, options)
    return WorkersPath(int(plain_name), profiles_of, options)


def without_kernel(name: str) -> str:
    """Return the name of a path without the suffix that stands for the kernel."""
    return name.removesuffix(WITH_KERNEL).removesuffix(IN_RUNS)
