"""The allocator: the claims of a pod on a node.

Results that other pods can use are cached: the pools that a node sees, the devices that match the
selectors of a request, and the allocations found on nodes with equal pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

from roadstead.devices.allocation_result import KnownAllocation, NewShareId, allocation_of
from roadstead.devices.chosen_devices import Chosen
from roadstead.devices.errors import AllocationError
from roadstead.devices.in_use import DevicesInUse
from roadstead.devices.plans import Plan, plan_of
from roadstead.devices.pools import DevicePools
from roadstead.devices.quick import QuickAnswers, Verdict
from roadstead.devices.screen import NodeScreen, Verdicts
from roadstead.devices.search import Search
from roadstead.devices.selectors import SelectorResults
from roadstead.devices.views import PoolMatcher, ProposedView, VisiblePools
from roadstead.protocol.quantity import QuantityError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from roadstead.devices.gates import DeviceGates
    from roadstead.devices.pools import Labels, Pool
    from roadstead.devices.selectors import Compile
    from roadstead.facts.devices import Allocation, DeviceClaimFacts, DeviceClassFacts

PLANS_MAX: Final = 4096
"""Maximum number of cached plans; beyond it all are dropped, and compiled again when needed."""

KNOWN_MAX: Final = 16_384
"""Maximum number of cached results of searches, for nodes with equal pools."""

KNOWN_DEVICES_MAX: Final = 1024
"""Results on nodes with more devices are not cached: few nodes have equal pools then, and the next
allocation changes them."""

STEPS_PER_S: Final = 10_000
"""Steps of a search in place of a second of upstream's time limit; a second has about as many."""

STEPS_MAX: Final = 10 * STEPS_PER_S
"""Steps of one search, unless the caller sets another number: upstream's 10 s."""


class StepLimit:
    """End a search after a number of steps, so that its result does not depend on the machine."""

    def __init__(self, steps: int = STEPS_MAX) -> None:
        self._left = steps

    @classmethod
    def of_seconds(cls, seconds: float) -> Callable[[], bool]:
        """Return a limit for so many seconds; as upstream, 0 means no limit."""
        return cls(max(1, round(seconds * STEPS_PER_S))) if seconds else lambda: False

    def __call__(self) -> bool:
        """Count a step; return whether more were made than allowed."""
        self._left -= 1
        return self._left < 0


class Allocator:
    """Allocate devices of nodes to claims of pods.

    The caller keeps up to date: `pools` (the slices), `in_use`, the classes (`set_classes`), and,
    if it calls `screen`, `nodes`. classes_version: grows when classes change. steps_max: steps of a
    search to which `allocate` gives no other limit.
    """

    def __init__(
        self, gates: DeviceGates, compile_selector: Compile, steps_max: int = STEPS_MAX
    ) -> None:
        self.gates = gates
        self._steps_max = steps_max
        self.selectors = SelectorResults(compile_selector)
        self.pools = DevicePools(gates)
        self.in_use = DevicesInUse(gates)
        self._matcher = PoolMatcher(self.selectors, gates)
        self._quick = QuickAnswers(self._matcher, self.in_use)
        self.nodes = NodeScreen(self.pools, self.in_use, self._quick)
        self._classes: dict[str, DeviceClassFacts] = {}
        self.classes_version = 0
        # By the claims, and by their ids.
        self._plans: dict[tuple[DeviceClaimFacts, ...], Plan] = {}
        self._plans_by_id: dict[tuple[int, ...], tuple[tuple[DeviceClaimFacts, ...], Plan]] = {}
        # Shape of claims (all but their names) → its number (`Plan.shape`), dropped with the plans.
        # A number is not used again, because `nodes` has outcomes of searches by it.
        self._shapes: dict[Hashable, int] = {}
        self._shape_numbers = count()
        # By plan and `QuickAnswers.equivalence_key` of a node; None: there is no allocation.
        self._known: dict[tuple[Plan, Hashable], tuple[KnownAllocation, ...] | None] = {}

    def set_classes(self, classes: Iterable[DeviceClassFacts]) -> None:
        """Replace all classes; of two with one name, the last is used."""
        by_name = {each.name: each for each in classes}
        if by_name != self._classes:
            self._classes = by_name
            self.classes_version += 1
            self._forget_plans()
            self.nodes.forget_outcomes()

    def plan(self, claims: tuple[DeviceClaimFacts, ...]) -> Plan:
        """Compile claims, in the pod's order, for `allocate`; the result is cached."""
        # Most claims are substitutes (`substitutes.py`): the same objects each time.
        ids = tuple(map(id, claims))
        same = self._plans_by_id.get(ids)
        if same is not None:
            return same[1]
        plan = self._plans.get(claims)
        if plan is None:
            if len(self._plans) >= PLANS_MAX:
                self._forget_plans()
            shape = tuple([(c.namespace, c.spec, c.is_for_extended_resources) for c in claims])
            number = self._shapes.get(shape)
            if number is None:
                number = self._shapes[shape] = next(self._shape_numbers)
            plan = self._plans[claims] = plan_of(claims, self._classes, self.gates, number)
        if len(self._plans_by_id) >= PLANS_MAX:
            self._plans_by_id.clear()
        # The claims are kept, so that no others get their ids.
        self._plans_by_id[ids] = claims, plan
        return plan

    def _forget_plans(self) -> None:
        self._plans.clear()
        self._plans_by_id.clear()
        self._shapes.clear()
        self._known.clear()

    def allocate(
        self,
        plan: Plan,
        node: str,
        labels: Labels,
        *,
        is_over: Callable[[], bool] | None = None,
        new_share_id: NewShareId | None = None,
    ) -> tuple[Allocation, ...] | None:
        """Return an allocation for each claim on a node; None if the node has none for them.

        is_over: called before each step of the search; returns whether its time is over. By default
            a `StepLimit` of `steps_max`.
        new_share_id: returns ShareIDs; by default share-1, share-2 and so on.

        Raises:
            AllocationError: upstream's error, which ends the pod's cycle.
            AllocationAborted: the time was over.
            AllocatorPanic: the real scheduler would crash.
        """
        pools = self.pools.seen_from(node, labels)
        # A search with another limit may end where the default one does not, or the reverse.
        pools_key = None if is_over or new_share_id else self._quick.equivalence_key(pools)
        # None: results depend on more than which devices the pools have and which are in use.
        if pools_key is None:
            return self._search(
                plan, VisiblePools(node, labels, pools, self._matcher), is_over, new_share_id
            )
        key = plan, pools_key
        # (): not searched yet.
        known = self._known.get(key, ())
        if known is None:
            return None
        if known:
            each_known = zip(known, plan.claims, strict=True)
            return tuple([each.for_node(claim, pools, node) for each, claim in each_known])
        found = self._search(plan, VisiblePools(node, labels, pools, self._matcher))
        if sum([len(pool.devices) for pool in pools]) > KNOWN_DEVICES_MAX:
            return found
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[key] = (
            None if found is None else tuple([KnownAllocation.of(each, pools) for each in found])
        )
        return found

    def _search(
        self,
        plan: Plan,
        view: VisiblePools,
        is_over: Callable[[], bool] | None = None,
        new_share_id: NewShareId | None = None,
    ) -> tuple[Allocation, ...] | None:
        """As `allocate`, without the cached results of other nodes."""
        selected: dict[tuple[int, int], int] = {}
        answer = self._quick_answer(plan, view.pools)
        if answer is Verdict.UNKNOWN:
            search = self._searched(plan, view, is_over)
            answer = Verdict.NO if search is None else search.chosen
            selected = {} if search is None else search.selected
        if isinstance(answer, Verdict):
            return None
        return self._allocations(plan, view, answer, selected, new_share_id)

    def _searched(
        self, plan: Plan, view: VisiblePools, is_over: Callable[[], bool] | None = None
    ) -> Search | None:
        """Return the search that found devices for a plan; None if there are none."""
        is_over = is_over or StepLimit(self._steps_max)
        search = Search(plan, view, self.in_use, self.gates, is_over)
        try:
            return search if search.run() else None
        except QuantityError as error:
            # The amounts differ so much in size that their sum has too many digits for any memory.
            # Upstream computes it all the same.
            raise AllocationError(str(error)) from error

    def _allocations(
        self,
        plan: Plan,
        view: VisiblePools,
        chosen: list[list[Chosen]],
        selected: Mapping[tuple[int, int], int],
        new_share_id: NewShareId | None,
    ) -> tuple[Allocation, ...]:
        """Return the allocations of chosen devices. selected: as in `Search`."""
        if new_share_id is None:
            numbers = count(1)
            new_share_id = lambda: f"share-{next(numbers)}"  # noqa: E731
        return tuple(
            allocation_of(
                claim,
                chosen[index],
                lambda request, index=index: selected.get((index, request), 0),  # type: ignore[misc]
                view.name,
                self.gates,
                new_share_id,
            )
            for index, claim in enumerate(plan.claims)
        )

    def repeats(
        self, plan: Plan, node: str, labels: Labels, allocations: tuple[Allocation, ...]
    ) -> bool:
        """Whether a search here has the result of another process: an allocation for each claim.

        The search is among the devices of the allocations; requests for all devices search all. It
        may assign these devices to other requests: then the answer is no.

        Raises:
            AllocationError: as `allocate`.
        """
        pools = self.pools.seen_from(node, labels)
        view = ProposedView(node, labels, pools, self._matcher, allocations)
        search = self._searched(plan, view)
        if search is None:
            return False
        results = (result for each in allocations for result in each.results)
        share_ids = iter([each.share_id for each in results if each.share_id is not None])
        found = self._allocations(
            plan, view, search.chosen, search.selected, lambda: next(share_ids, "")
        )
        return found == allocations

    def _quick_answer(self, plan: Plan, pools: tuple[Pool, ...]) -> list[list[Chosen]] | Verdict:
        """Return the answer if no search is needed (devices by claim, or NO), else UNKNOWN."""
        if plan.demand is None:
            return Verdict.UNKNOWN
        if not plan.is_constrained:
            return self._quick.first_devices(plan.demand, pools, len(plan.claims))
        # Constraints only exclude devices: a NO without them is a NO with them.
        verdict = self._quick.verdict(plan.demand, pools)
        return Verdict.NO if verdict is Verdict.NO else Verdict.UNKNOWN

    def known_verdict(self, plan: Plan, number: int) -> Verdict:
        """Return the cached verdict for a node, by its number in `nodes`; UNKNOWN for none."""
        if plan.demand is not None:
            verdict = self.nodes.known_verdict(plan.demand, number)
            if verdict is Verdict.NO or not plan.is_constrained:
                return verdict
        return self.nodes.outcome_of_equivalent(plan.shape, number)

    def known_answers(self, plan: Plan, numbers: Sequence[int]) -> list[bool] | None:
        """Return whether `allocate` finds an allocation on each of a few nodes, by their numbers.

        None if there is a node for which no verdict is cached.
        """
        if plan.demand is not None and not plan.is_constrained:
            return self.nodes.known_answers(plan.demand, numbers)
        found = [self.known_verdict(plan, number) for number in numbers]
        return None if Verdict.UNKNOWN in found else [each is Verdict.YES for each in found]

    def screen(self, plan: Plan, numbers: NDArray[np.intp]) -> Verdicts | None:
        """Return the value of a `Verdict` for each of some nodes, by their numbers in `nodes`.

        YES: `allocate` finds an allocation. NO: it finds none, and raises nothing. UNKNOWN: call
        it. None if it must be called for every node.
        """
        if plan.demand is None:
            return None
        verdicts = self.nodes.verdicts(plan.demand, numbers)
        # Constraints may exclude the devices of a YES; a NO remains one.
        if plan.is_constrained:
            verdicts[verdicts != Verdict.NO.value] = Verdict.UNKNOWN.value
        return verdicts
