"""Preemption without I/O: the dry run and the choice of a node.

A *candidate* is a node with its *victims*, the pods whose eviction lets the preemptor fit there.
"""
