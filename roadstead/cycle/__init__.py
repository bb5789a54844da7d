"""The scheduling cycle: decides pods in batches over one node table.

Words used in all modules: a *class* is the pods with equal facts (`PodClass`), which are evaluated
once; its *signature* is what the plugins of a profile read of it, its *shape* the class without its
resource amounts. A *row* is a node of the table. A *batch* is pods that are decided one after
another while only its own placements change the table; the *kernel* decides most of them by
compiled code (`roadstead.kernel`), the plugins the others (the *reference path*). A *scope* is the
nodes on which a batch is decided. A *need* is a request of the cycle to its driver (`needs.py`). An
*arrival* is the number of a node in the order in which nodes were added. A *worker* is an actor
with every Nth node, which evaluates users' plugins or lists its best rows for schedulers.

Pods that differ only in the names of their device claims have different classes but one
*substitute*, a class by which all of them are evaluated. A pod is *assumed* once the cache has
accepted its placement; until then the placement is *tentative* (`tentative.py`).
"""
