"""The number of waiting pods that a cycle decides in one batch, counted plainly, under small
limits; and the classes for which workers would be called.
"""

from contextlib import ExitStack, contextmanager
from itertools import takewhile
from unittest.mock import patch

from roadstead.cycle import class_cache, class_results
from roadstead.cycle.batch_builder import MAX_BATCH_PODS
from roadstead.framework.worker_results import worker_calls

MOST_CLASSES, MOST_RESULTS = 4096, 12_000_000
LIMITS = {
    "MIN_CLASSES": (1, 2, 16),
    "MAX_CLASSES": (3, 6, MOST_CLASSES),
    "MAX_RESULTS": (10, 40, MOST_RESULTS),
    "MAX_TOTALS": (10, 40, 250_000_000),
}


@contextmanager
def small_limits(draw):
    """Set small limits of `roadstead.cycle.class_cache`, and of cached worker results, in half of
    the rambles.
    """
    with ExitStack() as limited:
        if draw.random() < 0.5:
            limits = {name: draw.choice(some) for name, some in LIMITS.items()}
            limited.enter_context(patch.multiple(class_cache, **limits))
        most = draw.choice((1, 2, class_results.MAX_WORKER_RESULTS))
        limited.enter_context(patch.object(class_results, "MAX_WORKER_RESULTS", most))
        yield


class Lengths:
    """Follows one cycle, under the limits at its start."""

    def __init__(self, cycle, profiles, memory_sharers):
        self._cycle, self._profiles, self._memory_sharers = cycle, profiles, memory_sharers
        self._limits = {name: getattr(class_cache, name) for name in LIMITS}
        self._reach, self._found = MAX_BATCH_PODS, {}

    def of(self, pods):
        """Return how many of the pods are decided in one batch."""
        pods = self._of_few_classes(pods[: self._reach])
        cycle = self._cycle
        if _is_nominated(pods[0]):
            return 1
        pods = [*takewhile(lambda pod: not _is_nominated(pod), pods)]
        if cycle.samples(pods[0]):
            return sum(1 for _ in takewhile(cycle.samples, pods))
        if cycle.searches_nodes(pods[0]):
            return 1
        return sum(1 for _ in takewhile(lambda pod: not cycle.searches_nodes(pod), pods))

    def record_length(self, asked, decided):
        """Adapt the batch length: as short as a batch that ended early; twice a full one."""
        self._reach = min(MAX_BATCH_PODS, 2 * self._reach) if asked == decided else decided

    def missing_classes(self, pods):
        """The classes that users' plugins have not evaluated in the present state; None:
        unknown.
        """
        if self._limits["MAX_CLASSES"] < MOST_CLASSES or self._limits["MAX_RESULTS"] < MOST_RESULTS:
            return None
        found, cycle = [], self._cycle
        for pod in () if cycle.searches_nodes(pods[0]) or _is_nominated(pods[0]) else pods:
            is_known = self._found.get(pod.signature) == self._inputs(pod)
            is_new = pod.signature not in (*found, *cycle._results.worker_results)
            if is_new and not is_known and worker_calls(self._profile_of(pod)):
                found.append(pod.signature)
        return found

    def begins(self, pods):
        """Begin a batch of these pods in the present state."""
        for pod in pods:
            if not self._cycle.searches_nodes(pod) or self._cycle.samples(pod):
                self._found[pod.signature] = self._inputs(pod)

    def _inputs(self, pod):
        return self._cycle.table.node_version, self._profile_of(pod).state_version(pod.pod_class)

    def _profile_of(self, pod):
        return self._profiles[pod.pod_class.facts.scheduler_name]

    def _of_few_classes(self, pods):
        limits, rows = self._limits, max(1, len(self._cycle.table))
        least = max(1, limits["MIN_CLASSES"] // self._memory_sharers)
        cells = limits["MAX_RESULTS"] // (self._memory_sharers * rows)
        kept = max(least, min(limits["MAX_CLASSES"], cells))
        if len({pod.signature for pod in pods}) <= kept:
            return pods
        pods = _first(pods, kept, self._sharing_key)
        totals = limits["MAX_TOTALS"] // (self._memory_sharers * rows)
        return _first(pods, max(least, totals), lambda pod: pod.signature)

    def _sharing_key(self, pod):
        is_shared = self._cycle.compiled_kernel and self._profile_of(pod).has_shape(pod.pod_class)
        return pod.pod_class.shape if is_shared else pod.signature


def _is_nominated(pod):
    return bool(pod.pod_class.facts.nominated_node_name)


def _first(pods, most, key):
    """The first pods with at most so many different keys."""
    found = set()
    for number, pod in enumerate(pods):
        found.add(key(pod))
        if len(found) > most:
            return pods[:number]
    return pods
