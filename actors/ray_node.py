"""A local Ray without the processes that serve clusters and their viewers.

`ray.init` starts an autoscaler monitor, a log monitor and an API server beside the processes that
run actors, and waits for the last of them; it has no option that leaves them out. A run that starts
its own Ray scales nothing, writes its own logs and shows no dashboard: without the three, Ray is
there 2.3 s earlier on two cores and takes 3.6 s less of their time (docs/decisions/0009).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import ray._private.node
from ray._private.node import Node


class LeanNode(Node):  # type: ignore[misc]
    """Ray's node, without what only watches it.

    These are Ray's private names: where a release has others, it starts all its processes, which
    takes longer and does no harm.
    """

    def start_monitor(self) -> None:
        """The autoscaler's monitor: a fleet of one node does not scale."""

    def start_log_monitor(self) -> None:
        """Sends the actors' output to the driver, which asks for none."""

    def start_api_server(self, **_: object) -> None:
        """Serves the dashboard and jobs that are submitted over HTTP."""


@contextmanager
def lean_node() -> Iterator[None]:
    """While it lasts, a Ray that this process starts has no more than it needs."""
    ray._private.node.Node = LeanNode
    try:
        yield
    finally:
        ray._private.node.Node = Node
