"""TaskNodes: how many tasks of a sweep each node of a Ray cluster may run, and which node is next.

A task goes to the node that can run most further tasks, so that tasks are spread. Ray's number of
free CPUs is some tenths of a second old: it may still count a CPU of a task that has just started.
So the capacity of a node is the tasks that ran there when the nodes were listed plus the free CPUs,
and at most its CPUs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from roadstead.actors.runtime.ray_placement import CPU_TOLERANCE, RayNode

CPUS_PER_TASK = 1.0
"""Number of CPUs that each task reserves."""


class TaskNodes:
    """The nodes that may run tasks, and the number of tasks on each.

    max_tasks: on all nodes; None without a limit. running: node id → number of tasks; a new mapping
    at each change, so that another thread may read it. _capacity: node id → number of tasks that
    may run there. _lost: ids.
    """

    def __init__(self, max_tasks: int | None = None) -> None:
        self._max_tasks = max_tasks
        self._nodes: dict[str, RayNode] = {}
        self._capacity: dict[str, int] = {}
        self.running: Mapping[str, int] = {}
        self._lost: set[str] = set()

    def use(self, nodes: Iterable[RayNode], running: Mapping[str, int]) -> None:
        """Use these nodes from now on. running: tasks on each when the nodes were listed."""
        self._nodes = {node.id: node for node in nodes if node.id not in self._lost}
        self._capacity = {
            key: min(
                _tasks_of_cpus(node.cpus), running.get(key, 0) + _tasks_of_cpus(node.free_cpus)
            )
            for key, node in self._nodes.items()
        }

    @property
    def capacity(self) -> int:
        """The number of tasks that may run, those that run included."""
        total = sum(
            max(capacity, self._running_on(key)) for key, capacity in self._capacity.items()
        )
        return total if self._max_tasks is None else min(total, self._max_tasks)

    def begin(self) -> RayNode:
        """Count a task on the node that can run most further tasks, and return the node."""

        def rank(node: RayNode) -> tuple[int, str, str]:
            return self._running_on(node.id) - self._capacity[node.id], node.name, node.id

        node = min(self._nodes.values(), key=rank)
        assert rank(node)[0] < 0, "no node can run another task"
        self._count(node.id, 1)
        return node

    def end(self, node_id: str) -> None:
        """Remove an ended task from the count of its node."""
        assert self._running_on(node_id) > 0, "no task runs there"
        self._count(node_id, -1)

    def lose(self, node_ids: Collection[str]) -> None:
        """Stop using these nodes. Their tasks are still counted; `end` removes each."""
        self._lost |= set(node_ids)
        for key in node_ids:
            self._nodes.pop(key, None)
            self._capacity.pop(key, None)

    def _running_on(self, node_id: str) -> int:
        return self.running.get(node_id, 0)

    def _count(self, node_id: str, change: int) -> None:
        self.running = {**self.running, node_id: self._running_on(node_id) + change}

    def validate(self) -> None:
        """Check that no lost node is used and no task is counted twice."""
        assert self._nodes.keys() == self._capacity.keys(), "a node without a capacity"
        assert not self._lost & self._nodes.keys(), "a lost node is used"
        assert all(count >= 0 for count in self.running.values()), "a task ended twice"
        assert all(capacity >= 0 for capacity in self._capacity.values()), "negative capacity"


def _tasks_of_cpus(cpus: float) -> int:
    return max(0, int((cpus + CPU_TOLERANCE) // CPUS_PER_TASK))
