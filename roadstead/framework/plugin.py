"""Extension points as a plugin implements them, over tables.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go (1.34). The difference: a plugin
answers for all rows of a table in one call, and declares what its answers depend on, so that a
scheduler knows which answers a placement may have changed. PreFilter and PreScore read all nodes
and write to the CycleState the data that Filter and Score need (the prepared data); Filter and
Score receive a table of some of the nodes. The *state* in the arguments is the CycleState; a
plugin's *own* state is data outside the table that it keeps from pod to pod.

    PreFilter    pre_filter(state, pod, table), with_pods_moved(prepared, pod, row, moves)
    Filter       filter(state, pod, table)
    PreScore     pre_score(state, pod, table, feasible)
    Score        score(state, pod, table)
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

from roadstead.devices.gates import DeviceGates
from roadstead.devices.state import NO_GATES, DeviceState
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodClaim, PodFacts, PodIdentity
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
"""A function that returns which rows are feasible: bool[row]."""

MethodT = TypeVar("MethodT", bound=Callable[..., object])
"""A method of a plugin."""

IGNORED = int(np.iinfo(np.int64).min)
"""Raw score of a feasible row that a plugin does not score.

Upstream's Score returns 0 there; the extremes exclude it, and `normalize` replaces it.
"""


class Reads(IntEnum):
    """Inputs of a plugin's answer for a row; each value includes the earlier ones.

    NODE: the node's own facts: labels, taints, images. No placement changes the answer.
    ROW: also the numbers of the row: allocatable, requested, counts, ports.
    NODE_AND_PODS: also which pods are on the node.
    CLUSTER: also other nodes and their pods, which PreFilter or PreScore read.
    """

    NODE = 0
    ROW = 1
    NODE_AND_PODS = 2
    CLUSTER = 3


@dataclass(frozen=True, slots=True)
class Handle:
    """Shared objects that the constructor of a plugin receives, besides its arguments.

    classes: the pod classes of this process.
    waiting: the pods that wait for Permit in this process; records decisions about them.
    members: how many pods of each gang exist (counted by the queue only) and are bound.
    gates: feature gates of dynamic resource allocation.
    storage: current claims and volumes in this process; initially those of `cluster`.
    """

    classes: PodClasses
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    waiting: WaitingPods = field(default_factory=WaitingPods)
    members: GroupMembers = field(default_factory=GroupMembers)
    gates: DeviceGates = NO_GATES
    storage: StorageState = field(init=False)

    def __post_init__(self) -> None:
        devices = DeviceState(self.cluster.devices, self.gates)
        object.__setattr__(self, "storage", StorageState(self.cluster.storage, devices))


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The result of PreFilter; `node_names` of None means all nodes."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The result of Filter for every row.

    codes: int32[row]: 0 passes, k > 0 is refused with statuses[k-1]. None: all rows pass.
    """

    codes: NDArray[np.int32] | None = None
    statuses: tuple[Status, ...] = ()

    @staticmethod
    def refuse(refused: Bools, status: Status) -> FilterResult:
        """Refuse the rows where `refused` is true, all with one status."""
        return FilterResult(refused.astype(np.int32), (status,)) if refused.any() else ALL_PASS


ALL_PASS = FilterResult()


@dataclass(frozen=True, slots=True)
class Extremes:
    """Smallest and largest raw score of the feasible nodes.

    IGNORED rows are excluded; if there are no others, both are IGNORED.
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
"""Methods marked by `only_succeeds`."""


def only_succeeds(method: MethodT) -> MethodT:
    """Mark a method `reserve`, `unreserve`, `pre_bind` or `bind` that only returns Success.

    If all such methods of a profile are marked, its pods are bound without calls of plugins.
    """
    ONLY_SUCCEED.add(method)
    return method


@dataclass(frozen=True, slots=True)
class Effect:
    """Answers for other nodes that a pod may change when it is placed on a node or removed.

    key: the part of the placed pod that `may_change` reads: effects of one plugin with equal keys
        are the same.
    may_change: whether the answer for another pod may change, in the current state.
    """

    key: Hashable
    may_change: Callable[[PodClass], bool] = field(compare=False)


ON_ALL = Effect("all", lambda pod: True)
ON_NONE = Effect("none", lambda pod: False)


class Plugin(ABC):
    """Base of all plugins: the name, and declarations that the scheduler reads (docs/plugins.md).

    `sign` returns the part of a pod's facts that the answers depend on. Pods with equal signatures
    get equal answers from every plugin and are evaluated once. If one plugin returns None, each pod
    is evaluated separately.
    """

    name: ClassVar[str]
    reads: ClassVar[Reads] = Reads.CLUSTER
    arguments: ClassVar[type[PluginArguments] | None] = None
    """Model of the arguments of a user's plugin; see `roadstead.framework.arguments`."""
    is_guarded: bool = False
    """Set on a user's plugin, whose failures are caught; see `roadstead.framework.guarded`."""
    shares_by_shape: ClassVar[bool] = False
    """Whether pods that differ only in the amounts of their requests (pods of one shape,
    `PodClass.shape`) get equal answers, which are then computed once. The exception is a plugin
    that reads ROW: its Filter and Score may depend on the amounts. Not inherited.
    """

    binds_volumes: ClassVar[bool] = False
    """If the plugin is enabled at Reserve, claims of volumes are bound when a pod is placed."""
    binds_devices: ClassVar[bool] = False
    """The same for claims of devices."""
    places_gangs: ClassVar[bool] = False
    """Pods of a gang wait for each other at its Permit and are bound all-or-nothing."""

    def sign(self, pod: PodFacts) -> Hashable | None:
        """Return the hashable part of the pod that is read; None: evaluate each pod separately.

        Pods with equal signatures get equal results (KEP-5598).
        """
        return None

    def state_version(self, pod: PodClass) -> Hashable:
        """Return the changing state outside the table on which answers for the pod depend.

        Answers for the pod are reused while this stays equal. None for a pod whose answers depend
        on no such state, now or later.
        """
        return None

    def prefilter_state_version(self, pod: PodClass) -> Hashable:
        """Return the part of `state_version` that PreFilter and the other extension points read.

        If Filter is called for each pod in any case (`FilterPlugin.runs_per_pod`), leave out the
        part that only Filter reads; else return `state_version`.
        """
        return self.state_version(pod)

    def substitute_claims(self, pod: PodFacts) -> tuple[PodClaim, ...] | None:
        """Return claims of devices to use in place of the pod's own; None to use the pod's own.

        Pods whose facts differ only in the names of their claims would each be a class. The facts
        with the returned claims, and without `claims_as` (the pod's own UID and name), are a
        *substitute* (`Profile.substitute`). Many pods share it; it is evaluated once for all of
        them. As long as no plugin's own state changes, plugins must answer for it as for the pod,
        except where answers name the pod or its claims. Not called in profiles with users'
        plugins, which may read what a substitute leaves out.
        """
        return None

    def substitutes_for(self, substitute: PodFacts, pod: PodFacts) -> bool:
        """Whether a pod's earlier substitute still gets the pod's answers, in the present state."""
        return False

    def effect(self, placed: PodClass) -> Effect:
        """Return which answers for other nodes `placed` may change, in the current state.

        Called for plugins that read CLUSTER; `ON_ALL` is always correct and costs evaluations.
        """
        return ON_ALL


class EnqueueExtensions(Plugin):
    """A plugin that registers which events may help a pod that it rejected.

    Any event may help the pods of a plugin without this base class.
    """

    @abstractmethod
    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        """Return the events, each with a hint or without; () for none at all."""


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: PodFacts) -> Status:
        """Return Success to admit the pod to activeQ; any other status keeps it gated."""


class QueueSortPlugin(Plugin):
    @abstractmethod
    def sort_key(self, pod: PodFacts, queued_s: float) -> tuple[float | str, ...]:
        """Return the sort key of a pod; pods with smaller keys are popped first.

        queued_s: the time at which it was last added to the queue (upstream's Timestamp).
        """


class PreFilterPlugin(Plugin):
    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        """Prepare Filter, restrict the nodes, reject the pod, or return Skip (no Filter then).

        table: all nodes. Data for Filter is written to `state`, under the plugin's name if
        `with_pods_moved` is to receive it.
        """

    def with_pods_moved(
        self, prepared: object, pod: PodClass, row: Table, moves: Mapping[PodClass, int]
    ) -> object:
        """Return the prepared data as if pods were added to or removed from a row.

        Upstream's AddPod and RemovePod. prepared: the value that PreFilter wrote under the
        plugin's name; it must not be modified. row: a table of that one row, for its node's facts.
        moves: class → number of pods added (below 0: removed). The result is used for that row
        only, and may omit data that only other rows read. If nothing changes, return the same
        object, as a plugin without AddPod and RemovePod does.
        """
        return prepared


def has_pre_filter_extensions(plugin: Plugin) -> bool:
    """Whether moved pods change a plugin's prepared data (upstream's PreFilterExtensions)."""
    if not isinstance(plugin, PreFilterPlugin):
        return False
    return type(plugin).with_pods_moved is not PreFilterPlugin.with_pods_moved


class FilterPlugin(Plugin):
    """A plugin that refuses nodes.

    unprepared: the error of Filter without its PreFilter (`roadstead.framework.unprepared`); "" if
    Filter does not need it.
    """

    unprepared: ClassVar[str] = ""

    @abstractmethod
    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        """Return which rows can take the pod, and why the others cannot."""

    def runs_per_pod(self, pod: PodClass) -> bool:
        """Whether Filter is called for each pod of a class, not once for all of them.

        True if Filter reads state outside the table that each placement of such a pod changes, for
        example which devices are allocated. Otherwise the answers of one call hold for all pods of
        the class while the rows and `state_version` stay equal.
        """
        return False

    def changed_rows(self, table: Table, position: int) -> tuple[list[int] | None, int]:
        """Return the rows whose Filter answers may have changed, and the next call's `position`.

        The plugin numbers the changes of its own state. position: the number of the last change
        that the caller knows, as an earlier call for the table returned it; 0 at first. None
        instead of rows: any may have changed. Called for pods for which `runs_per_pod` holds.
        """
        return None, 0

    def known_passes(
        self, state: CycleState, pod: PodClass, table: Table, rows: Sequence[int]
    ) -> list[bool] | None:
        """Return whether each of some rows passes Filter, without a call of Filter: bool[row].

        None if Filter must be called to know it. table: all nodes. Called for pods for which
        `runs_per_pod` holds.
        """
        return None

    def count_passing(self, pods: Sequence[PodClass], table: Table, rows: Rows) -> int:
        """Return how many of the pods pass before the first that is refused.

        pods[i] is checked on rows[i], with the pods before it on their rows. The table itself is
        read, because the data of PreFilter may be out of date. The result may be too low: Filter
        decides on the first pod not counted.
        """
        return 0


class PostFilterPlugin(Plugin):
    """A plugin that handles pods without a feasible node.

    failed, in its methods: what it may read of the failed cycle. reads_refused_nodes: it reads
    which nodes its own Filter refused (`PostFilterView.refused_nodes`).
    """

    reads_refused_nodes: ClassVar[bool] = False

    def dry_run_size(self, pod: PodFacts, failed: PostFilterView) -> int | None:
        """Return how many candidates a dry run of preemption should find; None for no dry run."""
        return None

    @abstractmethod
    def post_filter(self, pod: PodFacts, failed: PostFilterView) -> PostFilterResult:
        """Handle a pod that has no feasible node; the status's reasons end the pod's message."""

    def details(self, pod: PodFacts, failed: PostFilterView) -> tuple[str, ...]:
        """Return what an explanation adds about the nodes that this plugin refused.

        Only called with `reads_refused_nodes`, and only for an explanation, not for a decision.
        """
        return ()


class PreparesScore(Plugin):
    """A plugin that reads all nodes before Score, even if it is not enabled at PreScore.

    For data that upstream's Score reads from its snapshot of the nodes, without a PreScore.
    """

    @abstractmethod
    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        """Prepare Score, or return Skip (the plugin then adds 0), or fail the cycle.

        table: all nodes. feasible() -> bool[row]; if it is not called, the prepared data must be
        valid for any set of feasible rows. Data for Score is written to `state`, through which
        PreFilter's data is read, too.
        """


class PreScorePlugin(PreparesScore):
    """PreScore as in upstream: called if the configuration enables it."""


class ScorePlugin(Plugin):
    """A plugin that scores nodes.

    normalizes: `normalize` is called; otherwise raw scores are final.
    unprepared_score: the error of Score without its PreScore; "" if Score does not need it.
    """

    normalizes: ClassVar[bool] = False
    unprepared_score: ClassVar[str] = ""

    @abstractmethod
    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        """Return raw scores: int64[row]. The values of infeasible rows are ignored."""

    def normalize(self, state: CycleState, pod: PodClass, raw: I64, extremes: Extremes) -> I64:
        """Map raw scores to 0..100: int64[k] → int64[k], element by element, with the extremes."""
        return raw


class ReservePlugin(Plugin):
    @abstractmethod
    def reserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        """Reserve what the pod needs besides the node; anything but Success undoes all Reserves."""

    @abstractmethod
    def unreserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        """Undo `reserve`; may be called without it and more than once; must not fail."""


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> tuple[Status, float]:
        """Return Success, a refusal, or Wait with its timeout in seconds."""


class PreBindPlugin(Plugin):
    @abstractmethod
    def pre_bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        """Do the work that must precede the bind; anything but Success rejects the pod."""


class BindPlugin(Plugin):
    @abstractmethod
    def bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        """Return Skip to call the next bind plugin, or Success: then the binder binds the pod."""


class PostBindPlugin(Plugin):
    @abstractmethod
    def post_bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        """Observe a finished bind."""


class PodDeletionPlugin(Plugin):
    """A plugin that stores data about bound pods and is notified when one of them is deleted.

    Upstream's plugins read informers for this.
    """

    @abstractmethod
    def pod_deleted(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        """Forget a deleted pod that this scheduler had bound; must not fail."""


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
    """Apply upstream's DefaultNormalizeScore (plugins/helper/normalize_score.go) to raw scores.

    reverse: the lowest raw score gets the highest result. The integers are the same: a maximum
    below 0 counts as 0; quotients are truncated towards zero.
    """
    if maximum <= 0:
        return np.full_like(raw, MAX_NODE_SCORE) if reverse else raw
    scaled: I64 = np.sign(raw) * (MAX_NODE_SCORE * np.abs(raw) // maximum)
    return MAX_NODE_SCORE - scaled if reverse else scaled
