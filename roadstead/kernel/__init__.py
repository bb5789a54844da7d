"""The kernel: compiled decisions of sequences of pods, bit for bit those of the plugins.

Words used in all modules: a *row* is a node, by its index in the node table. A *class* is the pods
with equal facts (`PodClass`), which are evaluated once; its *signature* is what the plugins read of
it, its *shape* the class without its resource amounts. A *total* is the weighted sum of a node's
scores. *Static scores* are results of plugins that read only facts of the node, which placements do
not change; rows with equal raw ones form a *normalization group*, as their normalized scores are
equal. A class is *covered* if the kernel can decide its pods (`covered_classes`). A *lowering*
translates one plugin for compiled code (`lowering`). A *counter* counts pods by topology domain
(`counter_arrays`), a *cell* is rows that are equal for all counters of a class, and a *list* has
the best rows of a class, with a *bound*: the highest total of its other rows (`best_rows`).

Among rows with equal totals the *tie-break* chooses, by a hash of each node's name and a hash of
the pod. A *position* is the index of a row in the order of the hashes of names. Consecutive
positions form a *bucket*, and consecutive buckets a *block*; the highest total of each is stored,
so that the best row is found without reading all rows (`arrays`, `jit`).

Only `jit` imports numba, for the compiled modules; `compiled_code.load` imports these at run time.
"""
