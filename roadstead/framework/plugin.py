"""Extension points as a plugin implements them, over tables.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go (1.34). The difference: a plugin
answers for all rows of a table at once, and says what its answer reads, so that a scheduler knows
what a placement may have changed. PreFilter and PreScore look at all nodes and write to the
CycleState what Filter and Score need, which are asked about some rows.

    PreFilter    pre_filter(state, pod, table)             moved(prepared, pod, row, moves)
    Filter       filter(state, pod, rows)
    PreScore     pre_score(state, pod, table, feasible)
    Score        score(state, pod, rows)
    Normalize    normalize(state, pod, raw, extremes)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import RegisteredEvent
from roadstead.framework.members import GroupMembers
from roadstead.framework.post_filter_answers import PostFilterResult, PostFilterView
from roadstead.framework.waiting import WaitingPods
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.nodes.table import Rows, Table
from roadstead.protocol.status import SUCCESS, Status
from roadstead.storage.state import StorageState

if TYPE_CHECKING:
    from roadstead.framework.arguments import PluginArguments

MAX_NODE_SCORE = 100

Feasible = Callable[[], Bools]
"""Asks which rows are feasible: bool[row]."""

MethodT = TypeVar("MethodT", bound=Callable[..., object])

IGNORED = int(np.iinfo(np.int64).min)
"""Raw score of a feasible row that a plugin leaves unscored.

Upstream's Score says 0 there; the extremes leave it out, and `normalize` says what it becomes.
"""


class Reads(IntEnum):
    """What a plugin's answer for a row depends on; a later kind includes the earlier ones.

    NODE: the node's own facts: labels, taints, images. No placement changes the answer.
    ROW: also the numbers of the row: allocatable, requested, counts, ports.
    NODE_AND_PODS: also which pods are on the node.
    CLUSTER: also what is on other nodes, as where PreFilter or PreScore look at them.
    """

    NODE = 0
    ROW = 1
    NODE_AND_PODS = 2
    CLUSTER = 3


@dataclass(frozen=True, slots=True)
class Handle:
    """What a plugin is given when it is built, besides its arguments.

    waiting: the pods that wait for Permit in this process, and the way to speak of them.
    members: how many pods of each gang exist, in the process that knows.
    storage: claims and volumes as they stand in this process; starts as `cluster` has them.
    """

    classes: PodClasses
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    waiting: WaitingPods = field(default_factory=WaitingPods)
    members: GroupMembers = field(default_factory=GroupMembers)
    storage: StorageState = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "storage", StorageState(self.cluster.storage))


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """`node_names` of None means all nodes."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class FilterResult:
    """An answer for every row. codes: int32[row]: 0 passes, k > 0 is refused with statuses[k-1].

    `codes` of None means that all rows pass.
    """

    codes: NDArray[np.int32] | None = None
    statuses: tuple[Status, ...] = ()

    @staticmethod
    def refuse(refused: Bools, status: Status) -> FilterResult:
        """Refuses the rows where `refused` is true, all with one status."""
        return FilterResult(refused.astype(np.int32), (status,)) if refused.any() else ALL_PASS


ALL_PASS = FilterResult()


@dataclass(frozen=True, slots=True)
class Extremes:
    """Smallest and largest raw score over the feasible nodes.

    IGNORED rows are left out; where there are no others both are IGNORED.
    """

    minimum: int
    maximum: int

    @staticmethod
    def of(raw: I64) -> Extremes:
        scored = raw[raw != IGNORED]
        if not len(scored):
            return Extremes(IGNORED, IGNORED)
        return Extremes(int(scored.min()), int(scored.max()))


ONLY_SUCCEED: set[object] = set()
"""Functions marked by `only_succeeds`."""


def only_succeeds(method: MethodT) -> MethodT:
    """Marks a Reserve, PreBind or Bind that does nothing but say Success."""
    ONLY_SUCCEED.add(method)
    return method


@dataclass(frozen=True, slots=True)
class Effect:
    """What a pod, come to some node or gone, may change of what is said of others on other nodes.

    key: what is looked at of the pod; effects of one plugin with equal keys do the same.
    changes: whether the answer for a pod may change, as things stand.
    """

    key: Hashable
    changes: Callable[[PodClass], bool] = field(compare=False)


ON_ALL = Effect("all", lambda pod: True)
ON_NONE = Effect("none", lambda pod: False)


class Plugin(ABC):
    """A plugin by its name. `sign` gives the part of a pod's facts that its answers depend on.

    Pods whose signatures are equal get equal answers from every plugin and are evaluated once;
    None means that the plugin cannot tell, and makes each pod a class of its own.
    """

    name: ClassVar[str]
    reads: ClassVar[Reads] = Reads.CLUSTER
    arguments: ClassVar[type[PluginArguments] | None] = None
    """What a user's plugin may be configured with; see `roadstead.framework.arguments`."""
    is_guarded: bool = False
    """Set on a user's plugin whose calls are contained; see `roadstead.framework.guarded`."""
    alike_by_kind: ClassVar[bool] = False
    """All that it says is the same for pods of one kind (`PodClass.kind`), but for what Filter and
    Score say where it reads more than NODE facts. Each class says so of itself, for none inherits.
    """

    binds_volumes: ClassVar[bool] = False
    """Where it is enabled at Reserve, a pod's claims are bound where the pod is placed."""
    places_gangs: ClassVar[bool] = False
    """Pods of a gang wait at its Permit for each other, to be placed together or not at all."""

    def sign(self, pod: PodFacts) -> Hashable | None:
        """The hashable part of the pod this plugin looks at, or None if it cannot tell."""
        return None

    def known_state(self, pod: PodClass) -> Hashable:
        """What the plugin knows of the pod beside the table, where that may change.

        What was said of the pod holds while this stays equal. None for a pod of which nothing is
        known beside, now and ever.
        """
        return None

    def effect(self, placed: PodClass) -> Effect:
        """What `placed` does to the answers for others on other nodes, as things stand.

        Asked of plugins that read the cluster; `ON_ALL` is always right and costs new evaluations.
        """
        return ON_ALL


class EnqueueExtensions(Plugin):
    """A plugin that says which events may help a pod it rejected; without it, any event may."""

    @abstractmethod
    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        """The events, each with its hint or none; () for none at all."""


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: PodFacts) -> Status:
        """Success lets the pod into activeQ; anything else keeps it gated."""


class QueueSortPlugin(Plugin):
    @abstractmethod
    def sort_key(self, pod: PodFacts, queued_s: float) -> tuple[float | str, ...]:
        """Pods with smaller keys are popped first."""


class PreFilterPlugin(Plugin):
    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        """Prepares Filter, searches_nodes the nodes, rejects the pod, or says Skip (no Filter
        then).

        table: all nodes. What Filter needs is written to `state`, under the plugin's name where
        `moved` is to see it.
        """

    def moved(
        self, prepared: object, pod: PodClass, row: Table, moves: Mapping[PodClass, int]
    ) -> object:
        """AddPod and RemovePod: what was prepared, were pods to come to a row or to leave it.

        prepared: what PreFilter wrote under the plugin's name; never changed itself. row: a table
        of that one row, for its node's facts. moves: class → how many more pods (or, below 0,
        fewer). The answer is for that row alone, and may leave out what only other rows look at.
        The same object where nothing changes, which is also what a plugin without AddPod and
        RemovePod answers.
        """
        return prepared


def has_pre_filter_extensions(plugin: Plugin) -> bool:
    """Whether pods that come to a node or leave it change what PreFilter prepared (upstream's
    PreFilterExtensions).
    """
    return isinstance(plugin, PreFilterPlugin) and type(plugin).moved is not PreFilterPlugin.moved


class FilterPlugin(Plugin):
    """A plugin that refuses nodes.

    unprepared, unprepared_score: see `roadstead.framework.unprepared`.
    """

    unprepared: ClassVar[str] = ""

    @abstractmethod
    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        """Which rows can take the pod, and why the others cannot."""

    def admits(self, pods: Sequence[PodClass], table: Table, rows: Rows) -> int:
        """How many of the first pods come to their rows, one row each, on top of those before it.

        It looks at the table itself: what PreFilter said need not hold any more. The pod behind
        those that are admitted need not be refused: Filter must be asked about it.
        """
        return 0


class PostFilterPlugin(Plugin):
    def candidates_wanted(self, pod: PodFacts, failed: PostFilterView) -> int | None:
        """How many candidates a dry run of preemption should look for; None for no dry run."""
        return None

    @abstractmethod
    def post_filter(self, pod: PodFacts, failed: PostFilterView) -> PostFilterResult:
        """Called when no node is feasible; reasons[0] becomes the end of the pod's message."""


class PreparesScore(Plugin):
    """A plugin that looks at all nodes before Score, at whichever points it is enabled.

    For what upstream's Score finds in its snapshot of the nodes without a PreScore.
    """

    @abstractmethod
    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        """Prepares Score, or says Skip (the plugin contributes 0 then), or fails the cycle.

        table: all nodes. feasible() -> bool[row]: what is prepared without asking it holds
        whichever rows are feasible. What Score needs is written to `state`, where what PreFilter
        wrote is read, too.
        """


class PreScorePlugin(PreparesScore):
    """PreScore as upstream has it: asked where the configuration says so."""


class ScorePlugin(Plugin):
    """`normalizes` says that `normalize` does something; without it raw scores are final."""

    normalizes: ClassVar[bool] = False
    unprepared_score: ClassVar[str] = ""

    @abstractmethod
    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        """Raw scores: int64[row]. Rows that are not feasible may hold anything."""

    def normalize(self, state: CycleState, pod: PodClass, raw: I64, extremes: Extremes) -> I64:
        """raw: int64[k] → int64[k] in 0..100; element by element, knowing only the extremes."""
        return raw


class ReservePlugin(Plugin):
    @abstractmethod
    def reserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        """Takes what the pod needs beside the node; anything but Success undoes all Reserves."""

    @abstractmethod
    def unreserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        """Undoes `reserve`; may be called without it and more than once; must not fail."""


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> tuple[Status, float]:
        """Success, a refusal, or Wait with its timeout in seconds."""


class PreBindPlugin(Plugin):
    @abstractmethod
    def pre_bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        """Work that must be done before the bind; anything but Success rejects the pod."""


class BindPlugin(Plugin):
    @abstractmethod
    def bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        """Skip passes the pod to the next bind plugin; Success hands it to the binder."""


class PostBindPlugin(Plugin):
    @abstractmethod
    def post_bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        """Informational, after the bind."""


class RemembersPods(Plugin):
    """A plugin with a memory of bound pods, which must learn that one is gone from the cluster.

    Upstream's plugins look into informers instead.
    """

    @abstractmethod
    def pod_gone(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        """A pod that this scheduler had bound was deleted; must not fail."""


EXTENSION_POINTS: dict[str, type[Plugin]] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}


def default_normalize(raw: I64, maximum: int, *, reverse: bool = False) -> I64:
    """Upstream's DefaultNormalizeScore (plugins/helper/normalize_score.go), integer for integer.

    A maximum below 0 counts as 0; a quotient is cut towards zero.
    """
    if maximum <= 0:
        return np.full_like(raw, MAX_NODE_SCORE) if reverse else raw
    scaled: I64 = np.sign(raw) * (MAX_NODE_SCORE * np.abs(raw) // maximum)
    return MAX_NODE_SCORE - scaled if reverse else scaled
