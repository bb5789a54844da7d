"""Checks of what a trace file holds: names and amounts, before anything else reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.names import dns_label_errors, is_subdomain, subdomain_errors

AMOUNT_MAX = (1 << 63) - 1


def check_names(field: str, names: Iterable[str]) -> None:
    """Check names by the API server's rules, because they end up in files and on terminals."""
    for name in names:
        if not is_subdomain(name):
            _refuse(field, name, subdomain_errors(name))


def check_namespaces(names: Iterable[str]) -> None:
    """Check names of namespaces by the API server's rules."""
    for name in names:
        if rules := dns_label_errors(name):
            _refuse("namespaces", name, rules)


def check_uids(uids: Iterable[str]) -> None:
    """Check that UIDs can be printed."""
    for uid in uids:
        if not uid.isprintable():
            rule = "must not contain control characters"
            raise InputError(rule, field="pods.uid", value=cut_short(uid))


def check_node_classes(classes: Iterable[NodeFacts]) -> None:
    """Check that each amount is a non-negative int64: later, amounts are added as int64."""
    for node in classes:
        _check_amount("allocatable", ("pods", node.allocatable_pods))
        for entry in (*node.allocatable, *node.images):
            _check_amount("allocatable", entry)


def check_pod_classes(classes: Sequence[PodFacts]) -> None:
    """Check namespaces, and that each amount is a non-negative int64."""
    check_namespaces(facts.namespace for facts in classes)
    for pod in classes:
        nonzero = (("cpu", pod.nonzero_cpu_milli), ("memory", pod.nonzero_memory_bytes))
        for entry in (*pod.requests, *nonzero, *(pod.container_requests or ())):
            _check_amount("requests", entry)


def decoded(field: str, content: bytes, dtype: str) -> NDArray[np.int64]:
    """Return the entries of a packed column as int64; InputError if its length does not fit."""
    kind = np.dtype(dtype)
    if len(content) % kind.itemsize:
        raise InputError(f"is no whole number of {kind.itemsize}-byte entries", field=field)
    return np.frombuffer(content, dtype=kind).astype(np.int64)


def _refuse(field: str, name: str, rules: Iterable[str]) -> None:
    problem = f"is not allowed: {'; '.join(rules)}"
    raise InputError(problem, field=field, value=cut_short(name))


def _check_amount(field: str, entry: tuple[str, int]) -> None:
    resource, amount = entry
    if not 0 <= amount <= AMOUNT_MAX:
        name = f"{field}[{cut_short(resource)}]"
        raise InputError("is out of range", field=name, value=cut_short(amount))
