"""StoppedNodes: nodes whose machine has stopped, and the effect on the pods on them.

The cluster does not know immediately that a machine has stopped: its pods stay bound, and more may
be bound to it until its node is not ready. None of them makes progress: no pod starts, finishes, or
completes its termination there. When the machine is back, each continues with the time it had left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from roadstead.simulator.simulated_pods import LifeState, SimulatedPod
from roadstead.simulator.times import NEVER_US


class StoppedNodes:
    """The names of stopped nodes, and the pods' remaining times."""

    def __init__(self) -> None:
        # Stopped node → pod → time from the stop to its end; pods without an end are left out.
        self._remaining_us: dict[str, dict[SimulatedPod, int]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._remaining_us

    def stop(self, name: str, pods: Iterable[SimulatedPod], now_us: int) -> None:
        """Stop a node and the pods on it; nothing happens if it has stopped already."""
        if name in self._remaining_us:
            return
        remaining_us = self._remaining_us[name] = {}
        for pod in pods:
            if pod.due_us != NEVER_US:
                remaining_us[pod] = pod.due_us - now_us
                pod.due_us = NEVER_US

    def resume(self, name: str, pods: Iterable[SimulatedPod]) -> Iterator[tuple[SimulatedPod, int]]:
        """Start a node again; yield the pods with a next step, and the time until then.

        A terminating pod ends immediately, as no process of it is left; a bound one has yet to
        start, which the caller delays as it delays every start.
        """
        remaining_us = self._remaining_us.pop(name, None)
        if remaining_us is None:
            return
        for pod in pods:
            if pod.state is LifeState.BOUND or pod.state is LifeState.TERMINATING:
                yield pod, 0
            elif pod in remaining_us:
                yield pod, remaining_us[pod]

    def drop(self, name: str) -> None:
        """Forget a node that was removed."""
        self._remaining_us.pop(name, None)
