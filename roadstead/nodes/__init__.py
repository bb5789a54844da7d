"""The node table: one row per node, in columns, with the number of its pods by class.

Words used in all modules: a *code* is a small integer in place of a value (a label's, a resource's
name, a set of taints), which an interner assigns (`interning`). The *arrival* of a node is its
position in the order in which the nodes of the cluster were added, counted from 0. A table's
*version* is the number of its changes. A row's *snapshot* is the copy of a node that upstream makes
at the start of a cycle, and that can be outdated (`snapshots`).
"""
