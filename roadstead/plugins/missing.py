"""In-tree plugins that are registered by name and not implemented yet.

Each declares the pod's fields that it would read (`MissingPlugin.need`). For a pod without them,
PreFilter and PreScore return Skip, as upstream; for any other pod PreFilter raises UnsupportedError
with plugin and field. A plugin becomes a module of its own when it is implemented.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
    on,
)
from roadstead.framework.plugin import (
    ALL_PASS,
    EnqueueExtensions,
    Feasible,
    FilterPlugin,
    FilterResult,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
    only_succeeds,
)
from roadstead.framework.post_filter_answers import PostFilterResult, PostFilterView
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SKIP, SUCCESS, Status, error, unschedulable


class MissingPlugin(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """A plugin without implementation: skips where upstream would skip, and raises otherwise."""

    reads = Reads.NODE

    def need(self, pod: PodFacts) -> str:
        """Return the field of the pod that needs this plugin, or "" if none does."""
        raise AssertionError(f"{self.name} must override `need`")

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        field = self.need(pod.facts)
        if field:
            raise UnsupportedError(self.name, "", field)
        return PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        return ALL_PASS

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        return SKIP

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        return np.zeros(len(table), dtype=np.int64)

    def sign(self, pod: PodFacts) -> Hashable:
        return self.need(pod)


class NothingReserved(ReservePlugin, PreBindPlugin):
    """Reserve and PreBind for pods without the fields that the plugin reads."""

    @only_succeeds
    def reserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        return SUCCESS

    @only_succeeds
    def unreserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        return None

    @only_succeeds
    def pre_bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        return SUCCESS


class DynamicResources(
    MissingPlugin, NothingReserved, PreEnqueuePlugin, PostFilterPlugin, EnqueueExtensions
):
    name = "DynamicResources"
    shares_by_shape = True

    def need(self, pod: PodFacts) -> str:
        return "spec.resourceClaims" if pod.device_claims else ""

    def pre_enqueue(self, pod: PodFacts) -> Status:
        return SUCCESS

    def post_filter(self, pod: PodFacts, failed: PostFilterView) -> PostFilterResult:
        if self.name in failed.unreached:
            # Upstream's plugin reads the cycle state that its PreFilter would have written.
            return PostFilterResult(error("not found"))
        return PostFilterResult(unschedulable("no new claims to deallocate"))

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        node = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
        changes = ActionType.ADD | ActionType.UPDATE
        claims_made = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            on(EventResource.NODE, node),
            on(EventResource.RESOURCE_CLAIM, changes, self.after_claim_change),
            on(EventResource.POD, claims_made, self.after_pod_change),
            on(EventResource.DEVICE_CLASS, changes),
            on(EventResource.RESOURCE_SLICE, changes),
        )

    def after_claim_change(
        self, pod: PodFacts, change: ObjectChange[object], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the pod names claims; the claims themselves are not modelled."""
        return QueueingHint.when(bool(pod.device_claims))

    def after_pod_change(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if all claims of this pod exist: known only if it names none."""
        assert change.new is not None
        return QueueingHint.when(change.own and not change.new.facts.device_claims)


MISSING: tuple[type[MissingPlugin], ...] = (DynamicResources,)
"""All plugins that are not implemented."""
