"""KernelCache: a cache of one kernel, used by batch after batch over the same table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from roadstead.framework.tie_break import Chooser
from roadstead.kernel.compiled_code import CompiledCode
from roadstead.kernel.covered_classes import KernelClass
from roadstead.kernel.kernel import Kernel
from roadstead.nodes.table import NodeTable

MAX_REPEATED = 512
"""Maximum number of recurring classes that a new kernel covers besides those of its batch.

If there are more, it covers none of them.
"""


class KernelCache:
    """Keep the last kernel. A class is unchanged as long as its inputs are the same objects.

    _classes: those of the kernel. _repeated: signatures of those that several batches had.
    _built_for: what the kernel depends on besides the classes.
    """

    def __init__(self) -> None:
        self._kernel: Kernel | None = None
        self._classes: dict[Hashable, KernelClass] = {}
        self._repeated: set[Hashable] = set()
        self._built_for: tuple[object, ...] = ()

    def get(
        self,
        code: CompiledCode,
        table: NodeTable,
        classes: Mapping[Hashable, KernelClass],
        chooser: Chooser,
    ) -> Kernel:
        """Return a kernel for the classes of a batch: the last one if it has them, unchanged."""
        built_for = (code, table, table.node_version, chooser)
        kernel = self._kernel
        self._repeated.update(classes.keys() & self._classes.keys())
        if (
            kernel is not None
            and built_for == self._built_for
            and self._is_current(kernel, classes)
        ):
            kernel.begin_batch()
            return kernel
        repeated = self._repeated_classes() if built_for == self._built_for else {}
        self._repeated.intersection_update(repeated)
        # Classes of one counter set take its counts from the state of the first of them. So classes
        # of this batch precede: the counts of a class of an earlier batch are out of date.
        self._classes = {**classes, **{s: each for s, each in repeated.items() if s not in classes}}
        self._built_for = built_for
        self._kernel = Kernel(code, table, self._classes, chooser)
        return self._kernel

    def _repeated_classes(self) -> dict[Hashable, KernelClass]:
        """Return the classes of more than one batch: if all pods are distinct, no class recurs."""
        repeated = {s: each for s, each in self._classes.items() if s in self._repeated}
        return repeated if len(repeated) <= MAX_REPEATED else {}

    def _is_current(self, kernel: Kernel, classes: Mapping[Hashable, KernelClass]) -> bool:
        """Whether all classes are unchanged; a class that was not covered is still not."""
        for signature, each in classes.items():
            last = self._classes.get(signature)
            if last is None:
                return False
            is_same = each.is_same(last)
            if kernel.covers(signature) and not (
                is_same and kernel.update_per_pod_filters(signature)
            ):
                return False
        return True
