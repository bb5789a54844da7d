"""The kernel: compiled decisions of sequences of pods, bit for bit those of the plugins.

Words used in all modules: a *row* is a node, by its index in the node table. A *class* is the pods
with equal facts (`PodClass`), which are evaluated once; its *signature* is what the plugins read of
it, its *shape* the class without its resource amounts. A *total* is the weighted sum of a node's
scores. *Static scores* are results of plugins that read only facts of the node, which placements do
not change. A class is *covered* if the kernel can decide its pods (`covered_classes`). A *lowering*
translates one plugin for compiled code (`lowering`). A *counter* counts pods by topology domain
(`counter_arrays`), a *cell* is rows that are equal for all counters of a class, and a *list* has
the best rows of a class (`best_rows`).

Only `jit` imports numba, for the compiled modules; `compiled_code.load` imports these at run time.
"""
