"""SinglePodKernel: a kernel for pods that are decided one at a time, of any classes.

A kernel for a batch is laid out for the classes of that batch. Here the next pod may be of any
class, and often of a new one that differs from a known one in amounts alone. So the kernel has a
fixed number of entries for classes of each shape (a class without its resource amounts): a new
class replaces the least recently used one, and nothing else is computed again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from roadstead.framework.tie_break import Chooser
from roadstead.kernel.compiled_code import CompiledCode
from roadstead.kernel.covered_classes import KernelClass
from roadstead.kernel.kernel import Kernel
from roadstead.nodes.table import NodeTable

CLASSES_PER_SHAPE = 16
"""Number of entries for classes of one shape."""

MAX_SHAPES = 16
"""Maximum number of shapes of a kernel; beyond it, the least recently used one is dropped."""


class _Shape:
    """The entries of one shape. classes: by signature, the least recently used first.

    At first all entries have the first class, under keys that no pod has: the arrays of the kernel
    have their final size from the start. node_version: of the table at that time.
    """

    def __init__(self, first_class: KernelClass, node_version: int) -> None:
        self.first_class, self.node_version = first_class, node_version
        self.classes: OrderedDict[Hashable, KernelClass] = OrderedDict(
            ((self, entry), first_class) for entry in range(CLASSES_PER_SHAPE)
        )


class SinglePodKernel:
    """Keep one kernel, for the shapes of the last pods.

    _built_for: what the kernel depends on besides the classes.
    """

    def __init__(self) -> None:
        self._kernel: Kernel | None = None
        self._built_for: tuple[object, ...] = ()
        # By id of the evaluation that the classes of the shape share; least recently used first.
        self._shapes: OrderedDict[int, _Shape] = OrderedDict()

    def kernel_for(
        self,
        code: CompiledCode,
        table: NodeTable,
        signature: Hashable,
        kernel_class: KernelClass,
        chooser: Chooser,
    ) -> Kernel | None:
        """Return the kernel with a class among its entries; None if no kernel covers the class.

        kernel_class: of the signature, with results that are valid now.
        """
        built_for = (code, table, table.rows_version, chooser)
        if built_for != self._built_for:
            self._built_for = built_for
            self._shapes.clear()
        key, kernel = id(kernel_class.evaluation), self._kernel
        shape = self._shapes.get(key)
        is_known = shape is not None and shape.first_class.is_same(kernel_class)
        if shape is not None and kernel is not None and is_known:
            self._shapes.move_to_end(key)
            first = next(iter(shape.classes))
            # A new kernel would not cover it, either, and all shapes would be laid out again.
            if not kernel.covers(first) and shape.node_version == table.node_version:
                return None
            is_known = kernel.update_static_scores(first)
        if shape is None or kernel is None or not is_known:
            # The next placement changes results that read other nodes: the kernel would decide one
            # pod. A class with a large amount is not covered, but others of its shape may be.
            if kernel_class.reads_other_nodes or kernel_class.pod.is_large:
                return None
            shape, kernel = self._with_shape(code, table, kernel_class, chooser)
        if signature not in shape.classes:
            oldest = next(iter(shape.classes))
            if not kernel.replace(oldest, signature, kernel_class):
                return None
            del shape.classes[oldest]
            shape.classes[signature] = kernel_class
        else:
            shape.classes.move_to_end(signature)
        is_current = kernel.covers(signature) and kernel.update_per_pod_filters(signature)
        return kernel if is_current else None

    def _with_shape(
        self, code: CompiledCode, table: NodeTable, kernel_class: KernelClass, chooser: Chooser
    ) -> tuple[_Shape, Kernel]:
        """Return a new shape, and a new kernel with it and the shapes used last."""
        # An older shape of the same evaluation is out of date, and so are shapes that were not used
        # since nodes changed.
        self._shapes.pop(id(kernel_class.evaluation), None)
        for key, each in list(self._shapes.items()):
            if each.first_class.evaluation.node_version != table.node_version:
                del self._shapes[key]
        while len(self._shapes) >= MAX_SHAPES:
            self._shapes.popitem(last=False)
        shape = self._shapes[id(kernel_class.evaluation)] = _Shape(kernel_class, table.node_version)
        shapes = self._shapes.values()
        classes = {name: each for one in shapes for name, each in one.classes.items()}
        self._kernel = Kernel(code, table, classes, chooser, shares_static=False)
        return shape, self._kernel
