"""Runtime classes: the overhead of a pod, and the nodes on which it may run.

Upstream: plugin/pkg/admission/runtimeclass (1.34).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from roadstead.manifests.applied import AppliedDefaults
from roadstead.protocol.errors import cut_short
from roadstead.protocol.objects import PodSpec, RuntimeClass


class RefusedError(Exception):
    """Admission refuses an object; the text is the reason."""


class RuntimeClasses:
    """The runtime classes of a cluster."""

    def __init__(self, classes: Iterable[RuntimeClass], applied: AppliedDefaults) -> None:
        self._applied = applied
        self._classes = {each.metadata.name: each for each in classes}
        self._missing: Counter[str] = Counter()

    def applied_to(self, spec: PodSpec, key: str) -> PodSpec:
        """Return the spec with the overhead, node selector and tolerations of its class.

        key: namespace/name of the pod. Raises RefusedError if the pod's own overhead or node
        selector contradicts the class.
        """
        name = spec.runtime_class_name
        if not name:
            return spec
        runtime = self._classes.get(name)
        if runtime is None:
            self._missing[cut_short(name)] += 1
            return spec
        changes: dict[str, object] = {}
        overhead = runtime.overhead.pod_fixed
        # As the admission plugin: what the pod sets itself is never overridden, and a
        # contradiction is refused.
        if overhead and spec.overhead and spec.overhead != overhead:
            raise RefusedError(f"spec.overhead is not that of RuntimeClass {cut_short(name)}")
        if overhead and not spec.overhead:
            changes["overhead"] = overhead
        added, before = runtime.scheduling.node_selector, spec.node_selector
        if conflict := [
            label for label in added if before.get(label, added[label]) != added[label]
        ]:
            reason = f"contradicts RuntimeClass {cut_short(name)} in {cut_short(conflict[0])}"
            raise RefusedError(f"spec.nodeSelector {reason}")
        if not added.items() <= before.items():
            changes["node_selector"] = {**before, **added}
        more = [e for e in runtime.scheduling.tolerations if e not in spec.tolerations]
        if more:
            changes["tolerations"] = (*spec.tolerations, *more)
        if not changes:
            return spec
        self._applied.add(f"RuntimeClass {name}", key)
        return spec.model_copy(update=changes)

    def notes(self) -> Iterator[str]:
        """Yield a note for each runtime class that pods name and the cluster lacks."""
        for name, count in sorted(self._missing.items()):
            yield (
                f"RuntimeClass {name} of {count:,} pod{'s' * (count > 1)} is not in the cluster: "
                "its overhead, node selector and tolerations are not applied."
            )
