"""Runs of the lab (`roadstead stress`): the usual actors, but a binder that measures.

`LabBinder` counts requests and refusals. It may check less at the commit, to measure the effect of
these checks. Only the lab starts such a binder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.interface import (
    NOTHING,
    Directory,
    Nothing,
    Runtime,
    clock_s,
    method,
)
from roadstead.actors.messages import BindBatch, PodList
from roadstead.actors.names import BINDER, SCHEDULER
from roadstead.actors.runs.client import Client
from roadstead.actors.runtime.simulated import SimulatedRuntime
from roadstead.actors.runtime.simulated_network import Network
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.binder.answers import BindAnswers
from roadstead.binder.verification import BindClaims, Verifier
from roadstead.config.model import ProfileConfig
from roadstead.facts.pod import PodFacts
from roadstead.framework.plugin import Handle, has_pre_filter_extensions
from roadstead.framework.profile import Profile
from roadstead.lab.lab_run import LabRun, LabSetup, Recheck
from roadstead.nodes.pod_class import PodClasses
from roadstead.placements import TableStore
from roadstead.protocol.status import SUCCESS, Status
from roadstead.run import RunInputs, RunPlan


@dataclass(frozen=True, slots=True)
class LabMetrics:
    """Binder → lab: counts since the first pod was submitted.

    bind_requests: their number. refused: (cause, count). waits: (pods, seconds from the first
    submission to the acknowledgement of their bind). ran_s: seconds since the first submission.
    """

    bind_requests: int
    refused: tuple[tuple[str, int], ...]
    waits: tuple[tuple[int, float], ...]
    ran_s: float


LAB_METRICS = method("lab_metrics", Nothing, LabMetrics)


class _AcceptingVerifier(Verifier):
    """A verifier that accepts every bind, except one whose claims cannot be bound.

    verify_prefix: returns how many of the first pods of a batch are accepted.
    """

    def verify(self, facts: PodFacts, node_name: str) -> Status:
        return SUCCESS

    def verify_prefix(
        self,
        pods: Sequence[PodFacts],
        node_names: Sequence[str],
        bind_claims: BindClaims | None = None,
    ) -> int:
        if bind_claims is not None:
            for index, facts in enumerate(pods):
                if facts.may_bind_claims and not bind_claims(index):
                    return index
        return len(pods)


class LabBinder(BinderActor):
    """A binder that counts. recheck: which filters it runs again at the commit.

    "all": those of every binder. "node": all but those that read other nodes. "none": no filter.
    _began_s: time of the first submission. _waits: as in `LabMetrics`. Times are in seconds of the
    event loop's clock, which is virtual in a simulation.
    """

    def __init__(
        self,
        plan: RunPlan,
        directory: Directory,
        *,
        recheck: Recheck,
        epoch: int = 1,
        least_lsn: int = 0,
    ) -> None:
        self._began_s = 0.0
        self._bind_requests = 0
        self._refused: Counter[str] = Counter()
        self._waits: list[tuple[int, float]] = []
        super().__init__(plan, directory, epoch=epoch, least_lsn=least_lsn)
        # "all" keeps the usual verifier.
        store = self.core.placements.store
        assert isinstance(store, TableStore)
        if recheck == "node":
            self.binder.verifier = Verifier(store.table, node_profiles(plan, store.table.classes))
        elif recheck == "none":
            self.binder.verifier = _AcceptingVerifier(store.table, {})

    async def add_pending(self, batch: PodList) -> Nothing:
        self._began_s = self._began_s or clock_s()
        return await super().add_pending(batch)

    async def bind(self, batch: BindBatch) -> BindAnswers:
        answers = await super().bind(batch)
        causes = Counter(answer.cause for answer in answers.answers)
        bound = causes.pop("", 0)
        self._bind_requests += len(answers.answers)
        self._refused += causes
        if bound:
            self._waits.append((bound, clock_s() - self._began_s))
        return answers

    async def lab_metrics(self, _: Nothing) -> LabMetrics:
        """Return the counts so far."""
        return LabMetrics(
            bind_requests=self._bind_requests,
            refused=tuple(sorted(self._refused.items())),
            waits=tuple(self._waits),
            ran_s=clock_s() - self._began_s if self._began_s else 0.0,
        )


def node_profiles(plan: RunPlan, classes: PodClasses) -> dict[str, Profile]:
    """Return the plan's profiles by scheduler name, without filters that read other nodes."""
    registry, handle = plan.registry(), Handle(classes, plan.cluster)
    profiles = {}
    for config in plan.config().profiles:
        complete = Profile(config, registry, handle)
        # A filter whose prepared data depends on moved pods reads the pods of other nodes.
        cross_node_filters = {
            each.name for each in complete.filter if has_pre_filter_extensions(each)
        }
        profiles[config.scheduler_name] = Profile(
            _without(config, cross_node_filters), registry, handle
        )
    return profiles


def _without(config: ProfileConfig, cross_node_filters: set[str]) -> ProfileConfig:
    """Return a profile without these plugins at preFilter and filter."""
    remaining = {
        point: tuple(ref for ref in config.at(point) if ref.name not in cross_node_filters)
        for point in ("preFilter", "filter")
    }
    return replace(config, plugins={**config.plugins, **remaining})


def supervisor_for(lab: LabSetup) -> Callable[[Runtime, RunPlan], Supervisor]:
    """Return the constructor of the supervisor of a lab's run."""
    return partial(Supervisor, build_binder=partial(LabBinder, recheck=lab.recheck))


def virtual_runtime(plan: RunPlan) -> Runtime:
    """Return a simulated runtime, whose network has no faults and the plan's seed."""
    return SimulatedRuntime(Network(plan.settings.seed), plan.limits)


async def measure_run(
    client: Client,
    supervisor: Supervisor,
    plan: RunPlan,
    inputs: RunInputs,
) -> LabRun:
    """Run the inputs and return the measurements."""
    outcome = await client.run(inputs)
    timeout_s = plan.settings.deadlines.call_s
    measured = await supervisor.refs[BINDER].call(LAB_METRICS, NOTHING, timeout_s=timeout_s)
    # Of all schedulers, by name of the metric.
    sums: Counter[str] = Counter()
    for name in supervisor.refs:
        if name.startswith(SCHEDULER):
            sums.update(dict((await supervisor.statuses.last_of(name)).metrics))
    return LabRun(
        placements=tuple((each.uid, each.node) for each in outcome.placements),
        pending=len(outcome.pending),
        # The last bind ends the interval.
        spent_s=measured.waits[-1][1] if measured.waits else 0.0,
        waits_s=measured.waits,
        bind_requests=measured.bind_requests,
        refused=dict(measured.refused),
        transactions=int(sums["transactions"]),
        conflicted=int(sums["conflicted"]),
        busy_s=float(sums["busy_s"]),
        ran_s=measured.ran_s,
    )
