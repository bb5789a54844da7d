"""Row overlays: copies of rows to which pods are added, or from which they are removed, for Filter.

They have two uses. The first is filtering with nominated pods: if pods of equal or higher priority
are nominated to a node, a pod must pass the filters twice, with those pods on the node and without
them. The second is the dry run of preemption, which removes pods from a node and adds some of them
again. The added and removed pods of a row are its *moves*.

Filter of a plugin that reads only the row is called with the overlay as the table. Filter of a
plugin that reads other nodes also reads the data that its PreFilter prepared: `with_pods_moved`
returns this data as it is after the moves. A plugin whose PreFilter returned Skip stays skipped.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods,
addNominatedPods, RunPreFilterExtensionAddPod, RunPreFilterExtensionRemovePod).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import (
    FilterPlugin,
    FilterResult,
    Plugin,
    PreFilterPlugin,
    Reads,
    has_pre_filter_extensions,
)
from roadstead.framework.profile import Profile
from roadstead.nodes.columns import I32
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows

PASSED = 0


class Filtered(Protocol):
    """The parts of an up-to-date `Evaluation` that are read here.

    `roadstead/framework/evaluation.py` imports this module.
    """

    profile: Profile
    pod: PodClass
    state: CycleState

    @property
    def table(self) -> NodeTable: ...

    def static_results(self) -> tuple[I32, I32]: ...

    def nominated_to(self, node_name: str) -> Mapping[PodClass, int]: ...

    def apply_result(
        self,
        plugin: Plugin,
        position: int,
        result: FilterResult,
        codes: I32,
        positions: I32,
    ) -> None: ...


class RowOverlay:
    """An overlay of some rows of an up-to-date evaluation; row i is the i-th of these rows.

    Codes are those of the evaluation: PASSED, or k > 0 for `statuses[k - 1]`. Positions are those
    of the filters in the profile. static: codes and positions of these rows by the filters that
    read NODE facts; None to read `evaluation.static_results`, which then must be computed.
    """

    __slots__ = ("_evaluation", "_moved", "_nominated", "_static", "table")

    def __init__(
        self, evaluation: Filtered, rows: Rows, static: tuple[I32, I32] | None = None
    ) -> None:
        self._evaluation = evaluation
        self.table = evaluation.table.copy_rows(rows)
        # As upstream's NodeInfo, which does not count how many pods use a port.
        self.table.ports_as_set = True
        if static is None:
            codes, positions = evaluation.static_results()
            static = codes[rows], positions[rows]
        self._static = static
        # By row: class → number of pods added (below 0: removed).
        self._moved: list[dict[PodClass, int]] = [{} for _ in rows]
        # By row: the pods nominated to its node, by class; only rows with such pods.
        self._nominated = {
            row: pods
            for row, name in enumerate(self.table.columns.names)
            if (pods := evaluation.nominated_to(name))
        }

    def move(self, moves: Iterable[tuple[int, PodClass, int]]) -> None:
        """Add pods to rows or remove them: (row, class, number of pods, below 0 to remove)."""
        by_class: dict[PodClass, dict[int, int]] = {}
        for row, pod_class, change in moves:
            rows = by_class.setdefault(pod_class, {})
            rows[row] = rows.get(row, 0) + change
        for pod_class, rows in by_class.items():
            self.table.change_pods(rows, pod_class)
            for row, change in rows.items():
                moved = self._moved[row]
                moved[pod_class] = moved.get(pod_class, 0) + change
                if not moved[pod_class]:
                    del moved[pod_class]

    def filter(self, rows: Rows) -> I32:
        """Return the filters' codes of some rows, with nominated pods and without: int32[rows]."""
        codes = self.filter_with_nominated(rows)
        passed = np.flatnonzero(codes == PASSED)
        codes[passed] = self._run(rows[passed])
        return codes

    def filter_with_nominated(self, rows: Rows) -> I32:
        """Return the filters' codes with the nominated pods on their nodes: int32[rows].

        Rows without nominated pods are not evaluated, and pass.
        """
        codes: I32 = np.zeros(len(rows), dtype=np.int32)
        contended = [index for index, row in enumerate(rows.tolist()) if row in self._nominated]
        if contended:
            contended_rows = rows[contended]
            # Ports are sets: removing the nominated pods would also free equal ports of pods that
            # are on the node.
            ports = self.table.columns.port_set[contended_rows]
            self._move_nominated(contended_rows, sign=1)
            codes[contended] = self._run(contended_rows)
            self._move_nominated(contended_rows, sign=-1)
            self.table.columns.port_set[contended_rows] = ports
        return codes

    def _move_nominated(self, rows: Rows, *, sign: int) -> None:
        """Add the nominated pods to rows (sign 1), or remove them (-1)."""
        self.move(
            (row, pod_class, sign * count)
            for row in rows.tolist()
            for pod_class, count in self._nominated[row].items()
        )

    def _run(self, rows: Rows) -> I32:
        codes, positions = self._static[0][rows], self._static[1][rows]
        evaluation, view = self._evaluation, self.table.view(rows)
        for position, plugin in enumerate(evaluation.profile.filter):
            if plugin.reads is Reads.NODE or plugin.name in evaluation.state.skipped:
                continue
            if has_pre_filter_extensions(plugin):
                self._run_cross_node(plugin, position, rows, codes, positions)
            else:
                result = plugin.filter(evaluation.state, evaluation.pod, view)
                evaluation.apply_result(plugin, position, result, codes, positions)
        return codes

    def _run_cross_node(
        self, plugin: FilterPlugin, position: int, rows: Rows, codes: I32, positions: I32
    ) -> None:
        """Run a filter that reads other nodes, only on rows that no filter before it refused.

        Rows whose prepared data is not changed by moves are evaluated in one call, each other row
        in a call of its own. A filter before it: of a lower position.
        """
        assert isinstance(plugin, PreFilterPlugin)
        evaluation = self._evaluation
        before = evaluation.state.get(plugin.name)
        unmoved = []
        for index in np.flatnonzero(positions > position).tolist():
            row = int(rows[index])
            view, moves = self.table.view(rows[index : index + 1]), self._moved[row]
            try:
                after = before
                if moves:
                    after = plugin.with_pods_moved(before, evaluation.pod, view, moves)
            except PluginFailure as failure:
                result = FilterResult.refuse(np.ones(1, dtype=np.bool_), failure.status)
            else:
                if after is before:
                    unmoved.append(index)
                    continue
                state = evaluation.state.with_value(plugin.name, after)
                result = plugin.filter(state, evaluation.pod, view)
            own = slice(index, index + 1)
            evaluation.apply_result(plugin, position, result, codes[own], positions[own])
        if unmoved:
            result = plugin.filter(evaluation.state, evaluation.pod, self.table.view(rows[unmoved]))
            some_codes, some_positions = codes[unmoved], positions[unmoved]
            evaluation.apply_result(plugin, position, result, some_codes, some_positions)
            codes[unmoved], positions[unmoved] = some_codes, some_positions


def pods_to_yield_to(
    pod: PodClass, nominated: Mapping[PodClass, int], own: PodClass | None
) -> dict[PodClass, int]:
    """Return the pods nominated to a node that a pod must yield to, by class.

    These are pods of equal or higher priority. own: the class under which the pod itself is in
    `nominated`, if it is: a pod does not yield to itself.
    """
    found = {
        pod_class: count
        for pod_class, count in nominated.items()
        if pod_class.facts.priority >= pod.facts.priority
    }
    if own in found:
        found[own] -= 1
    return {pod_class: count for pod_class, count in found.items() if count}
