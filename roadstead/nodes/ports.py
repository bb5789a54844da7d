"""Host ports in use on a node, as a table counts them and as an overlay lists them.

An overlay is a copy of rows to which pods are added, or from which they are removed, for a dry run
of the filters (`roadstead.framework.row_overlay`). A table counts the pods that use a port; an
overlay only records, as upstream, whether it is in use.
"""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.facts.pod import HostPort
from roadstead.nodes.columns import PortSet


def ports_in_use(ports: dict[HostPort, int], pod_ports: Iterable[HostPort], change: int) -> PortSet:
    """Return a node's ports in an overlay, in use or not, after a change.

    pod_ports: of the pods that were added or, with a negative change, removed. As upstream, a
    removed pod frees a port even if another pod of the node uses it, too (framework/types.go,
    HostPortInfo).
    """
    for port in pod_ports:
        if change > 0:
            ports[port] = 1
        else:
            ports.pop(port, None)
    return _sorted(ports)


def port_counts(ports: dict[HostPort, int], pod_ports: Iterable[HostPort], change: int) -> PortSet:
    """Return a node's ports with the number of pods that use each, after `change` such pods.

    AssertionError if more are removed than there are.
    """
    for port in pod_ports:
        ports[port] = ports.get(port, 0) + change
        assert ports[port] >= 0, f"port {port} was not in use"
        if not ports[port]:
            del ports[port]
    return _sorted(ports)


def _sorted(ports: dict[HostPort, int]) -> PortSet:
    return tuple(
        sorted(ports.items(), key=lambda item: (item[0].port, item[0].protocol, item[0].ip))
    )
